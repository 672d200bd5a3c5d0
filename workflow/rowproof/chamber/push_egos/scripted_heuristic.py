"""Walks straight to the centre, as the scripted partner does."""

from collections.abc import Callable

import numpy as np

from rowproof.chamber.push_heuristic import scripted_heuristic


def build(seed: int, episode_idx: int, root_seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """The ego, the same for every episode."""
    return scripted_heuristic
