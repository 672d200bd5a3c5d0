"""Times of rows that were never timed in turns: through the baseline, which every campaign has.

Within a campaign rows are compared block by block. Of two campaigns each has a ratio baseline over row of its own,
``r1`` in ``[l1, u1]`` and ``r2`` in ``[l2, u2]``, and their noise is independent. So ``r1 / r2`` estimates the ratio of
the rows, and on the logarithmic scale its interval reaches as far as the root of the summed squares of the distances
(recovery of variances: Zou and Donner 2008)::

    low  = r1 / r2 / exp(sqrt(log(r1 / l1)**2 + log(u2 / r2)**2))
    high = r1 / r2 * exp(sqrt(log(u1 / r1)**2 + log(r2 / l2)**2))

It is wider than either; of simulated boards with seven blocks it covers 96 to 97 %. What differs between the campaigns
beside the rows cancels only as far as it slows baseline and row alike.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.speedrun.blocks import Interval


def ratio_of_ratios(own: float, own_ends: Sequence[float], base: float, base_ends: Sequence[float]) -> Interval:
    """95 % interval of ``own / base``, two ratios with independent 95 % intervals; see the head of this module."""
    ratio = own / base
    down = math.hypot(_distance(own, own_ends[0]), _distance(base_ends[1], base))
    up = math.hypot(_distance(own_ends[1], own), _distance(base, base_ends[0]))
    return ratio / math.exp(down), ratio * math.exp(up)


def _distance(greater: float, smaller: float) -> float:
    # An estimate may lie a little outside of its interval; that makes no other one narrower.
    return max(0.0, math.log(greater / smaller))


def across(own: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """A row against one of another campaign.

    Args:
        own: what :func:`rowproof.speedrun.figures.timed` tells of a timed row.
        base: and of the one that it is compared with.

    Returns:
        ``campaigns`` of both; ``wall_ratio``, time of ``base`` over that of ``own``, and ``ratio_ci95``; ``floor``, the
        sum of the noise floors; and ``says``: ``faster`` when both rows are valid and the interval lies above 1 +
        floor, ``no difference shown`` when it does not and reaches to 1 - floor. There is no ``record`` across
        campaigns: it takes blocks that were won.
    """
    low, high = ratio_of_ratios(own["wall_ratio"], own["ratio_ci95"], base["wall_ratio"], base["ratio_ci95"])
    floor = own["aa_floor"] + base["aa_floor"]
    says = []
    if all("valid" in row["says"] or row["says"] == ["baseline"] for row in (own, base)):
        if low > 1 + floor:
            says = ["faster"]
        elif high >= 1 - floor:
            says = ["no difference shown"]
    return {
        "campaigns": [own["campaign"], base["campaign"]],
        "wall_ratio": round(own["wall_ratio"] / base["wall_ratio"], 6),
        "ratio_ci95": [round(low, 6), round(high, 6)],
        "floor": round(floor, 6),
        "says": says,
    }


def step_across(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """A row of a board against the one that it patches, where that was timed in another campaign; else None.

    Args:
        row: of a ``leaderboard.json``.
        rows: all of that board.

    Returns:
        What :func:`across` does, and ``base``.
    """
    base, own = row["summary"]["family"]["base"], row["timed"]
    if base is None or not own["timed"] or own["step"] is not None:
        return None
    for other in rows:
        if other["policy"]["name"] == base and other["timed"]["timed"]:
            if other["timed"]["campaign"] == own["campaign"]:
                return None
            return {"base": base, **across(own, other["timed"])}
    return None
