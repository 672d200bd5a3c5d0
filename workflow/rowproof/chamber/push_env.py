"""The diagnostic task as a Gymnasium environment (extra ``gym``): the ego acts, the scripted partner is inside.

The motion, reward and observation are those of :mod:`rowproof.chamber.push`; this module adds the interface only.
"""

from typing import Any

import gymnasium
import numpy as np

from rowproof.chamber.push import EGO, OBSERVATION_SIZE, PARTNER, Push
from rowproof.chamber.push_cell import PushCell
from rowproof.chamber.push_heuristic import scripted_heuristic

ENV_ID = "rowproof/Push-v1"
STANDARD_CELL = PushCell(condition="mpe_cooperative_push", steps=50, dt_s=0.1, success_reward=-1.2)


class PushEnv(gymnasium.Env):
    """Single-agent view of the push task; an episode is truncated after ``cell.steps`` steps, never terminated.

    ``reset(seed=k)`` starts the initial state number k of ``root_seed``, as evaluation does with its cluster seed and
    episode number; ``reset()`` draws the next one from the running generator.

    Args:
        cell: steps, step time and success threshold.
        root_seed: root of the initial states.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - the attribute that Gymnasium reads

    def __init__(self, cell: PushCell = STANDARD_CELL, root_seed: int = 0) -> None:
        """Make the spaces and the task; see the class for the arguments."""
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        # Positions and velocities stay within 1, differences of positions within 2.
        bound = np.array([1.0] * 4 + [2.0] * (OBSERVATION_SIZE - 4), dtype=np.float32)
        self.observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        self._push = Push(cell, root_seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode; see the class. There are no options.

        Raises:
            ValueError: ``seed`` is negative.
        """
        if seed is not None and seed < 0:
            raise ValueError(f"seed must not be negative, found {seed}")
        self._push.reset(seed)
        # Gymnasium's own seeding would make another generator, so its np_random is pointed at the task's.
        self._np_random = self._push.rng
        # -1 is Gymnasium's word for unknown; None would make it seed a generator of its own.
        self._np_random_seed = -1 if seed is None else seed
        return self._push.observation(EGO), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Move ego and partner by one step.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over or none was started.
            ValueError: ``action`` is not two finite numbers.
        """
        if self._push.truncated:
            raise gymnasium.error.ResetNeeded("no episode is under way: call reset() before the next step()")
        reward = self._push.step(action, scripted_heuristic(self._push.observation(PARTNER)))
        return self._push.observation(EGO), reward, False, self._push.truncated, {}


def register() -> None:
    """Make ``gymnasium.make("rowproof/Push-v1")`` work; a second call changes nothing."""
    if ENV_ID not in gymnasium.registry:
        gymnasium.register(ENV_ID, entry_point="rowproof.chamber.push_env:PushEnv")
