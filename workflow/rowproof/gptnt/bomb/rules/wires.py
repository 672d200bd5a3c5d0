"""Wires: exactly one of three to six wires must be cut."""

from collections.abc import Sequence

COLOURS = ("black", "blue", "red", "white", "yellow")


def wire_to_cut(colours: Sequence[str], last_digit_odd: bool) -> int:
    """The number of the wire to cut.

    Args:
        colours: of the wires from the top, empty rows left out, cut or not.
        last_digit_odd: whether the serial number ends in an odd digit.

    Raises:
        ValueError: there are not three to six wires.
    """
    wires = list(colours)
    count, last = len(wires), wires[-1] if wires else ""
    if count == 3:
        if "red" not in wires:
            return 2
        if last == "white":
            return 3
        return _last(wires, "blue") if wires.count("blue") > 1 else 3
    if count == 4:
        if wires.count("red") > 1 and last_digit_odd:
            return _last(wires, "red")
        if (last == "yellow" and "red" not in wires) or wires.count("blue") == 1:
            return 1
        return 4 if wires.count("yellow") > 1 else 2
    if count == 5:
        if last == "black" and last_digit_odd:
            return 4
        if wires.count("red") == 1 and wires.count("yellow") > 1:
            return 1
        return 2 if "black" not in wires else 1
    if count == 6:
        if "yellow" not in wires and last_digit_odd:
            return 3
        if wires.count("yellow") == 1 and wires.count("white") > 1:
            return 4
        return 6 if "red" not in wires else 4
    raise ValueError(f"there must be three to six wires, found {count}")


def _last(wires: list[str], colour: str) -> int:
    return len(wires) - wires[::-1].index(colour)
