"""Who played alone never heard of errors in its answers. The frozen suites are kept so; other suites may differ."""

import pytest
from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import game
from rowproof.gptnt.room import Rules
from rowproof.llm.calls import Reply


class Model:
    def __init__(self):
        self.asked = []

    def ask(self, request):
        self.asked.append(request.messages[-1].text)
        return Reply(FLIP if len(self.asked) == 1 else tagged(FLIP))


@pytest.mark.parametrize("told", [False, True])
def test_a_lone_player_is_told_where_the_room_says_so(told):
    model = Model()
    game(defuser=model_player(model), alone=True, rules=Rules(feedback_to_solo=told))
    assert ("<execution-feedback>" in model.asked[1]) is told
    assert "<no_new_messages>" not in "".join(model.asked)
