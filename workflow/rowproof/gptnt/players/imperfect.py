"""Players with one weakness each, around any other player; every weakness draws from a stream of its own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rowproof.gptnt.players.turns import Answer, Player, Setup, Turn, interact_game, send_message
from rowproof.seeding import substream

# Chance of a lapse, per message or action.
LAPSE = 0.2
# Mean of what a slow player takes beyond the usual time, in milliseconds.
SLOW_MEAN_MS = 2000

# Words that are taken for one another; the first group of a word counts.
_ALIKE = (
    ("red", "blue", "white", "yellow", "black", "green"),
    ("up", "left", "right", "down"),
    ("top", "middle", "bottom"),
    ("tap", "hold"),
    ("on", "off"),
    tuple("0123456789"),
    tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
)
_GROUP = {word: group for group in reversed(_ALIKE) for word in group}
_WORD = re.compile(r"\w+")


class _Weak:
    """A player that is asked through its weakness.

    Attributes:
        weakness: the last part of the name of its stream.
    """

    weakness: ClassVar[str]

    def __init__(self, player: Player, lapse: float = LAPSE) -> None:
        """Weaken ``player``; ``lapse`` is the chance of each lapse."""
        self._player = player
        self._lapse = lapse

    def configure(self, setup: Setup) -> None:
        """Start the stream of this game."""
        self._draws = substream(f"{setup.stream}/{self.weakness}", setup.seed)
        self._setup = setup
        self._player.configure(setup)

    def turn(self, turn: Turn) -> Answer:
        """The answer of the weakened player."""
        return self._player.turn(turn)

    def reflect(self, task: str) -> Answer:
        """The look back of the player itself."""
        return self._player.reflect(task)

    def _lapses(self) -> bool:
        return self._draws.random() < self._lapse

    def _misheard(self, message: str) -> str:
        """``message`` with one word taken for another like it, or left out if it holds none of those."""
        words = list(_WORD.finditer(message))
        alike = [word for word in words if word[0] in _GROUP]
        if not words:
            return message
        word = self._pick(alike or words)
        other = self._pick([other for other in _GROUP[word[0]] if other != word[0]]) if alike else ""
        return message[: word.start()] + other + message[word.end() :]

    def _pick(self, items: Sequence[Any]) -> Any:
        return items[int(self._draws.integers(len(items)))]


class Forgetful(_Weak):
    """Misses whole messages of its partner."""

    weakness = "forgetful"

    def turn(self, turn: Turn) -> Answer:
        """Answer what was not missed."""
        heard = tuple(message for message in turn.messages if not self._lapses())
        return self._player.turn(turn._replace(messages=heard))


class Mishearing(_Weak):
    """Mistakes a word in a message of its partner."""

    weakness = "mishearing"

    def turn(self, turn: Turn) -> Answer:
        """Answer what was heard."""
        heard = tuple(self._misheard(message) if self._lapses() else message for message in turn.messages)
        return self._player.turn(turn._replace(messages=heard))


class Slow(_Weak):
    """Takes longer over every answer; in synchronous play, where thinking takes no game time, that does not show."""

    weakness = "slow"

    def turn(self, turn: Turn) -> Answer:
        """The same answer, later."""
        answer = self._player.turn(turn)
        usual_ms = self._setup.latency_ms if answer.latency_ms is None else answer.latency_ms
        return answer._replace(latency_ms=usual_ms + round(float(self._draws.exponential(SLOW_MEAN_MS))))


class Careless(_Weak):
    """Takes hold of the wrong element, or says a wrong word."""

    weakness = "careless"

    def turn(self, turn: Turn) -> Answer:
        """The answer with a slip now and then."""
        answer = self._player.turn(turn)
        result = answer.output.get("result", {})
        data = result.get("data", {}) if isinstance(result, Mapping) else {}
        if "message" in data and self._lapses():
            return answer._replace(output=send_message(self._misheard(data["message"])))
        if "location" in data and turn.observation is not None:
            others = [mark for mark in turn.observation["marks"] if mark != data["location"]]
            if others and self._lapses():
                return answer._replace(output=interact_game(data["action"], self._pick(others)))
        return answer
