"""What a row takes from configuration files, as plain data for its recipe."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from rowproof.errors import ConfigError
from rowproof.gptnt.grid import expert_of
from rowproof.gptnt.player_config import PLAYERS, PlayerFile, read_player
from rowproof.gptnt.suite_lock import LOCK, frozen_suite, parse_lock
from rowproof.records import digest

# The rows of all boards share their files. The key is the content, so that an edit is seen.
_read_lock = lru_cache(maxsize=8)(parse_lock)
_read_player = lru_cache(maxsize=64)(read_player)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def settings(read: Callable[[str], bytes], setup: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a row: its suite with all missions as they were frozen, and the players that take part.

    A live suite may move on while a plan stays with its revision, so suites come from their lock.

    Args:
        read: gives the bytes of a file of the project.
        setup: the rest of the row's setup.

    Returns:
        See :class:`rowproof.gptnt.grid.Settings`; players by name, the Defuser first.

    Raises:
        ConfigError: a file is missing or malformed, the suite is not frozen at this revision, or a player is no script.
    """
    cell = setup["cell"]
    frozen = frozen_suite(_read_lock(read(LOCK)), cell["suite"], cell["revision"])
    experts = (expert_of(member) for member in setup["members"])
    names = dict.fromkeys([setup["policy"], *(name for name in experts if name is not None)])
    return {
        "suite": frozen.suite.model_dump(mode="json"),
        "missions": [mission.wire_data() for mission in frozen.missions],
        "players": {name: _player(read, name) for name in names},
    }


def _player(read: Callable[[str], bytes], name: str) -> dict[str, Any]:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a player must be the name of a file in {PLAYERS}, found {name!r}")
    path = f"{PLAYERS}/{name}.yaml"
    file: PlayerFile = _read_player(read(path), path)
    if file.model.script is None:
        raise ConfigError(f"player {name}: must follow a script to play for a board, found a model")
    return {"script": file.model.script, "capabilities": file.capabilities.model_dump(mode="json")}


def pinned(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the settings of a row rest on: ``suites/<suite>`` and ``players/<player>`` with the SHA-256 of each."""
    suite = {name: settings[name] for name in ("suite", "missions")}
    return {
        f"suites/{settings['suite']['name']}": digest(suite),
        **{f"players/{name}": digest(player) for name, player in settings["players"].items()},
    }
