"""``handover_place@v1``: a presenter hands over a part, an ego places it; closed form, no physics.

An episode is one draw of the presenter, one placement of the ego and one resolution. Every number is made of
IEEE double additions, multiplications, divisions and square roots in a fixed order, so records are equal to the
last bit on every platform that draws the same normals.
"""

import math
from dataclasses import dataclass

import numpy as np

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement, Presentation
from rowproof.seeding import substream

TARGET_JITTER_M = 5e-3
REGRASP_REQUEST_THRESHOLD = 0.5


@dataclass(frozen=True)
class Outcome:
    """How a placement ends.

    Attributes:
        lateral_m: distance that is left between part and seat.
        angular_deg: angle that is left.
        force_n: seating force.
        binding: the conditions that are violated, among ``lateral``, ``angular``, ``force``; empty on success.
        failure_mode: ``none``; ``budget_mediated`` if a re-grasp free of charge would have succeeded; ``intrinsic``.
    """

    lateral_m: float
    angular_deg: float
    force_n: float
    binding: tuple[str, ...]
    failure_mode: str

    @property
    def success(self) -> bool:
        """Whether the part is seated."""
        return not self.binding


def at_most(x_m: float, y_m: float, limit_m: float) -> tuple[float, float]:
    """The vector, shortened to length ``limit_m`` if it is longer."""
    length_m = math.sqrt(x_m * x_m + y_m * y_m)
    if length_m <= limit_m:
        return x_m, y_m
    scale = limit_m / length_m
    return x_m * scale, y_m * scale


def uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """One draw, uniform from ``low`` to ``high``."""
    # What Generator.uniform computes, with a product and a sum that no compiler can fuse into one rounding.
    return low + (high - low) * rng.random()


def target_xy_m(initial_state_seed: int) -> tuple[float, float]:
    """The place target, jittered within +-5 mm; it is shown to the ego and never enters the outcome."""
    rng = substream("env.handover_place", initial_state_seed)
    return uniform(rng, -TARGET_JITTER_M, TARGET_JITTER_M), uniform(rng, -TARGET_JITTER_M, TARGET_JITTER_M)


def observe(presented: Presentation, initial_state_seed: int) -> Observation:
    """What the ego sees of a presentation."""
    target = target_xy_m(initial_state_seed)
    return Observation(*target, presented.lateral_x_m, presented.lateral_y_m, presented.grasp_error_deg)


def judge(cell: HandoverCell, lateral_m: float, angular_deg: float) -> tuple[float, tuple[str, ...]]:
    """The seating force (N) of two residuals, and the conditions that they violate (limits are exclusive)."""
    force_n = cell.contact_stiffness_n_per_m * lateral_m + cell.angular_stiffness_n_per_deg * angular_deg
    violated = (
        ("lateral", lateral_m >= cell.lateral_window_m),
        ("angular", angular_deg >= cell.angular_window_deg),
        ("force", force_n >= cell.seating_force_limit_n),
    )
    return force_n, tuple(name for name, holds in violated if holds)


def resolve(cell: HandoverCell, presented: Presentation, placed: Placement) -> Outcome:
    """Resolve one placement.

    The translation counts up to the ego's range. The commanded wrist turn is ignored: the wrist takes off what its
    range allows, or the range of a re-grasp if one is asked for and fits the budget that the presenter's delay leaves.
    """
    x_m, y_m = at_most(placed.translate_x_m, placed.translate_y_m, cell.translation_range_m)
    dx_m, dy_m = presented.lateral_x_m + x_m, presented.lateral_y_m + y_m
    # Not math.hypot or a BLAS norm: they round differently.
    lateral_m = math.sqrt(dx_m * dx_m + dy_m * dy_m)
    budget_s = cell.regrasp_budget_s - max(0.0, presented.timing_skew_s)
    regrasped = placed.regrasp > REGRASP_REQUEST_THRESHOLD and cell.regrasp_duration_s <= budget_s
    error_deg = abs(presented.grasp_error_deg)
    free_deg = max(0.0, error_deg - cell.reacquire_range_deg)
    angular_deg = free_deg if regrasped else max(0.0, error_deg - cell.wrist_correction_deg)
    force_n, binding = judge(cell, lateral_m, angular_deg)
    free_succeeds = not judge(cell, lateral_m, free_deg)[1]
    failure_mode = "none" if not binding else "budget_mediated" if free_succeeds else "intrinsic"
    return Outcome(lateral_m, angular_deg, force_n, binding, failure_mode)
