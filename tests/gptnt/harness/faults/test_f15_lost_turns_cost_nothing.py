"""A call that was recovered from recorded no usage, so that totals were too low exactly for bad models."""

import pytest
from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.llm.calls import CallError, Reply, Usage

SPENT = Usage(500, 70, cached_tokens=400, reasoning_tokens=20)


class Model:
    def __init__(self, first):
        self.first = first

    def ask(self, request):
        first, self.first = self.first, Reply(tagged(FLIP), usage=Usage(1, 1))
        if isinstance(first, Exception):
            raise first
        return first


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Reply("<thought>And then", finish_reason="length", usage=SPENT), "max_output_tokens_exceeded"),
        (Reply("Nothing to say.", usage=SPENT), "action_not_present"),
        (Reply("", usage=SPENT, raw="{}"), "action_not_present"),
        (CallError("content_filter", "refused", usage=SPENT), "guardrail_violation"),
        (Reply("I cannot help with that.", usage=SPENT), "guardrail_violation"),
    ],
)
def test_what_a_lost_turn_cost_is_kept(answer, error):
    played = game(defuser=model_player(Model(answer)), expert=Puppet())
    lost, *rest = played.records["defuser"]["steps"]
    assert error in lost["error_type"] and lost["output_kind"] != "game_action"
    usage = lost["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cache_read_tokens"]) == (500, 70, 400)
    assert usage["details"] == {"reasoning_tokens": 20} and usage["requests"] == 1
    assert sum(step["usage"]["input_tokens"] for step in rest) == len(rest)


def test_calls_without_an_answer_are_counted_as_requests():
    error = CallError("rate_limited", "slow down", retries={"rate_limited": 4})
    played = game(defuser=model_player(Model(error)), expert=Puppet())
    usage = played.records["defuser"]["steps"][0]["usage"]
    assert (usage["requests"], usage["input_tokens"]) == (5, 0)
