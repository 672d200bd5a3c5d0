"""``test-expert``: the benchmark's Expert that counts."""

from rowproof.gptnt.players.turns import Answer, Player, Setup, Turn, send_message


class TestExpert:
    """Sends a counter, whatever it hears: one more than the messages of the conversation so far, two per turn."""

    def configure(self, setup: Setup) -> None:
        """Start counting again."""

    def turn(self, turn: Turn) -> Answer:
        """The next number."""
        return Answer(send_message(f"Message {2 * turn.number - 1}"))

    def reflect(self, task: str) -> Answer:
        """A fixed text."""
        return Answer(send_message("I counted."))


def player() -> Player:
    """A new player."""
    return TestExpert()
