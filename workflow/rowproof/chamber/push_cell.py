"""Task parameters of the diagnostic push engine."""

from typing import Annotated

from pydantic import Field

from rowproof.chamber.cells import Condition, Positive, StrictCell


class PushCell(StrictCell):
    """The diagnostic task: ``steps`` moves of ``dt_s`` each; success needs a final reward of ``success_reward``."""

    condition: Condition
    steps: Annotated[int, Field(gt=0, le=10_000)]
    dt_s: Positive
    # Minus a sum of distances (length units of the unit square), hence never above zero.
    success_reward: Annotated[float, Field(le=0, allow_inf_nan=False)]
