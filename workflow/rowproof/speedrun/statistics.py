"""Statistics of noisy losses and noisy times: pure functions of what was measured, the same bytes on every machine.

What ``timing.json`` holds is said in :mod:`rowproof.speedrun.blocks`.

Only square roots and the four operations are used on times, which IEEE 754 rounds alike everywhere; logarithms are not.
Results are rounded: times to 0.001 ms, ratios to six decimals.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from statistics import median
from typing import Any

from rowproof.errors import RecordError, RowproofError
from rowproof.records import digest
from rowproof.speedrun.blocks import (
    Interval,
    Pair,
    block_pairs,
    bootstrap_interval,
    expect,
    need_pairs,
    ratio_of_medians,
    read_runs,
)
from rowproof.speedrun.losses import LOSS_Z, LossTest, Verdict, exact_mean
from rowproof.speedrun.protocol import MAX_REPEATS, Run, is_disturbed, pair_orders

T_TEST_LEVEL = 0.01
CALIBRATION_FACTOR = 1.5
"""A calibrated rung lies below the target by this multiple of what the loss rule demands."""
EXPLAIN_DIFFERENCE = 0.05
"""Difference (fraction) between the two estimators from which the row asks for an explanation."""
RECORD_PAIRS = 7
MIN_CLAIM_PAIRS = 3


# --- Loss -------------------------------------------------------------------------------------------------------------


def t_test(losses: Mapping[int, float], threshold: float, same_weights: bool = False) -> LossTest:
    """The rule of the ``gpu`` track: one-sided one-sample t-test against the threshold, p < 0.01, three seeds or more.

    Args:
        losses: loss (nats per token) of each seed.
        threshold: nats per token.
        same_weights: the digest of the weights equals the base's (a pure systems patch): the test is waived.

    Raises:
        RowproofError: no loss, or one that is not finite.
    """
    mean = exact_mean(losses)
    margin = Fraction(repr(threshold)) - mean
    n = len(losses)
    variance = sum((Fraction(repr(loss)) - mean) ** 2 for loss in losses.values()) / (n - 1) if n > 1 else Fraction(0)
    z = float(margin) / math.sqrt(float(variance) / n) if variance else None
    p = t_upper_tail(z, n - 1) if z is not None else float(margin <= 0)
    if margin < 0:
        verdict: Verdict = "miss"
    else:
        verdict = "pass" if same_weights or (n >= 3 and p < T_TEST_LEVEL) else "inconclusive"
    return LossTest(float(mean), margin >= 0, verdict, None if z is None else round(z, 3))


def t_upper_tail(t: float, degrees: int) -> float:
    """Probability that Student's t exceeds ``t``.

    The finite series for whole degrees of freedom: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.

    Raises:
        ValueError: fewer than one degree of freedom.
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, found {degrees}")
    theta = math.atan(abs(t) / math.sqrt(degrees))
    cosine, sine = math.cos(theta), math.sin(theta)
    odd = degrees % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * ((k - 1) / k)
        total += term
    if degrees == 1:
        central = 2 * theta / math.pi
    elif odd:
        central = 2 * (theta + sine * total) / math.pi
    else:
        central = sine * total
    return (1 - central) / 2 if t >= 0 else (1 + central) / 2


def calibration_margin(sigma: float, n_seeds: int) -> float:
    """Nats per token by which a calibrated rung lies below the target; 0.0101 for sigma 0.005 and three seeds."""
    return CALIBRATION_FACTOR * LOSS_Z * sigma / math.sqrt(n_seeds)


def calibrated_target(losses: Sequence[float]) -> float:
    """The smallest number with two decimals that is at least mean + 3 standard deviations of calibration losses.

    Raises:
        RowproofError: fewer than two losses.
    """
    n = len(losses)
    if n < 2:
        raise RowproofError(f"calibration needs the losses of two seeds or more, found {n}: run more of them")
    mean = math.fsum(losses) / n
    sd = math.sqrt(math.fsum((loss - mean) ** 2 for loss in losses) / (n - 1))
    return float(Decimal(repr(round(mean + 3 * sd, 9))).quantize(Decimal("0.01"), ROUND_CEILING))


def _pair_runs(timing: Any) -> tuple[list[tuple[Run, Run]], bool]:
    """(base, patched) of each pair that counts, and whether a disturbed one had to be kept.

    The protocol is followed run by run: a disturbed pair is measured again while the job has repeats left, and kept
    after that. So which pairs count never depends on how long they took.
    """
    runs, chosen, contended = read_runs(timing), [], False
    pair, attempt, repeats = -1, 0, 0
    orders = pair_orders(timing["order_seed"], timing["n_pairs"])
    for index in range(len(orders)):
        found = runs[2 * index : 2 * index + 2]
        expect(found, pair, attempt, orders[index])
        disturbed = pair >= 0 and any(map(is_disturbed, found))
        if disturbed and repeats < MAX_REPEATS:
            repeats, attempt = repeats + 1, attempt + 1
            continue
        if pair >= 0:
            base, patched = sorted(found, key=lambda run: run["arm"])
            chosen.append((base, patched))
            contended |= disturbed
        pair, attempt = pair + 1, 0
        if pair == timing["n_pairs"]:
            break
    if len(runs) != 2 * (index + 1):
        raise RecordError(f"timing: must end with pair {timing['n_pairs'] - 1}, found {len(runs)} runs")
    return chosen, contended


# --- Time -------------------------------------------------------------------------------------------------------------


def hodges_lehmann_ratio(pairs: Sequence[Pair]) -> float:
    """Hodges-Lehmann estimate: exp of the median of all pairwise means (each pair with itself too) of log ratios.

    Computed as the median of geometric means, which is the same and needs no logarithm.
    """
    need_pairs(pairs)
    ratios = [pair.base_s / pair.patched_s for pair in pairs]
    means = sorted(math.sqrt(ratios[i] * ratios[j]) for i in range(len(ratios)) for j in range(i, len(ratios)))
    middle = len(means) // 2
    return means[middle] if len(means) % 2 else math.sqrt(means[middle - 1] * means[middle])


def ratio_of_means(pairs: Sequence[Pair]) -> float:
    """Ratio of the arithmetic means, as the published environment would compute it."""
    need_pairs(pairs)
    return math.fsum(pair.base_s for pair in pairs) / math.fsum(pair.patched_s for pair in pairs)


def sign_wins(pairs: Sequence[Pair]) -> int:
    """Pairs in which the patched script was faster; a tie is no win."""
    return sum(pair.patched_s < pair.base_s for pair in pairs)


def sign_test(wins: int, n_pairs: int) -> float:
    """One-sided p value of the sign test: the chance of at least ``wins`` of ``n_pairs`` when both are alike."""
    return sum(math.comb(n_pairs, k) for k in range(wins, n_pairs + 1)) / 2**n_pairs


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order given (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _columns(pairs: Sequence[Pair]) -> tuple[float, Interval]:
    return _round(ratio_of_medians(pairs)), _round_interval(bootstrap_interval(pairs))


def _round(ratio: float) -> float:
    return round(ratio, 6)


def _round_interval(interval: Interval) -> Interval:
    return _round(interval[0]), _round(interval[1])


def timed_part(timing: dict[str, Any], patched: str = "B", base: str = "A") -> dict[str, Any]:
    """The columns of a row that follow from its stored times, and from nothing else.

    Args:
        timing: content of ``timing.json``; see the head of this module.
        patched: in blocks, the candidate.
        base: in blocks, its partner.

    Returns:
        ``n_pairs``, ``wall_ms_base_median``, ``wall_ms_patched_median``, ``wall_ratio``, ``ratio_ci95``, ``hl_ratio``,
        ``ratio_of_means``, ``sign_wins``, ``cpu_ratio``, ``cpu_ratio_ci95``, ``aa_floor``, ``machine``, ``date``,
        ``timing_sha256`` (of the canonical JSON of ``timing``) and ``timing_flags``: ``contended`` (a disturbed pair
        had to be kept) and ``explain`` (the two estimators differ by more than 5 %).

    Raises:
        RecordError: a key is missing or malformed, a pair is incomplete, out of order, or was repeated without cause.
    """
    if type(timing) is dict and timing.get("design") == "blocks":
        wall, contended = block_pairs(timing, patched, base)
        cpu, _ = block_pairs(timing, patched, base, "cpu_s")
    else:
        runs, contended = _pair_runs(timing)
        wall, cpu = ([Pair(a[key], b[key]) for a, b in runs] for key in ("t_wall_s", "cpu_s"))
    ratio, interval = _columns(wall)
    cpu_ratio, cpu_interval = _columns(cpu)
    hl_ratio = hodges_lehmann_ratio(wall)
    flags = ["contended"] if contended else []
    if abs(hl_ratio / ratio_of_medians(wall) - 1) > EXPLAIN_DIFFERENCE:
        flags.append("explain")
    return {
        "n_pairs": len(wall),
        "wall_ms_base_median": round(1000 * median(pair.base_s for pair in wall), 3),
        "wall_ms_patched_median": round(1000 * median(pair.patched_s for pair in wall), 3),
        "wall_ratio": ratio,
        "ratio_ci95": list(interval),
        "hl_ratio": _round(hl_ratio),
        "ratio_of_means": _round(ratio_of_means(wall)),
        "sign_wins": sign_wins(wall),
        "cpu_ratio": cpu_ratio,
        "cpu_ratio_ci95": list(cpu_interval),
        "aa_floor": timing.get("aa_floor"),
        "machine": timing.get("machine"),
        "date": timing.get("date"),
        "timing_sha256": digest(timing),
        "timing_flags": flags,
    }


# --- What a row may say -----------------------------------------------------------------------------------------------


def statements(
    timed: Mapping[str, Any],
    verdict: Verdict,
    audits_passed: bool,
    strict_sandbox: bool,
    deterministic: bool,
    backed: bool,
) -> list[str]:
    """All that a row may claim: of ``valid``, ``faster``, ``record``, ``no difference shown``.

    Args:
        timed: what :func:`timed_part` returns.
        verdict: of the loss rule.
        audits_passed: all audits of the evaluation.
        strict_sandbox: the runs were made in the strict sandbox.
        deterministic: repeated runs gave equal weights.
        backed: the ratio of operations or of tokens points the same way, or an explanation was accepted.
    """
    if verdict != "pass" or not audits_passed:
        return []
    floor, n_pairs, (low, high) = timed["aa_floor"], timed["n_pairs"], timed["ratio_ci95"]
    if floor is None or n_pairs < MIN_CLAIM_PAIRS:
        return ["valid"]
    if low <= 1 + floor:
        return ["valid", "no difference shown"] if high >= 1 - floor else ["valid"]
    won = n_pairs >= RECORD_PAIRS and timed["sign_wins"] == n_pairs
    uncontended = "contended" not in timed["timing_flags"]
    record = won and uncontended and strict_sandbox and deterministic and backed
    return ["valid", "faster", "record"] if record else ["valid", "faster"]
