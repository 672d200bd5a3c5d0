"""The run manifest: which suites are played by whom. ``config/runs/<run>.yaml``."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from rowproof.gptnt.models import ConfigName, Positive, Strict
from rowproof.strict_yaml import load

SPEC_VERSION = 2
ANCHORS = "config/anchors.yaml"


class RosterEntry(Strict):
    """One player of a run, by the name of its file.

    Attributes:
        player: ``config/players/<player>.yaml``.
        provider: ``config/providers/<provider>.yaml`` instead of the player's own.
        count: how many of it there are; one can play in one room at a time.
    """

    player: ConfigName
    provider: ConfigName | None = None
    count: Positive = 1

    @property
    def label(self) -> str:
        """``player``, or ``player@provider``."""
        return self.player if self.provider is None else f"{self.player}@{self.provider}"


class Anchors(Strict):
    """The players that are held fixed on one side of ``with_best_*`` pairings, by the names of their files."""

    best_expert: ConfigName | None = None
    best_defuser: ConfigName | None = None


class RunManifest(Strict):
    """One run. Whether the names in it exist is not checked here."""

    spec_version: int = SPEC_VERSION
    suites: Annotated[list[ConfigName], Field(min_length=1)]
    rooms: Positive
    players: Annotated[list[RosterEntry], Field(min_length=1)]
    displays: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    anchors: Anchors = Field(default_factory=Anchors)
    source: Literal["local", "wandb"] = "local"
    observability: Literal["full", "limited", "off"] = "limited"
    attempts_per_mission: Positive = 1

    @field_validator("spec_version")
    @classmethod
    def _supported(cls, version: int) -> int:
        if version != SPEC_VERSION:
            raise ValueError(f"this version is not supported, the only one that is: {SPEC_VERSION}")
        return version

    @property
    def instances(self) -> int:
        """How many players there are in all."""
        return sum(entry.count for entry in self.players)

    def display_of(self, room: int) -> str | None:
        """The X display of a room, counted from 0; None where rooms inherit the one of the caller."""
        return f":{self.displays[room % len(self.displays)]}" if self.displays else None


def load_manifest(path: Path, root: Path) -> RunManifest:
    """Read a run manifest.

    Raises:
        ConfigError: all problems of the file, one per line, each with file, line and key.
    """
    return load(path, RunManifest, root)[0]


def load_anchors(root: Path, manifest: RunManifest) -> Anchors:
    """The anchors of a run: those of the manifest, and of the project where it names none.

    Raises:
        ConfigError: ``config/anchors.yaml`` is missing or breaks the model.
    """
    defaults = load(root / ANCHORS, Anchors, root)[0]
    return Anchors(
        best_expert=manifest.anchors.best_expert or defaults.best_expert,
        best_defuser=manifest.anchors.best_defuser or defaults.best_defuser,
    )
