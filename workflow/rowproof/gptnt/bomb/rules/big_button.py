"""The Button: tap it, or hold it and let go while the timer shows the digit of the strip's colour."""

from rowproof.gptnt.bomb.edgework import Edgework

# A black button is known to the benchmark's schema, yet no bomb has one.
COLOURS = ("red", "blue", "yellow", "white")
LABELS = ("Abort", "Detonate", "Hold", "Press")
STRIP_COLOURS = ("red", "blue", "yellow", "white")


def matching_rule(colour: str, label: str, edgework: Edgework) -> tuple[int, str]:
    """The number of the first rule that matches, and whether it asks for a ``tap`` or a ``hold``."""
    if colour == "blue" and label == "Abort":
        return 1, "hold"
    if edgework.batteries > 1 and label == "Detonate":
        return 2, "tap"
    if colour == "white" and edgework.is_lit("CAR"):
        return 3, "hold"
    if edgework.batteries > 2 and edgework.is_lit("FRK"):
        return 4, "tap"
    if colour == "yellow":
        return 5, "hold"
    if colour == "red" and label == "Hold":
        return 6, "tap"
    return 7, "hold"


def release_digit(strip_colour: str) -> str:
    """The digit that must stand anywhere in the timer's display when a button that must be held is let go."""
    return {"blue": "4", "white": "1", "yellow": "5"}.get(strip_colour, "1")
