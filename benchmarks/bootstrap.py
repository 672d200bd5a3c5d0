"""Seconds for the statistics of one row: 5 seeds x 7 partners x 50 initial states, 2000 resamples, one core.

Run: taskset -c 0 .venv/bin/python benchmarks/bootstrap.py [repeats]
"""

import statistics
import sys
import time
from collections.abc import Callable

from rowproof.evidence.statistics import (
    BUNDLE_STREAM,
    DEFAULT_RESAMPLES,
    cluster_bootstrap,
    clusters_of,
    hierarchical_interval,
    row_summary,
)
from rowproof.seeding import substream

TARGET_S = 0.1
"""For the published interval alone; the other lines are for information."""


def median_s(task: Callable[[], object], repeats: int) -> float:
    task()
    times_s = []
    for _ in range(repeats):
        start_s = time.perf_counter()
        task()
        times_s.append(time.perf_counter() - start_s)
    return statistics.median(times_s)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    rng = substream("benchmarks.bootstrap", 0)
    records = [
        {
            "seed": seed,
            "initial_state_seed": 1000 * seed + state,
            "success": bool(rng.integers(0, 2)),
            "force_peak": rng.random(),
            "metadata": {"member": f"m{partner}"},
        }
        for seed in range(5)
        for partner in range(7)
        for state in range(50)
    ]
    clusters = clusters_of(records)
    # Scores of 0 and 2 take the general path (sorting) through the same draws.
    doubled = [[2.0 * score for score in cluster] for cluster in clusters]
    tasks: dict[str, Callable[[], object]] = {
        "cluster_bootstrap": lambda: cluster_bootstrap(clusters, DEFAULT_RESAMPLES, 0, BUNDLE_STREAM),
        "the same by sorting": lambda: cluster_bootstrap(doubled, DEFAULT_RESAMPLES, 0, BUNDLE_STREAM),
        "hierarchical_interval": lambda: hierarchical_interval(records),
        "row_summary": lambda: row_summary(records),
    }
    medians_s = {name: median_s(task, repeats) for name, task in tasks.items()}
    for name, seconds in medians_s.items():
        print(f"{name:<22} {seconds:.4f} s (median of {repeats})")
    print(f"sorting / counting     {medians_s['the same by sorting'] / medians_s['cluster_bootstrap']:.2f}")
    met = medians_s["cluster_bootstrap"] <= TARGET_S
    print(f"target {TARGET_S} s for cluster_bootstrap: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
