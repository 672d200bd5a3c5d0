"""Attempts on the CPU track: verification runs, evaluation and timed pairs of one patched script, in one job."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal, NamedTuple

from rowproof.errors import RowproofError
from rowproof.speedrun.dialogue import Phase, Result
from rowproof.speedrun.losses import LOSS_SIGMA, decide, known_sigma_test
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.records_config import Arguments
from rowproof.speedrun.referee.cost import analytic_flops
from rowproof.speedrun.referee.runs import (
    Referee,
    Verification,
    evaluate_weights,
    judge_seeds,
    time_pairs,
    verify,
)
from rowproof.speedrun.scoring import is_implausible
from rowproof.speedrun.statistics import timed_part

BASE_FACTOR = 3
"""Times the baseline's wall and CPU seconds are what a run may take."""
MIN_TIMEOUT_S = 120
START_CPU_S = 15
"""CPU seconds before the clock starts, which the limit of a process counts too."""
CHECKPOINT_FACTOR, MIN_CHECKPOINT_MB = 4, 4

FEEDBACK_SEEDS = range(200, 300)
FINAL_SEEDS = range(100, 200)
_TAIL_CHARACTERS = 4000


def phase_seeds(n_seeds: int) -> dict[Phase, tuple[int, ...]]:
    """The default seeds of both phases: 200 on for answers to a turn, 100 on for the score; none is in both."""
    return {"feedback": tuple(FEEDBACK_SEEDS[:n_seeds]), "final": tuple(FINAL_SEEDS[:n_seeds])}


class Step(NamedTuple):
    """One run that is over.

    Attributes:
        stage: ``verify`` or ``time``.
        arm: ``A`` for the record's script, ``B`` for the patched one.
        name: which run it was.
        counts: whether it is one of the runs that were planned; a pair that is measured again comes on top.
        wall_s: how long it took, seconds.
        outcome: of the run and its evaluation.
        val_loss: nats per token; None where it was not evaluated.
    """

    stage: Literal["verify", "time"]
    arm: str
    name: str
    counts: bool
    wall_s: float
    outcome: str
    val_loss: float | None


@dataclass
class RefereeAttempt:
    """Runs patched scripts with the referee; the baseline is timed again with every one of them, in turns.

    Attributes:
        referee: what the runs depend on; its limits are those of the baseline.
        code: text of the record's script.
        threshold: nats per token.
        arguments: resolved.
        seeds: of each phase; none may be in both.
        sigma: standard deviation of the loss between seeds that is taken as known, nats per token.
        peak_gflops_per_s: the most operations per CPU second that this machine can do, in units of 1e9; None leaves
            out the check that a run is not faster than its operations allow.
        watch: told of every run when it is over.
    """

    referee: Referee
    code: str
    threshold: float
    arguments: Arguments
    seeds: Mapping[Phase, tuple[int, ...]]
    sigma: float = LOSS_SIGMA
    peak_gflops_per_s: float | None = None
    watch: Callable[[Step], Any] | None = None
    _base: dict[int, Verification] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, patched: str, phase: Phase) -> Result:
        """Verify with every seed of the phase, and time if the mean loss meets the threshold.

        Raises:
            RowproofError: the sandbox failed, or the record's own script does.
        """
        seeds = self.seeds[phase]
        bases = [self._verified_base(seed) for seed in seeds]
        referee = self._limited(bases)
        verifications: list[Verification] = []
        for seed, base in zip(seeds, bases, strict=True):
            verifications.append(verify(referee, patched, seed, self._gap(patched, base)))
            self._tell_verification("B", verifications[-1])
            if verifications[-1].outcome is not Outcome.OK:
                break
        outcome, detail = judge_seeds(verifications)
        evidence: dict[str, Any] = {
            "base": [base.record() for base in bases],
            "verify": [verification.record() for verification in verifications],
            "outputs": {v.seed: (v.run.stdout, v.run.stderr) for v in verifications},
        }
        losses = {v.seed: v.evaluation.val_loss for v in verifications if v.evaluation and v.evaluation.val_loss}
        if outcome is not Outcome.OK:
            return Result(outcome, detail, _whole_lines(verifications[-1].run.stderr), losses, evidence=evidence)
        loss = known_sigma_test(losses, self.threshold, self.sigma)
        cpu_s = [(v.run.cpu_s, v.run.tokens) for v in verifications]
        if too_fast := self._too_fast(verifications, cpu_s):
            return Result(Outcome.IMPLAUSIBLE, too_fast, "", losses, loss.verdict, evidence=evidence)
        if not loss.threshold_met:
            return Result(decide(None, loss), "", "", losses, loss.verdict, evidence=evidence)
        verified = {("A", v.seed): v.run.checkpoint.sha256 for v in bases}
        verified |= {("B", v.seed): v.run.checkpoint.sha256 for v in verifications}
        n_pairs, order_seed = self.arguments.n_pairs, self.arguments.order_seed
        timing = time_pairs(referee, self.code, patched, n_pairs, order_seed, seeds, verified, self._tell_timed)
        evidence["timing"] = timing
        if timing["outcome"] != Outcome.OK:
            failed = Outcome(timing["outcome"])
            return Result(failed, "a timed run must end as its verification run did", "", losses, evidence=evidence)
        timed = timed_part(timing)
        found = None if timing["deterministic"] else Outcome.NONDETERMINISTIC
        detail = "" if found is None else "timed runs must give the weights of the verification run with the same seed"
        cpu_s = [(run["cpu_s"], run["tokens"]) for run in timing["runs"] if run["arm"] == "B"]
        if too_fast := self._too_fast(verifications, cpu_s):
            found, detail = Outcome.IMPLAUSIBLE, too_fast
        return Result(
            decide(found, loss),
            detail,
            val_loss=losses,
            verdict=loss.verdict,
            train_time_ms_median=timed["wall_ms_patched_median"],
            wall_ratio=timed["wall_ratio"],
            ratio_ci95=tuple(timed["ratio_ci95"]),
            evidence=evidence,
        )

    def _verified_base(self, seed: int) -> Verification:
        """The verification of the record's own script; its weights are the same every time, its times are not used."""
        if seed not in self._base:
            base = verify(self.referee, self.code, seed, None)
            if base.outcome is not Outcome.OK:
                raise RowproofError(
                    f"the record's own script must run and pass its audits, found {base.outcome} with seed {seed}: "
                    f"{base.detail}"
                )
            self._base[seed] = base
            self._tell_verification("A", base)
        return self._base[seed]

    def _gap(self, patched: str, base: Verification) -> float:
        """Audit loss minus validation loss of the record's own script, on the audit text of the patched one.

        On a text of its own, the noise between two texts would come on top and end honest attempts.
        """
        found = evaluate_weights(self.referee, self.code, base.run.weights, patched, "base evaluation", None)
        if found.outcome is not Outcome.OK:
            raise RowproofError(f"the record's own script must pass its audits, found {found.outcome}: {found.detail}")
        return found.audit_loss - found.val_loss

    def _too_fast(self, verifications: list[Verification], runs: list[tuple[float, int]]) -> str:
        """What is wrong with CPU seconds and tokens of runs that took less time than their operations need, or nothing.

        Operations are counted from the weights that a verification run left, so that the script cannot tell others.
        """
        peak, checkpoint = self.peak_gflops_per_s, verifications[0].run.checkpoint
        for cpu_s, tokens in runs:
            flops = 0 if checkpoint is None else analytic_flops(checkpoint.shapes, tokens)
            if peak is not None and is_implausible(cpu_s, flops, peak):
                return (
                    f"a run of {flops / 1e9:.1f} GFLOP must take {flops / 1e9 / peak:.2f} CPU seconds or more on this "
                    f"machine, found {cpu_s:.2f}"
                )
        return ""

    def _tell_verification(self, arm: str, done: Verification) -> None:
        if self.watch is not None:
            loss = done.evaluation.val_loss if done.evaluation else None
            self.watch(Step("verify", arm, f"seed {done.seed}", True, done.run.wall_s, str(done.outcome), loss))

    def _tell_timed(self, run: Mapping[str, Any]) -> None:
        if self.watch is not None:
            name = "warm-up" if run["pair"] < 0 else f"pair {run['pair'] + 1}" + (" again" if run["try"] else "")
            self.watch(Step("time", run["arm"], name, run["try"] == 0, run["t_wall_s"], run["outcome"], None))

    def _limited(self, bases: list[Verification]) -> Referee:
        """The referee with limits by the baseline's verification runs, where the arguments set none."""
        wall_s, cpu_s = (median(getattr(base.run, name) for base in bases) for name in ("wall_s", "cpu_s"))
        checkpoint_mb = bases[0].run.checkpoint.size_bytes / (1 << 20)
        limits = replace(
            self.referee.limits,
            wall_s=self.arguments.run_timeout_s or max(MIN_TIMEOUT_S, BASE_FACTOR * wall_s),
            cpu_s=self.arguments.cpu_limit_s or math.ceil(BASE_FACTOR * cpu_s) + START_CPU_S,
        )
        limit_mb = self.arguments.checkpoint_limit_mb or max(MIN_CHECKPOINT_MB, CHECKPOINT_FACTOR * checkpoint_mb)
        return replace(self.referee, limits=limits, checkpoint_limit_mb=limit_mb)


def _whole_lines(stderr: str) -> str:
    """The end of an error output without the line that its beginning cut."""
    return stderr.partition("\n")[2] if len(stderr) >= _TAIL_CHARACTERS else stderr
