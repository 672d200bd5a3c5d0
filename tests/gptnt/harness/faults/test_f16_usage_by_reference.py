"""Usage was stored by reference and changed later, so that earlier steps told what later ones had cost."""

from gptnt.llm.workbench import FLIP, model_player, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.gptnt.room import merged_steps
from rowproof.llm.calls import Reply, Usage


class Counting:
    def __init__(self):
        self.asked = 0

    def ask(self, request):
        self.asked += 1
        return Reply(tagged(FLIP), usage=Usage(100 * self.asked, self.asked), retries={})


def played():
    return game(defuser=model_player(Counting()), expert=Puppet())


def test_every_step_keeps_its_own_counts():
    steps = played().records["defuser"]["steps"]
    assert [step["usage"]["input_tokens"] for step in steps] == [100 * number for number in range(1, len(steps) + 1)]
    steps[0]["usage"]["input_tokens"] = -1
    steps[0]["usage"]["details"]["reasoning_tokens"] = -1
    assert steps[1]["usage"]["input_tokens"] == 200 and steps[1]["usage"]["details"] == {}


def test_two_players_of_a_game_share_no_counts():
    records = played().records
    assert {step["usage"]["input_tokens"] for step in records["expert"]["steps"]} == {1}


def test_steps_of_both_are_merged_by_time():
    times = [step["timestamp"] for step in merged_steps(played()) if not step["is_reflection"]]
    assert times == sorted(times)
