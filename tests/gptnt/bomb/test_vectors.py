"""Every published vector: solutions by the rules, transitions by the actions of a player."""

import re
from collections import Counter

import pytest
import yaml
from gptnt.bomb.workbench import bench, edgework, press, run_stream, spare_wires, zoomed
from helpers import shared_data
from rowproof.gptnt.bomb.clock import Q_PER_S
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules import maze as maze_module
from rowproof.gptnt.bomb.modules import morse as morse_module
from rowproof.gptnt.bomb.modules import needy_vent_gas as gas_module
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
from rowproof.gptnt.bomb.pose import Pose
from rowproof.gptnt.bomb.published import time_limit_s
from rowproof.gptnt.bomb.rules import (
    big_button,
    keypad,
    maze,
    memory,
    morse,
    needy_knob,
    password,
    simon,
    venn,
    whos_on_first,
    wire_sequence,
    wires,
)

COUNTS = {
    **{"Wires": 21, "BigButton": 18, "Keypad": 8, "Simon": 9, "WhosOnFirst": 13, "Memory": 6, "Morse": 10, "Venn": 6},
    **{"WireSequence": 8, "Maze": 13, "Password": 6, "NeedyVentGas": 5, "NeedyKnob": 11, "NeedyCapacitor": 2},
    **{"Edgework": 4, "Clock": 8, "Pose": 10, "Mission": 6},
}
IDS = {
    **{"Wires": "wires", "BigButton": "button", "Keypad": "keypad", "Simon": "simon", "WhosOnFirst": "wof"},
    **{"Memory": "memory", "Morse": "morse", "Venn": "venn", "WireSequence": "wireseq", "Maze": "maze"},
    **{"Password": "password", "NeedyVentGas": "gas", "NeedyKnob": "knob", "NeedyCapacitor": "capacitor"},
    **{"Edgework": "edge", "Clock": "clock", "Pose": "pose", "Mission": "mission"},
}
VECTOR_IDS = [f"{IDS[name]}-{number:02d}" for name, count in COUNTS.items() for number in range(1, count + 1)]


@pytest.fixture(scope="module")
def vectors():
    # The file quotes every word that YAML 1.1 would misread.
    data = yaml.safe_load(shared_data("gptnt-vectors", "bomb_vectors.yaml").read_text(encoding="utf-8"))
    return {vector["id"]: vector for vector in data["vectors"]}


def test_the_file_holds_these_vectors(vectors):
    assert Counter(vector["module"] for vector in vectors.values()) == COUNTS
    assert sorted(vectors) == sorted(VECTOR_IDS) and len(vectors) == 164


# ---- solutions -------------------------------------------------------------------------------------------------


def solve_wires(instance, edge):
    cut = wires.wire_to_cut(instance["wires"], edge.last_digit_odd)
    slots = instance.get("slots")
    return {"cut": cut} | ({"slot": slots[cut - 1]} if slots else {})


def solve_big_button(instance, edge):
    rule, do = big_button.matching_rule(instance["colour"], instance["label"], edge)
    found = {"rule": rule, "do": do}
    return found | ({"release_digit": int(big_button.release_digit(instance["strip"]))} if do == "hold" else {})


def solve_keypad(instance, edge):
    return {"column": keypad.column_of(instance), "press": keypad.press_order(instance)}


def solve_whos_on_first(instance, edge):
    display, labels = instance["display"], instance["labels"]
    return {
        "read": whos_on_first.label_to_read(display, labels),
        "press": whos_on_first.label_to_press(display, labels),
    }


def solve_memory(instance, edge):
    pressed = []
    for stage in instance["stages"]:
        position = memory.position_to_press(stage["display"], stage["labels"], pressed)
        pressed.append((position, stage["labels"][position - 1]))
    return {"press": [list(press) for press in pressed]}


def solve_morse(instance, edge):
    if "word" in instance:
        signal = morse.signal(instance["word"])
        return {"loop_units": len(signal), "on_off": signal}
    word = morse.word_of(instance["code"])
    assert morse.code(word) == instance["code"]
    return {"word": word, "mhz": morse.FREQUENCIES_KHZ[word] / 1000, "index": morse.presses_right(word)}


def solve_venn(instance, edge):
    return {"cut": venn.wires_to_cut([(colour, led == 1, star == 1) for colour, led, star in instance["wires"]], edge)}


def solve_wire_sequence(instance, edge):
    cut = wire_sequence.terminals_to_cut([(terminal, *wire) for terminal, wire in sorted(instance["wires"].items())])
    return {"cut": [sorted(t for t in cut if wire_sequence.panel_of(t) == panel) for panel in (1, 2, 3, 4)]}


def solve_maze(instance, edge):
    first, second = (maze.maze_of(tuple(circle)) for circle in instance["circles"])
    assert first == second
    return {"maze": first, "path": maze.path(first, tuple(instance["start"]), tuple(instance["goal"]))}


def solve_password(instance, edge):
    (word,) = password.words_possible(instance["columns"])
    return {"word": word, "down": password.presses_down(instance["columns"], word)}


def solve_knob(instance, edge):
    position = needy_knob.position_for(instance["top"], instance["bottom"])
    if "up_label_points" not in instance:
        return {"position": position}
    return {"position": position, "absolute": needy_knob.direction_for(position, instance["up_label_points"])}


def solve_edgework(instance, edge):
    return {
        "last_digit": int(edge.serial[-1]),
        "odd": edge.last_digit_odd,
        "vowel": edge.has_vowel,
        "batteries": edge.batteries,
        "parallel": edge.has_parallel,
        "lit_car": edge.is_lit("CAR"),
        "lit_frk": edge.is_lit("FRK"),
    }


def solve_mission(instance, edge):
    if "back" in instance:
        return {"time_limit": time_limit_s(instance["components"], instance["back"])}
    return {"mission_key": Mission(instance["seed"], 300, tuple(instance["components"]), 1).key}


SOLVERS = {
    "Wires": solve_wires,
    "BigButton": solve_big_button,
    "Keypad": solve_keypad,
    "WhosOnFirst": solve_whos_on_first,
    "Memory": solve_memory,
    "Morse": solve_morse,
    "Venn": solve_venn,
    "WireSequence": solve_wire_sequence,
    "Maze": solve_maze,
    "Password": solve_password,
    "NeedyKnob": solve_knob,
    "Edgework": solve_edgework,
    "Mission": solve_mission,
}


# ---- transitions -----------------------------------------------------------------------------------------------


def play_wires(vector, edge):
    colours = vector["instance"]["wires"]
    bomb = zoomed(Wires(edge, run_stream(), range(len(colours)), colours))
    for action in vector["actions"]:
        press(bomb, action["cut"] - 1)
    cut = [number for number, cut in enumerate(bomb.modules[0].cut, start=1) if cut]
    return bomb, {"cut": cut}


def play_big_button(vector, edge):
    button = BigButton(edge, run_stream(), vector["instance"]["colour"], vector["instance"]["label"])
    bomb = zoomed(button)
    for action in vector["actions"]:
        if "tap" in action:
            press(bomb, 0)
        elif "hold" in action:
            press(bomb, 0, "hold")
            assert bomb.holding and button.strip_colour is not None
            button.strip_colour = action["strip"]
        else:
            first, second = map(int, re.split("[:.]", action["release_at"]))
            left_cs = (60 * first + second) * 100 if ":" in action["release_at"] else 100 * first + second
            bomb.clock.remaining_q = left_cs * Q_PER_S // 100
            assert bomb.clock.display == action["release_at"]
            bomb.act("release")
    return bomb, {}


def play_keypad(vector, edge):
    bomb = zoomed(Keypad(edge, run_stream(), [vector["instance"][position] for position in keypad.POSITIONS]))
    for action in vector["actions"]:
        press(bomb, keypad.POSITIONS.index(action["press"]))
    return bomb, {}


def play_simon(vector, edge):
    module = Simon(edge, run_stream(), vector["instance"]["sequence"])
    bomb = zoomed(module)
    for action in vector["actions"]:
        press(bomb, simon.BUTTONS.index(action["press"]))
    flash = module.sequence[module.progress(bomb.clock.game_ms)]
    expected = simon.button_for(flash, edge.has_vowel, len(bomb.strikes))
    return bomb, {"stage": module.stage, "next_expected": expected}


def play_whos_on_first(vector, edge):
    instance = vector["instance"]
    module = WhosOnFirst(edge, run_stream())
    module.display, module.labels, module.stage = instance["display"], instance["labels"], instance["stage"]
    bomb = zoomed(module)
    drawn = module.run.state
    for action in vector["actions"]:
        press(bomb, module.labels.index(action["press"]))
    return bomb, {"stage": module.stage, "redrawn": module.run.state != drawn}


def play_memory(vector, edge):
    module = Memory(edge, run_stream())
    bomb = zoomed(module)
    for stage, action in zip(vector["instance"]["stages"], vector["actions"], strict=True):
        module.display, module.labels = stage["display"], stage["labels"]
        drawn = module.run.state
        press(bomb, action["position"] - 1)
    return bomb, {"stage": len(module.pressed) + 1, "redrawn": module.run.state != drawn}


def play_morse(vector, edge):
    bomb = zoomed(Morse(edge, run_stream(), vector["instance"]["word"]))
    elements = {"left": morse_module.LEFT, "right": morse_module.RIGHT, "tx": morse_module.TX}
    for action in vector["actions"]:
        ((name, times),) = action.items()
        for _ in range(times):
            press(bomb, elements[name])
    return bomb, {}


def play_venn(vector, edge):
    wires_there = [VennWire(i, w[0], w[1] == 1, w[2] == 1) for i, w in enumerate(vector["instance"]["wires"])]
    bomb = zoomed(Venn(edge, run_stream(), wires_there))
    for action in vector["actions"]:
        press(bomb, action["cut"] - 1)
    return bomb, {}


def play_wire_sequence(vector, edge):
    module = WireSequence(
        edge, run_stream(), [SequenceWire(t, *w) for t, w in sorted(vector["instance"]["wires"].items())]
    )
    bomb = zoomed(module)
    for action in vector["actions"]:
        terminals = [wire.terminal for wire in module.shown]
        if "cut" in action:
            press(bomb, 1 + terminals.index(action["cut"]))
        else:
            press(bomb, 0 if "up" in action else 1 + len(terminals))
    return bomb, {"panel": module.panel}


def play_maze(vector, edge):
    instance = vector["instance"]
    number = maze.maze_of(tuple(instance["circles"][0]))
    module = Maze(edge, run_stream(), number, tuple(instance["start"]), tuple(instance["goal"]))
    bomb = zoomed(module)
    for action in vector["actions"]:
        press(bomb, maze_module.STEPS.index(action["move"]))
    return bomb, {"position": list(module.position)}


def play_password(vector, edge):
    columns = vector["instance"]["columns"]
    (goal,) = password.words_possible(columns)
    module = Password(edge, run_stream(), goal, columns)
    bomb = zoomed(module)
    for action in vector["actions"]:
        ((name, column),) = action.items()
        press(bomb, {"up": column - 1, "down": 4 + column, "submit": 10}[name])
    return bomb, {"showing": module.showing}


def play_needy(module, vector, edge):
    """Wake the module at once, then press, turn, hold and wait."""
    bomb = zoomed(module, spare_wires(edge))
    module.event_ms = 0
    bomb.advance(0)
    assert module.phase == "active"
    instance = vector["instance"]
    if "prompt" in instance:
        module.question = {"Vent": gas_module.VENT, "Detonate": gas_module.DETONATE}[instance["prompt"]]
    if "top" in instance:
        (module.pattern,) = (
            p for p in needy_knob.PATTERNS if (p.upper, p.lower) == (instance["top"], instance["bottom"])
        )
        module.up_label_points, module.knob_points = instance["up_label_points"], instance["knob_points"]
    for action in vector["actions"]:
        if "press" in action:
            press(bomb, gas_module.ELEMENTS.index(action["press"]))
        elif "turn" in action:
            for _ in range(action["turn"]):
                press(bomb, 0)
        elif "hold" in action:
            assert not press(bomb, 0, "hold").refused
        elif "release" in action:
            assert not bomb.act("release").refused
        else:
            bomb.advance(1000 * action["wait_s"])
    return bomb, {"active": module.phase == "active"}


def play_clock(vector):
    instance = vector["instance"]
    module = spare_wires(edgework())
    bomb = bench(module, time_limit=instance["limit"], num_strikes_allowed=instance["max_strikes"])
    for strikes in vector["steps"]:
        while len(bomb.strikes) < strikes:
            bomb._strike(0)
        bomb.advance(3000)
    return {"remaining_s": bomb.seconds_remaining, "display": bomb.clock.display, "outcome": bomb.outcome}


def play_pose(vector):
    pose = Pose()
    for action in vector["actions"]:
        pose.turn(action)
    bomb = bench(spare_wires(edgework()))
    for action in vector["actions"]:
        bomb.act(action)
    assert bomb.side == pose.side
    return {"side": pose.side}


PLAYERS = {
    "Wires": play_wires,
    "BigButton": play_big_button,
    "Keypad": play_keypad,
    "Simon": play_simon,
    "WhosOnFirst": play_whos_on_first,
    "Memory": play_memory,
    "Morse": play_morse,
    "Venn": play_venn,
    "WireSequence": play_wire_sequence,
    "Maze": play_maze,
    "Password": play_password,
}
NEEDY = {"NeedyVentGas": NeedyVentGas, "NeedyKnob": NeedyKnob, "NeedyCapacitor": NeedyCapacitor}


@pytest.mark.parametrize("vector_id", VECTOR_IDS)
def test_acceptance_1_vector(vectors, vector_id):
    vector = vectors[vector_id]
    module, expected = vector["module"], vector["expect"]
    edge = edgework(**vector.get("edgework", {}))
    if module == "Simon" and vector["kind"] == "solution":
        flashes = vector["instance"]["flashes"]
        found = {"press": [simon.button_for(flash, edge.has_vowel, vector["strikes"]) for flash in flashes]}
    elif module == "Clock":
        found = play_clock(vector)
    elif module == "Pose":
        found = play_pose(vector)
    elif vector["kind"] == "solution":
        found = SOLVERS[module](vector.get("instance"), edge)
    else:
        if module in NEEDY:
            bomb, found = play_needy(NEEDY[module](edge, run_stream()), vector, edge)
        else:
            bomb, found = PLAYERS[module](vector, edge)
        found |= {"strikes": len(bomb.strikes), "solved": bomb.modules[0].solved}
        assert bomb.solved == bomb.modules[0].solved
    assert {key: found[key] for key in expected} == expected
