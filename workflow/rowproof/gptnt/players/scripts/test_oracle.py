"""``test-oracle``: the player of the benchmark that lets the room do what is right."""

from rowproof.gptnt.players.single import Single
from rowproof.gptnt.players.turns import MAGIC, Player


class TestOracle(Single):
    """Lets the room do what is right: an upper bound, where the protocol allows it."""

    action = MAGIC


def player() -> Player:
    """A new player."""
    return TestOracle()
