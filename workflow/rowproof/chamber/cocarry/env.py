"""The co-carry task as a Gymnasium environment (extra ``gym``): the ego acts, the partner is inside.

The rig, its telemetry and its judge are those of the other modules; this one adds the interface only.
"""

from typing import Any

import gymnasium
import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.conditions import CONDITIONS
from rowproof.chamber.cocarry.control import control_step
from rowproof.chamber.cocarry.goals import GoalStream
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.player import Player
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry.telemetry import Judge, measure, reward
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL, CocarryCell

ENV_ID = "rowproof/Cocarry-v1"

# Far outside of what the rig can reach: joint speeds are capped at 100, and the bar hangs on arms of one metre.
_POSITION_BOUND, _SPEED_BOUND, _BAR_BOUND = 100.0, 1000.0, 100.0


class CocarryEnv(gymnasium.Env):
    """Single-agent view of the co-carry task from the ego's seat.

    The observation is the flat state of :meth:`rowproof.chamber.cocarry.observation.View.state`, the action seven
    joint increments and a gripper command in [-1, 1], the reward that of
    :func:`rowproof.chamber.cocarry.telemetry.reward`. An episode terminates in success and is truncated after
    ``cell.max_steps`` steps.

    ``reset(seed=k)`` starts the initial state number k, as evaluation does; ``reset()`` takes the next goal of the
    stream of ``root_seed`` (or of the last seed that was given).

    Args:
        cell: condition and success predicate.
        root_seed: root of the goals of unseeded resets.
        partner: who drives the other arm; by default the controller with its default gains.
        fresh_scenes: whether every episode starts in a new simulator scene, as in evaluation. Published training
            reuses one scene, whose caches make the later episodes of an environment different.

    Raises:
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - the attribute that Gymnasium reads

    def __init__(
        self,
        cell: CocarryCell = PUBLISHED_CELL,
        root_seed: int = 0,
        partner: Player | None = None,
        fresh_scenes: bool = True,
    ) -> None:
        """Build the rig and the spaces; see the class for the arguments."""
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (rig.ACTION_SIZE,), np.float32)
        joints = [_POSITION_BOUND] * rig.JOINTS + [_SPEED_BOUND] * rig.JOINTS
        bound = np.array([*joints, *joints, *[_BAR_BOUND] * 10], np.float32)
        self.observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        self.cell = cell
        self.partner = partner or ImpedanceController(rig.PARTNER, Gains())
        self.fresh_scenes = fresh_scenes
        self.scene = Scene(CONDITIONS[cell.condition])
        self._ego_view, self._partner_view = View(self.scene, rig.EGO), View(self.scene, rig.PARTNER)
        self._goals = GoalStream(root_seed)
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode; see the class. There are no options.

        Raises:
            ValueError: ``seed`` is negative.
        """
        if seed is not None:
            if seed < 0:
                raise ValueError(f"seed must not be negative, found {seed}")
            self._goals = GoalStream(seed)
        # Gymnasium's own seeding would make another generator, so its np_random is pointed at the task's.
        self._np_random = self._goals.rng
        # -1 is Gymnasium's word for unknown; None would make it seed a generator of its own.
        self._np_random_seed = -1 if seed is None else seed
        if self.fresh_scenes:
            self.scene.renew()
        self.scene.reset(self._goals.next())
        self.partner.reset(0 if seed is None else seed)
        self._judge = Judge(self.cell)
        self._step = 0
        self._over = False
        return self._ego_view.state(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Move both arms by one control step (0.05 s).

        The info holds ``success``, ``tilt_deg``, ``stress_n`` and ``distance_m`` of this step.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over or none was started.
            ValueError: ``action`` is not eight finite numbers.
        """
        if self._over:
            raise gymnasium.error.ResetNeeded("no episode is under way: call reset() before the next step()")
        ego_action = np.asarray(action, np.float32)
        if ego_action.shape != (rig.ACTION_SIZE,) or not np.isfinite(ego_action).all():
            raise ValueError(f"an action must be {rig.ACTION_SIZE} finite numbers, found {action!r}")
        control_step(self.scene, ego_action, self.partner.act(self._partner_view))
        self._step += 1
        sample = measure(self.scene)
        success = self._judge.success(self._step, sample)
        truncated = self._step >= self.cell.max_steps
        self._over = success or truncated
        info = {
            "success": success,
            "tilt_deg": float(sample.tilt_deg),
            "stress_n": float(sample.stress_n),
            "distance_m": float(sample.distance_m),
        }
        value = reward(self.scene, sample, self._step, success, self.cell)
        return self._ego_view.state(), value, success, truncated, info


def register() -> None:
    """Make ``gymnasium.make("rowproof/Cocarry-v1")`` work; a second call changes nothing."""
    if ENV_ID not in gymnasium.registry:
        gymnasium.register(ENV_ID, entry_point="rowproof.chamber.cocarry.env:CocarryEnv")
