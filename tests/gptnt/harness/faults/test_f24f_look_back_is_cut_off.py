"""The look back was cut off by the limit of a turn, and its schema broke some providers."""

import pytest
from gptnt.llm.workbench import FLIP, NATIVE, OUT_LOUD, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.gptnt.player_config import Settings
from rowproof.llm.calls import Reply

LONG = "word " * 2000


class Model:
    """Writes a long text when it is asked to look back, as far as it may."""

    def __init__(self, structured):
        self.structured = structured

    def ask(self, request):
        limit = request.parameters["max_completion_tokens"]
        if "Look back" not in request.messages[-1].text:
            assert ("response_format" in request.parameters) is self.structured and limit == 50
            return Reply(FLIP if self.structured else tagged(FLIP))
        assert "response_format" not in request.parameters
        words = LONG.split()
        return Reply(" ".join(words[:limit]), finish_reason="length" if limit < len(words) else "stop")


@pytest.mark.parametrize("mode", [OUT_LOUD, NATIVE])
def test_the_look_back_is_whole(mode):
    one = model_player(Model(mode is NATIVE), settings=Settings(max_tokens=50), **mode)
    last = game(defuser=one, expert=Puppet()).records["defuser"]["steps"][-1]
    assert last["is_reflection"] and last["output"] == {"message": LONG.strip()}
    assert "max_output_tokens_exceeded" not in last["error_type"]
