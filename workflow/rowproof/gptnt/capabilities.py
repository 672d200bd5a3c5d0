"""What a player can do and how it is asked: the half of its configuration that decides comparability."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rowproof.gptnt.fingerprint import fingerprint
from rowproof.gptnt.models import PlayerName, Positive, Strict

Count = Annotated[int, Field(ge=0)]


class UsageLimits(Strict):
    """Token limits. Only ``input_tokens_limit`` is used, to shorten conversations."""

    request_limit: Positive | None = 50
    tool_calls_limit: Count | None = None
    input_tokens_limit: Positive | None = None
    output_tokens_limit: Positive | None = None
    total_tokens_limit: Positive | None = None
    count_tokens_before_request: bool = False


class ImageDimensions(Strict):
    """Size of the images that a player gets, in pixels."""

    width: Positive = 640
    height: Positive = 480


class Capabilities(Strict):
    """The capabilities of one player.

    Attributes:
        player_name: in specs, rosters and records.
        player_type: whether a model or a person plays.
        thinking_method: reasoning apart from the answer, or in tags inside it.
        structured_output_mode: how the model is made to answer in the schema; null for text.
        include_schema_in_instructions: show the schema of the answer.
        max_observations_per_request: frames per request where a module blinks.
        usage_limits: enters no fingerprint.
        image_dimensions: size of images, in pixels.
        tokens_per_image: measured; 0 is not yet measured.
        interaction_location_method: how the player points.
        coordinate_mode: pixels, or 0 to 1000 in each direction.
        preserve_last_frame_for_n_turns: turns whose last image stays in the conversation.
        enable_nobf_generation: tell the model about errors of its last answer.
    """

    player_name: PlayerName
    player_type: Literal["ai", "human"]
    thinking_method: Literal["inner-monologue", "thinking-out-loud"] = "inner-monologue"
    structured_output_mode: Literal["prompted", "native", "tool"] | None = "prompted"
    include_schema_in_instructions: bool = True
    max_observations_per_request: Annotated[int, Field(ge=1, le=16)] = 16
    usage_limits: UsageLimits = Field(default_factory=UsageLimits)
    image_dimensions: ImageDimensions = Field(default_factory=ImageDimensions)
    tokens_per_image: Count = 0
    interaction_location_method: Literal["set-of-marks", "coordinates"] = "set-of-marks"
    coordinate_mode: Literal["absolute", "normalised"] = "absolute"
    preserve_last_frame_for_n_turns: Count = 0
    enable_nobf_generation: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> "Capabilities":
        if self.structured_output_mode == "prompted" and not self.include_schema_in_instructions:
            raise ValueError("structured_output_mode prompted must come with include_schema_in_instructions: true")
        if self.thinking_method == "thinking-out-loud" and self.structured_output_mode is not None:
            raise ValueError("thinking-out-loud must come with structured_output_mode: null")
        return self

    @property
    def fingerprint(self) -> str:
        """Digest of everything but ``usage_limits``."""
        return fingerprint(self.model_dump(mode="json"))


class Identity(Strict):
    """Who made the model, as submissions show it."""

    display_name: Annotated[str, Field(min_length=1)]
    organisation: Annotated[str, Field(min_length=1)]
    is_os_model: bool
    url: str | None
