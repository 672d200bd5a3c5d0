"""Needy modules: waking, countdowns, rest, and a whole game beside them."""

import pytest
from gptnt.bomb.workbench import bench, edgework, press, run_stream, spare_wires, zoomed
from rowproof.gptnt.bomb.bomb import build
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.modules.needy import ACTIVE, DORMANT, RESTING
from rowproof.gptnt.bomb.modules.needy_capacitor import NeedyCapacitor
from rowproof.gptnt.bomb.modules.needy_knob import NeedyKnob
from rowproof.gptnt.bomb.modules.needy_vent_gas import DETONATE, VENT, NeedyVentGas
from rowproof.gptnt.bomb.observation import look, observe
from rowproof.gptnt.bomb.oracle import next_step
from rowproof.gptnt.bomb.rules.needy_knob import DIRECTIONS, PATTERNS

EDGE = edgework()
KINDS = [NeedyVentGas, NeedyKnob, NeedyCapacitor]


def beside_wires(kind, **settings):
    """A bomb whose player is close to a needy module of that kind; front slot 2 holds wires."""
    return zoomed(kind(EDGE, run_stream()), spare_wires(EDGE), **settings)


def view(bomb):
    return look(bomb, 1)["module"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_wakes_at_the_needy_time(kind):
    bomb = beside_wires(kind, needy_time=45)
    bomb.advance(44_999)
    assert (bomb.modules[0].phase, view(bomb)["seconds"]) == (DORMANT, None)
    bomb.advance(1)
    assert (bomb.modules[0].phase, view(bomb)["seconds"]) == (ACTIVE, 45 if kind is NeedyCapacitor else 40)
    bomb.advance(1500)
    assert view(bomb)["seconds"] == (43 if kind is NeedyCapacitor else 38)
    assert "led" not in view(bomb)


@pytest.mark.parametrize(("element", "delay_ms"), [(1, 250), (0, 750)], ids=["solve", "strike"])
def test_events_wake_it_mostly(element, delay_ms):
    woken = 0
    for seed in range(400):
        bomb = build(Mission(seed, 300, ("NeedyKnob", "Wires", "Wires"), 0, 5, 200))
        wires = bomb.modules[1]
        bomb.zoomed = 1
        correct = wires._correct
        press(bomb, correct if element == 1 else (correct + 1) % 3)
        assert bomb.modules[1].solved == (element == 1)
        bomb.advance(delay_ms - 1)
        assert bomb.modules[0].phase == DORMANT
        bomb.advance(1)
        woken += bomb.modules[0].phase == ACTIVE
    # 0.85 of 400, within four standard deviations.
    assert 311 <= woken <= 369


def test_only_a_dormant_module_draws_for_events():
    bomb = beside_wires(NeedyKnob)
    module = bomb.modules[0]
    bomb.advance(60_000)
    drawn = module.run.state
    bomb._strike(1)
    assert module.run.state == drawn


def test_strikes_do_not_hurry_a_countdown():
    bomb = beside_wires(NeedyVentGas)
    bomb.advance(60_000)
    bomb._strike(1)
    bomb.advance(39_999)
    assert bomb.modules[0].phase == ACTIVE
    assert bomb.advance(1).struck == (0,)
    assert bomb.strikes == ["Wires", "NeedyVentGas"]


def test_a_strike_of_the_countdown_changes_the_rate_from_that_instant():
    bomb = beside_wires(NeedyVentGas)
    bomb.advance(110_000)
    assert len(bomb.strikes) == 1 and bomb.clock.remaining_q == (300 - 100) * 4000 - 5 * 10_000


def test_rest_lasts_ten_to_forty_seconds_and_then_it_asks_again():
    rests_s = set()
    for seed in range(200):
        bomb = build(Mission(seed, 600, ("NeedyVentGas", "Wires"), 0))
        module = bomb.modules[0]
        bomb.advance(60_000)
        bomb.zoomed = 0
        press(bomb, 0 if module.question == VENT else 1)
        assert (module.phase, bomb.strikes) == (RESTING, [])
        rest_ms = module.event_ms - bomb.clock.game_ms
        rests_s.add(rest_ms / 1000)
        bomb.advance(rest_ms)
        assert module.phase == ACTIVE
    assert rests_s <= set(range(10, 41)) and len(rests_s) == 31


def test_both_questions_are_asked():
    questions = []
    for seed in range(300):
        bomb = build(Mission(seed, 600, ("NeedyVentGas", "Wires"), 0))
        bomb.advance(60_000)
        questions.append(bomb.modules[0].question)
    # 0.1 of 300, within four standard deviations.
    assert 10 <= questions.count(DETONATE) <= 50


def test_refusing_to_vent_shows_a_warning_once():
    bomb = beside_wires(NeedyVentGas)
    bomb.advance(60_000)
    bomb.modules[0].question = VENT
    assert press(bomb, 1).refused == ""
    seen = [observe(bomb, turn)["module"]["screen"] for turn in (1, 2)]
    assert seen[0] not in (VENT, DETONATE, "") and seen[1] == VENT
    assert bomb.modules[0].phase == ACTIVE and not bomb.strikes


def test_a_dark_screen_takes_no_answer():
    bomb = beside_wires(NeedyVentGas)
    assert press(bomb, 0).refused == "the screen asks nothing" and view(bomb)["screen"] == ""


def test_lamps_and_label_of_a_knob_take_all_values():
    seen = set()
    for seed in range(300):
        bomb = build(Mission(seed, 600, ("NeedyKnob", "Wires"), 0))
        bomb.advance(60_000)
        seen.add((bomb.modules[0].pattern, bomb.modules[0].up_label_points))
    assert {pattern for pattern, _ in seen} == set(PATTERNS)
    assert {points for _, points in seen} == set(DIRECTIONS)


def test_the_knob_keeps_its_direction():
    bomb = beside_wires(NeedyKnob)
    for points in ("right", "down", "left", "up", "right"):
        press(bomb, 0)
        assert view(bomb)["knob_points"] == points
    assert view(bomb)["lamps"] == ["......", "......"]
    bomb.advance(60_000)
    assert view(bomb)["knob_points"] == "right" and "X" in view(bomb)["lamps"][0]


def test_the_lever_discharges_five_times_as_fast():
    bomb = beside_wires(NeedyCapacitor)
    bomb.advance(60_000)
    bomb.advance(20_000)
    assert (view(bomb)["seconds"], view(bomb)["bar_percent"]) == (25, 44)
    press(bomb, 0, "hold")
    bomb.advance(3000)
    assert (view(bomb)["seconds"], view(bomb)["bar_percent"]) == (40, 11)
    bomb.advance(3000)
    assert view(bomb)["bar_percent"] == 0
    bomb.act("release")
    bomb.advance(44_999)
    assert not bomb.strikes
    assert bomb.advance(1).struck == (0,)
    assert bomb.modules[0].phase == RESTING


def test_a_lever_held_while_it_wakes_keeps_it_empty():
    bomb = beside_wires(NeedyCapacitor)
    press(bomb, 0, "hold")
    bomb.advance(200_000)
    assert bomb.modules[0].phase == ACTIVE and not bomb.strikes and view(bomb)["bar_percent"] == 0
    bomb.act("release")
    assert bomb.modules[0].event_ms == 245_000


def test_a_lever_must_be_held():
    bomb = beside_wires(NeedyCapacitor)
    assert press(bomb, 0).refused == "the lever must be held down for some time"


def test_strikes_of_one_instant_stop_at_the_limit():
    bomb = bench(spare_wires(EDGE), *(NeedyVentGas(EDGE, run_stream()) for _ in range(3)), num_strikes_allowed=2)
    effects = bomb.advance(120_000)
    assert effects.struck == (1, 2) and bomb.strikes == ["NeedyVentGas"] * 2
    assert (bomb.outcome, bomb.clock.game_ms) == ("strikeout", 100_000)
    assert bomb.modules[3].phase == ACTIVE


def test_needy_modules_act_before_the_timer():
    bomb = beside_wires(NeedyVentGas, time_limit=100)
    assert bomb.advance(100_000).struck == (0,)
    assert bomb.outcome == "timeout"


@pytest.mark.parametrize("component", SOLVABLE)
def test_a_bomb_with_every_needy_module_can_be_solved(component):
    mission = Mission(11, 900, (component, *(kind.component for kind in KINDS)), 3, 3, 5)
    bomb = build(mission)
    for _ in range(300):
        step = next_step(bomb)
        if step:
            assert not bomb.act(*step).refused
        if bomb.over:
            break
        bomb.advance(1000)
    assert bomb.solved and not bomb.strikes
