"""Whatever is said, both roles stay on their feet: nonsense costs turns, never the game."""

import pytest
from gptnt.players.workbench import MANUAL, Puppet, game
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.players.expert import reply
from rowproof.gptnt.players.phrases import HEARD, hear, say
from rowproof.gptnt.players.turns import send_message

HEADS = (
    *("Cut", "Button", "Let go at", "Press", "Strikes", "Answer", "Send at", "Go", "Turn column", "Spell"),
    *("Look for", "Say again", "Shout"),
)
ITEMS = (
    *(
        "",
        "0",
        "1",
        "2",
        "4",
        "5",
        "-1",
        "99",
        "3.505",
        "nan",
        "hold",
        "tap",
        "up",
        "right",
        "top left",
        "YES",
        "plant",
    ),
    *("red by blue", "blue by", "label", "batteries", "ports", "x"),
)


def nonsense(draws):
    """An Expert that answers every message with something that is well formed."""

    def choose(turn):
        if not turn.messages:
            return None
        sentences = [(draws.pick(HEADS), [draws.pick(ITEMS) for _ in range(draws.below(4))]) for _ in range(2)]
        return send_message(say([("To message", hear(turn.messages[-1]).get("Message", [])), *sentences]))

    return Puppet(choose)


@pytest.mark.parametrize("component", SOLVABLE)
def test_a_defuser_lives_with_any_answer(component):
    for seed in range(15):
        mission = Mission(seed, 90, (component,), 3, num_strikes_allowed=5)
        played = game(mission, expert=nonsense(Stream(mission.key, "nonsense")))
        assert not played.failure
        assert not any(step["error_type"] for step in played.records["defuser"]["steps"])


@pytest.mark.parametrize("component", SOLVABLE)
def test_an_expert_lives_with_any_message(component):
    draws = Stream(component, "garbled")
    said = []
    for seed in range(3):
        steps = game(Mission(seed, 300, (component,), 3)).records["defuser"]["steps"]
        said += [step["output"]["message"] for step in steps if step["output_kind"] == "send_message"]
    for message in said:
        for _ in range(60):
            garbled = list(message)
            for _ in range(1 + draws.below(6)):
                garbled[draws.below(len(garbled))] = draws.pick('abc019" ,.:-')
            assert hear(reply(MANUAL, "".join(garbled))).keys() >= {"To message"}


def test_a_message_without_end_is_heard_as_far_as_a_sentence_can_reach():
    assert hear('Cut: "1". ' + "x " * 1_000_000)["Cut"] == ["1"]
    assert hear(" " * HEARD + 'Cut: "1".') == {}
