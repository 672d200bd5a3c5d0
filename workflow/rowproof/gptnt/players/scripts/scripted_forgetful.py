"""``scripted-forgetful``: the scripted player that misses whole messages."""

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Answer, Player, Turn
from rowproof.gptnt.players.weakness import Weak


class Forgetful(Weak):
    """Misses whole messages of its partner."""

    weakness = "forgetful"

    def turn(self, turn: Turn) -> Answer:
        """Answer what was not missed."""
        heard = tuple(message for message in turn.messages if not self._lapses())
        return self._player.turn(turn._replace(messages=heard))


def player() -> Player:
    """A new player."""
    return Forgetful(Scripted())
