"""Losses and audits from logits: the untrusted model answers windows, everything else happens here."""

import json
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rowproof.seeding import substream
from rowproof.speedrun.corpus import VOCABULARY
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee.sandbox import End, Limits, Program, Sandbox, SandboxError

WINDOW = 128
"""Tokens of one evaluation window."""
BATCH = 64
"""Windows of one message to the model."""
AUDITED = 32
"""Windows of the causality audit, and of the state audit."""
TOLERANCE = 1e-4
"""Largest difference of two log probabilities that must agree."""
AUDIT_GAP = 0.02
"""How much more a model may lose on fresh text than the baseline does, in nats per token."""
EVALUATION_LIMITS = Limits(wall_s=60.0, cpu_s=120)

_START_LIMIT_S = 120.0
_MAX_HEADER = 4096
_LENGTH = struct.Struct("<q")


@dataclass(frozen=True)
class Evaluation:
    """What evaluation found.

    Attributes:
        outcome: ``OK``, or the first rule that is broken.
        detail: what was found, for people.
        val_loss: mean loss on the validation windows, nats per token; ``None`` if no loss could be measured.
        audit_loss: the same on the audit text.
        causality_error: largest change of a log probability when later tokens change.
        state_error: largest change of a log probability in other company.
    """

    outcome: Outcome
    detail: str = ""
    val_loss: float | None = None
    audit_loss: float | None = None
    causality_error: float | None = None
    state_error: float | None = None


class _Failed(Exception):
    """The model's answers end the evaluation."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome


@dataclass(frozen=True)
class _Plan:
    """All windows that are sent, in order of sending.

    Attributes:
        windows: int64 of shape [N, WINDOW]. Validation comes first, then audit text, then altered and repeated windows.
        order: the order of sending, a permutation of N.
        n_val: number of validation windows.
        n_audit: number of windows of audit text.
        altered: validation windows whose tokens after ``cuts`` were replaced.
        cuts: last position that was kept in each of them.
        repeated: validation windows that are sent twice.
    """

    windows: np.ndarray
    order: np.ndarray
    n_val: int
    n_audit: int
    altered: np.ndarray
    cuts: np.ndarray
    repeated: np.ndarray


def windows_of(stream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets, both int64 of shape [n, WINDOW], of a stream of n * WINDOW + 1 tokens."""
    count = (len(stream) - 1) // WINDOW
    values = np.asarray(stream, dtype=np.int64)
    return values[: count * WINDOW].reshape(count, WINDOW), values[1 : count * WINDOW + 1].reshape(count, WINDOW)


def _plan(val: np.ndarray, audit: np.ndarray, root_seed: int) -> _Plan:
    draws = substream("speedrun.evaluation", root_seed)
    number = min(AUDITED, len(val) // 2)
    chosen = draws.permutation(len(val))[: 2 * number]
    altered, repeated = chosen[:number], chosen[number:]
    cuts = draws.integers(0, WINDOW - 1, size=number)
    changed = val[altered].copy()
    for window, cut in zip(changed, cuts, strict=True):
        window[cut + 1 :] = draws.integers(0, 256, size=WINDOW - 1 - cut)
    windows = np.concatenate([val, audit, changed, val[repeated]])
    return _Plan(windows, draws.permutation(len(windows)), len(val), len(audit), altered, cuts, repeated)


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """Log-softmax over the last axis in float64."""
    values = logits.astype(np.float64)
    values -= values.max(axis=-1, keepdims=True)
    values -= np.log(np.exp(values).sum(axis=-1, keepdims=True))
    return values


def evaluate(
    sandbox: Sandbox,
    source: str,
    weights: bytes,
    val: np.ndarray,
    audit: np.ndarray,
    folder: Path,
    root_seed: int,
    base_gap: float | None,
    limits: Limits = EVALUATION_LIMITS,
) -> Evaluation:
    """Losses and audits of one checkpoint.

    Args:
        sandbox: where the patched script is imported.
        source: text of the patched script.
        weights: its checkpoint, already checked.
        val: validation tokens, shape [n * WINDOW + 1].
        audit: audit tokens, likewise.
        folder: an empty folder for the script and the checkpoint.
        root_seed: seed of the order of the windows and of the audits; unknown to the script.
        base_gap: audit loss minus validation loss of the baseline; ``None`` for the baseline itself.
        limits: of the evaluation; its wall time counts from when PyTorch is loaded.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    script, checkpoint = folder / "train_gpt.py", folder / "final.npz"
    script.write_text(source, encoding="utf-8")
    checkpoint.write_bytes(weights)
    for path in (script, checkpoint):
        path.chmod(0o444)
    val_inputs, val_targets = windows_of(val)
    audit_inputs, audit_targets = windows_of(audit)
    plan = _plan(val_inputs, audit_inputs, root_seed)
    targets = np.concatenate([val_targets, audit_targets])
    ours, theirs = socket.socketpair()
    program = Program(
        sandbox,
        ["/referee/evaluate.py", "/script/train_gpt.py", "/script/final.npz", str(theirs.fileno())],
        limits,
        descriptors=[theirs.fileno()],
        files={"/script/train_gpt.py": script, "/script/final.npz": checkpoint},
    )
    with ours, program:
        theirs.close()
        ours.settimeout(_START_LIMIT_S)
        try:
            started = ours.recv(1)
        except TimeoutError:
            started = b""
        if started != b"R":
            end = program.finish(time.monotonic())
            message = end.stderr[-500:].decode(errors="replace").strip()
            raise SandboxError(f"an evaluation must start within {_START_LIMIT_S:.0f} s, found: {message}")
        deadline_s = time.monotonic() + limits.wall_s
        try:
            losses, kept = _ask(ours, deadline_s, plan, targets)
        except _Failed as failure:
            return Evaluation(failure.outcome, str(failure))
        except TimeoutError:
            return Evaluation(Outcome.TIMEOUT, f"evaluation must end within {limits.wall_s:.0f} s, found it running")
        except (OSError, EOFError):
            # The connection is gone: the program has ended, or has closed its end and is ended now.
            ours.close()
            end = program.finish(min(deadline_s, time.monotonic() + 5))
            return Evaluation(*why_ended(end))
    return _judge(plan, losses, kept, base_gap)


def why_ended(end: End) -> tuple[Outcome, str]:
    """The outcome of a program that did not end as it should, and the last line that it said."""
    lines = end.stderr.decode(errors="replace").strip().splitlines()
    last = lines[-1][:300] if lines else ""
    text = end.stderr[-20_000:]
    if end.stopped or end.exit_code == -signal.SIGXCPU:
        return Outcome.TIMEOUT, "ended at its time limit"
    if end.exit_code == -signal.SIGSYS:
        return Outcome.SANDBOX_VIOLATION, "ended at a forbidden system call"
    starved = any(word in text for word in (b"MemoryError", b"can't allocate memory", b"bad_alloc"))
    if end.exit_code == -signal.SIGKILL or (end.exit_code != 0 and starved):
        return Outcome.OOM, last or "ended for lack of memory"
    return Outcome.CRASHED, f"exit {end.exit_code}: {last}"


def _ask(
    connection: socket.socket, deadline_s: float, plan: _Plan, targets: np.ndarray
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Mean loss of every window with a target, and the log probabilities of the audited windows by window."""
    losses = np.full(len(targets), np.nan)
    audited = {*plan.altered.tolist(), *plan.repeated.tolist(), *range(len(targets), len(plan.windows))}
    kept: dict[int, np.ndarray] = {}
    for start in range(0, len(plan.order), BATCH):
        chosen = plan.order[start : start + BATCH]
        scores = log_probabilities(_answer(connection, deadline_s, plan.windows[chosen]))
        for row, window in enumerate(chosen.tolist()):
            if window < len(targets):
                losses[window] = -scores[row, np.arange(WINDOW), targets[window]].mean()
            if window in audited:
                kept[window] = scores[row]
    return losses, kept


def _answer(connection: socket.socket, deadline_s: float, windows: np.ndarray) -> np.ndarray:
    """Logits float32 [B, WINDOW, VOCABULARY] of ``windows``; nothing about the answer is taken on trust."""
    request = struct.pack("<qq", *windows.shape) + windows.astype("<i8").tobytes()
    connection.settimeout(max(0.001, deadline_s - time.monotonic()))
    connection.sendall(request)
    (size,) = _LENGTH.unpack(_receive(connection, _LENGTH.size, deadline_s))
    if not 0 < size <= _MAX_HEADER:
        raise _Failed(Outcome.BAD_LOGITS, "an answer must begin with its type and shape, found other bytes")
    try:
        header = json.loads(_receive(connection, size, deadline_s))
        found = header["dtype"], list(header["shape"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _Failed(Outcome.BAD_LOGITS, "an answer must begin with its type and shape, found other text") from None
    wanted = "float32", [*windows.shape, VOCABULARY]
    if found != wanted:
        raise _Failed(Outcome.BAD_LOGITS, f"logits must be {wanted[0]} of shape {wanted[1]}, found {found}"[:500])
    count = windows.size * VOCABULARY
    data = _receive(connection, 4 * count, deadline_s)
    logits = np.frombuffer(data, dtype="<f4").reshape(*windows.shape, VOCABULARY)
    if not np.isfinite(logits).all():
        raise _Failed(Outcome.BAD_LOGITS, "logits must be finite, found NaN or infinity")
    return logits


def _receive(connection: socket.socket, size: int, deadline_s: float) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        received = connection.recv_into(view)
        if not received:
            raise EOFError
        view = view[received:]
    return data


def _judge(plan: _Plan, losses: np.ndarray, kept: dict[int, np.ndarray], base_gap: float | None) -> Evaluation:
    first = plan.n_val + plan.n_audit
    causality = 0.0
    for index, (window, cut) in enumerate(zip(plan.altered.tolist(), plan.cuts.tolist(), strict=True)):
        change = np.abs(kept[window][: cut + 1] - kept[first + index][: cut + 1]).max()
        causality = max(causality, float(change))
    state = 0.0
    for index, window in enumerate(plan.repeated.tolist()):
        change = np.abs(kept[window] - kept[first + len(plan.altered) + index]).max()
        state = max(state, float(change))
    val_loss, audit_loss = float(losses[: plan.n_val].mean()), float(losses[plan.n_val :].mean())
    outcome, detail = Outcome.OK, ""
    # A model that remembers also seems to look ahead, so state is judged first.
    if state > TOLERANCE:
        outcome, detail = Outcome.STATEFUL_EVAL, f"a window sent twice must give one answer, found {state:.3g} between"
    elif causality > TOLERANCE:
        outcome, detail = Outcome.NONCAUSAL, f"later tokens must not matter, found a change of {causality:.3g}"
    elif base_gap is not None and audit_loss - val_loss - base_gap > AUDIT_GAP:
        outcome = Outcome.AUDIT_GAP
        detail = (
            f"loss on fresh text may exceed that on validation text by {base_gap + AUDIT_GAP:.4f}, "
            f"found {audit_loss - val_loss:.4f}"
        )
    return Evaluation(outcome, detail, round(val_loss, 6), round(audit_loss, 6), causality, state)
