"""What players are given, and how what they give back is read."""

import pytest
from gptnt.players.workbench import protocol
from rowproof.gptnt.bomb.bomb import ACTIONS
from rowproof.gptnt.players.turns import NOTHING, Action, Turn, do_nothing, interact_game, read_output, send_message

DEFUSER, EXPERT = protocol("defuser"), protocol("expert")


def read(output, allowed=DEFUSER):
    return read_output(output, allowed)


def test_the_outputs_of_scripts_are_read_as_they_are_meant():
    assert read(do_nothing()) == (NOTHING, ())
    assert read(send_message("hello")) == (Action("send_message", message="hello"), ())
    for name, wire in ACTIONS.items():
        location = "A" if name in ("click_release", "hold") else None
        action = Action("game_action", action=name, location=location)
        assert read(interact_game(name, location)) == read(interact_game(wire, location)) == (action, ())
        assert action.data() == {"action": wire, "location": location}


@pytest.mark.parametrize(
    "output",
    [
        {"result": {"kind": "send_message", "data": {"message": "hello"}}},
        {"kind": "send_message", "data": {"message": "hello"}},
        {"message": "hello"},
        # The stated kind is not minded, nor are superfluous keys.
        {"result": {"kind": "do_nothing", "data": {"message": "hello", "mood": "fine"}}},
    ],
)
def test_the_wire_form_may_be_cut_down_to_its_data(output):
    assert read(output) == (Action("send_message", message="hello"), ())


def test_an_action_that_needs_no_location_drops_one():
    assert read({"action": "zoom_out", "location": "A"}) == (Action("game_action", action="zoom_out"), ())


def test_letters_are_written_in_capitals():
    assert read({"action": "click", "location": "b"})[0].location == "B"


@pytest.mark.parametrize(
    ("output", "allowed"),
    [
        (interact_game("click_release", "A"), EXPERT),
        (send_message("hello"), protocol("defuser", alone=True)),
        (interact_game("magic"), DEFUSER),
        (interact_game("lottery"), DEFUSER),
        (interact_game("explode"), DEFUSER),
        (interact_game("click_release"), DEFUSER),
        ({"action": "hold", "location": "AB"}, DEFUSER),
        ({"action": "hold", "location": "1"}, DEFUSER),
        ({"action": "hold", "location": 1}, DEFUSER),
        ({"action": ["hold"], "location": "A"}, DEFUSER),
        ({"message": 1}, DEFUSER),
        ({"mood": "fine"}, DEFUSER),
        ({"result": {"kind": "do_nothing"}}, DEFUSER),
        ("do_nothing", DEFUSER),
        (None, DEFUSER),
    ],
)
def test_what_is_not_allowed_becomes_nothing(output, allowed):
    assert read(output, allowed) == (NOTHING, ("unknown",))


def test_coordinates_point_nowhere():
    assert read({"action": "click", "location": {"x_pos": 0.1, "y_pos": 0.2}}) == (NOTHING, ("invalid_som_location",))


@pytest.mark.parametrize("action", ["magic", "lottery"])
def test_baseline_actions_need_leave(action):
    allowed = protocol("defuser", **{f"allow_{action}_actions": True})
    assert read(interact_game(action), allowed) == (Action("game_action", action=action), ())


def test_the_text_of_a_turn():
    def text(feedback=(), messages=(), alone=False):
        return Turn(1, 0, feedback, messages, alone, None).text

    assert text() == "<no_new_messages>"
    assert text(messages=("one", "two")) == "one\ntwo"
    # Feedback is no message: the mark stays.
    assert text(feedback=("wrong",)) == "wrong\n<no_new_messages>"
    assert text(feedback=("wrong",), messages=("one",)) == "wrong\none"
    assert text(alone=True) is None
    assert text(feedback=("wrong",), alone=True) == "wrong"
