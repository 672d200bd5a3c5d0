"""Made-up answers stood in the history and models copied them; the manual came twice, or was dropped."""

from gptnt.llm.workbench import SAY, model_player, tagged
from gptnt.players.workbench import MANUAL, Puppet, game
from rowproof.gptnt.players.turns import send_message
from rowproof.llm.calls import CallError, Reply, Usage

PAGES = [page.text for page in MANUAL.pages.values()]


class Model:
    def __init__(self):
        self.requests = []
        self.said = []

    def ask(self, request):
        self.requests.append(request)
        if len(self.requests) % 3 == 0:
            raise CallError("server_error", "down")
        self.said.append(tagged(SAY.replace("Hi.", f"Hi {len(self.requests)}.")))
        tokens = sum(len(part) for message in request.messages for part in message.parts) // 4
        return Reply(self.said[-1], usage=Usage(tokens, 10))


def test_the_history_holds_what_was_said_and_the_manual_once():
    # Little more than the manual fits.
    limit = sum(map(len, PAGES)) // 3
    model = Model()
    talker = Puppet(lambda turn: send_message(f"Wire {turn.number}. " + "It is red. " * 60))
    played = game(defuser=talker, expert=model_player(model, input_limit=limit))
    steps = played.records["expert"]["steps"]
    assert sum(step["num_prompt_truncations"] for step in steps) > 3
    for request in model.requests:
        answers = [message.text for message in request.messages if message.role == "assistant"]
        assert all(part in model.said for answer in answers for part in answer.split("\n\n"))
        parts = [part for message in request.messages for part in message.parts]
        assert [part for part in parts if part in PAGES] == PAGES
