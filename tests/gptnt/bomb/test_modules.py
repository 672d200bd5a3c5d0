"""What each module does beyond the published vectors: timing, lights, progress, refusals."""

import pytest
from gptnt.bomb.workbench import bench, edgework, press, run_stream, spare_wires, zoomed
from rowproof.gptnt.bomb.bomb import build
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.keypad import Keypad
from rowproof.gptnt.bomb.modules.maze import Maze
from rowproof.gptnt.bomb.modules.memory import Memory
from rowproof.gptnt.bomb.modules.morse import Morse
from rowproof.gptnt.bomb.modules.password import Password
from rowproof.gptnt.bomb.modules.simon import Simon
from rowproof.gptnt.bomb.modules.venn import Venn
from rowproof.gptnt.bomb.modules.venn import Wire as VennWire
from rowproof.gptnt.bomb.modules.whos_on_first import WhosOnFirst
from rowproof.gptnt.bomb.modules.wire_sequence import Wire as SequenceWire
from rowproof.gptnt.bomb.modules.wire_sequence import WireSequence
from rowproof.gptnt.bomb.observation import look, observe
from rowproof.gptnt.bomb.oracle import next_in_module
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import maze as maze_rules
from rowproof.gptnt.bomb.rules import venn as venn_rules

# No vowel, no strikes: red to blue, blue to yellow, green to green, yellow to red.
EDGE = edgework("BB1CD2")
BLUE, RED, YELLOW, GREEN = range(4)


def view(bomb):
    return look(bomb, 1)["module"]


@pytest.mark.parametrize("component", SOLVABLE)
def test_a_solved_module_ignores_everything(component):
    bomb = build(Mission(4, 3000, (component, "Wires"), 3, force_modules_to_front=True))
    rank = bomb.mission.ranked_components.index(component)
    press(bomb, bomb.facing().index(rank))
    for _ in range(200):
        step = next_in_module(bomb, rank)
        if step:
            bomb.act(*step)
        bomb.advance(1000)
    assert bomb.modules[rank].solved and not bomb.over and not bomb.strikes
    before = bomb.modules[rank].state(), view(bomb)
    for action in ("click_release", "hold"):
        for element in range(bomb.mark_count()):
            assert press(bomb, element, action).refused == "the module is solved"
    assert not bomb.holding and (bomb.modules[rank].state(), view(bomb)) == before


def test_an_element_that_is_not_there_is_refused():
    bomb = bench(spare_wires(EDGE))
    for element in (-1, 3):
        assert bomb.modules[0].apply("press", element, None).refused.startswith("the module has 3 elements")


# ---- wires -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "wrong"),
    [
        (spare_wires(EDGE), 0),
        (Venn(EDGE, run_stream(), [VennWire(0, "white", False, False), VennWire(1, "white", True, False)]), 1),
        (WireSequence(EDGE, run_stream(), [SequenceWire(1, "red", "A"), SequenceWire(2, "red", "B")]), 1),
    ],
    ids=["wires", "venn", "wire sequence"],
)
def test_a_wire_is_cut_once(module, wrong):
    bomb = zoomed(module)
    assert press(bomb, wrong).struck == (0,)
    assert press(bomb, wrong).refused == "the wire is cut already"
    assert len(bomb.strikes) == 1


def test_some_wire_of_every_venn_module_must_be_cut():
    replaced = 0
    for seed in range(2000):
        module = build(Mission(seed, 126, ("Venn",), 0)).modules[0]
        numbers = venn_rules.wires_to_cut([wire[1:] for wire in module.wires], module.edgework)
        assert numbers
        static = Stream(f"{seed}|Venn", "module/0/Venn")
        count = min(6, 4 + static.below(6))
        static.sample(range(6), count)
        drawn = [(static.pick(venn_rules.COLOURS), static.chance(1, 2), static.chance(1, 2)) for _ in range(count)]
        unlike = [wire[1:] != one for wire, one in zip(module.wires, drawn, strict=True)]
        if not venn_rules.wires_to_cut(drawn, module.edgework):
            replaced += 1
            assert len(numbers) == 1 and unlike.count(True) == 1 and unlike[numbers[0] - 1]
        else:
            assert not any(unlike)
    assert replaced > 0


def test_the_first_panel_is_never_empty():
    # One sample in 220 would leave it empty and is drawn anew.
    for seed in range(2000):
        first, *_ = build(Mission(seed, 135, ("WireSequence",), 0)).modules[0].wires
        assert first.terminal <= 3


def test_wire_panels_can_be_gone_back_to():
    wires = [SequenceWire(1, "red", "C"), SequenceWire(4, "blue", "A"), SequenceWire(5, "black", "A")]
    bomb = zoomed(WireSequence(EDGE, run_stream(), wires))
    assert press(bomb, 0).refused == "this is the first panel"
    assert press(bomb, 2).struck == (0,)
    press(bomb, 1)
    press(bomb, 2)
    assert view(bomb)["wires"] == [
        {"from": 4, "to": "A", "colour": "blue", "cut": False},
        {"from": 5, "to": "A", "colour": "black", "cut": False},
    ]
    assert (view(bomb)["panel"], view(bomb)["lights"], bomb.mark_count()) == (2, 1, 4)
    press(bomb, 0)
    assert view(bomb)["wires"] == [{"from": 1, "to": "C", "colour": "red", "cut": True}]
    for element in (2, 2, 3, 1, 1):
        press(bomb, element)
    assert bomb.solved and (view(bomb)["panel"], view(bomb)["lights"]) == (5, 4)


# ---- button and keys -------------------------------------------------------------------------------------------


def test_every_hold_draws_a_new_strip():
    bomb = zoomed(BigButton(EDGE, run_stream(), "blue", "Abort"), num_strikes_allowed=5)
    strips = []
    for _ in range(4):
        assert view(bomb)["strip"] == "dark"
        press(bomb, 0, "hold")
        strips.append(view(bomb)["strip"])
        bomb.clock.remaining_q = 22 * 4000
        assert bomb.act("release").struck == (0,)
    expected = run_stream()
    assert strips == [expected.pick(("red", "blue", "yellow", "white")) for _ in range(4)]


def test_keys_keep_their_progress_and_refuse_a_second_press():
    bomb = zoomed(Keypad(EDGE, run_stream(), ("psi", "star", "ksi", "yat")))
    press(bomb, 0)
    assert press(bomb, 0).refused == "the key is down already"
    assert press(bomb, 1).struck == (0,)
    assert [key["light"] for key in view(bomb)["keys"]] == ["green", "red", "off", "off"]
    for element in (3, 2, 1):
        assert not press(bomb, element).struck
    assert bomb.solved


# ---- Simon -----------------------------------------------------------------------------------------------------


def flashes(bomb):
    return view(bomb)["flashes"]


def test_a_pass_follows_the_zoom_and_then_every_five_seconds():
    bomb = zoomed(Simon(EDGE, run_stream(), ["red", "blue", "green"]))
    bomb.modules[0].stage = 2
    bomb.act("zoom_out")
    bomb.advance(100)
    bomb.act("click_release", "A")
    bomb.advance(1000)
    # The last sample is the instant at which the pass starts.
    assert flashes(bomb) == "." * 15 + "R"
    bomb.advance(1250)
    assert flashes(bomb) == "." * 10 + "RR.BB."
    bomb.advance(4750)
    assert flashes(bomb) == "." * 16
    bomb.advance(250)
    assert flashes(bomb) == "." * 15 + "R"


def test_a_press_stops_the_pass_and_the_past_stays_seen():
    bomb = zoomed(Simon(EDGE, run_stream(), ["red", "blue", "green"]))
    bomb.advance(1250)
    assert flashes(bomb) == "." * 14 + "RR"
    assert not press(bomb, BLUE).struck
    assert bomb.modules[0].stage == 2 and flashes(bomb) == "." * 14 + "R."
    bomb.advance(1000)
    assert flashes(bomb) == "." * 10 + "R....R"
    # Correct, but not the end of the stage: five seconds of dark.
    press(bomb, BLUE)
    bomb.advance(4750)
    assert flashes(bomb) == "." * 16 and bomb.modules[0].progress(bomb.clock.game_ms) == 1
    bomb.advance(250)
    assert flashes(bomb) == "." * 15 + "R" and bomb.modules[0].progress(bomb.clock.game_ms) == 0
    # The input was forgotten, so the first colour is due again.
    assert press(bomb, YELLOW).struck == (0,)


def test_zooming_in_again_does_not_save_input_that_a_pass_discarded():
    bomb = zoomed(Simon(EDGE, run_stream(), ["red", "blue", "green"]))
    press(bomb, BLUE)
    press(bomb, BLUE)
    assert bomb.modules[0].progress(bomb.clock.game_ms) == 1
    bomb.act("zoom_out")
    bomb.advance(5000)
    bomb.act("click_release", "A")
    assert bomb.modules[0].progress(bomb.clock.game_ms) == 0


def test_a_solved_simon_is_dark():
    bomb = zoomed(Simon(EDGE, run_stream(), ["red", "red", "red"]), spare_wires(EDGE))
    for _ in range(6):
        bomb.advance(1000)
        press(bomb, BLUE)
    assert bomb.modules[0].solved
    bomb.advance(4000)
    bomb.act("zoom_out")
    bomb.act("click_release", "A")
    # Longer than any pass and pause.
    for _ in range(10):
        bomb.advance(1000)
        assert flashes(bomb) == "." * 16


def test_strikes_elsewhere_change_what_simon_says():
    bomb = zoomed(Simon(EDGE, run_stream(), ["red", "red", "red"]), spare_wires(EDGE))
    assert next_in_module(bomb, 0).mark == "A"
    bomb._strike(1)
    assert next_in_module(bomb, 0).mark == "B"
    press(bomb, RED)
    assert bomb.modules[0].stage == 2


# ---- words and digits ------------------------------------------------------------------------------------------


def test_new_words_after_every_press_and_lights_that_stay():
    bomb = zoomed(WhosOnFirst(EDGE, run_stream()), num_strikes_allowed=5)
    module = bomb.modules[0]
    seen = [(module.display, tuple(module.labels))]
    bomb.act(*next_in_module(bomb, 0))
    for _ in range(2):
        seen.append((module.display, tuple(module.labels)))
        right = next_in_module(bomb, 0).mark
        press(bomb, "ABCDEF".index(right) - 1)
    assert module.stage == 2 and view(bomb)["lights"] == 1 and len(bomb.strikes) == 2
    assert len({*seen, (module.display, tuple(module.labels))}) == 4


def test_memory_forgets_after_a_mistake():
    bomb = zoomed(Memory(EDGE, run_stream()))
    for _ in range(3):
        bomb.act(*next_in_module(bomb, 0))
    assert len(bomb.modules[0].pressed) == 3 and view(bomb)["lights"] == 3
    right = next_in_module(bomb, 0).mark
    press(bomb, ("ABCD".index(right) + 1) % 4)
    assert bomb.modules[0].pressed == [] and len(bomb.strikes) == 1
    for _ in range(5):
        bomb.act(*next_in_module(bomb, 0))
    assert bomb.solved


# ---- Morse, maze, password -------------------------------------------------------------------------------------


def test_the_lamp_runs_from_the_start_and_stops_when_solved():
    bomb = zoomed(Morse(EDGE, run_stream(), "shell"), spare_wires(EDGE))
    assert view(bomb)["lamp"] == "." * 15 + "#"
    bomb.advance(50 * 250)
    # A loop later the word begins again: the end of its last letter, the gap, the first dot.
    assert view(bomb)["lamp"] == ".###.#.#" + "." * 7 + "#"
    press(bomb, 2)
    assert view(bomb)["lamp"].endswith(".......") and bomb.modules[0].solved
    bomb.advance(4000)
    assert view(bomb)["lamp"] == "." * 16


def test_consecutive_windows_miss_nothing():
    bomb = zoomed(Morse(EDGE, run_stream(), "vector"))
    seen = ""
    for turn in range(20):
        seen = seen[: len(seen) - 4] + observe(bomb, turn)["module"]["lamp"]
        bomb.advance(3000)
    signal = bomb.modules[0]._signal
    assert seen[15:] == (signal * 10)[: len(seen) - 15]


def test_the_read_out_stops_at_both_ends():
    bomb = zoomed(Morse(EDGE, run_stream(), "beats"))
    assert press(bomb, 0).refused == "the read-out is at the end of its range"
    for _ in range(15):
        assert not press(bomb, 1).refused
    assert press(bomb, 1).refused and view(bomb)["frequency"] == "3.600"
    assert press(bomb, 2).solved == (0,)


def test_a_wall_turns_red_once_and_strikes_each_time():
    bomb = zoomed(Maze(EDGE, run_stream(), 1, (1, 0), (5, 5)), num_strikes_allowed=5)
    for _ in range(2):
        assert press(bomb, 2).struck == (0,)
    assert view(bomb)["red_walls"] == [[2, 1, "right"]]
    assert view(bomb)["white_square"] == [2, 1]
    assert press(bomb, 1).refused == "the border of the grid is there" and len(bomb.strikes) == 2


@pytest.mark.parametrize("number", maze_rules.MAZES)
def test_a_wall_stops_from_both_sides(number):
    walls = 0
    for row in range(6):
        for column in range(6):
            for element, step in enumerate(maze_rules.STEPS):
                bomb = zoomed(Maze(EDGE, run_stream(), number, (row, column), (9, 9)))
                effects = press(bomb, element)
                walls += bool(effects.struck)
                expected = maze_rules.wall_on(number, (row, column), step)
                assert bomb.modules[0].hit == ([expected] if expected else [])
                assert (bomb.modules[0].position == (row, column)) == bool(effects.struck or effects.refused)
    assert walls == 2 * 25


def test_letters_turn_in_both_directions():
    columns = ["PCXQZJ", "CLXQZJ", "VAXQZJ", "NXQZJK", "KTXQZJ"]
    bomb = zoomed(Password(EDGE, run_stream(), "plant", columns))
    press(bomb, 0)
    press(bomb, 9)
    assert view(bomb)["letters"] == "JCVNT"
    for _ in range(6):
        press(bomb, 2)
    assert view(bomb)["letters"] == "JCVNT"


def test_a_password_never_starts_solved():
    columns = ["PCXQZJ", "LCXQZJ", "AVXQZJ", "NXQZJK", "TKXQZJ"]
    assert Password(EDGE, run_stream(), "plant", columns).showing == "CLANT"
