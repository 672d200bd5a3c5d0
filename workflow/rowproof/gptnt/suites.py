"""Suites as files, ``config/suites/<suite>.yaml``, and who plays whom in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.mission_sets import load_mission_set
from rowproof.gptnt.models import PlayerName
from rowproof.gptnt.names import config_names, unknown_name
from rowproof.gptnt.suite import Suite
from rowproof.strict_yaml import load

FOLDER = "config/suites"
LIST_SUITES = "rowproof list suites"

HEADLINE = ("multi-self-async", "multi-self-sync")
LEADERBOARD = (*HEADLINE, "single-parametric-sync")
BENCHMARK = (*LEADERBOARD, "single-pairwise-sync", "single-self-async", "single-solo-player-sync")

Pairing = tuple[str, str | None]


def load_suite(root: Path, name: str) -> tuple[Suite, dict[str, Mission]]:
    """A live suite and its missions by name.

    Raises:
        ConfigError: there is no such suite, its name is not its file's, or a file breaks its model.
    """
    path = root / FOLDER / f"{name}.yaml"
    known = config_names(root / FOLDER)
    if name not in known:
        raise unknown_name("a suite", name, known, LIST_SUITES)
    suite, document = load(path, Suite, root)
    if suite.name != name:
        raise document.error(("name",), f"must equal the file name {name!r}, found {suite.name!r}")
    try:
        return suite, load_mission_set(root, suite.mission_set)
    except ConfigError as error:
        raise document.error(("missions_path",), str(error)) from None


def pairings(
    suite: Suite, players: Sequence[PlayerName], best_expert: str | None = None, best_defuser: str | None = None
) -> list[Pairing]:
    """(defuser, expert or None) of each pairing of a suite, in order.

    Args:
        suite: what decides the rule.
        players: names, in the order that the pairings follow.
        best_expert: name of the player that is every expert of ``with_best_expert``.
        best_defuser: name of the player that is every defuser of ``with_best_defuser``.

    Raises:
        ConfigError: the rule needs an anchor that is not given.
    """
    rule = suite.matchup.pairing_type
    if rule == "with_self":
        return [(player, player) for player in players]
    if rule == "no_expert":
        return [(player, None) for player in players]
    if rule == "pairwise":
        return [(defuser, expert) for defuser in players for expert in players]
    anchor = best_expert if rule == "with_best_expert" else best_defuser
    if anchor is None:
        raise ConfigError(
            f"suite {suite.name} must have an anchor, found none: set anchors.{rule.removeprefix('with_')}"
        )
    others = [player for player in players if player != anchor]
    return [(other, anchor) if rule == "with_best_expert" else (anchor, other) for other in others]


def list_suites(root: Path) -> list[dict[str, Any]]:
    """What ``list suites`` shows of each live suite; one that cannot be read says so under ``error``."""
    rows: list[dict[str, Any]] = []
    for name in config_names(root / FOLDER):
        try:
            suite, missions = load_suite(root, name)
        except ConfigError as error:
            rows.append({"name": name, "error": str(error)})
            continue
        rows.append(
            {
                "name": name,
                "revision": suite.revision,
                "mission_set": suite.mission_set,
                "missions": len(missions),
                "pairing_type": suite.matchup.pairing_type,
                "communication_style": suite.defuser_protocol.communication_style,
                "is_benchmark": name in BENCHMARK,
                "is_headline": name in HEADLINE,
                "is_leaderboard": name in LEADERBOARD,
            }
        )
    return rows
