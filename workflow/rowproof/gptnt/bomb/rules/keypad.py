"""Keypads: four symbols lie in one column of six; their order there is the order of the presses."""

from collections.abc import Mapping
from typing import NamedTuple

# Reading order of the keys: top left, top right, bottom left, bottom right.
POSITIONS = ("TL", "TR", "BL", "BR")


class Symbol(NamedTuple):
    """A drawn symbol: a character like it, and its look in words."""

    glyph: str
    looks: str


# The names are ids only: some do not fit the drawing, and none is ever shown to a player.
SYMBOLS = {
    "archaic-koppa": Symbol("Ϙ", "a ring with a short stem straight down from its lowest point"),
    "little-yus": Symbol("Ѧ", "a capital A whose crossbar grows a third leg down the middle"),
    "lambda-bar": Symbol("ƛ", "a slanted lambda with a flicked foot and a short stroke through its upper arm"),
    "qoppa": Symbol("Ϟ", "a zigzag like a lightning bolt with a small hook at the top"),
    "ligature-iotated-e": Symbol("Ѭ", "an upright bar joined by a crossbar to a three-legged triangle on a flat top"),
    "kai": Symbol("ϗ", "a curly letter like a fancy x or k with a tail swinging below the line"),
    "reversed-lunate-epsilon": Symbol("Ͽ", "a backwards C with a dot in the middle"),
    "e-with-diaeresis": Symbol("Ӭ", "a backwards rounded E with two dots above"),
    "qa": Symbol("Ҩ", "two interlocked loops like a cursive capital O with an entry hook"),
    "hollow-star": Symbol("☆", "an outlined five-pointed star"),
    "inverted-question": Symbol("¿", "an upside-down question mark"),
    "copyright": Symbol("©", "a small c inside a circle"),
    "ot": Symbol("Ѽ", "a wide rounded W with an arc and a comma floating above its centre"),
    "zh": Symbol("Җ", "two letters K back to back sharing one stem, with a small tail at the lower right"),
    "ha-with-descender": Symbol("Ԇ", "the upper part of a 3 running into a long leg with a small tail"),
    "lunate-sampi": Symbol("б", "a digit 6 with a flattened, bent top"),
    "pilcrow": Symbol("¶", "a paragraph sign, a filled backwards P with a double stem"),
    "yat": Symbol("Ѣ", "a lower-case b with a crossbar near the top of its stem"),
    "pashto-teh": Symbol("ټ", "a smile with two dots above it and a little ring below"),
    "psi": Symbol("Ψ", "a trident"),
    "lunate-epsilon": Symbol("Ͼ", "a C with a dot in the middle"),
    "ksi": Symbol("Ѯ", "a 3 with two little horns on top and a curled tail"),
    "star": Symbol("★", "a solid five-pointed star"),
    "titlo": Symbol("҂", "a slanted stroke crossed by two bars, like a piece of railway track"),
    "ae": Symbol("æ", "the letters a and e joined together"),
    "short-i": Symbol("Ҋ", "a mirrored capital N with a bowl-shaped mark above and a small tail at the lower right"),
    "omega": Symbol("Ω", "a horseshoe standing on two feet"),
}

# Column number to its symbols from top to bottom.
COLUMNS = {
    1: ("archaic-koppa", "little-yus", "lambda-bar", "qoppa", "ligature-iotated-e", "kai", "reversed-lunate-epsilon"),
    2: (
        "e-with-diaeresis",
        "archaic-koppa",
        "reversed-lunate-epsilon",
        "qa",
        "hollow-star",
        "kai",
        "inverted-question",
    ),
    3: ("copyright", "ot", "qa", "zh", "ha-with-descender", "lambda-bar", "hollow-star"),
    4: ("lunate-sampi", "pilcrow", "yat", "ligature-iotated-e", "zh", "inverted-question", "pashto-teh"),
    5: ("psi", "pashto-teh", "yat", "lunate-epsilon", "pilcrow", "ksi", "star"),
    6: ("lunate-sampi", "e-with-diaeresis", "titlo", "ae", "psi", "short-i", "omega"),
}


def column_of(symbols: Mapping[str, str]) -> int:
    """The number of the only column that holds all four ``symbols`` (position to symbol name).

    Two columns share at most three symbols, so there is never a second one.

    Raises:
        ValueError: no column holds them all.
    """
    wanted = set(symbols.values())
    for number, column in COLUMNS.items():
        if wanted <= set(column):
            return number
    raise ValueError(f"four symbols must share a column, found {sorted(wanted)}")


def press_order(symbols: Mapping[str, str]) -> list[str]:
    """The positions in the order in which they must be pressed; see :func:`column_of`."""
    column = COLUMNS[column_of(symbols)]
    return sorted(symbols, key=lambda position: column.index(symbols[position]))
