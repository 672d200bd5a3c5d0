"""Time, strikes, pose, zoom, holding and the end of a bomb; refusals."""

import re

import pytest
from gptnt.bomb.workbench import bench, edgework, press, run_stream, spare_wires, zoomed
from rowproof.gptnt.bomb.bomb import ACTIONS, MARK_ACTIONS, Bomb, Slot
from rowproof.gptnt.bomb.clock import Q_PER_S, Clock
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.needy_capacitor import NeedyCapacitor
from rowproof.gptnt.bomb.observation import look
from rowproof.gptnt.bomb.pose import TURNS

EDGE = edgework()


def held_button():
    """A bomb whose red Hold button, to be tapped, is held down."""
    bomb = zoomed(BigButton(EDGE, run_stream(), "red", "Hold"), spare_wires(EDGE))
    press(bomb, 0, "hold")
    return bomb


def snapshot(bomb):
    """Everything about a bomb but its state machines' private parts."""
    return bomb.state(), look(bomb, 1), bomb.clock.remaining_q, bomb.clock.game_ms, bomb.zoomed, bomb.holding


def test_a_clock_runs_evenly_whatever_the_steps():
    one, many = Clock(90), Clock(90)
    for clock in (one, many):
        clock.set_strikes(3)
    one.advance(6000)
    for ms in (1, 999, 2500, 2500):
        many.advance(ms)
    assert (one.remaining_q, one.game_ms) == (many.remaining_q, many.game_ms) == (90 * Q_PER_S - 7 * 6000, 6000)


@pytest.mark.parametrize(
    ("remaining_q", "display"),
    [
        (75_900 * 4, "01:15"),
        (60_000 * 4, "01:00"),
        (60_000 * 4 - 1, "59.99"),
        (53_733 * 4, "53.73"),
        (39, "00.00"),
        (40, "00.01"),
        (0, "00.00"),
        (6000 * Q_PER_S, "100:00"),
    ],
)
def test_display(remaining_q, display):
    clock = Clock(1)
    clock.remaining_q = remaining_q
    assert clock.display == display


def test_time_runs_out_between_two_milliseconds():
    bomb = bench(spare_wires(EDGE), time_limit=1)
    bomb._strike(0)
    # 4000 quarters at 5 per millisecond.
    bomb.advance(799)
    assert not bomb.over and bomb.clock.display == "00.00"
    bomb.advance(5000)
    assert (bomb.outcome, bomb.clock.game_ms, bomb.seconds_remaining) == ("timeout", 800, 0.0)
    bomb.advance(5000)
    assert bomb.clock.game_ms == 800


@pytest.mark.parametrize("ms", [-1, 1.0, True, None])
def test_time_advances_by_whole_milliseconds(ms):
    with pytest.raises(ValueError, match="whole milliseconds, not negative, found"):
        bench(spare_wires(EDGE)).advance(ms)


def test_strikes_speed_up_the_whole_following_step():
    bomb = zoomed(spare_wires(EDGE))
    effects = press(bomb, 0)
    assert (effects.struck, bomb.strikes) == ((0,), ["Wires"])
    bomb.advance(3000)
    assert bomb.seconds_remaining == 300 - 3.75


@pytest.mark.parametrize(("allowed", "strikes"), [(1, 1), (2, 2), (3, 2)])
def test_the_last_strike_explodes_the_bomb(allowed, strikes):
    bomb = zoomed(spare_wires(EDGE), num_strikes_allowed=allowed)
    for element in (0, 2)[:strikes]:
        press(bomb, element)
    assert bomb.outcome == ("strikeout" if allowed == strikes else "incomplete")
    assert look(bomb, 1)["timer"]["strike_indicator"] is (allowed > 1)


def test_strikes_and_time_together_are_a_timeout():
    bomb = zoomed(spare_wires(EDGE), num_strikes_allowed=1)
    bomb.clock.remaining_q = 0
    press(bomb, 0)
    assert bomb.outcome == "timeout"


def test_an_explosion_for_no_reason_is_detonated():
    bomb = bench(spare_wires(EDGE))
    bomb.detonate()
    assert bomb.outcome == "detonated"


def test_defuse_counts_every_module_as_solved():
    bomb = bench(spare_wires(EDGE), NeedyCapacitor(EDGE, run_stream()))
    bomb.defuse()
    assert (bomb.outcome, bomb.modules_solved) == ("solved", 1)
    bomb.detonate()
    assert bomb.outcome == "solved"


def test_the_bomb_is_defused_when_every_module_that_counts_is():
    bomb = zoomed(spare_wires(EDGE), NeedyCapacitor(EDGE, run_stream()), spare_wires(EDGE))
    assert press(bomb, 1).solved == (0,)
    assert not bomb.over
    bomb.act("zoom_out")
    bomb.act("click_release", "C")
    assert press(bomb, 1).solved == (2,)
    assert (bomb.outcome, bomb.modules_solved) == ("solved", 2)
    before = snapshot(bomb)
    bomb.advance(1000)
    assert snapshot(bomb) == before


# ---- pose and zoom ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", TURNS)
def test_turns_leave_the_module(turn):
    bomb = zoomed(spare_wires(EDGE))
    assert bomb.act(turn) == ("", (), ())
    assert bomb.zoomed is None and bomb.side != "front"


def test_marks_follow_the_slots_of_the_face():
    modules = [spare_wires(EDGE) for _ in range(3)]
    slots = [Slot("front", 5), Slot("back", 4), Slot("front", 2)]
    bomb = Bomb(Mission(1, 300, ("Wires",) * 3, 0), EDGE, Slot("front", 0), modules, slots)
    assert bomb.facing() == (2, 0)
    bomb.act("click_release", "b")
    assert bomb.zoomed == 0
    bomb.act("flip")
    assert bomb.facing() == (1,)


@pytest.mark.parametrize("turns", [["roll_up"], ["roll_down"], ["rotate_left"], ["rotate_right"], ["flip", "roll_up"]])
def test_nothing_can_be_clicked_on_a_narrow_side(turns):
    bomb = bench(spare_wires(EDGE))
    for turn in turns:
        bomb.act(turn)
    assert bomb.mark_count() == 0
    assert bomb.act("click_release", "A").refused == "a mark must be one of [], found 'A'"


def test_hold_on_a_module_zooms_in_and_holds_nothing():
    bomb = bench(spare_wires(EDGE))
    bomb.act("hold", "A")
    assert bomb.zoomed == 0 and not bomb.holding


def test_hold_on_what_cannot_be_held_is_a_click():
    bomb = zoomed(spare_wires(EDGE))
    press(bomb, 1, "hold")
    assert bomb.solved and not bomb.holding


# ---- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [action for action in ACTIONS if action != "release"])
def test_nothing_but_a_release_while_an_element_is_held(action):
    bomb = held_button()
    before = snapshot(bomb)
    assert bomb.act(action, "A").refused == "an element is held down: release it first"
    assert snapshot(bomb) == before


def test_a_button_that_must_be_tapped_is_not_let_go_unpunished():
    bomb = held_button()
    assert bomb.act("release", "Z").struck == (0,)
    assert not bomb.holding and bomb.modules[0].strip_colour is None


@pytest.mark.parametrize(
    ("action", "mark", "reason"),
    [
        ("release", None, "nothing is held down"),
        ("explode", None, "an action must be one of"),
        ("click_release", None, r"a mark must be one of \['A', 'B', 'C'\], found None"),
        ("click_release", "D", r"a mark must be one of \['A', 'B', 'C'\], found 'D'"),
        ("click_release", "AB", "a mark must be one of"),
        ("click_release", "", "a mark must be one of"),
        ("click_release", "ß", "a mark must be one of"),
        ("click_release", 0, "a mark must be one of"),
        ("hold", "Z", "a mark must be one of"),
    ],
)
def test_what_cannot_be_done_is_refused(action, mark, reason):
    bomb = zoomed(spare_wires(EDGE))
    before = snapshot(bomb)
    effects = bomb.act(action, mark)
    assert re.match(reason, effects.refused)
    assert (effects.struck, effects.solved) == ((), ()) and snapshot(bomb) == before


def test_zooming_out_twice_and_rolling_on_are_refused():
    bomb = bench(spare_wires(EDGE))
    assert bomb.act("zoom_out").refused == "the whole side is in view already"
    bomb.act("roll_up")
    assert bomb.act("roll_up").refused == "the bomb does not roll any further"


def test_a_bomb_that_is_over_refuses_everything():
    bomb = held_button()
    bomb.advance(300_000)
    assert bomb.outcome == "timeout" and not bomb.holding
    before = snapshot(bomb)
    for action in ACTIONS:
        assert bomb.act(action, "A").refused == "the game is over"
    assert bomb.legal_actions() == [] and snapshot(bomb) == before


def test_legal_actions_are_what_the_view_offers():
    bomb = bench(spare_wires(EDGE))
    marked = {(action, mark) for action in MARK_ACTIONS for mark in "ABC"}
    assert set(bomb.legal_actions()) == {(turn, None) for turn in TURNS} | {(a, "A") for a in MARK_ACTIONS}
    bomb.act("click_release", "A")
    assert set(bomb.legal_actions()) == {(turn, None) for turn in TURNS} | marked | {("zoom_out", None)}
    assert held_button().legal_actions() == [("release", None)]


# ---- the log ---------------------------------------------------------------------------------------------------


def test_the_state_has_the_fields_of_the_benchmark():
    edge = edgework("AB1CD2", ["AA"], [("CAR", True)], [["Serial", "Parallel"]])
    bomb = zoomed(BigButton(edge, run_stream(), "blue", "Abort"))
    press(bomb, 0, "hold")
    bomb.advance(1500)
    assert bomb.state() == {
        "seed": 1,
        "maxStrikes": 3,
        "strikes": [],
        "isDetonated": False,
        "isSolved": False,
        "isLightOn": True,
        "bombSide": "front",
        "timerModule": {"secondsRemaining": 298.5, "onFront": True, "index": 0},
        "widgets": [
            {"name": "SerialNumber", "position": "top", "serialNumber": "AB1CD2"},
            {"name": "Battery", "position": "top", "batteryType": "AA", "batteriesCount": 2},
            {"name": "Indicator", "position": "top", "label": "CAR", "lightActivated": True},
            {"name": "Port", "position": "top", "portType": ["Serial", "Parallel"]},
        ],
        "modules": [
            {
                **{"name": "BigButton", "onFront": True, "index": 1, "moduleLocation": 7},
                **{"isSolved": False, "inFocus": True, "needsMultipleImages": False},
                **{"buttonColor": "blue", "buttonWord": "Abort", "isHeld": True},
                "stripColor": bomb.modules[0].strip_colour,
            }
        ],
    }
