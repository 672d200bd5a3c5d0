"""The scripted Expert lives on messages and the manual alone."""

import ast
import subprocess
import sys

import pytest
from gptnt.players.workbench import MANUAL, heard, setup
from helpers import ROOT
from rowproof.gptnt.players.expert import reply
from rowproof.gptnt.players.phrases import hear, say
from rowproof.gptnt.players.scripted import Scripted

PLAYERS = ROOT / "workflow" / "rowproof" / "gptnt" / "players"
EDGES = 'Label: "893ZP6". Batteries: "1". Lit indicators: none. Ports: none.'


def answer(message):
    return reply(MANUAL, message).removeprefix("To message: none. ")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'I see: "horizontal wires between two strips". Wires from the top: "yellow", "blue", "white".',
            'Cut: "2".',
        ),
        (
            'I see: "big round button under a cover, strip at its right". Button: "blue", "Press". Strip: "dark". '
            f"{EDGES}",
            'Button: "hold".',
        ),
        (
            'I see: "big round button under a cover, strip at its right". Button: "blue", "Press". Strip: "yellow".',
            'Let go at: "5".',
        ),
        (
            'I see: "four square keys with strange symbols". Keys: "an outlined five-pointed star", '
            '"a curly letter like a fancy x or k with a tail swinging below the line", '
            '"a backwards rounded E with two dots above", '
            '"an upside-down question mark".',
            'Press: "bottom left", "top left", "top right", "bottom right".',
        ),
        (
            f'I see: "four coloured buttons in a diamond". Strikes: "1". {EDGES}',
            'Strikes: "1". Answer: "red by red", "blue by blue", "green by yellow", "yellow by green".',
        ),
        (
            'I see: "word display above six word buttons". Display: "". '
            'Buttons: "WAIT", "NO", "NOTHING", "RIGHT", "WHAT", "PRESS".',
            'Press: "WHAT".',
        ),
        (
            'I see: "digit display above four digit buttons". Display: "4". Buttons: "2", "4", "3", "1". '
            'Pressed: "position 2 digit 1", "position 2 digit 2", "position 3 digit 2".',
            'Press: "2".',
        ),
        (
            'I see: "blinking lamp above a frequency read-out". Signals: "...-", ".", "-.-.", "-", "---", ".-.".',
            'Send at: "3.595".',
        ),
        (
            'I see: "vertical wires with lamps above and fields below". '
            'Wires from the left: "white, lamp off, no star", '
            f'"blue, lamp off, star", "red and blue, lamp off, no star". {EDGES}',
            'Cut: "1", "3".',
        ),
        (
            'I see: "panel of wires from numbers to letters". '
            'Wires so far: "1 to A, blue", "2 to A, blue", "3 to C, blue".',
            'Cut: "2".',
        ),
        (
            'I see: "dark grid with two green circles". Circles: "row 2 column 5", "row 4 column 2". '
            'White square: "row 4 column 2". Red triangle: "row 1 column 5".',
            'Go: "up", "right", "up", "right", "up", "right".',
        ),
        ('I see: "five letters with arrows above and below". Column 1: "P", "C".', 'Turn column: "2".'),
        (
            'I see: "five letters with arrows above and below". Column 1: "P", "C". Column 2: "L". Column 4: "C", "X".',
            'Spell: "place".',
        ),
    ],
)
def test_it_answers_every_kind_of_module(message, expected):
    assert answer(message) == expected


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ('I see: "four coloured buttons in a diamond". Strikes: "0".', 'Look for: "label".'),
        (
            'I see: "big round button under a cover, strip at its right". Button: "red", "Detonate". Strip: "dark".',
            'Look for: "batteries", "indicators".',
        ),
        (
            'I see: "vertical wires with lamps above and fields below". '
            'Wires from the left: "blue, lamp on, star", "red, lamp off, no star".',
            'Look for: "label", "ports".',
        ),
    ],
)
def test_it_asks_for_the_narrow_sides_when_a_rule_needs_them(message, wanted):
    assert answer(message) == wanted


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Hello there",
        'I see: "a purple folder".',
        'I see: "horizontal wires between two strips".',
        'I see: "horizontal wires between two strips". Wires from the top: "yellow".',
        'I see: "four coloured buttons in a diamond". Strikes: "many". Label: "AB1CD2".',
        'I see: "dark grid with two green circles". Circles: "row 2". White square: "row 1". Red triangle: "row 3".',
        'I see: "five letters with arrows above and below". Column 1: "X".',
        'I see: "blinking lamp above a frequency read-out". Signals: "......".',
    ],
)
def test_it_asks_again_when_it_does_not_understand(message):
    assert answer(message) == "Say again: none."


def test_it_tells_which_message_it_answers():
    assert hear(reply(MANUAL, say([("Message", ["7"]), ("I see", ["a purple folder"])])))["To message"] == ["7"]


def test_it_answers_the_newest_message_and_is_silent_otherwise():
    expert = Scripted()
    expert.configure(setup("expert"))
    assert expert.turn(heard()).output["result"]["kind"] == "do_nothing"
    told = expert.turn(heard('Message: "1".', 'Message: "2".')).output["result"]["data"]["message"]
    assert hear(told)["To message"] == ["2"]


def test_without_the_manual_it_is_silent():
    expert = Scripted()
    expert.configure(setup("expert", manual=None))
    assert expert.turn(heard('Message: "1".')).output["result"]["kind"] == "do_nothing"


def test_the_expert_cannot_reach_the_bomb():
    code = (
        "import sys, rowproof.gptnt.players.expert\n"
        "print([name for name in sys.modules if name.startswith('rowproof.gptnt.bomb')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "workflow", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("expert", {"manual", "players.phrases"}),
        ("hands", {"players.phrases"}),
        ("defuser", {"players.hands", "players.phrases", "players.turns"}),
    ],
)
def test_neither_role_knows_what_belongs_to_the_other(name, allowed):
    tree = ast.parse((PLAYERS / f"{name}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {module.removeprefix("rowproof.gptnt.") for module in imported if module.startswith("rowproof")}
    assert own == allowed


def test_sentences_survive_the_way():
    sentences = [("I see", ["a, b"]), ("Keys", ["a letter. Or two", "YOU'RE", "WHAT?", ""]), ("Ports", [])]
    assert hear(say(sentences)) == {head: list(items) for head, items in sentences}
    assert hear("Nothing of the kind.") == {}
