"""A suite: what is measured, without naming a player."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, computed_field, field_validator, model_validator

from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.models import ConfigName, Positive, Strict, stable_digest
from rowproof.records import encode_line

PairingType = Literal["with_self", "pairwise", "no_expert", "with_best_expert", "with_best_defuser"]


class Protocol(Strict):
    """How a role behaves in a suite."""

    role: Literal["defuser", "expert"]
    communication_style: Literal["sync", "async"]
    is_playing_alone: bool
    include_manual: bool
    receive_feedback_after_action: bool = False
    allow_magic_actions: bool = False
    allow_lottery_actions: bool = False

    @computed_field
    @property
    def allow_message_output(self) -> bool:
        """Whether the player may talk; who plays alone may not."""
        return not self.is_playing_alone

    @model_validator(mode="before")
    @classmethod
    def _computed(cls, data: Any) -> Any:
        # Written files hold the computed field as well; it says nothing of its own.
        if not isinstance(data, dict) or "allow_message_output" not in data:
            return data
        if data["allow_message_output"] is not (data.get("is_playing_alone") is False):
            raise ValueError("allow_message_output must be the opposite of is_playing_alone: leave it out")
        return {key: value for key, value in data.items() if key != "allow_message_output"}

    @model_validator(mode="after")
    def _expert_has_a_partner(self) -> "Protocol":
        if self.role == "expert" and self.is_playing_alone:
            raise ValueError("an expert must not play alone")
        return self


class Matchup(Strict):
    """Who plays with whom."""

    pairing_type: PairingType


def _canonical(values: Any) -> Any:
    if not isinstance(values, list):
        return values
    return tuple(sorted(set(values))) if all(type(value) is str for value in values) else tuple(values)


class Suite(Strict):
    """One suite. Its revision must rise with any change to what is measured."""

    name: ConfigName
    revision: Positive
    modality: Annotated[
        tuple[Literal["vision", "language", "audio"], ...], BeforeValidator(_canonical), Field(min_length=1)
    ]
    # The published spelling, which the digests hold; the files are those of the set of this name.
    missions_path: str
    defuser_protocol: Protocol
    expert_protocol: Protocol | None = None
    matchup: Matchup

    @field_validator("missions_path")
    @classmethod
    def _relative(cls, text: str) -> str:
        parts = PurePosixPath(text).parts
        if not parts or text.startswith("/") or "\\" in text or ".." in parts:
            raise ValueError("must be a path below the project, as configs/missions/<set>")
        return text

    @model_validator(mode="after")
    def _roles(self) -> "Suite":
        if self.defuser_protocol.role != "defuser":
            raise ValueError("the role of defuser_protocol must be defuser")
        if self.expert_protocol is not None and self.expert_protocol.role != "expert":
            raise ValueError("the role of expert_protocol must be expert")
        if self.defuser_protocol.is_playing_alone and self.expert_protocol is not None:
            raise ValueError("a defuser that plays alone must have no expert: remove expert_protocol")
        if (self.expert_protocol is None) != (self.matchup.pairing_type == "no_expert"):
            raise ValueError("expert_protocol must be there unless matchup.pairing_type is no_expert")
        return self

    @property
    def mission_set(self) -> str:
        """Name of the mission set."""
        return PurePosixPath(self.missions_path).name

    @property
    def config_digest(self) -> str:
        """Digest of what is measured, but for the missions; neither name nor revision enters."""
        return stable_digest(self.model_dump(mode="json", exclude={"name", "revision"}))

    def digest(self, missions: Iterable[Mission]) -> str:
        """The suite's content digest (``suite_digest``)."""
        return stable_digest([self.config_digest, missions_digest(missions)])


def missions_digest(missions: Iterable[Mission]) -> str:
    """Digest of mission bodies, whatever their order; the order of components within one matters."""
    return stable_digest(sorted((encode_line(mission.wire_data()) for mission in missions), key=stable_digest))
