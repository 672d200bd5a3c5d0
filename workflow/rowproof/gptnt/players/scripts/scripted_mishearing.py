"""``scripted-mishearing``: the scripted player that mistakes words."""

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Answer, Player, Turn
from rowproof.gptnt.players.weakness import Weak


class Mishearing(Weak):
    """Mistakes a word in a message of its partner."""

    weakness = "mishearing"

    def turn(self, turn: Turn) -> Answer:
        """Answer what was heard."""
        heard = tuple(self._misheard(message) if self._lapses() else message for message in turn.messages)
        return self._player.turn(turn._replace(messages=heard))


def player() -> Player:
    """A new player."""
    return Mishearing(Scripted())
