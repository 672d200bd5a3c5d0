"""One control step: joint targets from the measured angles, held over five substeps."""

from array import array
from operator import add, mul

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.scene import Arm, Scene

_HALF = np.float32(0.5)
_DELTA_RAD = np.float32(0.1)
# Half the range of the increments, computed in float32 as the published controller does.
ARM_SCALE_RAD = float(_HALF * (_DELTA_RAD - (-_DELTA_RAD)))
_OPEN_M, _CLOSED_M = np.float32(0.04), np.float32(-0.01)
GRIPPER_MIDDLE_M = float(_HALF * (_OPEN_M + _CLOSED_M))
GRIPPER_SCALE_M = float(_HALF * (_OPEN_M - _CLOSED_M))

_FINGERS = rig.JOINTS - rig.ARM_JOINTS
_SCALES = (*[ARM_SCALE_RAD] * rig.ARM_JOINTS, *[GRIPPER_SCALE_M] * _FINGERS)
_FINGER_CENTRES_M = [GRIPPER_MIDDLE_M] * _FINGERS


def targets(qpos: np.ndarray, action: np.ndarray) -> list[float]:
    """The nine drive targets of one arm (rad; m for the two fingers), each a float32 value.

    The increments count from the measured angles, so the controller has no memory and a zero action gives way under
    load. A double would change the last digits and with them the episode.

    Args:
        qpos: measured joint positions, float32 of shape (9,).
        action: float32 of shape (8,), clipped to [-1, 1] here.
    """
    clipped = [1.0 if a > 1.0 else -1.0 if a < -1.0 else a for a in action.tolist()]
    # Both fingers follow the gripper command, around the middle of their range.
    clipped.append(clipped[rig.ARM_JOINTS])
    centres = qpos.tolist()
    centres[rig.ARM_JOINTS :] = _FINGER_CENTRES_M
    # Rounding the products and the sums of doubles gives what float32 arithmetic gives, at less cost.
    increments = array("f", list(map(mul, _SCALES, clipped)))
    return array("f", list(map(add, centres, increments))).tolist()


def command(arm: Arm, action: np.ndarray) -> None:
    """Set the drive targets of ``arm`` for ``action`` (float32 of shape (8,))."""
    for set_target, target in zip(arm.set_targets, targets(arm.articulation.qpos, action), strict=True):
        set_target(target)


def control_step(scene: Scene, ego_action: np.ndarray, partner_action: np.ndarray) -> None:
    """Command both arms and advance the simulation by 0.05 s."""
    command(scene.arms[rig.EGO], ego_action)
    command(scene.arms[rig.PARTNER], partner_action)
    for _ in range(rig.SUBSTEPS):
        scene.substep()
