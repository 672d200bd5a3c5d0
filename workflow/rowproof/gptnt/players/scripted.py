"""The scripted pair that really talks."""

from rowproof.gptnt.players.defuser import Defuser
from rowproof.gptnt.players.expert import reply
from rowproof.gptnt.players.turns import (
    DEFUSER,
    Answer,
    Setup,
    Turn,
    do_nothing,
    send_message,
)


class Scripted:
    """Plays either role with the same partner in mind; alone it needs the manual, and without one it does nothing."""

    def configure(self, setup: Setup) -> None:
        """Take the role."""
        self._setup = setup
        self._defuser = Defuser(setup)
        self._said = 0

    def turn(self, turn: Turn) -> Answer:
        """Answer the newest message as the Expert, see :class:`Defuser` otherwise."""
        setup = self._setup
        if setup.role != DEFUSER:
            if not turn.messages or setup.manual is None:
                return Answer(do_nothing())
            self._said += 1
            return Answer(send_message(reply(setup.manual, turn.messages[-1])))
        if setup.alone and setup.manual is None:
            return Answer(do_nothing())
        output = self._defuser.turn(turn)
        # A lone player asks itself, which takes no turn; every question has one answer, or a look at the bomb.
        for _ in range(2):
            message = output["result"]["data"].get("message")
            if not setup.alone or message is None:
                break
            output = self._defuser.decide((reply(setup.manual, message),))
        if setup.alone and "message" in output["result"]["data"]:
            output = do_nothing()
        self._said += "message" in output["result"]["data"]
        return Answer(output)

    def reflect(self, task: str) -> Answer:
        """Tell how much was said."""
        return Answer(send_message(f"I sent {self._said} messages."))
