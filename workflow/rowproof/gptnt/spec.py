"""A spec: one requested game."""

import re
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, model_validator

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.models import ConfigName, PlayerName, Positive, Strict, stable_digest
from rowproof.gptnt.suite import Protocol, Suite
from rowproof.records import encode_document

# File systems take names of 255 bytes.
_SLUG_LENGTH = 200


def _read_mission(data: Any) -> Mission:
    try:
        return data if isinstance(data, Mission) else Mission.from_data(data, "mission")
    except ConfigError as error:
        raise ValueError(str(error)) from None


class Spec(Strict):
    """One game: a mission, who plays it, and under which revision of which suite."""

    mission_spec: Annotated[
        Mission, PlainValidator(_read_mission), PlainSerializer(lambda mission: mission.wire_data())
    ]
    mission_set: ConfigName
    attempt: Positive = 1
    suite_name: ConfigName
    suite_revision: Positive
    defuser_protocol: Protocol
    defuser_name: PlayerName
    expert_protocol: Protocol | None
    expert_name: PlayerName | None

    @model_validator(mode="after")
    def _consistent(self) -> "Spec":
        if (self.expert_protocol is None) != (self.expert_name is None):
            raise ValueError("expert_protocol and expert_name must be there together or not at all")
        if self.defuser_protocol.role != "defuser" or getattr(self.expert_protocol, "role", "expert") != "expert":
            raise ValueError("defuser_protocol and expert_protocol must have the roles defuser and expert")
        if self.defuser_protocol.is_playing_alone and self.expert_name is not None:
            raise ValueError("a defuser that plays alone must have no expert")
        return self

    @classmethod
    def of(cls, suite: Suite, mission: Mission, defuser: str, expert: str | None, attempt: int) -> "Spec":
        """The game of a suite's mission by two players, or by one."""
        return cls(
            mission_spec=mission,
            mission_set=suite.mission_set,
            attempt=attempt,
            suite_name=suite.name,
            suite_revision=suite.revision,
            defuser_protocol=suite.defuser_protocol,
            defuser_name=defuser,
            expert_protocol=suite.expert_protocol,
            expert_name=expert,
        )

    @property
    def fingerprint(self) -> str:
        """Digest of what is measured: who plays and which attempt it is do not enter."""
        return stable_digest(self.model_dump(mode="json", exclude={"attempt", "defuser_name", "expert_name"}))

    @property
    def experiment_name(self) -> str:
        """The name that all attempts of a mission by the same players share."""
        defuser = self.defuser_protocol
        flags = ("+solo" if defuser.is_playing_alone else "") + ("+manual" if defuser.include_manual else "")
        return (
            f"{self.suite_name}[rev{self.suite_revision}]_{self.mission_set}_{defuser.communication_style}_{self.modules}"
            f"_{self.mission_spec.seed}_(defuser={self.defuser_name}{flags}--expert={self.expert_name})"
        )

    @property
    def attempt_name(self) -> str:
        """The identity of the spec."""
        return f"{self.experiment_name}_attempt{self.attempt}"

    @property
    def modules(self) -> str:
        """The distinct components in alphabetical order, joined by dashes."""
        return "-".join(sorted(set(self.mission_spec.components)))

    @property
    def slug(self) -> str:
        """A unique name for files: the attempt name holds characters that shells and globs interpret."""
        parts = (
            f"{self.suite_name}-r{self.suite_revision}",
            str(self.mission_spec.seed),
            self.modules,
            self.defuser_name,
            self.expert_name or "none",
            f"a{self.attempt}",
        )
        readable = re.sub(r"[^A-Za-z0-9._-]", "-", ".".join(parts))[:_SLUG_LENGTH]
        return f"{readable}.{stable_digest(self.attempt_name)[:8]}"

    @property
    def players(self) -> tuple[str, ...]:
        """The names of the players that the game needs; one name twice where a player plays with itself."""
        return (self.defuser_name,) if self.expert_name is None else (self.defuser_name, self.expert_name)

    def to_data(self) -> dict[str, Any]:
        """The spec as plain data, with its fingerprint."""
        return self.model_dump(mode="json") | {"fingerprint": self.fingerprint}

    def file(self) -> bytes:
        """The content of the spec's file."""
        return encode_document(self.to_data())
