"""The order of timed runs, and when one of them counts as disturbed: what runs and judgements of them share."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.seeding import substream

ORDER_STREAM = "speedrun.order"
BLOCK_STREAM = "speedrun.block_order"

MIN_OCCUPANCY = 0.8
"""Least CPU seconds per wall second of a run with one thread."""
MAX_STEAL = 0.05
MAX_REPEATS = 3
"""Pairs of one job that may be measured again."""

Run = Mapping[str, Any]


def pair_orders(order_seed: int, n_pairs: int) -> list[tuple[str, str]]:
    """The arms of each measured pair in their order: of the warm-up, then of pairs and repeats as they come."""
    tosses = substream(ORDER_STREAM, order_seed).integers(0, 2, size=n_pairs + 1 + MAX_REPEATS).tolist()
    return [("B", "A") if toss else ("A", "B") for toss in tosses]


def block_order(order_seed: int, block: int, candidates: Sequence[str], reference: str) -> tuple[str, ...]:
    """The arms of a block in the order in which they run: the reference at both ends, candidates shuffled between."""
    names = sorted(candidates)
    shuffled = substream(f"{BLOCK_STREAM}.{block}", order_seed).permutation(len(names))
    return (reference, *(names[i] for i in shuffled), reference)


def is_disturbed(run: Run) -> bool:
    """Whether a run of one thread does not count: it waited for its core, or the machine was suspended."""
    return run["cpu_s"] / run["t_wall_s"] < MIN_OCCUPANCY or run["steal"] > MAX_STEAL or run["slept"]
