"""The players that need no model, by the names of their scripts."""

from collections.abc import Callable

from rowproof.errors import ConfigError
from rowproof.gptnt.players.imperfect import Careless, Forgetful, Mishearing, Slow
from rowproof.gptnt.players.scripted import Scripted, TestDefuser, TestExpert, TestOracle, TestRandom
from rowproof.gptnt.players.turns import Player

SCRIPTS: dict[str, Callable[[], Player]] = {
    "test-defuser": TestDefuser,
    "test-expert": TestExpert,
    "test-oracle": TestOracle,
    "test-random": TestRandom,
    "scripted": Scripted,
    "scripted-forgetful": lambda: Forgetful(Scripted()),
    "scripted-mishearing": lambda: Mishearing(Scripted()),
    "scripted-slow": lambda: Slow(Scripted()),
    "scripted-careless": lambda: Careless(Scripted()),
}


def player_for(script: str) -> Player:
    """A new player that follows ``script``.

    Raises:
        ConfigError: there is no such script.
    """
    if script not in SCRIPTS:
        raise ConfigError(f"a script must be one of {sorted(SCRIPTS)}, found {script!r}")
    return SCRIPTS[script]()
