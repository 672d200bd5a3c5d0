"""The stages of a row, their scripts, and the keys of their recipes."""

from collections.abc import Mapping
from typing import Any

from rowproof.records import digest

STAGES = ("specs", "simulate", "summary", "bundle")
# Learned rows come out of two stages more, rows whose runs are timed out of one.
LEARNED_STAGES = ("train", "select", *STAGES)
TIMED_STAGES = ("specs", "simulate", "time", "summary", "bundle")
EVERY_STAGE = ("train", "select", *TIMED_STAGES)
SCRIPTS = {
    "train": "workflow/scripts/train.py",
    "select": "workflow/scripts/select_checkpoint.py",
    "specs": "workflow/scripts/specs.py",
    "simulate": "workflow/scripts/simulate.py",
    "time": "workflow/scripts/time_runs.py",
    "summary": "workflow/scripts/summarise.py",
    "bundle": "workflow/scripts/assemble.py",
    "leaderboard": "workflow/scripts/leaderboard.py",
}
# The form of code keys; a later one restates the recipes of older bundles at the commits that made them.
FORM = 2
# What is shown beside a recipe and enters no key: how code is called and where it lies.
SHOWN = ("script", "producer", "programs", "modules", "files", "fetched", "fetched_by")
# What only the jobs of one launch need: the raw bytes of code and data files, by SHA-256.
LAUNCHED = ("raw",)


def bare(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What of a recipe enters its key."""
    return {key: value for key, value in recipe.items() if key not in (*SHOWN, *LAUNCHED)}


def shown(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown beside a recipe."""
    return {key: recipe[key] for key in SHOWN if key in recipe}


def stage_key(recipe: Mapping[str, Any]) -> str:
    """The key of a stage."""
    return digest(bare(recipe))


def stage_keys(recipes: Mapping[str, Any]) -> dict[str, str]:
    """Stage -> key."""
    return {stage: stage_key(recipe) for stage, recipe in recipes.items()}


_KNOWN: dict[int, tuple[Mapping[str, Any], str]] = {}


def known_key(recipe: Mapping[str, Any]) -> str:
    """:func:`stage_key` of a recipe that is not changed any more, computed once: a long one takes milliseconds."""
    held, key = _KNOWN.get(id(recipe), (None, ""))
    if held is not recipe:
        key = stage_key(recipe)
        # Holding the recipe keeps its number from being given to another.
        _KNOWN[id(recipe)] = recipe, key
    return key


def known_keys(recipes: Mapping[str, Any]) -> dict[str, str]:
    """Stage -> key, see :func:`known_key`."""
    return {stage: known_key(recipe) for stage, recipe in recipes.items()}


def forget_keys() -> None:
    """Let go of the recipes of an earlier look."""
    _KNOWN.clear()
