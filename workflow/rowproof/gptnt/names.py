"""Configuration files by name: which there are, and the error for one that is missing."""

import difflib
from collections.abc import Iterable
from pathlib import Path

from rowproof.errors import ConfigError


def config_names(folder: Path) -> list[str]:
    """The names of the YAML files of a folder, sorted; files that begin with an underscore are templates."""
    return sorted(path.stem for path in folder.glob("*.yaml") if not path.name.startswith("_"))


def unknown_name(what: str, name: str, known: Iterable[str], command: str) -> ConfigError:
    """The error for a name that no file has, with the nearest one that there is."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else ":"
    return ConfigError(f"{what} must be one of those that {command} shows, found {name!r}{hint} see {command}")
