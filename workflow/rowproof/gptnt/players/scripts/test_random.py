"""``test-random``: the player of the benchmark that lets the room do something random."""

from rowproof.gptnt.players.single import Single
from rowproof.gptnt.players.turns import LOTTERY, Player


class TestRandom(Single):
    """Lets the room do something random: a lower bound, where the protocol allows it."""

    action = LOTTERY


def player() -> Player:
    """A new player."""
    return TestRandom()
