"""What passes between presenter and ego in one handover."""

from typing import NamedTuple


class Presentation(NamedTuple):
    """What a presenter does: lateral offset of the part (m), grasp error (deg) and delay (s)."""

    lateral_x_m: float
    lateral_y_m: float
    grasp_error_deg: float
    timing_skew_s: float


class Observation(NamedTuple):
    """What the ego sees before it places: the target, the offset of the part and its grasp error, never the delay."""

    target_x_m: float
    target_y_m: float
    lateral_x_m: float
    lateral_y_m: float
    grasp_error_deg: float


class Placement(NamedTuple):
    """What the ego does: translation (m), wrist turn (deg), and a re-grasp if ``regrasp`` is above one half."""

    translate_x_m: float
    translate_y_m: float
    reorient_deg: float
    regrasp: float
