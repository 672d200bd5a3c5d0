"""What players share that send the same action in every turn."""

from rowproof.gptnt.players.turns import Answer, Setup, Turn, interact_game, send_message


class Single:
    """Sends the same action in every turn."""

    action: str

    def configure(self, setup: Setup) -> None:
        """Nothing to prepare."""

    def turn(self, turn: Turn) -> Answer:
        """The one action."""
        return Answer(interact_game(self.action))

    def reflect(self, task: str) -> Answer:
        """A fixed text."""
        return Answer(send_message(f"I chose {self.action} every time."))
