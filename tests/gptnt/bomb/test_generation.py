"""Streams, missions and the bombs that come of them."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.bomb import Slot, build
from rowproof.gptnt.bomb.edgework import Battery, Indicator, SerialNumber
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.published import SINGLE_MODULE_WIDGETS, multiple_module_n, single_module, time_limit_s
from rowproof.gptnt.bomb.rules import keypad

REFERENCES = yaml.safe_load((Path(__file__).parent / "reference_bombs.yaml").read_text(encoding="utf-8"))


def test_acceptance_2_check_values_of_the_generator():
    stream = Stream("234|Wires", "serial")
    assert [stream.next() for _ in range(3)] == [0x66B0959591F4CAD4, 0xACF1B03EFCE332CC, 0x9928859C448E23F3]
    stream = Stream("234|Wires", "serial")
    assert [stream.below(10) for _ in range(10)] == [4, 6, 5, 2, 9, 4, 1, 9, 5, 5]
    assert Stream("234|Wires", "slots").shuffle(range(6)) == [0, 1, 2, 4, 5, 3]


# ---- reference bombs -------------------------------------------------------------------------------------------


def describe_widget(widget):
    if isinstance(widget, SerialNumber):
        return {"kind": "SerialNumber", "edge": widget.edge}
    if isinstance(widget, Battery):
        return {"kind": "Battery", "type": widget.type, "edge": widget.edge}
    if isinstance(widget, Indicator):
        return {"kind": "Indicator", "label": widget.label, "lit": widget.lit, "edge": widget.edge}
    return {"kind": "Port", "ports": list(widget.ports), "edge": widget.edge}


def describe_wires(m):
    return {"slots": list(m.rows), "colours": list(m.colours)}


def describe_button(m):
    return {"colour": m.colour, "label": m.label, "first_three_strips": [draw_strip(m) for _ in range(3)]}


def draw_strip(m):
    m.strip_colour = None
    m._hold(None)
    return m.strip_colour


def describe_keypad(m):
    (column,) = (number for number, symbols in keypad.COLUMNS.items() if set(m.symbols) <= set(symbols))
    return {"column": column, **dict(zip(keypad.POSITIONS, m.symbols, strict=True))}


def two_draws(m):
    draws = []
    for _ in range(2):
        draws.append({"display": m.display, "labels": list(m.labels)})
        m._draw()
    return {"first_two_draws": draws}


def describe_password(m):
    return {"goal": m.goal, "columns": list(m.columns), "start": m.showing}


def describe_venn(m):
    wires = zip(m.wires, m._must_cut, strict=True)
    return {
        "wires": [{"slot": w.column, "colour": w.colour, "led": w.led, "star": w.star, "cut": cut} for w, cut in wires]
    }


DESCRIBE = {
    "Wires": describe_wires,
    "BigButton": describe_button,
    "Keypad": describe_keypad,
    "Simon": lambda m: {"sequence": list(m.sequence)},
    "WhosOnFirst": two_draws,
    "Memory": two_draws,
    "Morse": lambda m: {"word": m.word},
    "Venn": describe_venn,
    "WireSequence": lambda m: {"wires": {str(w.terminal): f"{w.colour}->{w.letter}" for w in m.wires}},
    "Maze": lambda m: {"maze": m.number, "start": list(m.position), "goal": list(m.goal)},
    "Password": describe_password,
}


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference["mission_key"])
def test_acceptance_2_reference_bombs_come_out_exactly(reference):
    seed, components = reference["mission_key"].split("|")
    # The order of the components must not matter.
    shuffled = tuple(reversed(components.split(",")))
    front = reference["force_modules_to_front"]
    mission = Mission(int(seed), 300, shuffled, reference["optional_widgets"], force_modules_to_front=front)
    bomb = build(mission)
    assert mission.key == reference["mission_key"]
    assert {
        "mission_key": mission.key,
        "optional_widgets": mission.optional_widgets,
        "force_modules_to_front": front,
        "serial": bomb.edgework.serial,
        "widgets": [describe_widget(widget) for widget in bomb.edgework.widgets],
        "timer_slot": list(bomb.timer_slot),
        "modules": [
            {"component": m.component, "slot": list(slot), "instance": DESCRIBE[m.component](m)}
            for m, slot in zip(bomb.modules, bomb.slots, strict=True)
        ],
    } == reference


def test_every_module_is_in_some_reference_bomb():
    assert {m["component"] for reference in REFERENCES for m in reference["modules"]} == set(SOLVABLE)


# ---- mission sets ----------------------------------------------------------------------------------------------


def test_acceptance_3_counts_of_the_published_sets():
    single, multiple = single_module(), multiple_module_n()
    counts = Counter(c for mission in single.values() for c in mission.components)
    assert counts == dict.fromkeys(SOLVABLE, 10) and len(single) == 110
    counts = Counter(c for mission in multiple.values() for c in mission.components)
    assert counts == {
        **{"Wires": 5, "BigButton": 3, "Keypad": 5, "Simon": 3, "WhosOnFirst": 5, "Memory": 4},
        **{"Morse": 1, "Venn": 2, "WireSequence": 1, "Maze": 3, "Password": 2},
    }
    everything = [*single.values(), *multiple.values()]
    assert len({mission.key for mission in everything}) == len(everything) == 120
    assert {mission.num_strikes_allowed for mission in everything} == {3}
    for name, mission in (single | multiple).items():
        mission.check(name)


def test_widget_counts_follow_the_published_recipe():
    seeds = np.random.default_rng(10).integers(100, 1000, size=10).tolist()
    assert sorted(seeds) == list(SINGLE_MODULE_WIDGETS)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        drawn = []
        for _ in SOLVABLE:
            rng.integers(1, 2)
            drawn.append(int(rng.integers(1, 6)))
        assert tuple(drawn) == SINGLE_MODULE_WIDGETS[seed]


def stable_digest(value):
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("missions_of", "digest"),
    [
        (single_module, "a3f09ca77f2348f210efd43896fdee46"),
        (multiple_module_n, "2685266a5bb1680feae7ff0ce86a83dc"),
    ],
)
def test_mission_sets_have_the_published_digests(missions_of, digest):
    bodies = [json.dumps(mission.wire_data(), separators=(",", ":")) for mission in missions_of().values()]
    assert stable_digest(sorted(bodies, key=stable_digest)) == digest


LIMITS_S = {
    **{"Wires": 81, "Keypad": 90, "WhosOnFirst": 93, "Memory": 105, "Venn": 126, "Simon": 135},
    **{"WireSequence": 135, "BigButton": 144, "Morse": 144, "Maze": 183, "Password": 231},
}


def test_acceptance_3_time_limits_follow_the_formula():
    assert {c: time_limit_s([c], back_allowed=False) for c in SOLVABLE} == LIMITS_S
    found = [time_limit_s(mission.components, back_allowed=True) for mission in multiple_module_n().values()]
    assert found == [240, 315, 321, 204, 255, 228, 267, 246, 291, 456]


# ---- mission files ---------------------------------------------------------------------------------------------

DATA = {"seed": 7, "timeLimit": 90, "components": ["Wires"], "optWidgets": 2}


def test_a_mission_is_read_in_either_spelling():
    camel = Mission.from_data(DATA, "m.json")
    snake = {"seed": 7, "time_limit": 90, "components": ["Wires"], "optional_widgets": 2, "isFront": False}
    assert camel == Mission.from_data(snake, "m.json") == Mission(7, 90, ("Wires",), 2)
    assert Mission.from_data(camel.wire_data(), "m.json") == camel


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sead": 1}, r"m.json: keys must be among .* found \['sead'\]"),
        ({"time_limit": 90}, "time_limit must be there once, found"),
        ({"seed": -1}, "seed: must be 0 or more, found -1"),
        ({"seed": 1.0}, "seed: must be of type int, found 1.0"),
        ({"seed": True}, "seed: must be of type int, found True"),
        ({"timeLimit": 0}, "timeLimit: must be 1 or more, found 0"),
        ({"numStrikes": 0}, "numStrikes: must be 1 or more, 5 at most, found 0"),
        ({"numStrikes": 6}, "numStrikes: must be 1 or more, 5 at most, found 6"),
        ({"optWidgets": 11}, "optWidgets: must be 0 or more, 10 at most, found 11"),
        ({"timeScale": float("nan")}, "timeScale: must be 0.1 or more, 10.0 at most, found nan"),
        ({"isFront": 1}, "isFront: must be of type bool, found 1"),
        ({"components": "Wires"}, "components: must be a list of component ids, found 'Wires'"),
        ({"components": ["Wires", 3]}, "components: must be a list of component ids"),
        ({"components": ["Wire"]}, r"components must be among .* found \['Wire'\]"),
        ({"components": []}, "the bomb must hold 1 to 11 components, found 0"),
        ({"components": ["Wires"] * 12}, "the bomb must hold 1 to 11 components, found 12"),
        ({"components": ["Wires"] * 6, "isFront": True}, "the front must hold 1 to 5 components, found 6"),
        ({"components": ["NeedyKnob"]}, "components must hold one that can be solved"),
        ({"needyTime": 91}, r"needy_time must not exceed time_limit \(90 s\), found 91"),
    ],
)
def test_a_broken_mission_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Mission.from_data(DATA | changes, "m.json")


@pytest.mark.parametrize("key", DATA)
def test_a_mission_needs_its_keys(key):
    with pytest.raises(ConfigError, match="must be there, found"):
        Mission.from_data({k: v for k, v in DATA.items() if k != key}, "m.json")


def test_a_mission_is_an_object():
    with pytest.raises(ConfigError, match="a mission must be an object, found list"):
        Mission.from_data([], "m.json")


# ---- what a bomb is made of ------------------------------------------------------------------------------------


def test_a_full_bomb_has_a_module_in_every_other_slot():
    bomb = build(Mission(5, 300, ("Wires",) * 11, 10))
    slots = {*bomb.slots, bomb.timer_slot}
    assert slots == {Slot(face, index) for face in ("front", "back") for index in range(6)}
    assert bomb.timer_slot.face == "front"
    front = build(Mission(5, 300, ("Wires",) * 5, 10, force_modules_to_front=True))
    assert {*front.slots, front.timer_slot} == {Slot("front", index) for index in range(6)}


def test_equal_components_get_different_draws():
    bomb = build(Mission(5, 300, ("Password",) * 4, 1))
    assert len({module.columns for module in bomb.modules}) == 4


def test_edgework_keeps_its_ranges():
    shapes = Counter()
    for seed in range(500):
        edgework = build(Mission(seed, 81, ("Wires",), 10)).edgework
        serial = edgework.serial
        assert len(serial) == 6 and serial[2].isdigit() and serial[5].isdigit() and serial[3:5].isalpha()
        assert serial.isalnum() and serial == serial.upper() and not {"O", "Y"} & set(serial)
        assert len(edgework.widgets) == 11
        assert max(Counter(widget.edge for widget in edgework.widgets).values()) <= 3
        labels = [widget.label for widget in edgework.widgets if isinstance(widget, Indicator)]
        assert len(labels) == len(set(labels))
        shapes.update(type(widget).__name__ for widget in edgework.widgets)
    assert set(shapes) == {"SerialNumber", "Battery", "Indicator", "PortPlate"}
    assert min(shapes.values()) > 400
