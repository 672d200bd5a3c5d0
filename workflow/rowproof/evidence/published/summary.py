"""The summary of a published bundle, recomputed from its records."""

from functools import lru_cache

from rowproof.errors import RecordError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import STATISTICS, Bundle
from rowproof.evidence.published.records import RECORD_SCHEMA
from rowproof.evidence.published.tables import STRICT, report
from rowproof.evidence.statistics import BUNDLE_STREAM, MAX_RESAMPLES, Summary, clusters_of, success_summary
from rowproof.records import decode_lines

TOLERANCE = 1e-9
"""Relative tolerance of the reference's summary rows; the strict block compares bit for bit."""
MAX_DRAWS = 10**9
"""Limit of bootstrap draws for one bundle, a minute's work; published bundles need at most 3.5 million."""


@lru_cache(maxsize=32)
def summary_of(clusters: tuple[tuple[float, ...], ...], n_resamples: int, root_seed: int) -> Summary:
    """The published summary of these scores, remembered: an archive asks again for that of its cells."""
    return success_summary(clusters, n_resamples, root_seed, BUNDLE_STREAM)


def _load_records(bundle: Bundle) -> None:
    loaded = {}
    for seed in bundle.seeds:
        name = f"episodes_seed{seed}.jsonl"
        records = decode_lines(bundle.need(name), RECORD_SCHEMA, name)
        loaded[seed] = records
    bundle.records = loaded


def summary_rows(table: CheckTable, bundle: Bundle) -> None:
    """Reference rows: the statistics, recomputed; leaves ``records`` and ``fresh`` in the bundle."""
    stated, schedule = bundle.meta["summary"], bundle.meta["seed_schedule"]
    with table.guard("summary:recompute", "every scheduled record loads and the statistics can be computed"):
        if not 1 <= stated["n_resamples"] <= MAX_RESAMPLES or stated["bootstrap_root_seed"] < 0:
            raise RecordError(
                f"n_resamples must lie in 1..{MAX_RESAMPLES} and bootstrap_root_seed must not be negative, found "
                f"{stated['n_resamples']} and {stated['bootstrap_root_seed']}"
            )
        _load_records(bundle)
        if stated["n_resamples"] * sum(map(len, bundle.records.values())) > MAX_DRAWS:
            raise RecordError(f"n_resamples x records must not exceed {MAX_DRAWS}, found more")
        clusters = clusters_of(bundle.pooled)
        if not clusters:
            raise RecordError("at least one record must be scheduled, found none")
        fresh = summary_of(tuple(map(tuple, clusters)), stated["n_resamples"], stated["bootstrap_root_seed"])
        planned = schedule["episodes_per_seed"] * len(bundle.seeds)
        table.add(
            "summary:n_episodes",
            fresh.n_episodes == stated["n_episodes"] == planned,
            "records = summary = episodes_per_seed x seeds",
            f"{fresh.n_episodes} records, {stated['n_episodes']} stated, {planned} scheduled",
        )
        bundle.fresh = fresh
        for name in STATISTICS:
            found = getattr(fresh, name)
            near = abs(found - stated[name]) <= TOLERANCE * max(1.0, abs(stated[name]))
            must = f"the stated number is that of the records within {TOLERANCE:g}"
            table.add(f"summary:{name}", near, must, f"stated {stated[name]!r}, recomputed {found!r}")


def exact_row(table: CheckTable, bundle: Bundle) -> None:
    """Strict row: the same statistics bit for bit."""
    if bundle.fresh is None:
        return
    unequal = []
    for name in STATISTICS:
        found, stated = getattr(bundle.fresh, name), bundle.meta["summary"][name]
        # repr tells the sign of a zero, which == does not.
        unequal += [f"{name} stated {stated!r}, recomputed {found!r}"] if repr(found) != repr(stated) else []
    must = "recomputed numbers equal the stated ones bit for bit"
    report(table, f"{STRICT}summary:exact", must, unequal, f"{len(STATISTICS)} numbers equal")
