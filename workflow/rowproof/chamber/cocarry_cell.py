"""Task parameters of the co-carry engine."""

from typing import Annotated, Literal

from pydantic import Field

from rowproof.chamber.cells import Positive, StrictCell


class CocarryCell(StrictCell):
    """One condition of the co-carry task and its success predicate; all limits are positive and finite.

    The rig itself (robots, bar, goal region, clock) has no parameters: another rig is another engine.
    """

    condition: Literal[
        "cocarry_matched_panda_pair",
        "cocarry_single_arm_positive_control",
        "cocarry_contact_free_pair",
    ]
    # Success needs a bar centre within this distance of the goal, inclusive.
    goal_radius_m: Positive
    # The largest bar tilt and wrist force from the settle step on must stay below these, exclusive.
    tilt_limit_deg: Positive
    force_limit_n: Positive
    # No arm joint of a holding arm may move faster at the moment of success, inclusive.
    joint_speed_limit_rad_per_s: Positive
    # The first control step whose samples count.
    settle_step: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1)]


PUBLISHED_CELL = CocarryCell(
    condition="cocarry_matched_panda_pair",
    goal_radius_m=0.10,
    tilt_limit_deg=15.0,
    force_limit_n=130.0,
    joint_speed_limit_rad_per_s=0.2,
    settle_step=15,
    max_steps=320,
)
"""The condition and limits of all published rows."""
