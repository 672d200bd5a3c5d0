"""Hyper-parameters of one training: ``config/training/<name>.yaml``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rowproof.chamber.cells import Positive, StrictCell

Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class TrainingConfig(StrictCell):
    """How an ego, or a pair, is trained. Changing any value asks for new trainings."""

    schema_: Literal["rowproof/training/1"] = Field(alias="schema")
    training: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
    # happo: one ego learns beside a frozen partner. mappo: both seats learn, on the same advantages.
    algorithm: Literal["happo", "mappo"]
    # Whether the ego's state is masked so that it sees nothing of the partner, in training as in evaluation.
    blind: bool
    # Environment steps of one training, and after how many a checkpoint is taken.
    frames: Count
    checkpoint_frames: Count
    rollout_frames: Count
    epochs: Count
    hidden_units: Annotated[list[Count], Field(min_length=1)]
    # Adam, the same rate for actors and critic.
    learning_rate: Positive
    actor_adam_eps: Positive
    critic_adam_eps: Positive
    discount: Fraction
    gae_lambda: Fraction
    # Of the probability ratio of one update.
    clip: Positive
    entropy_coefficient: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    # Global norm of the actor's gradient; the critic's is not limited.
    max_gradient_norm: Positive
    # The standard deviation of actions is ceiling * sigmoid(parameter), one parameter per action component.
    std_ceiling: Positive
    initial_std_parameter: Annotated[float, Field(allow_inf_nan=False)]
    # Gain of the orthogonal initial weights of the layer that gives the mean action.
    mean_gain: Positive
    # Weight of the potential (minus the distance to the goal, in metres) that shapes the reward.
    shaping_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _whole(self) -> "TrainingConfig":
        if self.frames % self.checkpoint_frames:
            raise ValueError(f"frames must be a multiple of checkpoint_frames, found {self.frames}")
        return self
