"""An empty answer, cut off by the limit, stood in the history, and every later request failed."""

from itertools import pairwise

import pytest
from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.llm.calls import CallError, Reply


class Strict:
    """Refuses what some servers refuse: empty texts, and two messages of one role in a row."""

    def __init__(self, first):
        self.first = first
        self.asked = 0

    def ask(self, request):
        self.asked += 1
        roles = [message.role for message in request.messages]
        if any(not message.text.strip() for message in request.messages):
            raise CallError("bad_request", "texts must not be empty")
        if any(one == other for one, other in pairwise(roles)):
            raise CallError("bad_request", "roles must alternate")
        return self.first if self.asked == 1 else Reply(tagged(FLIP))


@pytest.mark.parametrize("text", ["", " \n"])
@pytest.mark.parametrize("reason", ["length", "stop"])
def test_the_game_goes_on(text, reason):
    model = Strict(Reply(text, finish_reason=reason, raw="{}"))
    played = game(defuser=model_player(model), expert=Puppet())
    first, *later = played.records["defuser"]["steps"]
    assert first["error_type"] and first["raw_output"] == "{}"
    assert len(later) > 5 and all(step["error_type"] == [] for step in later)
