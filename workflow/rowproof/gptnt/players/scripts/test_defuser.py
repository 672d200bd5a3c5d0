"""``test-defuser``: the benchmark's Defuser with a fixed list of actions."""

from rowproof.gptnt.players.turns import Answer, Player, Setup, Turn, interact_game, send_message

# The fixed list of the published test player; then it clicks the first mark for ever.
_TEST_ACTIONS = (
    *(("rotate_left",), ("flip",), ("rotate_left",), ("flip",)),
    *(("roll_down",), ("roll_up",), ("roll_up",), ("roll_down",), ("flip",)),
    *(("click_release", "A"), ("zoom_out",), ("click_release", "A")),
    *(("hold", "A"), ("release",)) * 3,
)


class TestDefuser:
    """Does a fixed list of game actions, whatever the bomb does."""

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


def player() -> Player:
    """A new player."""
    return TestDefuser()
