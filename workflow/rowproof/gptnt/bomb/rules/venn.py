"""Complicated Wires: each wire is judged alone, by its colours, its star and its LED; white does not count."""

from collections.abc import Iterable

from rowproof.gptnt.bomb.edgework import Edgework

COLOURS = ("white", "red", "blue", "red, white", "blue, white", "red, blue")

# (has red, has blue, has star, LED is on) to a letter of CUT_WHEN.
LETTERS = {
    (0, 0, 0, 0): "C",
    (0, 0, 0, 1): "D",
    (0, 0, 1, 0): "C",
    (0, 0, 1, 1): "B",
    (0, 1, 0, 0): "S",
    (0, 1, 0, 1): "P",
    (0, 1, 1, 0): "D",
    (0, 1, 1, 1): "P",
    (1, 0, 0, 0): "S",
    (1, 0, 0, 1): "B",
    (1, 0, 1, 0): "C",
    (1, 0, 1, 1): "B",
    (1, 1, 0, 0): "S",
    (1, 1, 0, 1): "S",
    (1, 1, 1, 0): "P",
    (1, 1, 1, 1): "D",
}
CUT_WHEN = {
    "C": "always",
    "D": "never",
    "S": "the last digit of the serial number is even",
    "P": "the bomb has a parallel port",
    "B": "the bomb has two or more batteries",
}


def letters_to_cut(edgework: Edgework) -> set[str]:
    """The letters of :data:`CUT_WHEN` that mean "cut" on a bomb with this edgework."""
    holds = {
        "C": True,
        "S": not edgework.last_digit_odd,
        "P": edgework.has_parallel,
        "B": edgework.batteries >= 2,
    }
    return {letter for letter, cut in holds.items() if cut}


def must_cut(colour: str, led: bool, star: bool, edgework: Edgework) -> bool:
    """Whether a wire must be cut; ``colour`` is one of :data:`COLOURS`."""
    key = ("red" in colour, "blue" in colour, star, led)
    return LETTERS[key] in letters_to_cut(edgework)


def wires_to_cut(wires: Iterable[tuple[str, bool, bool]], edgework: Edgework) -> list[int]:
    """The numbers of the wires to cut, each given as colour, LED and star, from the left."""
    return [number for number, wire in enumerate(wires, start=1) if must_cut(*wire, edgework)]
