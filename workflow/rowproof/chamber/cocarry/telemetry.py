"""What is measured after a control step, and the judge that decides success from it.

All quantities are float32 values in the operation order of the published rig; doubles would move the last digit. They
are held in Python floats: sums, products, quotients and roots of float32 values come out the same when they are
computed in double precision and then rounded, and plain floats are faster than arrays of three.
"""

import math
from ctypes import c_float
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry_cell import CocarryCell

_F32 = np.float32
_DEG_PER_RAD = float(_F32(180.0 / math.pi))

# Of the training reward.
STRESS_PENALTY_START_N = 110.0
STRESS_PENALTY_WIDTH_N = 20.0
SUCCESS_REWARD = 5.0


def norm3(vector: np.ndarray) -> float:
    """Euclidean length of a float32 vector of shape (3,), accumulated with fused multiply-adds from the first axis on.

    A double holds the product of two float32 exactly, so rounding its sum to float32 is the fused operation.
    """
    return _norm3(*vector.tolist())


def _norm3(x: float, y: float, z: float) -> float:
    total = c_float(x * x).value
    total = c_float(y * y + total).value
    return c_float(math.sqrt(c_float(z * z + total).value)).value


def tilt_deg(quaternion: np.ndarray) -> float:
    """Angle of the bar's long axis from level, 0 to 90 degrees, from its float32 quaternion (w, x, y, z)."""
    w, x, y, z = quaternion.tolist()
    vertical = min(abs(2.0 * c_float(c_float(x * z).value - c_float(w * y).value).value), 1.0)
    # Rounded from a double: a float32 arcsine differs between math libraries in the last digit.
    return c_float(c_float(math.asin(vertical)).value * _DEG_PER_RAD).value


def stress_n(scene: Scene) -> float:
    """The larger wrist force of the holding arms: length of the force that each hand's joint transmits.

    It is the value of the last substep, and right after a reset still that of the previous episode.
    """
    return max([norm3(arm.articulation.link_incoming_joint_forces[arm.wrist, :3]) for arm in scene.holding])


def joint_speed_rad_per_s(scene: Scene) -> float:
    """The fastest arm joint of the holding arms, fingers left out."""
    return max([max(map(abs, arm.articulation.qvel.tolist()[: rig.ARM_JOINTS])) for arm in scene.holding])


def distance_m(scene: Scene) -> float:
    """From the bar's centre to the goal."""
    return _distance_m(scene.bar.pose.p, scene.goal_m)


def _distance_m(position_m: np.ndarray, goal_m: np.ndarray) -> float:
    x, y, z = position_m.tolist()
    gx, gy, gz = goal_m.tolist()
    return _norm3(c_float(x - gx).value, c_float(y - gy).value, c_float(z - gz).value)


class Sample(NamedTuple):
    """What is measured after one control step (float32 values in Python floats)."""

    tilt_deg: float
    stress_n: float
    distance_m: float
    joint_speed_rad_per_s: float


def measure(scene: Scene) -> Sample:
    """Measure the state after the last substep."""
    pose = scene.bar.pose
    return Sample(tilt_deg(pose.q), stress_n(scene), _distance_m(pose.p, scene.goal_m), joint_speed_rad_per_s(scene))


@dataclass
class Judge:
    """Success of one episode: an instant, judged with the largest tilt and force since the settle step.

    Attributes:
        cell: the limits.
        max_tilt_deg: largest tilt since the settle step, 0 before.
        max_stress_n: likewise the largest wrist force.
    """

    cell: CocarryCell
    max_tilt_deg: float = 0.0
    max_stress_n: float = 0.0

    def __post_init__(self) -> None:
        """Round the limits to float32, the precision of the samples."""
        cell = self.cell
        self._settle_step = cell.settle_step
        self._goal_radius_m = float(_F32(cell.goal_radius_m))
        self._tilt_limit_deg = float(_F32(cell.tilt_limit_deg))
        self._force_limit_n = float(_F32(cell.force_limit_n))
        self._joint_speed_limit_rad_per_s = float(_F32(cell.joint_speed_limit_rad_per_s))

    def counts(self, step: int) -> bool:
        """Whether samples of control step ``step`` (from 1) count; in earlier ones the arms are still thrown apart."""
        return step >= self._settle_step

    def success(self, step: int, sample: Sample) -> bool:
        """Take in the sample of control step ``step`` and say whether the episode succeeds at it."""
        if not self.counts(step):
            return False
        self.max_tilt_deg = max(self.max_tilt_deg, sample.tilt_deg)
        self.max_stress_n = max(self.max_stress_n, sample.stress_n)
        return bool(
            sample.distance_m <= self._goal_radius_m
            and self.max_tilt_deg < self._tilt_limit_deg
            and self.max_stress_n < self._force_limit_n
            and sample.joint_speed_rad_per_s <= self._joint_speed_limit_rad_per_s
        )


def reward(scene: Scene, sample: Sample, step: int, succeeded: bool, cell: CocarryCell) -> float:
    """The shared training reward after control step ``step``: 1 on success, otherwise below 0.6.

    Closeness and level count always, stillness only at the goal, force above 110 N counts against it from the settle
    step on. Stillness is judged by the Euclidean joint speed of an arm, unlike success.
    """
    if succeeded:
        return SUCCESS_REWARD / 5.0
    speed_rad_per_s = max(
        float(np.linalg.norm(arm.articulation.qvel[: rig.ARM_JOINTS].astype(np.float64))) for arm in scene.holding
    )
    total = 1.0 - math.tanh(5.0 * float(sample.distance_m))
    total += 1.0 - math.tanh(5.0 * math.radians(float(sample.tilt_deg)))
    if sample.distance_m <= _F32(cell.goal_radius_m):
        total += 1.0 - math.tanh(5.0 * speed_rad_per_s)
    if step >= cell.settle_step:
        excess_n = max(float(sample.stress_n) - STRESS_PENALTY_START_N, 0.0)
        total -= math.tanh(excess_n / STRESS_PENALTY_WIDTH_N)
    return total / 5.0
