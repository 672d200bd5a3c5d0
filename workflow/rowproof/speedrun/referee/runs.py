"""Training runs under the referee's clock: verification runs, timed runs, and interleaved pairs of these."""

import json
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.hashing import sha256_hex
from rowproof.speedrun.corpus import audit_stream
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.protocol import MAX_REPEATS, block_order, is_disturbed, pair_orders
from rowproof.speedrun.referee.checkpoint import Checkpoint, CheckpointError, read_checkpoint
from rowproof.speedrun.referee.cost import analytic_flops
from rowproof.speedrun.referee.evaluation import EVALUATION_LIMITS, Evaluation, evaluate, why_ended
from rowproof.speedrun.referee.machine import read_machine, slept, steal_share
from rowproof.speedrun.referee.sandbox import End, Limits, Program, Sandbox, SandboxError, off_core
from rowproof.speedrun.referee.token_server import TokenServer

Report = Callable[[Mapping[str, Any]], Any]

MAX_OCCUPANCY = 1.05
"""More CPU seconds per second than one core can give."""

_READY_LIMIT_S = 120.0
# What clocks and accounting may be off by, in seconds: it hides no second core in a run worth timing.
_CLOCK_ERROR_S = 0.1
_TAIL_BYTES = 4000


@dataclass(frozen=True)
class Referee:
    """Everything that a run depends on beside its script and seed.

    Attributes:
        sandbox: how runs are confined.
        train: training tokens, unsigned 16-bit of shape [n].
        val: validation tokens, likewise; never in the sandbox of a training run.
        salt: secret that the audit text of a patch depends on.
        limits: of a training run.
        evaluation_limits: of an evaluation.
        checkpoint_limit_mb: size of ``final.npz`` and of its arrays, MiB.
        audit: gives the audit tokens for the digest of a patched script and the salt.
    """

    sandbox: Sandbox
    train: np.ndarray
    val: np.ndarray
    salt: bytes
    limits: Limits
    evaluation_limits: Limits = EVALUATION_LIMITS
    checkpoint_limit_mb: float = 4.0
    audit: Callable[[str, bytes], Any] = audit_stream


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes:
        outcome: ``OK`` if it left a checkpoint by the contract.
        detail: what was found, for people.
        wall_s: from GO to the end of the last descendant.
        cpu_s: user and system CPU seconds of all processes between these moments.
        max_rss_mb: largest resident memory of a process, MiB.
        tokens: tokens delivered.
        distinct_tokens: positions of the training stream that were delivered.
        largest_window: longest window delivered, tokens.
        requests: requests to the token server.
        exit_code: of the main process, or minus the signal that ended it.
        load_before: load of the machine before the run.
        load_after: and after it.
        steal: share of the core's time that other guests of the host took.
        slept: whether the machine was suspended.
        core_mhz: clock rate of the core before the run, where the system tells.
        checkpoint: description of the weights.
        weights: the file that was left.
        flops: counted inside the untrusted process, in verification runs alone.
        stdout: the end of the standard output, 1 MiB at most.
        stderr: the end of the error output, 4,000 bytes at most.
    """

    outcome: Outcome
    detail: str
    wall_s: float
    cpu_s: float
    max_rss_mb: float
    tokens: int
    distinct_tokens: int
    largest_window: int
    requests: int
    exit_code: int
    load_before: float
    load_after: float
    steal: float
    slept: bool
    core_mhz: float | None
    checkpoint: Checkpoint | None = None
    weights: bytes | None = field(default=None, repr=False)
    flops: int | None = None
    stdout: bytes = field(default=b"", repr=False)
    stderr: str = field(default="", repr=False)

    def usage(self) -> dict[str, Any]:
        """The figures of the run as a record."""
        checkpoint = self.checkpoint
        return {
            "outcome": str(self.outcome),
            "detail": self.detail,
            "exit": self.exit_code,
            "t_wall_s": round(self.wall_s, 6),
            "cpu_s": round(self.cpu_s, 6),
            "max_rss_mb": round(self.max_rss_mb, 1),
            "tokens": self.tokens,
            "distinct_tokens": self.distinct_tokens,
            "largest_window": self.largest_window,
            "requests": self.requests,
            "load_before": self.load_before,
            "load_after": self.load_after,
            "steal": round(self.steal, 6),
            "slept": self.slept,
            "core_mhz": self.core_mhz,
            "weights_sha256": checkpoint.sha256 if checkpoint else None,
        }


@dataclass(frozen=True)
class Verification:
    """A verification run and its evaluation.

    Attributes:
        seed: the seed of the run.
        run: the run, with FLOPs counted.
        evaluation: losses and audits; ``None`` if the run left nothing to evaluate.
    """

    seed: int
    run: Run
    evaluation: Evaluation | None

    @property
    def outcome(self) -> Outcome:
        """``OK``, or what went wrong first."""
        return self.run.outcome if self.evaluation is None else self.evaluation.outcome

    @property
    def detail(self) -> str:
        """What was found, for people."""
        return self.run.detail if self.evaluation is None else self.evaluation.detail

    def record(self) -> dict[str, Any]:
        """Everything but weights and output: what is kept of a verification."""
        found, checkpoint = self.evaluation or Evaluation(self.run.outcome), self.run.checkpoint
        return {
            "seed": self.seed,
            "outcome": str(self.outcome),
            "detail": self.detail,
            "val_loss": found.val_loss,
            "audit_loss": found.audit_loss,
            "causality_error": found.causality_error,
            "state_error": found.state_error,
            "train_tokens": self.run.tokens,
            "train_flops": self.run.flops,
            "analytic_flops": analytic_flops(checkpoint.shapes, self.run.tokens) if checkpoint else None,
            "n_params": checkpoint.n_params if checkpoint else None,
            "checkpoint_bytes": checkpoint.size_bytes if checkpoint else None,
            "weights_sha256": checkpoint.sha256 if checkpoint else None,
            "usage": self.run.usage(),
        }


def train(referee: Referee, source: str, seed: int, count_flops: bool = False) -> Run:
    """One training run of ``source`` (text of the script) with ``seed``.

    Until GO no line of the script has been read; from GO to the end of the last process everything is timed.

    Raises:
        SandboxError: the sandbox or the trusted start failed.
    """
    core = referee.sandbox.core
    with tempfile.TemporaryDirectory(prefix="speedrun-run-") as name, off_core(core):
        # In the sandbox the script is read by another user.
        Path(name).chmod(0o755)
        script = Path(name, "train_gpt.py")
        script.write_text(source, encoding="utf-8")
        script.chmod(0o444)
        ours, theirs = socket.socketpair()
        with TokenServer(referee.train) as server, ours, theirs:
            program = Program(
                referee.sandbox,
                ["/referee/train.py", "/script/train_gpt.py", str(theirs.fileno()), str(int(count_flops))],
                referee.limits,
                environment={"SPEEDRUN_SEED": str(seed), "SPEEDRUN_TOKENS_FD": str(server.descriptor)},
                descriptors=[theirs.fileno(), server.descriptor],
                files={"/script/train_gpt.py": script},
                result="final.npz",
                result_limit_mb=referee.checkpoint_limit_mb,
            )
            with program:
                theirs.close()
                server.hand_over()
                ready_cpu_s = _await_ready(ours, program)
                before = read_machine(core)
                started_s = time.monotonic()
                ours.sendall(b"G")
                end = program.finish(started_s + referee.limits.wall_s)
            after = read_machine(core)
            flops = _read_flops(ours) if count_flops else None
    run = Run(
        outcome=Outcome.OK,
        detail="",
        wall_s=end.ended_s - started_s,
        cpu_s=end.cpu_s - ready_cpu_s,
        max_rss_mb=end.max_rss_mb,
        tokens=server.tokens,
        distinct_tokens=server.distinct_tokens,
        largest_window=server.largest_window,
        requests=server.requests,
        exit_code=end.exit_code,
        load_before=before.load,
        load_after=after.load,
        steal=steal_share(before, after),
        slept=slept(before, after),
        core_mhz=before.core_mhz,
        flops=flops,
        stdout=end.stdout,
        stderr=end.stderr[-_TAIL_BYTES:].decode(errors="replace"),
    )
    return _with_checkpoint(run, end, int(referee.checkpoint_limit_mb * (1 << 20)))


def _await_ready(connection: socket.socket, program: Program) -> float:
    """CPU seconds that the trusted start has used."""
    connection.settimeout(_READY_LIMIT_S)
    try:
        return float(json.loads(connection.recv(4096))["ready_cpu_s"])
    except (TimeoutError, ValueError):
        end = program.finish(time.monotonic())
        message = end.stderr[-500:].decode(errors="replace").strip()
        raise SandboxError(
            f"a run must be ready within {_READY_LIMIT_S:.0f} s, found: exit {end.exit_code} {message}"
        ) from None


def _read_flops(connection: socket.socket) -> int | None:
    """FLOPs as the untrusted process tells them; ``None`` where it does not."""
    connection.setblocking(False)
    try:
        flops = json.loads(connection.recv(4096))["flops"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return flops if type(flops) is int and 0 <= flops < 1 << 63 else None


def _with_checkpoint(run: Run, end: End, limit_bytes: int) -> Run:
    """``run`` with its outcome, and its checkpoint if there is one."""
    if end.stopped or end.exit_code != 0:
        outcome, detail = why_ended(end)
        return replace(run, outcome=outcome, detail=detail)
    if end.alive:
        return replace(run, outcome=Outcome.ASYNC_TAIL, detail="the run must be over when its main process ends")
    if run.cpu_s > MAX_OCCUPANCY * run.wall_s + _CLOCK_ERROR_S:
        detail = f"a run has one core, found {run.cpu_s / run.wall_s:.2f} CPU seconds per second"
        return replace(run, outcome=Outcome.SANDBOX_VIOLATION, detail=detail)
    if end.result is None:
        detail = f"the run must leave final.npz, found: {end.result_error}"
        return replace(run, outcome=Outcome.NO_CHECKPOINT, detail=detail)
    try:
        checkpoint = read_checkpoint(end.result, limit_bytes)
    except CheckpointError as error:
        return replace(run, outcome=Outcome.NO_CHECKPOINT, detail=str(error))
    return replace(run, checkpoint=checkpoint, weights=end.result)


def verify(referee: Referee, source: str, seed: int, base_gap: float | None) -> Verification:
    """The verification run of one seed, and its evaluation.

    Args:
        referee: what the run depends on.
        source: text of the patched script.
        seed: the seed.
        base_gap: audit loss minus validation loss of the baseline; ``None`` for the baseline itself.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    run = train(referee, source, seed, count_flops=True)
    if run.outcome is not Outcome.OK or run.weights is None:
        return Verification(seed, run, None)
    return Verification(seed, run, evaluate_weights(referee, source, run.weights, source, "evaluation", base_gap))


def evaluate_weights(
    referee: Referee, source: str, weights: bytes, audited: str, purpose: str, base_gap: float | None
) -> Evaluation:
    """Evaluate the weights of a script in a sandbox of their own.

    Args:
        referee: what is evaluated on, and within which limits.
        source: the script that holds the model.
        weights: of its training.
        audited: the script whose audit text is taken; ``source`` itself unless two scripts are compared on one text.
        purpose: name of the order of windows and audits.
        base_gap: see :func:`verify`.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    audited_sha256 = sha256_hex(audited.encode("utf-8"))
    audit = np.asarray(referee.audit(audited_sha256, referee.salt), dtype=np.int64)
    # Neither the order of the windows nor the audits can be known to whoever wrote the patch.
    root_seed = int(sha256_hex(purpose.encode() + b"\0" + referee.salt + audited_sha256.encode()), 16)
    with tempfile.TemporaryDirectory(prefix="speedrun-evaluation-") as name, off_core(referee.sandbox.core):
        Path(name).chmod(0o755)
        return evaluate(
            *(referee.sandbox, source, weights, referee.val, audit, Path(name), root_seed, base_gap),
            limits=referee.evaluation_limits,
        )


def same_weights(verifications: Sequence[Verification]) -> list[tuple[int, int]]:
    """Pairs of different seeds that gave the same weights: their script does not use its seed."""
    pairs = []
    for index, first in enumerate(verifications):
        for second in verifications[index + 1 :]:
            known = first.run.checkpoint and second.run.checkpoint
            if known and first.seed != second.seed and first.run.checkpoint.sha256 == second.run.checkpoint.sha256:
                pairs.append((first.seed, second.seed))
    return pairs


def judge_seeds(verifications: Sequence[Verification]) -> tuple[Outcome, str]:
    """The outcome of the verification runs of one script, one per seed: the first that is not ``OK``.

    Repeating a seed is not a sample: a script that gives the same weights for two seeds breaks its contract.
    """
    for verification in verifications:
        if verification.outcome is not Outcome.OK:
            return verification.outcome, f"seed {verification.seed}: {verification.detail}"
    for first, second in same_weights(verifications):
        return Outcome.POLICY_VIOLATION, f"seeds must give different weights, found {first} and {second} alike"
    return Outcome.OK, ""


def time_pairs(
    referee: Referee,
    base: str,
    patched: str,
    n_pairs: int,
    order_seed: int,
    seeds: Sequence[int],
    verified: Mapping[tuple[str, int], str],
    report: Report | None = None,
) -> dict[str, Any]:
    """Run base (A) and patched script (B) in turns and keep every time: the content of ``timing.json``.

    The order inside each pair is a coin toss of ``order_seed``. A first pair warms the machine up and is not used. A
    pair that the machine disturbed is kept, not used, and run again while repeats are left. The first run that does not
    end well ends the measurement.

    Args:
        referee: what the runs depend on.
        base: text of the base script.
        patched: text of the patched script.
        n_pairs: pairs to use.
        order_seed: seed of the coin tosses.
        seeds: seeds of the runs; pair i has ``seeds[i % len(seeds)]`` in both arms.
        verified: digest of the weights of the verification run, by arm and seed.
        report: gets the entry of every run when it is over.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    sources = {"A": base, "B": patched}
    runs: list[dict[str, Any]] = []
    pair, tries, repeats = -1, 0, 0
    for arms in pair_orders(order_seed, n_pairs):
        seed = seeds[max(pair, 0) % len(seeds)]
        measured = _time_group(referee, sources, arms, pair, tries, seed, verified, report)
        runs += measured
        if measured[-1]["outcome"] != Outcome.OK:
            break
        if pair >= 0 and repeats < MAX_REPEATS and any(map(is_disturbed, measured)):
            repeats, tries = repeats + 1, tries + 1
            continue
        pair, tries = pair + 1, 0
        if pair == n_pairs:
            break
    return _timing(referee, sources, {"n_pairs": n_pairs, "order_seed": order_seed}, runs)


def time_blocks(
    referee: Referee,
    sources: Mapping[str, str],
    reference: str,
    n_blocks: int,
    order_seed: int,
    seeds: Sequence[int],
    verified: Mapping[tuple[str, int], str],
    report: Report | None = None,
) -> dict[str, Any]:
    """Run a whole ladder in randomised blocks: the reference first and last, every other script once between.

    The arguments are those of :func:`time_pairs`, with scripts by name. A first run of the reference warms the machine
    up. Blocks are not repeated. The first run that does not end well ends the measurement.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    runs = _time_group(referee, sources, (reference,), -1, 0, seeds[0], verified, report)
    candidates = [name for name in sources if name != reference]
    for block in range(n_blocks):
        if runs[-1]["outcome"] != Outcome.OK:
            break
        arms = block_order(order_seed, block, candidates, reference)
        runs += _time_group(referee, sources, arms, block, 0, seeds[block % len(seeds)], verified, report)
    return _timing(referee, sources, {"n_pairs": n_blocks, "order_seed": order_seed, "design": "blocks"}, runs)


def _time_group(
    referee: Referee,
    sources: Mapping[str, str],
    arms: Sequence[str],
    pair: int,
    tries: int,
    seed: int,
    verified: Mapping[tuple[str, int], str],
    report: Report | None,
) -> list[dict[str, Any]]:
    """One timed run of each arm in turn, up to the first that does not end well."""
    entries: list[dict[str, Any]] = []
    for position, arm in enumerate(arms):
        run = train(referee, sources[arm], seed)
        digest = verified.get((arm, seed))
        matches = None if digest is None or run.checkpoint is None else run.checkpoint.sha256 == digest
        place = {"arm": arm, "pair": pair, "try": tries, "order": position, "seed": seed}
        entries.append({**place, **run.usage(), "weights_match": matches})
        if report is not None:
            report(entries[-1])
        if run.outcome is not Outcome.OK:
            break
    return entries


def _timing(
    referee: Referee, sources: Mapping[str, str], design: dict[str, Any], runs: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        **design,
        "outcome": runs[-1]["outcome"],
        "failed_arm": None if runs[-1]["outcome"] == Outcome.OK else runs[-1]["arm"],
        "scripts_sha256": {arm: sha256_hex(source.encode("utf-8")) for arm, source in sources.items()},
        "sandbox": referee.sandbox.mode,
        "core": referee.sandbox.core,
        "deterministic": all(run["weights_match"] is not False for run in runs),
        "runs": runs,
    }
