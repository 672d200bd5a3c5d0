"""Questions about one module and their answers, from what shows of it or from its rules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rowproof.gptnt.bomb.bomb import Bomb
from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import PLACES
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import (
    big_button,
    keypad,
    maze,
    memory,
    morse,
    password,
    simon,
    venn,
    whos_on_first,
    wire_sequence,
    wires,
)

View = Mapping[str, Any]

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
YES_NO = ("yes", "no")
# Words for an empty display.
EMPTY = "(empty)"
STEP_NAMES = {"U": "up", "L": "left", "R": "right", "D": "down"}


class Question(NamedTuple):
    """A question about a module.

    Attributes:
        text: of the question.
        answer: the right option.
        others: wrong options, all of which differ from the answer.
        kind: what is asked for; the category ``question_type``.
        open_answer: the truth where no options are given; None for :attr:`answer`.
    """

    text: str
    answer: str
    others: tuple[str, ...]
    kind: str
    open_answer: str | None = None


def ask(text: str, answer: Any, options: Sequence[Any], kind: str, open_answer: str | None = None) -> Question:
    """A question whose wrong options are those of ``options`` that are not the answer."""
    others = dict.fromkeys(str(option) for option in options if str(option) != str(answer))
    return Question(text, str(answer), tuple(others), kind, open_answer)


# ---- what shows ------------------------------------------------------------------------------------------------


def _seen_wires(view: View) -> list[Question]:
    shown = view["wires"]
    found = [
        ask("How many wires are between the two strips?", len(shown), (3, 4, 5, 6), "count"),
        ask("How many of the wires are cut?", sum(w["cut"] for w in shown), (0, 1, 2, 3), "count"),
    ]
    for ordinal, wire in zip(ORDINALS, shown, strict=False):
        text = f"Which colour has the {ordinal} wire from the top? Empty rows do not count."
        found.append(ask(text, wire["colour"], wires.COLOURS, "colour"))
    return found


def _seen_button(view: View) -> list[Question]:
    words = [label.lower() for label in big_button.LABELS]
    strips = ("dark", *big_button.STRIP_COLOURS)
    return [
        ask("Which colour has the big button?", view["button_colour"], big_button.COLOURS, "colour"),
        ask("Which word is on the big button?", view["button_text"].lower(), words, "text"),
        ask("Which colour has the strip beside the button, or is it dark?", view["strip"], strips, "colour"),
    ]


def _seen_keypad(view: View) -> list[Question]:
    by_looks = {symbol.looks: name for name, symbol in keypad.SYMBOLS.items()}
    green = sum(key["light"] == "green" for key in view["keys"])
    found = [ask("How many keys have a green light?", green, (0, 1, 2, 3, 4), "count")]
    for key in view["keys"]:
        text = f"Which symbol is on the key at the {key['place']}?"
        found.append(ask(text, key["symbol"], tuple(by_looks), "symbol", by_looks[key["symbol"]]))
    return found


def _seen_simon(view: View) -> list[Question]:
    names = {colour[0].upper(): colour for colour in simon.COLOURS}
    lit = names.get(view["flashes"][-1], "none")
    found = [ask("Which of the coloured buttons is lit now?", lit, (*simon.COLOURS, "none"), "light")]
    for place, colour in view["buttons"].items():
        found.append(ask(f"Which colour has the button at the {place}?", colour, simon.COLOURS, "colour"))
    return found


def _seen_whos_on_first(view: View) -> list[Question]:
    displays = [display or EMPTY for display in whos_on_first.READ_AT]
    found = [
        ask(
            f"Which word is in the display? Write {EMPTY} if there is none.",
            view["display"] or EMPTY,
            displays,
            "text",
        ),
        ask("How many stage lights are on?", view["lights"], (0, 1, 2, 3), "count"),
    ]
    for position, word in zip(whos_on_first.POSITIONS, view["buttons"], strict=True):
        found.append(ask(f"Which word is on the button at the {PLACES[position]}?", word, view["buttons"], "text"))
    return found


def _seen_memory(view: View) -> list[Question]:
    found = [
        ask("Which digit is in the large display?", view["display"], (1, 2, 3, 4), "text"),
        ask("How many stage lights are on?", view["lights"], (0, 1, 2, 3, 4, 5), "count"),
    ]
    for ordinal, digit in zip(ORDINALS, view["buttons"], strict=False):
        found.append(ask(f"Which digit is on the {ordinal} button from the left?", digit, (1, 2, 3, 4), "text"))
    return found


def _seen_morse(view: View) -> list[Question]:
    frequencies = [f"3.{khz % 1000} MHz" for khz in morse.FREQUENCIES_KHZ.values()]
    lit = "yes" if view["lamp"][-1] == "#" else "no"
    return [
        ask("Is the lamp lit?", lit, YES_NO, "light"),
        ask("Which frequency does the read-out show?", f"{view['frequency']} MHz", frequencies, "text"),
    ]


def _colours(colours: Sequence[str]) -> str:
    return " and ".join(sorted(colours))


def _seen_venn(view: View) -> list[Question]:
    shown = view["wires"]
    options = [_colours(colours.split(", ")) for colours in venn.COLOURS]
    found = [
        ask("How many wires are there?", len(shown), (3, 4, 5, 6), "count"),
        ask("How many of the wires are cut?", sum(w["cut"] for w in shown), (0, 1, 2, 3, 4, 5, 6), "count"),
        ask("How many lamps above the wires are lit?", sum(w["lamp"] == "on" for w in shown), range(7), "count"),
    ]
    for ordinal, wire in zip(ORDINALS, shown, strict=False):
        which = f"the {ordinal} wire from the left"
        star = "yes" if wire["star"] else "no"
        found.append(ask(f"Is there a star below {which}?", star, YES_NO, "star"))
        lit = "yes" if wire["lamp"] == "on" else "no"
        found.append(ask(f"Is the lamp above {which} lit?", lit, YES_NO, "light"))
        text = f"Which colours has {which}? Name them in alphabetical order, joined by 'and'."
        found.append(ask(text, _colours(wire["colours"]), options, "colour"))
    return found


def _seen_wire_sequence(view: View) -> list[Question]:
    found = [ask("How many panel lights are on?", view["lights"], range(5), "count")]
    found.append(ask("How many wires does the panel hold?", len(view["wires"]), range(4), "count"))
    for wire in view["wires"]:
        found.append(
            ask(f"At which letter does the wire from number {wire['from']} end?", wire["to"], "ABC", "connection")
        )
        text = f"Which colour has the wire from number {wire['from']}?"
        found.append(ask(text, wire["colour"], wire_sequence.COLOURS, "colour"))
    return found


def _cell(cell: Sequence[int]) -> str:
    return f"row {cell[0]} column {cell[1]}"


_CELLS = [(row, column) for row in range(1, maze.SIZE + 1) for column in range(1, maze.SIZE + 1)]


def _seen_maze(view: View) -> list[Question]:
    cells = [_cell(cell) for cell in _CELLS]
    hint = "Rows and columns count from the upper left, from 1: write 'row 1 column 1'."
    upper = min(map(tuple, view["circles"]))
    return [
        ask(f"Where is the white square? {hint}", _cell(view["white_square"]), cells, "position"),
        ask(f"Where is the red triangle? {hint}", _cell(view["red_triangle"]), cells, "position"),
        ask(
            f"Where is the upper one of the green circles (the left one if level)? {hint}",
            _cell(upper),
            cells,
            "position",
        ),
    ]


def _seen_password(view: View) -> list[Question]:
    letters = view["letters"]
    swapped = [letters[:i] + letters[i + 1] + letters[i] + letters[i + 2 :] for i in range(4)]
    found = [ask("Which five letters are in the display?", letters, [letters[::-1], *swapped], "text")]
    for ordinal, letter in zip(ORDINALS, letters, strict=False):
        others = [chr(65 + (ord(letter) - 65 + shift) % 26) for shift in (1, 5, 11, 17)]
        found.append(ask(f"Which letter is the {ordinal} one from the left?", letter, others, "text"))
    return found


VISIBLE: dict[str, Callable[[View], list[Question]]] = {
    "BigButton": _seen_button,
    "Keypad": _seen_keypad,
    "Maze": _seen_maze,
    "Memory": _seen_memory,
    "Morse": _seen_morse,
    "Password": _seen_password,
    "Simon": _seen_simon,
    "Venn": _seen_venn,
    "WhosOnFirst": _seen_whos_on_first,
    "WireSequence": _seen_wire_sequence,
    "Wires": _seen_wires,
}


# ---- what the rules ask for ------------------------------------------------------------------------------------


def _edges(edges: Edgework) -> str:
    lit = " and ".join(label for label in ("CAR", "FRK") if edges.is_lit(label)) or "neither CAR nor FRK"
    return (
        f"The label of the bomb reads {edges.serial}. Batteries: {edges.batteries}. Parallel port: "
        f"{'yes' if edges.has_parallel else 'no'}. Of the indicators {lit} is lit."
    )


def _rule_wires(module: Any, bomb: Bomb, draws: Stream) -> Question:
    answer = wires.wire_to_cut(module.colours, bomb.edgework.last_digit_odd)
    text = f"A module has these wires from the top: {', '.join(module.colours)}. Which wire must be cut?"
    return ask(
        text, f"the {ORDINALS[answer - 1]} wire", [f"the {o} wire" for o in ORDINALS[: len(module.colours)]], "rule"
    )


def _rule_button(module: Any, bomb: Bomb, draws: Stream) -> Question:
    if draws.chance(1, 3):
        strip = draws.pick(big_button.STRIP_COLOURS)
        digit = big_button.release_digit(strip)
        text = f"A big button is held down and the strip beside it is {strip}. At which digit must it be let go?"
        return ask(text, digit, "1457", "rule")
    _, action = big_button.matching_rule(module.colour, module.label, bomb.edgework)
    text = f"A module is a {module.colour} button that reads {module.label}. Must it be tapped or held?"
    return ask(text, action, ("tap", "hold"), "rule")


def _rule_keypad(module: Any, bomb: Bomb, draws: Stream) -> Question:
    looks = [keypad.SYMBOLS[symbol].looks for symbol in module.symbols]
    order = keypad.press_order(dict(zip(keypad.POSITIONS, module.symbols, strict=True)))
    which = draws.below(len(order))
    keys = [PLACES[position] for position in keypad.POSITIONS]
    shown = "; ".join(f"{place}: {look}" for place, look in zip(keys, looks, strict=True))
    text = f"Four keys show these symbols. {shown}. Which key must be pressed as the {ORDINALS[which]} one?"
    return ask(text, PLACES[order[which]], keys, "rule")


def _rule_simon(module: Any, bomb: Bomb, draws: Stream) -> Question:
    strikes, flash = draws.below(3), draws.pick(simon.COLOURS)
    text = f"Of four coloured buttons the {flash} one flashes. The bomb has {strikes} strikes. Which button answers it?"
    return ask(text, simon.button_for(flash, bomb.edgework.has_vowel, strikes), simon.COLOURS, "rule")


def _rule_whos_on_first(module: Any, bomb: Bomb, draws: Stream) -> Question:
    words = ", ".join(
        f"{PLACES[position]} {word}" for position, word in zip(whos_on_first.POSITIONS, module.labels, strict=True)
    )
    text = f"The display reads {module.display or EMPTY}, the six buttons read: {words}. Which word must be pressed?"
    return ask(text, whos_on_first.label_to_press(module.display, module.labels), module.labels, "rule")


def _rule_memory(module: Any, bomb: Bomb, draws: Stream) -> Question:
    before = "; ".join(
        f"in stage {stage} position {position}, which showed {digit}"
        for stage, (position, digit) in enumerate(module.pressed, start=1)
    )
    shown = ", ".join(map(str, module.labels))
    text = (
        f"Stage {len(module.pressed) + 1}: the large digit is {module.display}, the buttons show {shown} from the "
        f"left. Pressed before: {before or 'nothing'}. Which position must be pressed now?"
    )
    return ask(text, memory.position_to_press(module.display, module.labels, module.pressed), "1234", "rule")


def _rule_morse(module: Any, bomb: Bomb, draws: Stream) -> Question:
    signals = " ".join(morse.ALPHABET[letter.upper()] for letter in module.word)
    frequencies = [f"3.{khz % 1000} MHz" for khz in morse.FREQUENCIES_KHZ.values()]
    answer = f"3.{morse.FREQUENCIES_KHZ[module.word] % 1000} MHz"
    return ask(f"A lamp blinks these signals: {signals}. Which frequency must be set?", answer, frequencies, "rule")


def _rule_venn(module: Any, bomb: Bomb, draws: Stream) -> Question:
    wire = draws.pick(module.wires)
    lamp, star = "lit" if wire.led else "dark", "a star" if wire.star else "no star"
    text = (
        f"A vertical wire has these colours: {_colours(wire.colour.split(', '))}. The lamp above it is {lamp}, and "
        f"there is {star} below it. Must it be cut?"
    )
    cut = venn.must_cut(wire.colour, wire.led, wire.star, bomb.edgework)
    return ask(text, "yes" if cut else "no", YES_NO, "rule")


def _rule_wire_sequence(module: Any, bomb: Bomb, draws: Stream) -> Question:
    count = 1 + draws.below(len(module.wires))
    seen = module.wires[:count]
    listed = "; ".join(f"{wire.colour} to {wire.letter}" for wire in seen)
    cut = seen[-1].terminal in wire_sequence.terminals_to_cut(module.wires)
    text = f"Wires run from numbers to letters. So far there were, in order: {listed}. Must the last one be cut?"
    return ask(text, "yes" if cut else "no", YES_NO, "rule")


def _rule_maze(module: Any, bomb: Bomb, draws: Stream) -> Question:
    circles = [_cell((row + 1, column + 1)) for row, column in maze.MAZES[module.number].circles]
    square, goal = (_cell((row + 1, column + 1)) for row, column in (module.position, module.goal))
    text = (
        f"A grid has green circles at {circles[0]} and {circles[1]}, a white square at {square} and a red triangle at "
        f"{goal}. What is the first step of the square on the shortest way to the triangle?"
    )
    step = maze.path(module.number, module.position, module.goal)[0]
    return ask(text, STEP_NAMES[step], tuple(STEP_NAMES.values()), "rule")


def _rule_password(module: Any, bomb: Bomb, draws: Stream) -> Question:
    columns = "; ".join(f"{o}: {' '.join(column)}" for o, column in zip(ORDINALS, module.columns, strict=False))
    (word,) = password.words_possible(module.columns)
    text = f"Five columns can show these letters. {columns}. Which word must be set?"
    return ask(text, word, password.WORDS, "rule")


RULES: dict[str, Callable[[Any, Bomb, Stream], Question]] = {
    "BigButton": _rule_button,
    "Keypad": _rule_keypad,
    "Maze": _rule_maze,
    "Memory": _rule_memory,
    "Morse": _rule_morse,
    "Password": _rule_password,
    "Simon": _rule_simon,
    "Venn": _rule_venn,
    "WhosOnFirst": _rule_whos_on_first,
    "WireSequence": _rule_wire_sequence,
    "Wires": _rule_wires,
}


def rule_question(module: Any, bomb: Bomb, draws: Stream) -> Question:
    """A question that the rules of a module answer, with all that they may need to know of the bomb."""
    question = RULES[module.component](module, bomb, draws)
    return question._replace(text=f"{question.text} {_edges(bomb.edgework)}")


# ---- changes ---------------------------------------------------------------------------------------------------

NOTHING = "nothing"
CHANGES: dict[str, Callable[[View, View], bool]] = {
    "a wire was cut": lambda a, b: (
        sum(w["cut"] for w in a.get("wires", ())) < sum(w["cut"] for w in b.get("wires", ()))
        and a.get("panel") == b.get("panel")
    ),
    "another panel with other wires came up": lambda a, b: a.get("panel") != b.get("panel"),
    "the strip beside the button lit up": lambda a, b: a.get("strip") == "dark" and b["strip"] != "dark",
    "a key got a green light": lambda a, b: _green(a) < _green(b),
    "the display and the buttons show something else": lambda a, b: (
        a.get("display") != b.get("display") or ("display" in a and a["buttons"] != b["buttons"])
    ),
    "the read-out shows another frequency": lambda a, b: a.get("frequency") != b.get("frequency"),
    "the white square moved": lambda a, b: a.get("white_square") != b.get("white_square"),
    "one of the letters changed": lambda a, b: a.get("letters") != b.get("letters"),
    "the status light turned red": lambda a, b: a["led"] != "red" and b["led"] == "red",
    "the status light turned green": lambda a, b: a["led"] != "green" and b["led"] == "green",
}


def _green(view: View) -> int:
    return sum(key["light"] == "green" for key in view.get("keys", ()))


def change_question(before: View, after: View) -> Question | None:
    """What changed between two views of a module; None if none of :data:`CHANGES` tells.

    Of several changes one is asked for, and the others are no options.
    """
    changes = [name for name, holds in CHANGES.items() if holds(before, after)]
    if not changes and before != after:
        return None
    answer = changes[0] if changes else NOTHING
    options = [name for name in (NOTHING, *CHANGES) if name not in changes]
    return ask("What changed from the first picture to the second one?", answer, options, "change")


# ---- elements --------------------------------------------------------------------------------------------------


def _names_of_elements(component: str, view: View) -> list[list[str]]:
    """Descriptions of each element, in the order of the marks."""
    if component == "Wires":
        return [
            [f"{wire['colour']} wire", f"{ordinal} wire from the top"]
            for ordinal, wire in zip(ORDINALS, view["wires"], strict=False)
        ]
    if component == "BigButton":
        return [[f"{view['button_colour']} button", "big round button"]]
    if component == "Keypad":
        return [[f"key that shows {key['symbol']}", f"key at the {key['place']}"] for key in view["keys"]]
    if component == "Simon":
        return [[f"{colour} button", f"button at the {place}"] for place, colour in view["buttons"].items()]
    if component == "WhosOnFirst":
        return [[f"button that reads {word}"] for word in view["buttons"]]
    if component == "Memory":
        return [
            [f"button that shows {digit}", f"{ordinal} button from the left"]
            for ordinal, digit in zip(ORDINALS, view["buttons"], strict=False)
        ]
    if component == "Morse":
        return [["left arrow"], ["right arrow"], ["TX button"]]
    if component == "Venn":
        return [
            [f"wire in {_colours(wire['colours'])}", f"{ordinal} wire from the left"]
            for ordinal, wire in zip(ORDINALS, view["wires"], strict=False)
        ]
    if component == "WireSequence":
        shown = [[f"{wire['colour']} wire", f"wire from number {wire['from']}"] for wire in view["wires"]]
        return [["button above the wires"], *shown, ["button below the wires"]]
    if component == "Maze":
        return [[f"{arrow} arrow"] for arrow in ("up", "left", "right", "down")]
    arrows = [[f"arrow {side} the {o} letter"] for side in ("above", "below") for o in ORDINALS[:5]]
    return [*arrows, ["submit button"]]


# A description that fits several elements of a module.
VAGUE = {
    "Keypad": "key with a symbol",
    "Maze": "arrow",
    "Memory": "button with a digit",
    "Morse": "arrow",
    "Password": "arrow above a letter",
    "Simon": "coloured button",
    "Venn": "wire",
    "WhosOnFirst": "button with a word",
    "Wires": "wire",
}
# One that fits no element of any module.
ABSENT = ("purple wire", "round lever", "button that reads HELP", "key that shows a snowflake", "diagonal arrow")


class Target(NamedTuple):
    """What is to be clicked on.

    Attributes:
        text: the description.
        index: of the element among the marks; None if the description fits several, or none.
        trick: ``type_a`` (fits several), ``type_b`` (fits none), or empty.
    """

    text: str
    index: int | None
    trick: str = ""


def targets(component: str, view: View) -> list[Target]:
    """Descriptions of the elements of a module: those that fit one, then those that fit several, then those of none."""
    names = _names_of_elements(component, view)
    every = [name for element in names for name in element]
    one = [Target(name, index) for index, element in enumerate(names) for name in element if every.count(name) == 1]
    several = [Target(name, None, "type_a") for name in dict.fromkeys(every) if every.count(name) > 1]
    if component in VAGUE:
        several.append(Target(VAGUE[component], None, "type_a"))
    return one + several + [Target(name, None, "type_b") for name in ABSENT]
