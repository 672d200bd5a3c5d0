"""What a page says where a bootstrap says nothing: an interval without width is replaced by a one-sided bound.

Resampling values that are all alike gives them back; that is no certainty. What the data do bound is the rate, from
one side, at 95 %: by episodes as if they were independent, and by seeds, which is the honest unit where episodes of
one seed hang together.
"""

from collections.abc import Mapping, Sequence
from typing import Any

ALPHA = 0.05
# Bounds are multiples of one over this, rounded away from the rate.
STEPS = 10_000

RATE, IQM = "success_rate", "success_iqm"
DEGENERATE = "degenerate"
SINGLE_SEED = "single-seed"


def binomial_bound(successes: int, n: int) -> float:
    """Lower one-sided 95 % bound of a rate by ``successes`` of ``n`` independent units (Clopper and Pearson, 1934).

    The largest multiple of 1 / ``STEPS`` at which so many successes or more have a chance of at most 5 %. Computed in
    whole numbers, so that every platform gives the same.
    """
    # ALPHA as a fraction of whole numbers: 1 / 20.
    low, high = 0, STEPS
    while high - low > 1:
        middle = (low + high) // 2
        # The terms C(n, i) p^i (1 - p)^(n - i), times STEPS^n, from the last one down.
        tail, term = 0, middle**n
        for i in range(n, successes - 1, -1):
            tail += term
            term = term * i * (STEPS - middle) // ((n - i + 1) * middle) if i else 0
        low, high = (middle, high) if 20 * tail <= STEPS**n else (low, middle)
    return low / STEPS if successes else 0.0


def seed_bound(rates: Sequence[float]) -> float:
    """Lower one-sided 95 % bound of the mean rate by one rate per seed, whatever their distribution.

    With confidence 95 % at least the share ``0.05 ** (1 / n)`` of all seeds has no lower rate than the lowest of n
    (Wilks, 1941); the rest may have 0. Rounded down to a multiple of 1 / ``STEPS``.
    """
    share = max(step for step in range(STEPS + 1) if 20 * step ** len(rates) <= STEPS ** len(rates))
    return int(min(rates) * share) / STEPS


def _iqm(rate: float) -> float:
    """The interquartile mean of outcomes 0 and 1 of which the fraction ``rate`` is 1."""
    return min(1.0, max(0.0, 2 * rate - 0.5))


def bounds(summary: Mapping[str, Any], with_iqm: bool) -> dict[str, dict[str, Any]]:
    """One-sided bounds of the columns of a row whose interval has no width.

    Args:
        summary: of a bundle.
        with_iqm: whether the page shows the interquartile mean.

    Returns:
        Column -> ``side`` (``at least`` or ``at most``) and, each with the number of ``units`` and the ``value``
        (fraction), ``by_seeds`` and ``by_episodes``.
    """
    matrix, found = summary["matrix"], {}
    won, played = (sum(map(sum, matrix[name])) for name in ("successes", "episodes"))
    by_seed = [
        sum(rates) / len(rates) for row in matrix["rates"] if (rates := [rate for rate in row if rate is not None])
    ]
    columns = {RATE: (summary["success_rate"], summary["success_rate_ci"])}
    if with_iqm:
        published = summary["published"]
        columns[IQM] = (published["success_iqm"], published["success_iqm_ci_leaderboard_stream"])
    for column, (value, (low, high)) in columns.items():
        if low != high:
            continue
        upper = value < 0.5
        rates = [1 - rate for rate in by_seed] if upper else by_seed
        sides = {"by_seeds": (len(rates), seed_bound(rates)), "by_episodes": (played, 0.0)}
        sides["by_episodes"] = (played, binomial_bound(played - won if upper else won, played))
        found[column] = {
            "side": "at most" if upper else "at least",
            **{unit: {"units": n, "value": _shown(bound, upper, column == IQM)} for unit, (n, bound) in sides.items()},
        }
    return found


def _shown(bound: float, upper: bool, iqm: bool) -> float:
    value = round(1 - bound, 4) if upper else bound
    return round(_iqm(value), 4) if iqm else value


def page_flags(summary: Mapping[str, Any], bounded: Mapping[str, Any]) -> list[str]:
    """The flags of a row as its page has them: those of the summary, with each interval without width by itself."""
    own = [flag for flag in summary["flags"] if flag != DEGENERATE]
    own += [f"{DEGENERATE}-{column.removeprefix('success_')}" for column in bounded]
    return sorted(own + [SINGLE_SEED] * (len(summary["matrix"]["seeds"]) == 1))


def with_bound(value: float, ends: Sequence[float], bound: Mapping[str, Any] | None) -> str:
    """A value with its interval, or with its bounds where the interval has no width."""
    if bound is None:
        return f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"
    sign = "≥" if bound["side"] == "at least" else "≤"
    seeds, episodes = bound["by_seeds"], bound["by_episodes"]
    plural = "s" * (seeds["units"] != 1)
    return (
        f"{value:.3f} ({sign} {seeds['value']:.3f} by {seeds['units']} seed{plural}, "
        f"{sign} {episodes['value']:.3f} by {episodes['units']} episodes)"
    )
