"""Wire Sequences: whether a wire is cut depends on its letter and on how many of its colour came before it."""

from collections.abc import Iterable

COLOURS = ("red", "blue", "black")
LETTERS = "ABC"
PANELS = 4
TERMINALS_PER_PANEL = 3

# Colour, then occurrence (from 1) over the whole module, to the letters for which the wire is cut.
LETTERS_TO_CUT = {
    "red": ("C", "B", "A", "AC", "B", "AC", "ABC", "AB", "B"),
    "blue": ("B", "AC", "B", "A", "B", "BC", "C", "AC", "A"),
    "black": ("ABC", "AC", "B", "AC", "B", "BC", "AB", "C", "C"),
}


def panel_of(terminal: int) -> int:
    """The panel (1 to 4) of a left terminal (1 to 12)."""
    return (terminal - 1) // TERMINALS_PER_PANEL + 1


def terminals_to_cut(wires: Iterable[tuple[int, str, str]]) -> set[int]:
    """The left terminals of the wires to cut.

    Args:
        wires: left terminal (1 to 12), colour and letter of all wires of the module, in the order of the terminals.
    """
    seen = dict.fromkeys(COLOURS, 0)
    cut = set()
    for terminal, colour, letter in wires:
        if letter in LETTERS_TO_CUT[colour][seen[colour]]:
            cut.add(terminal)
        seen[colour] += 1
    return cut
