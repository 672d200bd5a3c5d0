"""Moves at random."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.observation import View
from rowproof.seeding import substream


class RandomEgo:
    """Uniform over all actions, gripper included; the sequence depends on the initial state alone."""

    def __init__(self, root_seed: int) -> None:
        """Draw from the streams of ``root_seed``."""
        self._root_seed = root_seed
        self.reset(0)

    def reset(self, initial_state_seed: int) -> None:
        """Start the sequence of this initial state."""
        self._rng = substream(f"benchmarks.cocarry_eval.ego_random.{initial_state_seed}", self._root_seed)

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.player.Player`."""
        return self._rng.uniform(-1.0, 1.0, size=rig.ACTION_SIZE).astype(np.float32)


def build(root_seed: int) -> RandomEgo:
    """The ego whose streams have the root ``root_seed``."""
    return RandomEgo(root_seed)
