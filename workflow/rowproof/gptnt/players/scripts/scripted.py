"""``scripted``: the player that really talks, in either role."""

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Player


def player() -> Player:
    """A new player."""
    return Scripted()
