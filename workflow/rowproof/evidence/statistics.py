"""Statistics of a row: the published definitions, bit for bit, and our own over (seed x partner) cells.

Two families of functions live here and are never mixed.

*Published* (the CHAMBER benchmark, evidence specification section 14): the interquartile mean over single 0/1
episodes with a two-stage cluster bootstrap. They exist so that published numbers can be compared digit for digit, so
the order of the random draws is part of the definition and the results depend on the order of the records.

*Ours*: the unit is the success rate of one (seed, partner) cell. Nothing depends on the order of the records.

A record is a dict with ``seed`` (int), ``initial_state_seed`` (int: equal values start alike), ``success`` (bool),
``force_peak`` (newton, float or None) and ``metadata`` (dict). Its partner is ``metadata["member"]``, else
``metadata["partner"]``, else the empty string. All rates are fractions in [0, 1].
"""

import math
import statistics as exact_statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rowproof.errors import RowproofError
from rowproof.seeding import substream

Record = Mapping[str, Any]

BUNDLE_STREAM = "evaluation.bundle_bootstrap"
LEADERBOARD_STREAM = "evaluation.leaderboard_bootstrap"
PAIRED_STREAM = "evaluation.admission.a3_paired_bootstrap"
HIERARCHICAL_STREAM = "evaluation.hierarchical_bootstrap"

DEFAULT_RESAMPLES = 2000
MAX_RESAMPLES = 100_000
"""Upper limit of ``n_resamples``: a bundle must not be able to keep its verifier busy for hours."""

DRAWS_AT_ONCE = 2**16
"""Random numbers per call of the generator: few calls, and little memory. Results do not depend on it."""

BAD_SEED_GAP = 0.25
"""A seed is flagged when its success rate (fraction) lies by more than this below the median of all seeds."""


def _check_limits(n_resamples: int, root_seed: int) -> None:
    if type(n_resamples) is not int or not 1 <= n_resamples <= MAX_RESAMPLES:
        raise RowproofError(
            f"n_resamples must be an integer from 1 to {MAX_RESAMPLES}, found {n_resamples!r}: "
            f"use {DEFAULT_RESAMPLES} unless the plan says otherwise"
        )
    if type(root_seed) is not int or root_seed < 0:
        raise RowproofError(
            f"root_seed must be an integer of at least 0, found {root_seed!r}: use the plan's root seed"
        )


def _need_records(records: Sequence[Record]) -> None:
    if not records:
        raise RowproofError("a row needs at least one episode record, found none: run its episodes first")


def _finite(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    # Sorting would move a NaN to the end, where trimming hides it.
    if not np.isfinite(array).all():
        raise RowproofError("statistics need finite values, found NaN or an infinity: drop or mend those records")
    return array


def _metadata(record: Record) -> Mapping[str, Any]:
    return record.get("metadata") or {}


def partner_of(record: Record) -> str:
    """Name of the partner a record was played with; the empty string when the record names none."""
    metadata = _metadata(record)
    return metadata.get("member", metadata.get("partner", ""))


# --- Published definitions -------------------------------------------------------------------------------------------


def interquartile_mean(values: Sequence[float]) -> float:
    """Published IQM: sort, drop ``floor(n / 4)`` values at each end, average the rest with equal weights.

    Bit for bit the published definition (section 14.2); a partial quarter is kept whole.

    Args:
        values: shape (n,), any order.

    Returns:
        The mean in the unit of ``values``; NaN when n = 0.

    Raises:
        RowproofError: a value is NaN or infinite.
    """
    array = _finite(values)
    return _real_iqm(array) if array.size else math.nan


def _real_iqm(values: np.ndarray) -> float:
    trim = values.size // 4
    return float(np.mean(np.sort(values)[trim : values.size - trim]))


def _binary_iqm(values: np.ndarray) -> float:
    """The same for booleans, by counting: that keeps a row's interval well below a tenth of a second."""
    trim = values.size // 4
    kept = values.size - 2 * trim
    # Sorted, the ones fill the upper end, so trimming there takes ones first.
    return min(max(int(np.count_nonzero(values)) - trim, 0), kept) / kept


def linear_percentile(values: Sequence[float], q: float) -> float:
    """Published percentile, bit for bit (sections 14.3 and 14.5): linear between the two neighbouring order statistics.

    The same as NumPy's default ``linear`` method, including which neighbour the interpolation starts from.

    Args:
        values: shape (n,), any order.
        q: percent in [0, 100].

    Returns:
        The percentile in the unit of ``values``; NaN when n = 0.

    Raises:
        RowproofError: ``q`` lies outside [0, 100], or a value is NaN or infinite.
    """
    if not 0.0 <= q <= 100.0:
        raise RowproofError(f"q must be a percentage from 0 to 100, found {q!r}")
    ascending = np.sort(_finite(values)).tolist()
    if not ascending:
        return math.nan
    position = (len(ascending) - 1) * (q / 100.0)
    below = math.floor(position)
    gap = position - below
    low = ascending[below]
    high = ascending[min(below + 1, len(ascending) - 1)]
    # Starting from the nearer neighbour is what makes the last bit agree.
    return low + (high - low) * gap if gap < 0.5 else high - (high - low) * (1.0 - gap)


def _resamples(clusters: Sequence[np.ndarray], n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The pooled values of each resample; resamples without any value are left out."""
    n_clusters, size = len(clusters), clusters[0].size
    if all(cluster.size == size for cluster in clusters):
        # Then the limits of all draws are known beforehand, and a call for many draws gives the same numbers as one
        # call for each limit, several times faster.
        grid = np.stack(clusters)
        limits = np.repeat([n_clusters, size], [n_clusters, n_clusters * size])
        at_once = max(1, DRAWS_AT_ONCE // limits.size)
        for start in range(0, n_resamples, at_once):
            n_rows = min(at_once, n_resamples - start)
            draws = rng.integers(0, np.broadcast_to(limits, (n_rows, limits.size)))
            chosen, within = draws[:, :n_clusters, np.newaxis], draws[:, n_clusters:]
            yield from grid[chosen, within.reshape(n_rows, n_clusters, size)].reshape(n_rows, -1)
        return
    for _ in range(n_resamples):
        values = []
        for index in rng.integers(0, len(clusters), size=len(clusters)).tolist():
            size = clusters[index].size
            if size:
                values.append(clusters[index][rng.integers(0, size, size=size)])
        if values:
            yield np.concatenate(values)


def cluster_bootstrap(
    clusters: Sequence[Sequence[float]], n_resamples: int, root_seed: int, stream: str
) -> tuple[float, float]:
    """Published 95 % interval of the IQM, bit for bit (section 14.3): clusters first, then values within each.

    One generator serves the whole computation. Each resample draws k cluster indices in one call and then, for every
    drawn cluster in that order, as many value indices as the cluster holds. An empty cluster draws nothing, and with
    k = 1 the first call consumes no random bits.

    Args:
        clusters: k sequences of scores; the order of clusters and values selects which draw meets which value.
        n_resamples: from 1 to ``MAX_RESAMPLES``.
        root_seed: at least 0.
        stream: label of the random stream.

    Returns:
        (2.5th, 97.5th) percentile in the unit of the scores; (NaN, NaN) when no resample held a value.

    Raises:
        RowproofError: ``n_resamples`` or ``root_seed`` is out of range, or a score is NaN or infinite.
    """
    _check_limits(n_resamples, root_seed)
    arrays = [_finite(cluster) for cluster in clusters]
    if not any(array.size for array in arrays):
        return math.nan, math.nan
    iqm = _real_iqm
    if all(np.isin(array, (0.0, 1.0)).all() for array in arrays):
        arrays, iqm = [array == 1.0 for array in arrays], _binary_iqm
    iqms = [iqm(values) for values in _resamples(arrays, n_resamples, substream(stream, root_seed))]
    return linear_percentile(iqms, 2.5), linear_percentile(iqms, 97.5)


@dataclass(frozen=True)
class Summary:
    """Published summary of a bundle (section 14); fractions in [0, 1], NaN when there is no episode.

    Attributes:
        n_episodes: number of scores over all clusters.
        success_mean: plain mean.
        success_iqm: :func:`interquartile_mean` of all scores pooled.
        success_ci_low: lower end of :func:`cluster_bootstrap`.
        success_ci_high: upper end.
    """

    n_episodes: int
    success_mean: float
    success_iqm: float
    success_ci_low: float
    success_ci_high: float


def success_summary(
    clusters: Sequence[Sequence[float]],
    n_resamples: int = DEFAULT_RESAMPLES,
    root_seed: int = 0,
    stream: str = BUNDLE_STREAM,
) -> Summary:
    """Published summary, bit for bit (sections 14.1 to 14.3), of the clusters of :func:`clusters_of`.

    Raises:
        RowproofError: as :func:`cluster_bootstrap`.
    """
    scores = [score for cluster in clusters for score in cluster]
    low, high = cluster_bootstrap(clusters, n_resamples, root_seed, stream)
    mean = sum(scores) / len(scores) if scores else math.nan
    return Summary(len(scores), mean, interquartile_mean(scores), low, high)


def clusters_of(records: Iterable[Record], seeds: Sequence[int] | None = None) -> list[list[float]]:
    """Scores (1.0 or 0.0) grouped by ``seed``, in record order within a cluster.

    Args:
        records: episode records.
        seeds: the order of the clusters (a bundle's ``seed_schedule.seeds``); a seed without any record gives no
            cluster. By default clusters stand in order of first appearance.

    Raises:
        RowproofError: ``seeds`` repeats a seed, or a record's seed is not among ``seeds``.
    """
    clusters: dict[int, list[float]] = {}
    for record in records:
        clusters.setdefault(record["seed"], []).append(1.0 if record["success"] else 0.0)
    if seeds is None:
        return list(clusters.values())
    if len(set(seeds)) != len(seeds):
        raise RowproofError(f"seeds must differ from each other, found {list(seeds)}")
    strays = sorted(set(clusters) - set(seeds))
    if strays:
        raise RowproofError(f"every record's seed must be among the scheduled {list(seeds)}, found {strays}")
    return [clusters[seed] for seed in seeds if seed in clusters]


def _by_pairing_key(records: Iterable[Record], side: str) -> dict[tuple[int, int, int], Record]:
    keyed: dict[tuple[int, int, int], Record] = {}
    for record in records:
        key = (record["seed"], record["episode_idx"], record["initial_state_seed"])
        if key in keyed:
            raise RowproofError(
                f"(seed, episode_idx, initial_state_seed) must be unique among the {side} records, found {key} twice"
            )
        keyed[key] = record
    return keyed


def paired_delta(
    reference_records: Iterable[Record], other_records: Iterable[Record], n_resamples: int, root_seed: int
) -> dict[str, Any]:
    """Published gap between two policies on equal starts, bit for bit (section 14.4).

    Records pair up by (``seed``, ``episode_idx``, ``initial_state_seed``); unmatched ones are dropped. The value of a
    pair is the reference's score minus the other's. Clusters are seeds in order of first appearance among the pairs,
    read in the order of ``other_records``.

    Returns:
        ``n_pairs`` (count), ``delta_iqm``, ``delta_mean``, ``delta_ci_low``, ``delta_ci_high`` (fractions in [-1, 1]).

    Raises:
        RowproofError: no pair, a repeated pairing key, or a limit as in :func:`cluster_bootstrap`.
    """
    reference = _by_pairing_key(reference_records, "reference")
    clusters: dict[int, list[float]] = {}
    for key, record in _by_pairing_key(other_records, "other").items():
        if key in reference:
            delta = float(bool(reference[key]["success"])) - float(bool(record["success"]))
            clusters.setdefault(record["seed"], []).append(delta)
    if not clusters:
        raise RowproofError(
            "reference and other records must share at least one (seed, episode_idx, initial_state_seed), found none: "
            "run both on the same seeds and episodes"
        )
    deltas = [delta for cluster in clusters.values() for delta in cluster]
    low, high = cluster_bootstrap(list(clusters.values()), n_resamples, root_seed, PAIRED_STREAM)
    return {
        "n_pairs": len(deltas),
        "delta_iqm": interquartile_mean(deltas),
        "delta_mean": sum(deltas) / len(deltas),
        "delta_ci_low": low,
        "delta_ci_high": high,
    }


def stress_summary(records: Iterable[Record], successes_only: bool) -> dict[str, Any]:
    """Published stress figures, bit for bit (section 14.5), over the records whose ``force_peak`` is not null.

    Returns:
        ``n`` (records counted) and ``p50``, ``p90``, ``p99``, ``max`` in newton; the latter are None when ``n`` is 0.

    Raises:
        RowproofError: a peak is NaN or infinite.
    """
    peaks_n = [
        record["force_peak"]
        for record in records
        if record.get("force_peak") is not None and (record["success"] or not successes_only)
    ]
    if not peaks_n:
        return {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}
    percentiles = {f"p{q}": linear_percentile(peaks_n, float(q)) for q in (50, 90, 99)}
    return {"n": len(peaks_n), **percentiles, "max": float(max(peaks_n))}


def per_partner(records: Iterable[Record]) -> dict[str, float]:
    """Mean score (fraction) of each partner, keyed in order of first appearance (section 14.5)."""
    scores: dict[str, list[int]] = {}
    for record in records:
        scores.setdefault(partner_of(record), []).append(1 if record["success"] else 0)
    return {partner: sum(values) / len(values) for partner, values in scores.items()}


def partner_range(rates: Mapping[str, float]) -> tuple[tuple[str, float], tuple[str, float]]:
    """Worst and best partner with their rates; a tie goes to the one that comes first in ``rates`` (section 14.5).

    Args:
        rates: as :func:`per_partner` returns them.

    Raises:
        RowproofError: ``rates`` is empty.
    """
    if not rates:
        raise RowproofError("a range over partners needs at least one partner, found none")
    worst, best = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    return (worst, rates[worst]), (best, rates[best])


# --- Our definitions -------------------------------------------------------------------------------------------------


def success_matrix(records: Sequence[Record], partners: Sequence[str] | None = None) -> dict[str, Any]:
    """Successes, episodes and success rate of every (seed, partner) cell.

    Args:
        records: episode records in any order.
        partners: the columns in roster order; by default the partners found, sorted by code point.

    Returns:
        ``seeds`` (ascending), ``partners``, and ``successes``, ``episodes`` (counts) and ``rates`` (fractions; None
        for a cell without episodes), each a list of one list per seed.

    Raises:
        RowproofError: no record, ``partners`` repeats a name, or a record's partner is not among ``partners``.
    """
    _need_records(records)
    seeds = sorted({record["seed"] for record in records})
    found = sorted({partner_of(record) for record in records})
    columns = found if partners is None else list(partners)
    if len(set(columns)) != len(columns):
        raise RowproofError(f"partners must differ from each other, found {columns}")
    strays = [partner for partner in found if partner not in columns]
    if strays:
        raise RowproofError(f"every record's partner must be among {columns}, found {strays}")
    row_of = {seed: index for index, seed in enumerate(seeds)}
    column_of = {partner: index for index, partner in enumerate(columns)}
    successes = [[0] * len(columns) for _ in seeds]
    episodes = [[0] * len(columns) for _ in seeds]
    for record in records:
        row, column = row_of[record["seed"]], column_of[partner_of(record)]
        episodes[row][column] += 1
        successes[row][column] += 1 if record["success"] else 0
    return {
        "seeds": seeds,
        "partners": columns,
        "successes": successes,
        "episodes": episodes,
        "rates": [
            [won / played if played else None for won, played in zip(*pair, strict=True)]
            for pair in zip(successes, episodes, strict=True)
        ],
    }


def _seed_rates(matrix: Mapping[str, Any]) -> list[list[Fraction]]:
    """The exact rates of the cells that hold episodes, one list per seed."""
    return [
        [Fraction(won, played) for won, played in zip(*pair, strict=True) if played]
        for pair in zip(matrix["successes"], matrix["episodes"], strict=True)
    ]


def mean_cell_rate(matrix: Mapping[str, Any]) -> float:
    """Mean (fraction, correctly rounded) over the cells of a :func:`success_matrix` that hold episodes."""
    rates = [rate for row in _seed_rates(matrix) for rate in row]
    return float(sum(rates) / len(rates))


def hierarchical_interval(
    records: Sequence[Record], n_resamples: int = DEFAULT_RESAMPLES, root_seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Bootstrap interval of :func:`mean_cell_rate`: seeds first, then initial states within each drawn seed.

    Partners are a fixed panel: the claim is about this roster, not about partners in general. The result depends on
    the set of records only, not on their order; it does not change either when partners are renamed, or when seeds or
    initial states are renumbered in the same order. In a resample of an incomplete grid, cells left without episodes
    do not count. Source: resampling of hierarchical data with replacement at both stages, which errs on the wide side
    (Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, section 3.8); the ends are percentiles.

    Args:
        records: episode records in any order.
        n_resamples: from 1 to ``MAX_RESAMPLES``.
        root_seed: at least 0.
        level: coverage aimed at, in (0, 1).

    Returns:
        (low, high), fractions in [0, 1].

    Raises:
        RowproofError: no record, or an argument out of range.
    """
    _check_limits(n_resamples, root_seed)
    _need_records(records)
    if not 0.0 < level < 1.0:
        raise RowproofError(f"level must lie between 0 and 1, found {level!r}: use 0.95 for a 95 % interval")
    rng = substream(HIERARCHICAL_STREAM, root_seed)
    seeds = sorted({record["seed"] for record in records})
    partners = sorted({partner_of(record) for record in records})
    chosen = rng.integers(0, len(seeds), size=(n_resamples, len(seeds)))
    rates = np.empty((n_resamples, len(seeds), len(partners)))
    for index, seed in enumerate(seeds):
        won, played = _counts_by_state([record for record in records if record["seed"] == seed], partners)
        drawn = chosen == index
        n_drawn, n_states = int(np.count_nonzero(drawn)), len(played)
        # All partners of one seed face the same initial states, so their outcomes are correlated. Whole states are
        # resampled, with all their partners: drawing per cell would treat the copies of a hard start as independent
        # and make the interval too narrow. Counting integer draws gives multinomial counts without the floating-point
        # functions inside a multinomial sampler, whose last bits depend on the platform.
        picks = rng.integers(0, n_states, size=(n_drawn, n_states)) + n_states * np.arange(n_drawn)[:, np.newaxis]
        counts = np.bincount(picks.ravel(), minlength=n_drawn * n_states).reshape(n_drawn, n_states)
        with np.errstate(invalid="ignore"):
            rates[drawn] = (counts @ won) / (counts @ played)
    means = [_exact_mean(row) for row in rates.reshape(n_resamples, -1).tolist()]
    tail_percent = (100.0 - 100.0 * level) / 2.0
    return linear_percentile(means, tail_percent), linear_percentile(means, 100.0 - tail_percent)


def _counts_by_state(records: Sequence[Record], partners: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Successes and episodes, each of shape (initial states ascending, partners), dtype int64."""
    states = sorted({record["initial_state_seed"] for record in records})
    row_of = {state: index for index, state in enumerate(states)}
    column_of = {partner: index for index, partner in enumerate(partners)}
    won = np.zeros((len(states), len(partners)), dtype=np.int64)
    played = np.zeros_like(won)
    for record in records:
        cell = row_of[record["initial_state_seed"]], column_of[partner_of(record)]
        played[cell] += 1
        won[cell] += 1 if record["success"] else 0
    return won, played


def _exact_mean(rates: Sequence[float]) -> float:
    # fsum rounds once, so the order of partners and seeds cannot reach the last bit.
    defined = [rate for rate in rates if not math.isnan(rate)]
    return math.fsum(defined) / len(defined)


def flags(records: Sequence[Record], interval: tuple[float, float] | None = None) -> list[str]:
    """What a reader of the row should know before trusting its numbers.

    * ``saturated``: every cell's rate is 1, or every cell's rate is 0, so the row cannot rank methods.
    * ``degenerate``: the interval has zero width; it says nothing about uncertainty.
    * ``bad-seed``: a seed's rate (mean over its cells) lies more than ``BAD_SEED_GAP`` below the median over seeds.
    * ``repeated-records``: two records of one partner from different initial states agree in every float they hold, at
      least one of them no whole number: evidence that an episode was copied.

    Args:
        records: episode records in any order.
        interval: the row's :func:`hierarchical_interval`; computed with its defaults when not given.

    Returns:
        The flags that apply, sorted.

    Raises:
        RowproofError: no record.
    """
    low, high = hierarchical_interval(records) if interval is None else interval
    by_seed = _seed_rates(success_matrix(records))
    cells = {rate for row in by_seed for rate in row}
    seed_rates = [sum(row) / len(row) for row in by_seed]
    found = {
        "saturated": cells in ({Fraction(0)}, {Fraction(1)}),
        "degenerate": low == high,
        "bad-seed": exact_statistics.median(seed_rates) - min(seed_rates) > BAD_SEED_GAP,
        "repeated-records": _has_repeated_records(records),
    }
    return sorted(name for name, applies in found.items() if applies)


def _has_repeated_records(records: Iterable[Record]) -> bool:
    first_state: dict[tuple[Any, ...], int] = {}
    for record in records:
        fields = [*record.items(), *(("metadata." + name, value) for name, value in _metadata(record).items())]
        floats = sorted((name, value) for name, value in fields if type(value) is float)
        # Whole numbers (step counts, a constant 0.0) agree by chance; a full double does not.
        if all(value.is_integer() for _, value in floats):
            continue
        state = record["initial_state_seed"]
        # Equal starts may give equal numbers: a scripted policy repeats itself under every training seed.
        if first_state.setdefault((partner_of(record), *floats), state) != state:
            return True
    return False


def row_summary(
    records: Sequence[Record],
    n_resamples: int = DEFAULT_RESAMPLES,
    root_seed: int = 0,
    partners: Sequence[str] | None = None,
) -> dict[str, Any]:
    """All statistics that a bundle stores for its row, as plain JSON data; undefined values are None.

    Args:
        records: episode records in schedule order (seeds, then roster, then episodes): the published intervals and the
            keys of ``per_partner`` follow it, nothing else does.
        n_resamples: from 1 to ``MAX_RESAMPLES``, for all three intervals.
        root_seed: at least 0, for all three intervals.
        partners: columns of the matrix, as in :func:`success_matrix`.

    Returns:
        In this order: ``n_resamples`` and ``root_seed``; ``published`` (``n_episodes``, ``success_mean``,
        ``success_iqm`` and its interval as [low, high] under both published stream labels); ``success_rate``
        (:func:`mean_cell_rate`), ``success_rate_ci``, ``matrix`` (:func:`success_matrix`) and ``flags``; ``stress``
        (newton, over all records, None when no record has any); ``per_partner``.

    Raises:
        RowproofError: no record, an argument out of range, or a partner that is not in ``partners``.
    """
    _check_limits(n_resamples, root_seed)
    _need_records(records)
    clusters = clusters_of(records)
    summary = success_summary(clusters, n_resamples, root_seed, BUNDLE_STREAM)
    matrix = success_matrix(records, partners)
    interval = hierarchical_interval(records, n_resamples, root_seed)
    stress = stress_summary(records, successes_only=False)
    return {
        "n_resamples": n_resamples,
        "root_seed": root_seed,
        "published": {
            "n_episodes": summary.n_episodes,
            "success_mean": summary.success_mean,
            "success_iqm": summary.success_iqm,
            "success_iqm_ci_bundle_stream": [summary.success_ci_low, summary.success_ci_high],
            "success_iqm_ci_leaderboard_stream": list(
                cluster_bootstrap(clusters, n_resamples, root_seed, LEADERBOARD_STREAM)
            ),
        },
        "success_rate": mean_cell_rate(matrix),
        "success_rate_ci": list(interval),
        "matrix": matrix,
        "flags": flags(records, interval),
        "stress": stress if stress["n"] else None,
        "per_partner": per_partner(records),
    }
