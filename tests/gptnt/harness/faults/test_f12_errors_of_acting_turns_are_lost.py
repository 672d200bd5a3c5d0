"""When a game action was dispatched, the errors of parsing were overwritten: not recorded and not fed back."""

import pytest
from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.gptnt.room import FEEDBACK
from rowproof.llm.calls import Reply

FAR = FLIP.replace('"flip"', '"hold", "location": "Q"')


class Model:
    def __init__(self, first):
        self.first = first
        self.asked = []

    def ask(self, request):
        self.asked.append(request.messages[-1].text)
        return Reply(self.first if len(self.asked) == 1 else tagged(FLIP))


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        (FLIP, ["reasoning_absent"]),
        (f"{tagged(FLIP)}{tagged(FLIP)}", None),
        (FAR, ["reasoning_absent", "invalid_som_location"]),
    ],
)
def test_errors_of_parsing_and_of_dispatch_are_recorded_and_told(answer, errors):
    errors = errors or [
        *("content_after_action_complete", "multiple_actions_present", "reasoning_split_across_blocks"),
    ]
    model = Model(answer)
    played = game(defuser=model_player(model), expert=Puppet())
    first, second = played.records["defuser"]["steps"][:2]
    assert first["error_type"] == errors
    told = " ".join(FEEDBACK[error] for error in errors)
    assert f"<execution-feedback>{told}</execution-feedback>" in model.asked[1]
    assert second["error_type"] == [] and "execution-feedback" not in model.asked[2]
    acted = first["output_kind"] == "game_action"
    assert acted == ("invalid_som_location" not in errors) and (second["bomb_state"]["bombSide"] == "back") == acted
