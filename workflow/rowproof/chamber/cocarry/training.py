"""The co-carry task as learners train on it: one scene, reset again and again, as published."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.conditions import CONDITIONS
from rowproof.chamber.cocarry.control import control_step
from rowproof.chamber.cocarry.goals import GoalStream
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.chamber.cocarry.observation import STATE_SIZE, View, blinded
from rowproof.chamber.cocarry.robot_files import ROBOT_FOLDER
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry.telemetry import Judge, distance_m, measure, reward
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.learned.trainer import Outcome, Training, Watcher
from rowproof.chamber.training_config import TrainingConfig


class CocarryTask:
    """Episodes of one training; see :class:`rowproof.chamber.learned.trainer.Task`.

    The scene is reused, so that its contact caches make later episodes start otherwise than evaluation does. The frozen
    partner is the controller with its default gains, which is no member of any set. The reward is shaped by the
    potential ``-shaping_weight * distance`` to the goal, read in the simulator and not in what the ego sees.
    """

    state_size = STATE_SIZE
    action_size = rig.ACTION_SIZE

    def __init__(self, config: TrainingConfig, cell: CocarryCell, seed: int, robots: Path = ROBOT_FOLDER) -> None:
        """Build the rig; goals come from the stream of ``seed``.

        Raises:
            SimulatorError: the simulator is not there.
            RobotFilesError: a robot file is missing or altered.
        """
        self._config, self._cell, self._seed = config, cell, seed
        self._scene = Scene(CONDITIONS[cell.condition], robots)
        self._views = [View(self._scene, rig.EGO), View(self._scene, rig.PARTNER)]
        self._partner = ImpedanceController(rig.PARTNER, Gains()) if config.algorithm == "happo" else None

    def fresh(self, episode: int) -> list[np.ndarray]:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        self._goals = GoalStream(self._seed)
        for _ in range(episode):
            self._goals.next()
        self._scene.renew()
        return self.reset()

    def reset(self) -> list[np.ndarray]:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        self._scene.reset(self._goals.next())
        if self._partner:
            self._partner.reset(0)
        self._judge, self._steps = Judge(self._cell), 0
        self._potential = self._potential_at(distance_m(self._scene))
        return self._states()

    def step(self, actions: list[np.ndarray]) -> Outcome:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        scene = self._scene
        partner_action = self._partner.act(self._views[rig.PARTNER]) if self._partner else actions[1]
        control_step(scene, actions[0], partner_action)
        self._steps += 1
        sample = measure(scene)
        success = self._judge.success(self._steps, sample)
        truncated = self._steps >= self._cell.max_steps
        shared = reward(scene, sample, self._steps, success, self._cell)
        # A success in the last step counts as the end of time, as published.
        succeeded = success and not truncated
        potential = 0.0 if succeeded else self._potential_at(sample.distance_m)
        shaped = shared + self._config.discount * potential - self._potential
        self._potential = potential
        return Outcome(self._states(), shaped, succeeded, truncated)

    def _potential_at(self, to_goal_m: float) -> float:
        return -self._config.shaping_weight * to_goal_m

    def _states(self) -> list[np.ndarray]:
        if self._partner is None:
            return [view.state() for view in self._views]
        state = self._views[rig.EGO].state()
        return [blinded(state) if self._config.blind else state]


def train(setup: Mapping[str, Any], seed: int, folder: Path, watcher: Watcher) -> dict[str, Any]:
    """Run the training ``seed``; a pure function of ``setup`` and ``seed``, whatever was interrupted before.

    Args:
        setup: plain data with ``cell`` and ``training``.
        seed: the training seed.
        folder: where checkpoints and the state to resume from are kept.
        watcher: who follows the progress.

    Returns:
        The document of the training: its checkpoints by name, its learning curve.

    Raises:
        ConfigError: cell or training configuration is not valid.
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
        Stopped: the process was told to stop.
    """
    config = parse_cell(TrainingConfig, setup["training"])
    task = CocarryTask(config, parse_cell(CocarryCell, setup["cell"]), seed)
    return Training(config, task, seed, folder).run(watcher)
