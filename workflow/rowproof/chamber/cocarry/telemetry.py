"""What is measured after a control step, and the judge that decides success from it.

All quantities are float32 values in the operation order of the published rig; doubles would move the last digit.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry_cell import CocarryCell

_F32 = np.float32
_ZERO = _F32(0)
_DEG_PER_RAD = _F32(180.0 / math.pi)

# Of the training reward.
STRESS_PENALTY_START_N = 110.0
STRESS_PENALTY_WIDTH_N = 20.0
SUCCESS_REWARD = 5.0


def norm3(vector: np.ndarray) -> np.float32:
    """Euclidean length of a float32 vector of shape (3,), accumulated with fused multiply-adds from the first axis on.

    A double holds the product of two float32 exactly, so rounding its sum to float32 is the fused operation.
    """
    x, y, z = vector.tolist()
    total = float(_F32(x * x))
    total = float(_F32(y * y + total))
    return np.sqrt(_F32(z * z + total))


def tilt_deg(quaternion: np.ndarray) -> np.float32:
    """Angle of the bar's long axis from level, 0 to 90 degrees, from its float32 quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    vertical = min(abs(_F32(2) * (x * z - w * y)), _F32(1))
    # Rounded from a double: a float32 arcsine differs between math libraries in the last digit.
    return _F32(math.asin(vertical)) * _DEG_PER_RAD


def stress_n(scene: Scene) -> np.float32:
    """The larger wrist force of the holding arms: length of the force that each hand's joint transmits.

    It is the value of the last substep, and right after a reset still that of the previous episode.
    """
    return max(norm3(arm.articulation.link_incoming_joint_forces[arm.wrist, :3]) for arm in scene.holding)


def joint_speed_rad_per_s(scene: Scene) -> np.float32:
    """The fastest arm joint of the holding arms, fingers left out."""
    return max(np.abs(arm.articulation.qvel[: rig.ARM_JOINTS]).max() for arm in scene.holding)


def distance_m(scene: Scene) -> np.float32:
    """From the bar's centre to the goal."""
    return norm3(np.asarray(scene.bar.pose.p, _F32) - scene.goal_m)


class Sample(NamedTuple):
    """What is measured after one control step (float32 values)."""

    tilt_deg: np.float32
    stress_n: np.float32
    distance_m: np.float32
    joint_speed_rad_per_s: np.float32


def measure(scene: Scene) -> Sample:
    """Measure the state after the last substep."""
    pose = scene.bar.pose
    return Sample(
        tilt_deg(np.asarray(pose.q, _F32)),
        stress_n(scene),
        norm3(np.asarray(pose.p, _F32) - scene.goal_m),
        joint_speed_rad_per_s(scene),
    )


@dataclass
class Judge:
    """Success of one episode: an instant, judged with the largest tilt and force since the settle step.

    Attributes:
        cell: the limits.
        max_tilt_deg: largest tilt since the settle step, 0 before.
        max_stress_n: likewise the largest wrist force.
    """

    cell: CocarryCell
    max_tilt_deg: np.float32 = _ZERO
    max_stress_n: np.float32 = _ZERO

    def counts(self, step: int) -> bool:
        """Whether samples of control step ``step`` (from 1) count; in earlier ones the arms are still thrown apart."""
        return step >= self.cell.settle_step

    def success(self, step: int, sample: Sample) -> bool:
        """Take in the sample of control step ``step`` and say whether the episode succeeds at it."""
        if not self.counts(step):
            return False
        cell = self.cell
        self.max_tilt_deg = max(self.max_tilt_deg, sample.tilt_deg)
        self.max_stress_n = max(self.max_stress_n, sample.stress_n)
        return bool(
            sample.distance_m <= _F32(cell.goal_radius_m)
            and self.max_tilt_deg < _F32(cell.tilt_limit_deg)
            and self.max_stress_n < _F32(cell.force_limit_n)
            and sample.joint_speed_rad_per_s <= _F32(cell.joint_speed_limit_rad_per_s)
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
