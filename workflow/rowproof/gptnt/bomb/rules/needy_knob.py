"""Knobs: twelve lamps tell where the knob must point when its time is up, relative to the word UP beside it."""

from typing import NamedTuple

# Clockwise, as a knob turns.
DIRECTIONS = ("up", "right", "down", "left")


class Pattern(NamedTuple):
    """Lamps (``X`` is lit) and the position that they ask for."""

    position: str
    upper: str
    lower: str


PATTERNS = (
    Pattern("up", "..X.XX", "XXXX.X"),
    Pattern("up", "X.X.X.", ".XX.XX"),
    Pattern("down", ".XX..X", "XXXX.X"),
    Pattern("down", "X.X.X.", ".X...X"),
    Pattern("left", "....X.", "X..XXX"),
    Pattern("left", "....X.", "...XX."),
    Pattern("right", "X.XXXX", "XXX.X."),
    Pattern("right", "X.XX..", "XXX.X."),
)


def position_for(upper: str, lower: str) -> str:
    """The position relative to the word UP for the lamps of both rows.

    Raises:
        ValueError: the lamps are none of the eight patterns.
    """
    for pattern in PATTERNS:
        if (pattern.upper, pattern.lower) == (upper, lower):
            return pattern.position
    raise ValueError(f"the lamps must be one of eight patterns, found {upper} over {lower}")


def direction_for(position: str, up_label_points: str) -> str:
    """The direction on the bomb's face of a position relative to the word UP, which may itself be turned."""
    turns = DIRECTIONS.index(position) + DIRECTIONS.index(up_label_points)
    return DIRECTIONS[turns % len(DIRECTIONS)]
