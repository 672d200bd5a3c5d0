"""Feedback was queued as dialogue: the mark for no new messages vanished, and models repeated themselves."""

from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.gptnt.players.turns import send_message
from rowproof.llm.calls import Reply


class Model:
    def __init__(self):
        self.asked = []

    def ask(self, request):
        self.asked.append(request.messages[-1].text.split("\n\n")[0].split("\n"))
        return Reply(FLIP if len(self.asked) < 3 else tagged(FLIP))


def test_the_mark_stays_beside_feedback_and_gives_way_to_messages_alone():
    model = Model()
    expert = Puppet(lambda turn: send_message("Look again.") if turn.number == 2 else None)
    game(defuser=model_player(model), expert=expert)
    first, second, third, fourth = model.asked[:4]
    assert first == ["<no_new_messages>"]
    assert second[0].startswith("<execution-feedback>") and second[1:] == ["<no_new_messages>"]
    assert third[0].startswith("<execution-feedback>") and third[1:] == ["Look again."]
    assert fourth == ["<no_new_messages>"]
