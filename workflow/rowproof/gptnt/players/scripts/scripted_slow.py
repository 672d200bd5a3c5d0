"""``scripted-slow``: the scripted player that takes longer."""

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Answer, Player, Turn
from rowproof.gptnt.players.weakness import Weak

# Mean of what a slow player takes beyond the usual time, in milliseconds.
SLOW_MEAN_MS = 2000


class Slow(Weak):
    """Takes longer over every answer; in synchronous play, where thinking takes no game time, that does not show."""

    weakness = "slow"

    def turn(self, turn: Turn) -> Answer:
        """The same answer, later."""
        answer = self._player.turn(turn)
        usual_ms = self._setup.latency_ms if answer.latency_ms is None else answer.latency_ms
        return answer._replace(latency_ms=usual_ms + round(float(self._draws.exponential(SLOW_MEAN_MS))))


def player() -> Player:
    """A new player."""
    return Slow(Scripted())
