"""The players that need no model: one module for each script, which offers ``player() -> Player``.

A module is loaded by its name alone, so that a game reaches the code of its own players and of no others. Another
module in this folder is another script.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rowproof.errors import ConfigError

if TYPE_CHECKING:
    from rowproof.gptnt.players.turns import Player

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def known_scripts() -> tuple[str, ...]:
    """The names of all scripts, sorted."""
    names = (path.stem.replace("_", "-") for path in Path(__file__).parent.glob("*.py"))
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))


def script_module(script: str) -> str:
    """The dotted name of a script's module.

    Raises:
        ConfigError: there is no such script.
    """
    file = Path(__file__).parent / f"{script.replace('-', '_')}.py"
    if not _NAME.fullmatch(script) or not file.is_file():
        raise ConfigError(f"a script must be one of {list(known_scripts())}, found {script!r}")
    return f"{__name__}.{file.stem}"


def player_for(script: str) -> "Player":
    """A new player that follows ``script``.

    Raises:
        ConfigError: there is no such script.
    """
    return import_module(script_module(script)).player()
