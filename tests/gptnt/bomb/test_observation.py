"""What the player sees: published renderings, nothing hidden, red lights seen once."""

import json

import pytest
from gptnt.bomb.workbench import NEEDY_MISSION, bench, edgework, half_random, press, run_stream, spare_wires, zoomed
from rowproof.gptnt.bomb.bomb import Bomb, Slot, build
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.edgework import Battery, Edgework, Indicator, PortPlate, SerialNumber
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.keypad import Keypad
from rowproof.gptnt.bomb.modules.maze import Maze
from rowproof.gptnt.bomb.modules.memory import Memory
from rowproof.gptnt.bomb.modules.morse import Morse
from rowproof.gptnt.bomb.modules.needy_capacitor import NeedyCapacitor
from rowproof.gptnt.bomb.modules.needy_knob import NeedyKnob
from rowproof.gptnt.bomb.modules.needy_vent_gas import NeedyVentGas
from rowproof.gptnt.bomb.modules.password import Password
from rowproof.gptnt.bomb.modules.simon import Simon
from rowproof.gptnt.bomb.modules.venn import Venn
from rowproof.gptnt.bomb.modules.venn import Wire as VennWire
from rowproof.gptnt.bomb.modules.whos_on_first import WhosOnFirst
from rowproof.gptnt.bomb.modules.wire_sequence import Wire as SequenceWire
from rowproof.gptnt.bomb.modules.wire_sequence import WireSequence
from rowproof.gptnt.bomb.modules.wires import Wires
from rowproof.gptnt.bomb.observation import look, observe, text
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.gptnt.bomb.rules import maze as maze_rules

EDGE = edgework()


# ---- published renderings --------------------------------------------------------------------------------------

FACE = {
    "turn": 1,
    "side": "front",
    "zoomed_in": False,
    "holding": False,
    "timer": {"display": "05:00", "strike_lights": 0, "strike_indicator": True},
    "slots": [
        {"slot": 0, "place": "upper left", "shows": "blank cover"},
        {
            **{"slot": 1, "place": "upper middle", "shows": "horizontal wires between two strips"},
            **{"led": "off", "mark": "A"},
        },
        {"slot": 2, "place": "upper right", "shows": "blank cover"},
        {"slot": 3, "place": "lower left", "shows": "timer"},
        {
            **{"slot": 4, "place": "lower middle", "shows": "dark grid with two green circles"},
            **{"led": "off", "mark": "B"},
        },
        {"slot": 5, "place": "lower right", "shows": "blank cover"},
    ],
    "marks": {"A": "the module in the upper middle", "B": "the module in the lower middle"},
}
FACE_TEXT = """\
Turn 1. You face the FRONT of the bomb. Timer 05:00, no strike lights.
  upper left    blank cover
  upper middle  [A] horizontal wires between two strips, status light off
  upper right   blank cover
  lower left    timer
  lower middle  [B] dark grid with two green circles, status light off
  lower right   blank cover
You can click: A, B."""


def test_a_face_as_published():
    modules = [Maze(EDGE, run_stream(), 1, (0, 0), (5, 5)), spare_wires(EDGE)]
    mission = Mission(1, 300, ("Maze", "Wires"), 0)
    bomb = Bomb(mission, EDGE, Slot("front", 3), modules, [Slot("front", 4), Slot("front", 1)])
    seen = look(bomb, 1)
    assert json.dumps(seen) == json.dumps(FACE)
    assert text(seen) == FACE_TEXT


WIRES = {
    "turn": 9,
    "side": "front",
    "zoomed_in": True,
    "holding": False,
    "timer": {"display": "04:35", "strike_lights": 1, "strike_indicator": True},
    "module": {
        "shows": "horizontal wires between two strips",
        "led": "red",
        "wires": [
            {"row": 1, "colour": "red", "cut": True},
            {"row": 4, "colour": "red", "cut": False},
            {"row": 5, "colour": "white", "cut": False},
        ],
    },
    "marks": {"A": "wire in row 1", "B": "wire in row 4", "C": "wire in row 5"},
}
WIRES_TEXT = """\
Turn 9. You look closely at a module on the FRONT. Timer 04:35, strike lights: X.
Horizontal wires between two strips; status light red. From the top:
  [A] row 1: red, cut
  row 2: empty
  row 3: empty
  [B] row 4: red
  [C] row 5: white
  row 6: empty"""


def test_wires_as_published():
    bomb = zoomed(Wires(edgework("893ZP6"), run_stream(), (0, 3, 4), ("red", "red", "white")))
    press(bomb, 0)
    bomb.advance(20_000)
    assert json.dumps(look(bomb, 9)) == json.dumps(WIRES)
    assert text(look(bomb, 9)) == WIRES_TEXT


def test_morse_as_published():
    bomb = zoomed(Morse(EDGE, run_stream(), "shell"))
    bomb.advance(3750)
    expected = (
        "Lamp over the last 4 s (4 looks per second, oldest first): #.#.#...#.#.#.#.   "
        "Read-out 3.505 MHz. [A] left arrow [B] right arrow [C] TX"
    )
    assert text(look(bomb, 3)).endswith(expected)


def test_a_narrow_side_as_published():
    widgets = [SerialNumber("right", "JR2ZR5"), Indicator("left", "CAR", False), Indicator("right", "FRQ", True)]
    edge = Edgework([*widgets, Battery("left", "AA"), Battery("left", "D"), PortPlate("left", ("Serial", "Parallel"))])
    bomb = bench(spare_wires(edge))
    bomb.act("rotate_right")
    assert text(look(bomb, 4)) == (
        "Turn 4. You see the RIGHT side of the bomb. The timer is not visible. Nothing here can be clicked.\n"
        "  - red and white label: JR2ZR5\n"
        '  - indicator "FRQ", lamp lit'
    )
    bomb.act("flip")
    seen = look(bomb, 5)
    assert seen["edge"] == [
        {"item": "indicator", "text": "CAR", "lamp": "unlit"},
        {"item": "batteries", "cells": 2, "look": "AA"},
        {"item": "batteries", "cells": 1, "look": "D"},
        {
            "item": "port plate",
            "ports": ["short two-row connector with nine holes", "very wide two-row connector with many round pins"],
        },
    ]
    assert (seen["marks"], seen["timer"]) == ({}, None)
    assert text(seen).split("\n")[2:] == [
        "  - battery holder with 2 AA cells",
        "  - battery holder with 1 D cell",
        "  - port plate: short two-row connector with nine holes; very wide two-row connector with many round pins",
    ]
    bomb.act("roll_up")
    assert look(bomb, 6)["edge"] == [] and text(look(bomb, 6)).endswith("\n  - bare casing")


# ---- both renderings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mission", [NEEDY_MISSION, *multiple_module_n().values()], ids=lambda mission: mission.key)
def test_the_text_is_made_of_the_data_alone_and_shows_every_mark(mission):
    bomb, choose = build(mission), half_random(Stream(mission.key, "look"))
    for turn in range(1, 200):
        seen = observe(bomb, turn)
        assert json.loads(json.dumps(seen)) == seen
        rendered = text(json.loads(json.dumps(seen)))
        assert rendered == text(seen)
        marks = [f"[{mark}]" for mark in seen["marks"]]
        assert all(rendered.count(mark) == 1 for mark in marks) and rendered.count("[") == len(marks)
        assert len(seen["marks"]) == bomb.mark_count()
        step = choose(bomb)
        if step:
            bomb.act(*step)
        bomb.advance(500)


@pytest.mark.parametrize("symbols", ["looks", "glyph", "name"])
def test_symbols_can_be_named_in_three_ways(symbols):
    bomb = zoomed(Keypad(EDGE, run_stream(), ("psi", "star", "ksi", "yat")))
    expected = {"looks": "a trident", "glyph": "Ψ", "name": "psi"}[symbols]
    seen = look(bomb, 1, symbols=symbols)
    assert seen["module"]["keys"][0]["symbol"] == expected and expected in text(seen)


def test_another_way_to_name_symbols_is_refused():
    with pytest.raises(ValueError, match=r"symbols must be one of .* found 'picture'"):
        look(bench(spare_wires(EDGE)), 1, symbols="picture")


def test_names_are_shown_on_request_only():
    bomb = bench(spare_wires(EDGE), NeedyKnob(EDGE, run_stream()))
    assert "Wires" not in text(look(bomb, 1)) and "NeedyKnob" not in json.dumps(look(bomb, 1))
    assert "(Wires)" in text(look(bomb, 1, names=True)) and "(NeedyKnob)" in text(look(bomb, 1, names=True))
    bomb.act("click_release", "A")
    assert "(Wires)" in text(look(bomb, 1, names=True))


# ---- lights ----------------------------------------------------------------------------------------------------


def test_a_look_changes_nothing():
    bomb = zoomed(spare_wires(EDGE))
    press(bomb, 0)
    assert look(bomb, 1) == look(bomb, 1)
    assert look(bomb, 1)["module"]["led"] == "red"


def test_a_strike_is_red_in_one_observation_only():
    bomb = zoomed(Keypad(EDGE, run_stream(), ("psi", "star", "ksi", "yat")))
    press(bomb, 1)
    press(bomb, 3)
    first, second = observe(bomb, 1)["module"], observe(bomb, 2)["module"]
    assert (first["led"], [key["light"] for key in first["keys"]]) == ("red", ["off", "red", "off", "red"])
    assert (second["led"], [key["light"] for key in second["keys"]]) == ("off", ["off"] * 4)


def test_a_solved_module_is_green_from_afar_as_well():
    bomb = zoomed(spare_wires(EDGE), spare_wires(EDGE))
    press(bomb, 1)
    assert look(bomb, 1)["module"]["led"] == "green"
    bomb.act("zoom_out")
    assert [slot.get("led") for slot in look(bomb, 1)["slots"]] == [None, "green", "off", None, None, None]


def test_no_indicator_where_the_first_strike_is_fatal():
    bomb = bench(spare_wires(EDGE), num_strikes_allowed=1)
    assert "Timer 05:00, no strike indicator." in text(look(bomb, 1))


def test_the_timer_shows_on_the_front_alone():
    bomb = bench(spare_wires(EDGE))
    assert look(bomb, 1)["timer"] is not None
    for action in ("flip", "rotate_left", "roll_up"):
        bomb.act(action)
        assert look(bomb, 1)["timer"] is None
    # Upside down, though the front would come next.
    bomb = bench(spare_wires(EDGE))
    bomb.act("roll_down")
    assert look(bomb, 1)["timer"] is None


# ---- nothing hidden shows --------------------------------------------------------------------------------------

OTHER_EDGE = edgework("ZZ9XX9", ["AA", "AA"], [("CAR", True), ("FRK", True)], [["Parallel"]])


def venn_pair(edge):
    return Venn(edge, run_stream(), [VennWire(0, "red", False, True), VennWire(1, "blue", True, False)])


def sequence_of(*beyond):
    first = [SequenceWire(1, "red", "C"), SequenceWire(2, "blue", "A")]
    return WireSequence(EDGE, run_stream(), [*first, *beyond])


def other_run(module):
    module.run.state ^= 0x5DEECE66D
    return module


def with_history(pressed):
    module = Memory(EDGE, run_stream())
    module.pressed = pressed
    return module


def sleeping(module, event_ms, **fields):
    module.event_ms = event_ms
    for name, value in fields.items():
        setattr(module, name, value)
    return module


SEQUENCE_BEYOND = (SequenceWire(7, "red", "A"), SequenceWire(12, "black", "B"))
PAIRS = {
    "wires: serial number": (spare_wires(EDGE), spare_wires(OTHER_EDGE)),
    "button: edgework": tuple(BigButton(edge, run_stream(), "white", "Press") for edge in (EDGE, OTHER_EDGE)),
    "button: next strip": (
        BigButton(EDGE, run_stream(), "blue", "Abort"),
        other_run(BigButton(EDGE, run_stream(), "blue", "Abort")),
    ),
    "simon: later flashes": tuple(
        Simon(EDGE, run_stream(), sequence) for sequence in (["red", "blue", "blue"], ["red", "green", "red", "red"])
    ),
    "simon: serial number": tuple(Simon(edge, run_stream(), ["red"] * 3) for edge in (EDGE, OTHER_EDGE)),
    "who's on first: next words": (WhosOnFirst(EDGE, run_stream()), other_run(WhosOnFirst(EDGE, run_stream()))),
    "memory: next digits": (Memory(EDGE, run_stream()), other_run(Memory(EDGE, run_stream()))),
    "memory: what was pressed": (with_history([(1, 2), (3, 4)]), with_history([(4, 3), (2, 1)])),
    "morse: later letters": (Morse(EDGE, run_stream(), "break"), Morse(EDGE, run_stream(), "brick")),
    "venn: edgework": (venn_pair(EDGE), venn_pair(OTHER_EDGE)),
    "wire sequence: other panels": (sequence_of(), sequence_of(*SEQUENCE_BEYOND)),
    "password: letters behind": (
        Password(EDGE, run_stream(), "plant", ["PCXQZJ", "CLXQZJ", "VAXQZJ", "NXQZJK", "KTXQZJ"]),
        Password(EDGE, run_stream(), "world", ["PWBDKN", "COUPYA", "VRSGTI", "NTCMLA", "KYSDET"]),
    ),
    "gas: time of waking": (sleeping(NeedyVentGas(EDGE, run_stream()), 50_000), NeedyVentGas(EDGE, run_stream())),
    "gas: next question": (
        sleeping(NeedyVentGas(EDGE, run_stream()), None, phase="resting"),
        sleeping(NeedyVentGas(EDGE, run_stream()), None, question="DETONATE?"),
    ),
    "knob: dark lamps": (
        NeedyKnob(EDGE, run_stream()),
        sleeping(
            NeedyKnob(EDGE, run_stream()),
            50_000,
            pattern=NeedyKnob(EDGE, run_stream()).pattern._replace(upper="XXX..."),
        ),
    ),
    "capacitor: time of waking": tuple(
        sleeping(NeedyCapacitor(EDGE, run_stream()), at_ms) for at_ms in (50_000, 51_000)
    ),
}


def seen_bytes(module, seed, other_face, strikes):
    """Bytes of what shows from close by and from the face, after three seconds."""
    mission = Mission(seed, 300, (module.component, "Wires"), 0)
    event_ms = getattr(module, "event_ms", None)
    slots = [Slot("front", 1), Slot("back", 3)]
    bomb = Bomb(mission, module.edgework, Slot("front", 0), [module, other_face], slots)
    if event_ms is not None:
        module.event_ms = event_ms
    bomb.strikes += strikes
    bomb.act("click_release", "A")
    bomb.advance(3000)
    near = look(bomb, 7)
    bomb.act("zoom_out")
    far = look(bomb, 8)
    return json.dumps([near, text(near), far, text(far)]).encode()


@pytest.mark.parametrize("name", PAIRS)
def test_acceptance_6_bombs_that_differ_in_hidden_things_look_the_same(name):
    one, other = PAIRS[name]
    assert seen_bytes(one, 1, spare_wires(EDGE), ["Wires"]) == seen_bytes(
        other, 2, Wires(OTHER_EDGE, run_stream(), (0, 1, 5), ("red", "red", "red")), ["Morse"]
    )


def test_acceptance_6_walls_are_dark_until_run_into(monkeypatch):
    maze = maze_rules.MAZES[1]
    before = seen_bytes(Maze(EDGE, run_stream(), 1, (0, 0), (5, 5)), 1, spare_wires(EDGE), [])
    monkeypatch.setitem(maze_rules.MAZES, 1, maze._replace(right=("|" * 5,) * 6, below=("-" * 6,) * 5))
    assert seen_bytes(Maze(EDGE, run_stream(), 1, (0, 0), (5, 5)), 1, spare_wires(EDGE), []) == before
    bomb = zoomed(Maze(EDGE, run_stream(), 1, (2, 2), (5, 5)))
    for element in (1, 3, 1):
        press(bomb, element)
    assert look(bomb, 1)["module"]["red_walls"] == [[3, 2, "right"], [3, 3, "below"]]


def test_acceptance_6_every_module_is_covered():
    covered = {module.component for pair in PAIRS.values() for module in pair} | {"Maze"}
    # All of a keypad shows: its four symbols and lights.
    assert covered == set(MODULES) - {"Keypad"}


SOLUTIONS = ("goal", "word", "correct", "sequence", "seed", "rank", "strip_colour", "event", "number")


def test_acceptance_6_no_key_names_a_solution():
    keys = set()

    def collect(value):
        if isinstance(value, dict):
            keys.update(value)
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                collect(item)

    for mission in [NEEDY_MISSION, *single_module().values()]:
        bomb = build(mission)
        for _ in range(3):
            collect(look(bomb, 1))
            bomb.act("click_release", "A")
    assert len(keys) > 40 and not keys & set(SOLUTIONS)
