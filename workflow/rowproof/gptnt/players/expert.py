"""An Expert that knows the manual and hears about the bomb in messages: it never sees it."""

import re
from collections.abc import Callable

from rowproof.gptnt.manual import Edges, EdgesNeeded, Manual
from rowproof.gptnt.players.phrases import Sentence, hear, say

Facts = dict[str, list[str]]

_PLACES = ("top left", "top right", "middle left", "middle right", "bottom left", "bottom right")
_KEYS = ("top left", "top right", "bottom left", "bottom right")
_NUMBER = re.compile(r"\d+")


def reply(manual: Manual, message: str) -> str:
    """The answer to one message of the Defuser: an instruction, a question, or the wish to hear it again.

    A message says all that is needed, so that nothing depends on those that came before.
    """
    facts = hear(message)
    try:
        page = manual.page_for(_one(facts, "I see"))
        answer = _ANSWERS[page.number](manual, facts, _edges(facts))
    except EdgesNeeded as needed:
        answer = [("Look for", needed.wanted)]
    except (LookupError, ValueError):
        answer = [("Say again", ())]
    return say([("To message", facts.get("Message", ())), *answer])


def _one(facts: Facts, head: str) -> str:
    (item,) = facts[head]
    return item


def _edges(facts: Facts) -> Edges:
    indicators, ports = facts.get("Lit indicators"), facts.get("Ports")
    return Edges(
        label=_one(facts, "Label") if "Label" in facts else None,
        batteries=int(_one(facts, "Batteries")) if "Batteries" in facts else None,
        indicators=None if indicators is None else frozenset(indicators),
        ports=None if ports is None else frozenset(ports),
    )


def _cell(text: str) -> tuple[int, int]:
    row, column = map(int, _NUMBER.findall(text))
    return row, column


def _wires(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    return [("Cut", [str(manual.wire_to_cut(facts["Wires from the top"], edges))])]


def _button(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    strip = _one(facts, "Strip")
    if strip != "dark":
        return [("Let go at", [manual.release_digit(strip)])]
    colour, word = facts["Button"]
    return [("Button", [manual.button_action(colour, word, edges)])]


def _keypad(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    return [("Press", [_KEYS[key] for key in manual.key_order(facts["Keys"])])]


def _simon(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    strikes = _one(facts, "Strikes")
    buttons = manual.simon_buttons(int(strikes), edges)
    return [("Strikes", [strikes]), ("Answer", [f"{flash} by {button}" for flash, button in buttons.items()])]


def _whos_on_first(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    words = dict(zip(_PLACES, facts["Buttons"], strict=True))
    return [("Press", [manual.word_to_press(_one(facts, "Display"), words)])]


def _memory(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    pressed = [tuple(_NUMBER.findall(press)) for press in facts["Pressed"]]
    history = [(int(position), digit) for position, digit in pressed]
    return [("Press", [str(manual.memory_position(_one(facts, "Display"), facts["Buttons"], history))])]


def _morse(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    return [("Send at", [manual.frequency(facts["Signals"])])]


def _complicated_wires(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    wires = []
    for wire in facts["Wires from the left"]:
        colours, lamp, star = wire.split(", ")
        wires.append((colours.split(" and "), lamp == "lamp on", star == "star"))
    return [("Cut", [str(number) for number in manual.complicated_wires_to_cut(wires, edges)])]


def _wire_sequence(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    wires = []
    for wire in facts["Wires so far"]:
        way, colour = wire.split(", ")
        number, letter = way.split(" to ")
        wires.append((number, colour, letter))
    cut = manual.sequence_wires_to_cut([(colour, letter) for _, colour, letter in wires])
    return [("Cut", [number for (number, _, _), this in zip(wires, cut, strict=True) if this])]


def _maze(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    circle, start, goal = (_cell(facts[head][0]) for head in ("Circles", "White square", "Red triangle"))
    return [("Go", manual.maze_way(circle, start, goal))]


def _password(manual: Manual, facts: Facts, edges: Edges) -> list[Sentence]:
    columns = [facts.get(f"Column {number}") for number in range(1, 6)]
    words = manual.words_possible(columns)
    if not words:
        raise ValueError("some word must be possible, found none")
    if len(words) == 1:
        return [("Spell", words)]
    return [("Turn column", [str(1 + columns.index(None))])]


_ANSWERS: dict[int, Callable[[Manual, Facts, Edges], list[Sentence]]] = {
    5: _wires,
    6: _button,
    7: _keypad,
    8: _simon,
    9: _whos_on_first,
    11: _memory,
    12: _morse,
    13: _complicated_wires,
    14: _wire_sequence,
    15: _maze,
    16: _password,
}
