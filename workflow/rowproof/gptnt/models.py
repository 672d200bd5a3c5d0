"""What the typed models of this family share: strictness, names and the published digest."""

import difflib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rowproof.errors import ConfigError

# Of suites, mission sets, and of the files of players and providers: each is a file name.
ConfigName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
# Stands in the names of experiments and of their files; versions of models have dots.
PlayerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
Positive = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """Base of all models: unknown keys and silent conversions are refused, and nothing changes later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def stable_digest(value: Any) -> str:
    """The published digest of plain data: 32 hex digits.

    BLAKE2b with 16 bytes over JSON with sorted keys, separators with a space, ASCII escapes and Python's floats.
    """
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def config_names(folder: Path) -> list[str]:
    """The names of the YAML files of a folder, sorted; files that begin with an underscore are templates."""
    return sorted(path.stem for path in folder.glob("*.yaml") if not path.name.startswith("_"))


def unknown_name(what: str, name: str, known: Iterable[str], command: str) -> ConfigError:
    """The error for a name that no file has, with the nearest one that there is."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else ":"
    return ConfigError(f"{what} must be one of those that {command} shows, found {name!r}{hint} see {command}")
