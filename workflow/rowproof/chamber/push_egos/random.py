"""Moves uniformly in [-1, 1]^2."""

from collections.abc import Callable

import numpy as np

from rowproof.seeding import substream


def build(seed: int, episode_idx: int, root_seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """The ego of one record, with a stream of its own, so that two members get two streams."""
    rng = substream(f"benchmarks.bundle_runner.ego_random.{seed}.{episode_idx}", root_seed)
    return lambda observation: rng.uniform(-1.0, 1.0, 2).astype(np.float32)
