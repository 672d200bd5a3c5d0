"""Hyper-parameters of a training on the handover task."""

from typing import Annotated, Literal

from pydantic import Field

from rowproof.chamber.training_config import TrainingConfig


class HandoverTrainingConfig(TrainingConfig):
    """A training whose episodes are one decision of the ego.

    ``shaping_weight`` weighs the seating force in units of its limit.
    """

    # The presenter has acted before the ego does, and is no learner.
    algorithm: Literal["happo"]
    # Nothing follows a decision.
    discount: Annotated[float, Field(ge=0, le=0)]
