"""Memory: what to press depends on the display and on what was pressed in earlier stages."""

from collections.abc import Sequence

STAGES = 5

# Stage, then display, then an instruction:
#   position n     the button in position n from the left
#   label n        the button that shows n
#   position_of s  the position that was pressed in stage s
#   label_of s     the label that was pressed in stage s
INSTRUCTIONS = {
    1: {1: ("position", 2), 2: ("position", 2), 3: ("position", 3), 4: ("position", 4)},
    2: {1: ("label", 4), 2: ("position_of", 1), 3: ("position", 1), 4: ("position_of", 1)},
    3: {1: ("label_of", 2), 2: ("label_of", 1), 3: ("position", 3), 4: ("label", 4)},
    4: {1: ("position_of", 1), 2: ("position", 1), 3: ("position_of", 2), 4: ("position_of", 2)},
    5: {1: ("label_of", 1), 2: ("label_of", 2), 3: ("label_of", 4), 4: ("label_of", 3)},
}


def position_to_press(display: int, labels: Sequence[int], pressed: Sequence[tuple[int, int]]) -> int:
    """The position (1 to 4) to press in the stage after those in ``pressed``.

    Args:
        display: the large digit.
        labels: the digits of the four buttons from the left.
        pressed: position and label of the press in every stage so far.
    """
    kind, number = INSTRUCTIONS[len(pressed) + 1][display]
    if kind == "position":
        return number
    if kind == "position_of":
        return pressed[number - 1][0]
    label = number if kind == "label" else pressed[number - 1][1]
    return labels.index(label) + 1
