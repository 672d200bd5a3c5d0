"""Which initial states checkpoints are judged in."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber.grid import EPISODES_PER_SEED_BLOCK


def validation_states(setup: Mapping[str, Any]) -> list[int]:
    """The initial state seeds of the episodes by which checkpoints are judged.

    Args:
        setup: plain data with ``seeds`` and ``episodes_per_seed``.
    """
    return [
        EPISODES_PER_SEED_BLOCK * seed + episode
        for seed in setup["seeds"]
        for episode in range(setup["episodes_per_seed"])
    ]
