"""The empty seat."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.observation import View


class ZeroPlayer:
    """Commands nothing: the arm yields to what pushes it and the gripper closes halfway."""

    def reset(self, initial_state_seed: int) -> None:
        """Nothing to forget."""

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.player.Player`."""
        return np.zeros(rig.ACTION_SIZE, np.float32)
