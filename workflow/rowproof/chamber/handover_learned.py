"""The learned ego of the handover: what its network sees, and what its actions mean."""

import numpy as np

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement

STATE_SIZE, ACTION_SIZE = 7, 4
# The part of the state that the presenter brought: offset and grasp error.
BROUGHT = slice(2, 5)
# What counts as one in the state: the reach of the target's jitter, and a usual offset of the part.
TARGET_SCALE_M = 5e-3
LATERAL_SCALE_M = 2e-4


def state_of(cell: HandoverCell, seen: Observation, blind: bool) -> np.ndarray:
    """What the network sees, float32 of shape (7,), every component of order one.

    Target x and y (in 5 mm), offset x and y (in 0.2 mm), the grasp error (in the error that wrist and angular window
    just bear: 30 deg at the published anchor), and the constants 1 and -1. The constants are there for the LayerNorm
    over the state, which takes away its mean and its scale: both can be read from what becomes of two known numbers,
    so that nothing seen is lost. ``blind`` puts 0 for all that the presenter brought: offset and grasp error.
    """
    error_scale_deg = cell.wrist_correction_deg + cell.angular_window_deg
    state = np.array(
        [
            seen.target_x_m / TARGET_SCALE_M,
            seen.target_y_m / TARGET_SCALE_M,
            seen.lateral_x_m / LATERAL_SCALE_M,
            seen.lateral_y_m / LATERAL_SCALE_M,
            seen.grasp_error_deg / error_scale_deg,
            1.0,
            -1.0,
        ],
        np.float32,
    )
    if blind:
        state[BROUGHT] = 0.0
    return state


def placement_of(cell: HandoverCell, action: np.ndarray) -> Placement:
    """The placement that an action of shape (4,) means; its components count within -1 and 1.

    Translation x and y in lateral windows (1 mm at the published anchor), wrist turn in wrist ranges, and the
    re-grasp flag from 0 to 1, so that positive values ask for one. The translation is so fine because of the noise
    of training, a third of the scale: over the whole range of 0.1 m it would miss a window of 1 mm nearly always, and
    offsets of some tenths of a millimetre ask for no more than one window.
    """
    x, y, turn, regrasp = (float(value) for value in np.clip(action, -1.0, 1.0))
    return Placement(
        x * cell.lateral_window_m, y * cell.lateral_window_m, turn * cell.wrist_correction_deg, 0.5 * (1.0 + regrasp)
    )
