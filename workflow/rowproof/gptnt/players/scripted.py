"""Players that play by a script: a pair that really talks, and the four plain ones of the benchmark."""

from rowproof.gptnt.players.defuser import Defuser
from rowproof.gptnt.players.expert import reply
from rowproof.gptnt.players.turns import (
    DEFUSER,
    LOTTERY,
    MAGIC,
    Answer,
    Setup,
    Turn,
    do_nothing,
    interact_game,
    send_message,
)

# The fixed list of the published test player; then it clicks the first mark for ever.
_TEST_ACTIONS = (
    *(("rotate_left",), ("flip",), ("rotate_left",), ("flip",)),
    *(("roll_down",), ("roll_up",), ("roll_up",), ("roll_down",), ("flip",)),
    *(("click_release", "A"), ("zoom_out",), ("click_release", "A")),
    *(("hold", "A"), ("release",)) * 3,
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


class TestDefuser:
    """Does a fixed list of game actions, whatever the bomb does."""

    __test__ = False

    def configure(self, setup: Setup) -> None:
        """Start the list again."""
        self._done = 0

    def turn(self, turn: Turn) -> Answer:
        """The next action of the list."""
        action = _TEST_ACTIONS[self._done] if self._done < len(_TEST_ACTIONS) else ("click_release", "A")
        self._done += 1
        return Answer(interact_game(*action))

    def reflect(self, task: str) -> Answer:
        """A fixed text."""
        return Answer(send_message("I did what stands on my list."))


class TestExpert:
    """Sends a counter, whatever it hears: one more than the messages of the conversation so far, two per turn."""

    __test__ = False

    def configure(self, setup: Setup) -> None:
        """Start counting again."""

    def turn(self, turn: Turn) -> Answer:
        """The next number."""
        return Answer(send_message(f"Message {2 * turn.number - 1}"))

    def reflect(self, task: str) -> Answer:
        """A fixed text."""
        return Answer(send_message("I counted."))


class _Single:
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


class TestOracle(_Single):
    """Lets the room do what is right: an upper bound, where the protocol allows it."""

    __test__ = False
    action = MAGIC


class TestRandom(_Single):
    """Lets the room do something random: a lower bound, where the protocol allows it."""

    __test__ = False
    action = LOTTERY
