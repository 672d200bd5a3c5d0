"""What players with a weakness share: one goes around any other player and draws from a stream of its own."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from rowproof.gptnt.players.turns import Answer, Player, Setup, Turn
from rowproof.seeding import substream

# Chance of a lapse, per message or action.
LAPSE = 0.2

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


class Weak:
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
