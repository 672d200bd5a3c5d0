"""Stands still."""

from collections.abc import Callable

import numpy as np


def act(observation: np.ndarray) -> np.ndarray:
    """No move, float32 of shape (2,)."""
    return np.zeros(2, dtype=np.float32)


def build(seed: int, episode_idx: int, root_seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """The ego, the same for every episode."""
    return act
