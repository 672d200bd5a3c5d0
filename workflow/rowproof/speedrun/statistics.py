"""Statistics of noisy losses and noisy times: pure functions of what was measured, the same bytes on every machine.

Times come from ``timing.json``, an object with ``order_seed`` (decides the order of the runs), ``n_pairs`` (pairs that
count), and ``runs``: every run in the order of measuring, none left out. Each run has ``pair`` (from 0; -1 for the
warm-up), ``try`` (from 0, counts up when the pair was measured again), ``order`` (position within the pair, from 0),
``arm`` (``A`` the base, ``B`` the patched script), ``t_wall_s`` and ``cpu_s`` (seconds), ``steal`` (fraction of the
core's time that the host took) and ``slept`` (whether the machine was suspended). Optional are ``aa_floor``
(half-width, as a fraction, of the interval of the machine's A/A comparison), ``machine`` and ``date``. Other keys are
not read. In a ladder, ``design`` is ``blocks``: ``pair`` counts blocks, and arms are names, the reference first and
last.

Only square roots and the four operations are used on times, which IEEE 754 rounds alike everywhere; logarithms are not.
Results are rounded: times to 0.001 ms, ratios to six decimals.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

from rowproof.errors import RecordError, RowproofError
from rowproof.records import digest
from rowproof.seeding import substream

ORDER_STREAM = "speedrun.order"
BLOCK_STREAM = "speedrun.block_order"
BOOTSTRAP_STREAM = "speedrun.pair_bootstrap"
BOOTSTRAP_SEED = 20240520
RESAMPLES = 10_000

LOSS_SIGMA = 0.005
"""Least standard deviation (nats per token) of the loss between seeds that is taken as known on ``cpu-mini``."""
LOSS_Z = 2.33
GUARD_BAND = 0.002
"""Nats per token around the boundary of the loss rule: CPU types differ by less."""
T_TEST_LEVEL = 0.01
CALIBRATION_FACTOR = 1.5
"""A calibrated rung lies below the target by this multiple of what the loss rule demands."""

MIN_OCCUPANCY = 0.8
"""Least CPU seconds per wall second of a run with one thread."""
MAX_STEAL = 0.05
MAX_REPEATS = 3
"""Pairs of one job that may be measured again."""
MAX_PAIRS = 100
EXPLAIN_DIFFERENCE = 0.05
"""Difference (fraction) between the two estimators from which the row asks for an explanation."""
RECORD_PAIRS = 7
MIN_CLAIM_PAIRS = 3

Verdict = Literal["pass", "inconclusive", "miss"]
Interval = tuple[float, float]


class Pair(NamedTuple):
    """Times (seconds) of the two arms of one pair."""

    base_s: float
    patched_s: float


# --- Loss -------------------------------------------------------------------------------------------------------------


class LossTest(NamedTuple):
    """Outcome of a loss rule.

    Attributes:
        mean: mean loss over seeds, nats per token.
        threshold_met: mean at or below the threshold, the condition of the published reward.
        verdict: what the stricter rule says.
        margin_z: margin below the threshold in standard errors; None where it is undefined.
    """

    mean: float
    threshold_met: bool
    verdict: Verdict
    margin_z: float | None


def _exact_mean(losses: Mapping[int, float]) -> Fraction:
    if not losses or not all(type(loss) is float and math.isfinite(loss) for loss in losses.values()):
        raise RowproofError(
            f"a loss rule needs a finite loss of at least one seed, found {dict(losses)}: evaluate the runs"
        )
    # As decimals: three times 1.35 averages to 1.35, and not to its neighbour.
    return sum((Fraction(repr(loss)) for loss in losses.values()), Fraction(0)) / len(losses)


def known_sigma_test(losses: Mapping[int, float], threshold: float, sigma: float = LOSS_SIGMA) -> LossTest:
    """The rule of ``cpu-mini``: pass when ``(threshold - mean) * sqrt(n) >= 2.33 * sigma`` by more than the guard band.

    A margin within 0.002 of that boundary, and any smaller one that still meets the threshold, is inconclusive.

    Args:
        losses: loss (nats per token) of each seed, the unit; a repeated seed is no second sample.
        threshold: nats per token.
        sigma: known standard deviation of the loss between seeds, nats per token.

    Raises:
        RowproofError: no loss, or one that is not finite.
    """
    mean = _exact_mean(losses)
    margin = Fraction(repr(threshold)) - mean
    root = math.sqrt(len(losses))
    if margin < 0:
        verdict: Verdict = "miss"
    elif float(margin) - LOSS_Z * sigma / root > GUARD_BAND:
        verdict = "pass"
    else:
        verdict = "inconclusive"
    return LossTest(float(mean), margin >= 0, verdict, round(float(margin) * root / sigma, 3))


def t_test(losses: Mapping[int, float], threshold: float, same_weights: bool = False) -> LossTest:
    """The rule of the ``gpu`` track: one-sided one-sample t-test against the threshold, p < 0.01, three seeds or more.

    Args:
        losses: loss (nats per token) of each seed.
        threshold: nats per token.
        same_weights: the digest of the weights equals the base's (a pure systems patch): the test is waived.

    Raises:
        RowproofError: no loss, or one that is not finite.
    """
    mean = _exact_mean(losses)
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


# --- Order of measuring -----------------------------------------------------------------------------------------------


def pair_orders(order_seed: int, n_pairs: int) -> list[tuple[str, str]]:
    """The arms of each measured pair in their order: of the warm-up, then of pairs and repeats as they come."""
    tosses = substream(ORDER_STREAM, order_seed).integers(0, 2, size=n_pairs + 1 + MAX_REPEATS).tolist()
    return [("B", "A") if toss else ("A", "B") for toss in tosses]


def block_order(order_seed: int, block: int, candidates: Sequence[str], reference: str) -> tuple[str, ...]:
    """The arms of a block in the order in which they run: the reference at both ends, candidates shuffled between."""
    names = sorted(candidates)
    shuffled = substream(f"{BLOCK_STREAM}.{block}", order_seed).permutation(len(names))
    return (reference, *(names[i] for i in shuffled), reference)


# --- Reading timing.json ----------------------------------------------------------------------------------------------

_RUN_TYPES: dict[str, type] = {
    "pair": int,
    "try": int,
    "order": int,
    "arm": str,
    "t_wall_s": float,
    "cpu_s": float,
    "steal": float,
    "slept": bool,
}
_TIMING_TYPES: dict[str, type] = {"order_seed": int, "n_pairs": int, "runs": list}

Run = Mapping[str, Any]


def _check_types(value: Any, types: Mapping[str, type], where: str) -> None:
    if type(value) is not dict:
        raise RecordError(f"{where}: must be an object, found {type(value).__name__}")
    for key, kind in types.items():
        if key not in value:
            raise RecordError(f"{where}: must have the key {key}, found {sorted(value)}")
        if type(value[key]) is not kind:
            raise RecordError(f"{where}: {key} must be {kind.__name__}, found {value[key]!r}")


def _runs(timing: Any) -> list[Run]:
    """The runs of a complete measurement, checked one by one."""
    _check_types(timing, _TIMING_TYPES, "timing")
    if not 1 <= timing["n_pairs"] <= MAX_PAIRS or timing["order_seed"] < 0:
        raise RecordError(
            f"timing: n_pairs must be from 1 to {MAX_PAIRS} and order_seed not negative, "
            f"found {timing['n_pairs']} and {timing['order_seed']}"
        )
    if timing.get("outcome", "ok") != "ok":
        raise RecordError(f"timing: all runs must have ended well, found {timing['outcome']}: times are of no use then")
    floor = timing.get("aa_floor")
    if floor is not None and not (type(floor) is float and 0 <= floor < 1):
        raise RecordError(f"timing: aa_floor must be a fraction from 0 to 1, found {floor!r}")
    for index, run in enumerate(timing["runs"]):
        _check_types(run, _RUN_TYPES, f"timing: run {index}")
        if not (0 < run["t_wall_s"] < math.inf and 0 < run["cpu_s"] < math.inf):
            raise RecordError(
                f"timing: run {index}: times must be positive, found {run['t_wall_s']} and {run['cpu_s']} s"
            )
    return timing["runs"]


def is_disturbed(run: Run) -> bool:
    """Whether a run of one thread does not count: it waited for its core, or the machine was suspended."""
    return run["cpu_s"] / run["t_wall_s"] < MIN_OCCUPANCY or run["steal"] > MAX_STEAL or run["slept"]


def _expect(runs: Sequence[Run], pair: int, attempt: int, arms: Sequence[str]) -> None:
    found = [(run["pair"], run["try"], run["order"], run["arm"]) for run in runs]
    expected = [(pair, attempt, order, arm) for order, arm in enumerate(arms)]
    if found != expected:
        raise RecordError(
            f"timing: runs must follow the protocol and its order_seed, expected (pair, try, order, arm) {expected}, "
            f"found {found}"
        )


def _pair_runs(timing: Any) -> tuple[list[tuple[Run, Run]], bool]:
    """(base, patched) of each pair that counts, and whether a disturbed one had to be kept.

    The protocol is followed run by run: a disturbed pair is measured again while the job has repeats left, and kept
    after that. So which pairs count never depends on how long they took.
    """
    runs, chosen, contended = _runs(timing), [], False
    pair, attempt, repeats = -1, 0, 0
    orders = pair_orders(timing["order_seed"], timing["n_pairs"])
    for index in range(len(orders)):
        found = runs[2 * index : 2 * index + 2]
        _expect(found, pair, attempt, orders[index])
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


def block_pairs(timing: Any, patched: str, base: str, key: str = "t_wall_s") -> tuple[list[Pair], bool]:
    """The pairs of two arms of a ladder measured in blocks, and whether a run in them was disturbed.

    The reference, which runs at both ends of each block, counts with the geometric mean of its two times. Blocks are
    not repeated.

    Args:
        timing: content of ``timing.json`` with the design ``blocks``.
        patched: name of the candidate.
        base: name of its partner: the reference or another candidate.
        key: ``t_wall_s`` or ``cpu_s``.

    Raises:
        RecordError: a block is incomplete, out of order, or without one of the arms.
    """
    runs = [run for run in _runs(timing) if run["pair"] >= 0]
    pairs, contended = [], False
    for block in range(timing["n_pairs"]):
        members = [run for run in runs if run["pair"] == block]
        arms = [run["arm"] for run in members]
        if len(arms) < 3 or len(set(arms)) != len(arms) - 1:
            raise RecordError(f"timing: block {block} must hold the reference twice and candidates once, found {arms}")
        _expect(members, block, 0, block_order(timing["order_seed"], block, arms[1:-1], arms[0]))
        sides = []
        for name in (base, patched):
            found = [run for run in members if run["arm"] == name]
            if not found:
                raise RecordError(f"timing: block {block} must hold {name}, found {arms}")
            contended |= any(map(is_disturbed, found))
            sides.append(math.sqrt(found[0][key] * found[1][key]) if len(found) == 2 else found[0][key])
        pairs.append(Pair(*sides))
    if len(runs) != sum(0 <= run["pair"] < timing["n_pairs"] for run in runs):
        raise RecordError(f"timing: must hold blocks 0 to {timing['n_pairs'] - 1} alone, found another")
    return pairs, contended


# --- Time -------------------------------------------------------------------------------------------------------------


def _need_pairs(pairs: Sequence[Pair]) -> None:
    if not pairs:
        raise RowproofError("a ratio of times needs at least one pair, found none: measure some")


def ratio_of_medians(pairs: Sequence[Pair]) -> float:
    """Median time of the base over median time of the patched script: above 1, the patch is faster."""
    _need_pairs(pairs)
    return median(pair.base_s for pair in pairs) / median(pair.patched_s for pair in pairs)


def hodges_lehmann_ratio(pairs: Sequence[Pair]) -> float:
    """Hodges-Lehmann estimate: exp of the median of all pairwise means (each pair with itself too) of log ratios.

    Computed as the median of geometric means, which is the same and needs no logarithm.
    """
    _need_pairs(pairs)
    ratios = [pair.base_s / pair.patched_s for pair in pairs]
    means = sorted(math.sqrt(ratios[i] * ratios[j]) for i in range(len(ratios)) for j in range(i, len(ratios)))
    middle = len(means) // 2
    return means[middle] if len(means) % 2 else math.sqrt(means[middle - 1] * means[middle])


def ratio_of_means(pairs: Sequence[Pair]) -> float:
    """Ratio of the arithmetic means, as the published environment would compute it."""
    _need_pairs(pairs)
    return math.fsum(pair.base_s for pair in pairs) / math.fsum(pair.patched_s for pair in pairs)


def bootstrap_interval(pairs: Sequence[Pair]) -> Interval:
    """95 % percentile bootstrap interval of :func:`ratio_of_medians` over pairs.

    10,000 resamples of whole pairs from a fixed stream; the bounds leave 250 of them out at each end. It is a function
    of the pairs in the order given.
    """
    _need_pairs(pairs)
    times = np.asarray(pairs, dtype=np.float64)
    picks = substream(BOOTSTRAP_STREAM, BOOTSTRAP_SEED).integers(len(pairs), size=(RESAMPLES, len(pairs)))
    medians = np.median(times[picks], axis=1)
    ratios = np.sort(medians[:, 0] / medians[:, 1])
    left_out = RESAMPLES // 40
    return float(ratios[left_out]), float(ratios[-1 - left_out])


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


def aa_floor(pairs: Sequence[Pair]) -> float:
    """The noise floor of a machine: half-width (fraction) of the interval of a script against itself."""
    low, high = bootstrap_interval(pairs)
    return _round((high - low) / 2)


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
