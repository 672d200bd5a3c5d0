"""Rewards and the metrics that others use. The published README's formula decides; the variant of its code is shown."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from rowproof.errors import RowproofError
from rowproof.speedrun.outcomes import Outcome

BASE_REWARD = 0.3
SPEED_WEIGHT = 0.7
FAST_LEVELS = (1.0, 1.1, 1.5, 2.0)
EXPLAIN_FACTOR = 2.0
"""Factor between the ratios of time and of operations from which the row asks for an explanation."""

Nondeterminism = Literal["reject", "flag"]


def reward(speedup: float) -> float:
    """Reward of a valid attempt by the README: ``0.3 + 0.7 * baseline time / patched time``.

    Args:
        speedup: baseline time over patched time.
    """
    return BASE_REWARD + speedup * SPEED_WEIGHT


def reward_code_variant(speedup: float) -> float:
    """Reward of a valid attempt by the published code, which leaves the factor 0.7 out. Shown for comparison only."""
    return BASE_REWARD + speedup


def reward_columns(
    outcome: Outcome,
    verdict: str | None,
    timed: Mapping[str, Any] | None,
    nondeterminism: Nondeterminism = "flag",
) -> dict[str, Any]:
    """The columns ``reward``, ``reward_ci95``, ``reward_strict`` and ``reward_code_variant``, to six decimals.

    Args:
        outcome: of the attempt.
        verdict: of the loss rule; ``reward_strict`` is zero unless it is ``pass``.
        timed: what :func:`rowproof.speedrun.statistics.timed_part` returns; None for an attempt that earns nothing.
        nondeterminism: ``reject`` gives a nondeterministic attempt nothing.

    Raises:
        RowproofError: the attempt earns a reward and was not timed.
    """
    earns = outcome.earns_reward and not (outcome is Outcome.NONDETERMINISTIC and nondeterminism == "reject")
    if not earns:
        return {"reward": 0.0, "reward_ci95": [0.0, 0.0], "reward_strict": 0.0, "reward_code_variant": 0.0}
    if timed is None:
        raise RowproofError(f"an attempt with outcome {outcome} must be timed, found no times: measure its pairs")
    ratio, interval = timed["wall_ratio"], timed["ratio_ci95"]
    return {
        "reward": round(reward(ratio), 6),
        "reward_ci95": None if interval is None else [round(reward(bound), 6) for bound in interval],
        "reward_strict": round(reward(ratio), 6) if verdict == "pass" else 0.0,
        "reward_code_variant": round(reward_code_variant(ratio), 6),
    }


def stored_ratio(wallclock_ms: float, stored_class: str, patched_s: Sequence[float], machine_class: str) -> float:
    """Speed-up against a stored baseline time, as published: that time over the mean of the patched runs.

    Args:
        wallclock_ms: stored time of the baseline, milliseconds.
        stored_class: hardware class where it was measured.
        patched_s: times of the patched runs, seconds.
        machine_class: hardware class of this machine.

    Raises:
        RowproofError: the classes differ, or there is no run.
    """
    if stored_class != machine_class:
        raise RowproofError(
            f"a stored time must come from the hardware class of this machine, found {stored_class} and "
            f"{machine_class}: set recalc_wallclock to true"
        )
    if not patched_s:
        raise RowproofError("a speed-up needs the time of at least one patched run, found none: run it")
    return wallclock_ms / (1000 * fmean(patched_s))


def reward_flops(outcome: Outcome, train_flops_base: int, train_flops: int) -> float:
    """The deterministic score: the reward formula with operations in place of times; zero unless it earns a reward."""
    return round(reward(train_flops_base / train_flops), 6) if outcome.earns_reward else 0.0


def is_implausible(cpu_s: float, analytic_flops: int, peak_gflops_per_s: float) -> bool:
    """Whether a run took less CPU time (seconds) than its operations need at the machine's measured peak rate."""
    return cpu_s < analytic_flops / (peak_gflops_per_s * 1e9)


def needs_explanation(wall_ratio: float, flops_ratio: float) -> bool:
    """Whether the ratios of time and of operations lie more than a factor 2 apart."""
    return max(wall_ratio / flops_ratio, flops_ratio / wall_ratio) > EXPLAIN_FACTOR


def fsr(reference_s: float, next_reference_s: float, attempt_s: float | None) -> float:
    """Fraction of the speed-up recovered from one record to the next: ``(t - t') / (t - t_next)``.

    1 is as good as the next record, above 1 better, negative slower. Zero when there is no valid time or the reference
    gap is not positive, as in the published analysis.

    Args:
        reference_s: time of the record that the attempt starts from, seconds, measured on this machine.
        next_reference_s: time of the next record, seconds, measured on this machine.
        attempt_s: best valid time of the attempt, seconds; None when there is none.
    """
    gap_s = reference_s - next_reference_s
    return (reference_s - attempt_s) / gap_s if attempt_s is not None and gap_s > 0 else 0.0


def fsr_column(
    reference_s: float, next_reference_s: float | None, attempt_s: float | None, gap_shown: bool
) -> float | None:
    """The column ``fsr`` to six decimals; None for the last rung and where the gap of references is not significant.

    Args:
        reference_s: see :func:`fsr`.
        next_reference_s: None for the last rung.
        attempt_s: see :func:`fsr`.
        gap_shown: the next record was shown to be faster on this machine.
    """
    if next_reference_s is None or not gap_shown:
        return None
    return round(fsr(reference_s, next_reference_s, attempt_s), 6)


def fast_p(intervals: Sequence[tuple[float, float] | None], level: float) -> float:
    """Share of attempts whose interval of ``wall_ratio`` lies entirely above ``level``.

    Args:
        intervals: of each attempt; None stands for a failed one.
        level: p.

    Raises:
        RowproofError: no attempt.
    """
    if not intervals:
        raise RowproofError("a share needs at least one attempt, found none")
    return sum(interval is not None and interval[0] > level for interval in intervals) / len(intervals)


def pass_at_k(n_attempts: int, n_passed: int, k: int) -> float:
    """Chance that one of ``k`` attempts drawn without replacement passed (Chen et al. 2021, equation 1).

    Raises:
        RowproofError: not ``0 <= n_passed <= n_attempts`` or not ``1 <= k <= n_attempts``.
    """
    if not (0 <= n_passed <= n_attempts and 1 <= k <= n_attempts):
        raise RowproofError(
            f"pass@k needs 0 <= passed <= attempts and 1 <= k <= attempts, found {n_passed}, {n_attempts}, k = {k}"
        )
    return 1 - math.comb(n_attempts - n_passed, k) / math.comb(n_attempts, k)


def summary(rows: Sequence[tuple[float, bool, tuple[float, float] | None]], k: int = 1) -> dict[str, Any]:
    """Summary over attempts: ``mean_reward``, ``best_reward``, ``pass_at_k`` and ``fast_p`` at 1.0, 1.1, 1.5 and 2.0.

    Args:
        rows: of each attempt the reward, whether it is valid, and the interval of its ``wall_ratio`` (None: failed).
        k: for ``pass_at_k``.

    Raises:
        RowproofError: no attempt, or fewer than ``k``.
    """
    if not rows:
        raise RowproofError("a summary needs at least one attempt, found none")
    return {
        "n_attempts": len(rows),
        "mean_reward": round(fmean(row[0] for row in rows), 6),
        "best_reward": max(row[0] for row in rows),
        "pass_at_k": round(pass_at_k(len(rows), sum(row[1] for row in rows), k), 6),
        "fast_p": {str(level): round(fast_p([row[2] for row in rows], level), 6) for level in FAST_LEVELS},
    }
