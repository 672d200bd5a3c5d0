"""What must hold among the measurements of an episode, whoever played."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rowproof.chamber.cocarry_cell import CocarryCell


def measurement_problems(cell: CocarryCell, success: bool, force_n: float, metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the measured values of one episode, as far as they must agree with each other.

    Args:
        cell: the limits.
        success: whether the episode ended in success.
        force_n: largest wrist force since the settle step.
        metadata: holds ``max_tilt_deg``, ``centroid_to_goal`` (m) and ``n_steps``, all floats.
    """
    tilt_deg, distance_m, steps = metadata["max_tilt_deg"], metadata["centroid_to_goal"], metadata["n_steps"]
    problems = []
    for name, value, upper in (
        ("force_peak", force_n, math.inf),
        ("max_tilt_deg", tilt_deg, float(np.float32(90.0))),
        ("centroid_to_goal", distance_m, math.inf),
    ):
        # The sign bit, not the value: -0.0 compares equal to 0.0 and is another line.
        if not math.isfinite(value) or math.copysign(1.0, value) < 0 or value > upper:
            problems.append(f"{name} must be finite and within 0 and {upper!r}, found {value!r}")
        elif abs(value) > float(np.finfo(np.float32).max) or float(np.float32(value)) != value:
            problems.append(f"{name} must be a single-precision value, found {value!r}")
    if not 1 <= steps <= cell.max_steps or steps != math.floor(steps):
        problems.append(f"n_steps must be a whole number from 1 to {cell.max_steps}, found {steps!r}")
    if not success:
        # Nothing but success ends an episode early.
        if steps != cell.max_steps:
            problems.append(f"n_steps of a failure must be {cell.max_steps}, found {steps!r}")
        return problems
    # The judge compares in single precision.
    radius_m, max_tilt_deg, max_force_n = (
        float(np.float32(limit)) for limit in (cell.goal_radius_m, cell.tilt_limit_deg, cell.force_limit_n)
    )
    for name, holds, must, value in (
        ("n_steps", steps >= cell.settle_step, f"at least {cell.settle_step}", steps),
        ("centroid_to_goal", distance_m <= radius_m, f"at most {radius_m!r}", distance_m),
        ("max_tilt_deg", tilt_deg < max_tilt_deg, f"below {max_tilt_deg!r}", tilt_deg),
        ("force_peak", force_n < max_force_n, f"below {max_force_n!r}", force_n),
    ):
        if not holds:
            problems.append(f"{name} of a success must be {must}, found {value!r}")
    return problems
