"""What an arm is driven by."""

from typing import Protocol

import numpy as np

from rowproof.chamber.cocarry.observation import View


class Player(Protocol):
    """Whoever drives an arm."""

    def reset(self, initial_state_seed: int) -> None:
        """Start an episode."""

    def act(self, view: View) -> np.ndarray:
        """The action of the next control step, float32 of shape (8,)."""
