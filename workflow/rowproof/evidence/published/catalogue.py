"""What is known of the published campaigns: preregistration tags, partner sets and seats."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError
from rowproof.strict_yaml import parse

ADHOC = "adhoc:"


_RESOURCES = Path(__file__).resolve().parents[4] / "resources" / "published"


def _load_resource(name: str) -> dict[str, Any]:
    path = _RESOURCES / name
    try:
        return parse(path.read_bytes(), str(path)).data
    except OSError as error:
        raise RowproofError(f"{path} must be readable, found: {error.strerror}; check out the whole project") from error


@cache
def known_tags() -> dict[str, dict[str, str]]:
    """Published preregistration tags: ``blob``, ``commit``, ``plan`` (path) and for some ``condition``."""
    return _load_resource("preregistrations.yaml")["tags"]


@cache
def known_partner_sets() -> dict[str, Any]:
    """Published partner sets and seats: ``sets``, ``egos``, ``pairs``, ``cell_egos``, ``cell_partners``."""
    return _load_resource("partner-sets.yaml")


def known_classes(catalogue: Mapping[str, Any]) -> set[str]:
    """Every class that may sit in a seat."""
    classes = {member["class"] for chosen in catalogue["sets"].values() for member in chosen["members"]}
    egos = [*catalogue["egos"].values(), *catalogue["cell_egos"].values()]
    classes.update(ego["class"] for ego in egos if ego is not None)
    return classes | set(catalogue["pairs"]) | set(catalogue["cell_partners"])
