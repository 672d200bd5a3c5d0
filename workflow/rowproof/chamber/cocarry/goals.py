"""Where the bar must go: the only thing that differs between the initial states of the task."""

import numpy as np

from rowproof.seeding import substream

GOAL_CENTRE_M = (0.0, 0.12, 0.28)
GOAL_JITTER_M = 0.02


class GoalStream:
    """The goals of one environment object, in the order of its resets.

    The published environment resets itself once while it is made, which uses up the first draw.
    """

    def __init__(self, root_seed: int) -> None:
        """Start the stream ``env.cocarry`` of ``root_seed``."""
        self.rng = substream("env.cocarry", root_seed)
        self.next()

    def next(self) -> np.ndarray:
        """The goal of the next reset: world position in metres, float64 of shape (3,)."""
        return np.array(GOAL_CENTRE_M) + self.rng.uniform(-GOAL_JITTER_M, GOAL_JITTER_M, size=(1, 3))[0]


def evaluation_goal_m(initial_state_seed: int) -> np.ndarray:
    """The goal of an evaluation episode, which runs in an environment of its own; float64 of shape (3,)."""
    return GoalStream(initial_state_seed).next()
