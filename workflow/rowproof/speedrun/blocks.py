"""What ``timing.json`` holds, the times of a ladder in blocks, and the noise floor of a machine.

``timing.json`` is an object with ``order_seed`` (decides the order of the runs), ``n_pairs`` (pairs that count), and
``runs``: every run in the order of measuring, none left out. Each run has ``pair`` (from 0; -1 for the warm-up),
``try`` (from 0, counts up when the pair was measured again), ``order`` (position within the pair, from 0), ``arm``
(``A`` the base, ``B`` the patched script), ``t_wall_s`` and ``cpu_s`` (seconds), ``steal`` (fraction of the core's time
that the host took) and ``slept`` (whether the machine was suspended). Optional are ``aa_floor`` (half-width, as a
fraction, of the interval of the machine's A/A comparison), ``machine`` and ``date``. Other keys are not read. In a
ladder, ``design`` is ``blocks``: ``pair`` counts blocks, and arms are names, the reference first and last.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from rowproof.errors import RecordError, RowproofError
from rowproof.seeding import substream
from rowproof.speedrun.protocol import Run, block_order, is_disturbed

BOOTSTRAP_STREAM = "speedrun.pair_bootstrap"
BOOTSTRAP_SEED = 20240520
RESAMPLES = 10_000
MAX_PAIRS = 100

Interval = tuple[float, float]


class Pair(NamedTuple):
    """Times (seconds) of the two arms of one pair."""

    base_s: float
    patched_s: float


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


def _check_types(value: Any, types: Mapping[str, type], where: str) -> None:
    if type(value) is not dict:
        raise RecordError(f"{where}: must be an object, found {type(value).__name__}")
    for key, kind in types.items():
        if key not in value:
            raise RecordError(f"{where}: must have the key {key}, found {sorted(value)}")
        if type(value[key]) is not kind:
            raise RecordError(f"{where}: {key} must be {kind.__name__}, found {value[key]!r}")


def read_runs(timing: Any) -> list[Run]:
    """The runs of a complete measurement, checked one by one.

    Raises:
        RecordError: a key is missing or malformed, or a run did not end well.
    """
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


def expect(runs: Sequence[Run], pair: int, attempt: int, arms: Sequence[str]) -> None:
    """That ``runs`` are those of one pair or block, in the order in which ``arms`` must run.

    Raises:
        RecordError: they are not.
    """
    found = [(run["pair"], run["try"], run["order"], run["arm"]) for run in runs]
    expected = [(pair, attempt, order, arm) for order, arm in enumerate(arms)]
    if found != expected:
        raise RecordError(
            f"timing: runs must follow the protocol and its order_seed, expected (pair, try, order, arm) {expected}, "
            f"found {found}"
        )


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
    runs = [run for run in read_runs(timing) if run["pair"] >= 0]
    pairs, contended = [], False
    for block in range(timing["n_pairs"]):
        members = [run for run in runs if run["pair"] == block]
        arms = [run["arm"] for run in members]
        if len(arms) < 3 or len(set(arms)) != len(arms) - 1:
            raise RecordError(f"timing: block {block} must hold the reference twice and candidates once, found {arms}")
        expect(members, block, 0, block_order(timing["order_seed"], block, arms[1:-1], arms[0]))
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


def need_pairs(pairs: Sequence[Pair]) -> None:
    """That there is anything to compute from.

    Raises:
        RowproofError: there is not.
    """
    if not pairs:
        raise RowproofError("a ratio of times needs at least one pair, found none: measure some")


def ratio_of_medians(pairs: Sequence[Pair]) -> float:
    """Median time of the base over median time of the patched script: above 1, the patch is faster."""
    need_pairs(pairs)
    return median(pair.base_s for pair in pairs) / median(pair.patched_s for pair in pairs)


def bootstrap_interval(pairs: Sequence[Pair]) -> Interval:
    """95 % percentile bootstrap interval of :func:`ratio_of_medians` over pairs.

    10,000 resamples of whole pairs from a fixed stream; the bounds leave 250 of them out at each end. It is a function
    of the pairs in the order given.
    """
    need_pairs(pairs)
    times = np.asarray(pairs, dtype=np.float64)
    picks = substream(BOOTSTRAP_STREAM, BOOTSTRAP_SEED).integers(len(pairs), size=(RESAMPLES, len(pairs)))
    medians = np.median(times[picks], axis=1)
    ratios = np.sort(medians[:, 0] / medians[:, 1])
    left_out = RESAMPLES // 40
    return float(ratios[left_out]), float(ratios[-1 - left_out])


def aa_floor(pairs: Sequence[Pair]) -> float:
    """The noise floor of a machine: half-width (fraction) of the interval of a script against itself."""
    low, high = bootstrap_interval(pairs)
    return round((high - low) / 2, 6)
