"""Runs evaluation episodes, each as if in a scene of its own."""

from dataclasses import dataclass
from pathlib import Path

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.conditions import CONDITIONS
from rowproof.chamber.cocarry.control import control_step
from rowproof.chamber.cocarry.goals import evaluation_goal_m
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.player import Player
from rowproof.chamber.cocarry.robot_files import ROBOT_FOLDER
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry.telemetry import Judge, distance_m, measure
from rowproof.chamber.cocarry_cell import CocarryCell


@dataclass(frozen=True)
class Episode:
    """How an episode ended; forces, angles and distances are float32 values.

    Attributes:
        success: whether it ended in success and not for lack of time.
        steps: control steps executed.
        max_stress_n: largest wrist force since the settle step; 0 if it was never reached.
        max_tilt_deg: likewise the largest bar tilt.
        distance_m: from bar centre to goal at the end.
    """

    success: bool
    steps: int
    max_stress_n: float
    max_tilt_deg: float
    distance_m: float


class Runner:
    """Runs the episodes of one cell on one scene, which is renewed for each."""

    def __init__(self, cell: CocarryCell, robots: Path = ROBOT_FOLDER) -> None:
        """Build the scene of ``cell.condition`` from the robot files in ``robots``.

        Raises:
            SimulatorError: the simulator is not there.
            RobotFilesError: a robot file is missing or altered.
        """
        self.cell = cell
        self.scene = Scene(CONDITIONS[cell.condition], robots)
        self._views = (View(self.scene, rig.EGO), View(self.scene, rig.PARTNER))

    def run(self, ego: Player, partner: Player, initial_state_seed: int) -> Episode:
        """One episode; a pure function of the cell and the arguments, whatever ran before."""
        scene, judge = self.scene, Judge(self.cell)
        scene.renew()
        scene.reset(evaluation_goal_m(initial_state_seed))
        ego.reset(initial_state_seed)
        partner.reset(initial_state_seed)
        ego_view, partner_view = self._views
        success = False
        for step in range(1, self.cell.max_steps + 1):
            control_step(scene, ego.act(ego_view), partner.act(partner_view))
            # Reading costs time, so it begins with the first sample that counts.
            if judge.counts(step):
                success = judge.success(step, measure(scene))
                if success:
                    break
        return Episode(success, step, float(judge.max_stress_n), float(judge.max_tilt_deg), float(distance_m(scene)))
