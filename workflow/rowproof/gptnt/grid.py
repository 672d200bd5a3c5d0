"""``gptnt_defuse@v1``: the evaluation grid of a board.

A row is a Defuser, its partners are Experts (or nobody), its seeds are the attempts, and its episodes are the missions
of a suite in the order of their keys. All that comes from configuration files stands in the ``settings`` of its setup.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.cell import SuiteCell, member_name
from rowproof.gptnt.models import PlayerName, Strict
from rowproof.gptnt.suite import Suite
from rowproof.plain_data import read_model

NOBODY = "nobody"
"""The partner of a Defuser that plays alone."""


class PlayerSettings(Strict):
    """A player as its file has it.

    Attributes:
        script: that it follows.
        capabilities: complete, as plain data.
    """

    script: str
    capabilities: dict[str, Any]


class Settings(Strict):
    """What a row takes from configuration files.

    Attributes:
        suite: the frozen suite.
        missions: of the suite, in the wire's spelling.
        players: those who take part, by name.
    """

    suite: Suite
    missions: list[dict[str, Any]]
    players: dict[PlayerName, PlayerSettings]


class Table(NamedTuple):
    """What all games of a row share.

    Attributes:
        cell: see :class:`~rowproof.gptnt.cell.SuiteCell`.
        suite: the suite that is played.
        missions: its missions by key, sorted.
        players: those who take part, by name.
    """

    cell: SuiteCell
    suite: Suite
    missions: dict[str, Mission]
    players: dict[str, PlayerSettings]


def mission_key(mission: Mission) -> str:
    """How a mission is named in records: its modules in order, and its seed."""
    return f"{'+'.join(mission.components)}-{mission.seed}"


def check_pins(cell: SuiteCell, **found: Any) -> None:
    """Hold what is there against what the plan states under the same name.

    Raises:
        ConfigError: they differ.
    """
    for what, value in found.items():
        if getattr(cell, what) != value:
            raise ConfigError(
                f"suite {cell.suite}: {what} must be {getattr(cell, what)} as the plan has it, found {value}: "
                "restore its files, or write a new plan"
            )


def read_table(setup: Mapping[str, Any]) -> Table:
    """What the games of a row share, from its setup alone.

    Raises:
        ConfigError: ``cell`` or ``settings`` break their models, or the suite is not that of the plan.
    """
    cell = read_model(setup["cell"], SuiteCell, "cell")
    settings = read_model(setup.get("settings"), Settings, "settings")
    missions = [Mission.from_data(data, f"settings: missions.{i}") for i, data in enumerate(settings.missions)]
    suite = settings.suite
    check_pins(cell, suite=suite.name, revision=suite.revision, suite_digest=suite.digest(missions))
    by_key = dict(sorted((mission_key(mission), mission) for mission in missions))
    return Table(cell, suite, by_key, settings.players)


def expert_of(member: Mapping[str, Any]) -> str | None:
    """The player that a partner stands for; None for :data:`NOBODY`.

    Raises:
        ConfigError: its parameters name no player, or one that is not its namesake, by which a plan's pins are found.
    """
    if member["name"] == NOBODY:
        return None
    player = (member["params"] or {}).get("player", "")
    if member_name(player) != member["name"]:
        raise ConfigError(
            f"partner {member['name']}: params.player must be a player of the same name, with hyphens for underscores, "
            f"found {player!r}"
        )
    return player


def specs(setup: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The games of a row, ordered by attempt, then partner (both as given), then mission.

    Args:
        setup: plain data with ``seeds`` (the attempts, from 1), ``episodes_per_partner`` (the missions of the suite),
            ``members``, ``cell`` (a :class:`~rowproof.gptnt.cell.SuiteCell`) and ``settings``.

    Returns:
        One dict per game with ``seed``, ``episode_idx`` (unique within the seed), ``initial_state_seed`` (the number of
        the mission), ``member`` and ``mission`` (its key), in this order.

    Raises:
        ConfigError: the suite is not that of the plan, attempts do not count from 1, or the plan has another
            number of episodes than the suite has missions.
    """
    table = read_table(setup)
    count = len(table.missions)
    if min(setup["seeds"]) < 1:
        raise ConfigError(f"seeds are attempts and must count from 1, found {setup['seeds']}")
    if setup["episodes_per_partner"] != count:
        raise ConfigError(
            f"episodes_per_partner must be the {count} missions of {table.cell.suite}, found "
            f"{setup['episodes_per_partner']}"
        )
    alone = table.suite.expert_protocol is None
    for member in setup["members"]:
        if (member["name"] == NOBODY) != alone:
            raise ConfigError(
                f"a partner in suite {table.cell.suite} must be {NOBODY if alone else 'an expert'}, found "
                f"{member['name']!r}"
            )
    return [
        {
            "seed": attempt,
            "episode_idx": index * count + number,
            "initial_state_seed": number,
            "member": member["name"],
            "mission": key,
        }
        for attempt in setup["seeds"]
        for index, member in enumerate(setup["members"])
        for number, key in enumerate(table.missions)
    ]
