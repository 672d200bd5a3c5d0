"""Mazes: two circles tell which of nine mazes it is; its walls cannot be seen.

Every maze is a spanning tree of a 6 x 6 grid, so there is exactly one way without detours.
"""

from typing import NamedTuple

SIZE = 6

Cell = tuple[int, int]


class Maze(NamedTuple):
    """One maze; cells are (row, column), counted from 0 at the upper left.

    Attributes:
        circles: the two marked cells.
        right: per row five characters: ``|`` is a wall to the right of that cell.
        below: per row but the last six characters: ``-`` is a wall below that cell.
    """

    circles: tuple[Cell, Cell]
    right: tuple[str, ...]
    below: tuple[str, ...]


MAZES = {
    1: Maze(
        ((1, 0), (2, 5)),
        ("..|..", "|.|..", "|.|..", "|..|.", "..|.|", ".|.|."),
        (".-..--", "..---.", ".-..-.", ".----.", ".-..-."),
    ),
    2: Maze(
        ((1, 4), (3, 1)),
        ("..|..", ".|.|.", "|.|..", ".|.||", "|||.|", "|.|.."),
        ("-.-..-", ".-.--.", "..-.-.", ".-.-..", "....-."),
    ),
    3: Maze(
        ((3, 3), (3, 5)),
        ("..||.", "|||.|", ".||.|", "|||||", "|.|||", "...|."),
        (".-....", "-..--.", "......", "......", ".--..."),
    ),
    4: Maze(
        ((0, 0), (3, 0)),
        (".|...", "||...", "|.|.|", "|....", "....|", "..|.|"),
        ("..---.", "...--.", ".--.-.", ".----.", ".---.."),
    ),
    5: Maze(
        ((2, 4), (5, 3)),
        (".....", "....|", ".|.|.", "|..||", "|...|", "|...."),
        ("----..", ".--.--", "..--..", ".--.-.", "..---."),
    ),
    6: Maze(
        ((0, 4), (4, 2)),
        ("|.|..", "|||.|", ".|||.", ".|.||", ".|||.", "...|."),
        ("...-..", "....-.", ".--..-", "-.....", ".--.-."),
    ),
    7: Maze(
        ((0, 1), (5, 1)),
        ("...|.", "|.|.|", ".|.|.", ".|..|", "||..|", "....."),
        (".--...", "..---.", "--.-.-", "...--.", ".---.."),
    ),
    8: Maze(
        ((0, 3), (3, 2)),
        ("|..|.", "..|.|", "|...|", "|.|..", "||...", "....."),
        ("..-...", ".----.", "..--..", ".-.---", "..----"),
    ),
    9: Maze(
        ((1, 2), (4, 0)),
        ("|....", "||.||", "..|.|", "||.|.", "|||.|", ".|.|."),
        ("..--..", "...-..", ".--.-.", "...--.", ".....-"),
    ),
}

# Step letter to (rows, columns); in the order of the arrow buttons.
STEPS = {"U": (-1, 0), "L": (0, -1), "R": (0, 1), "D": (1, 0)}


def maze_of(circle: Cell) -> int:
    """The number of the maze with a circle at ``circle``; the eighteen circles are all different.

    Raises:
        ValueError: no maze has a circle there.
    """
    for number, maze in MAZES.items():
        if circle in maze.circles:
            return number
    raise ValueError(f"a circle must be one of a maze, found {circle}")


def wall_on(number: int, cell: Cell, step: str) -> tuple[int, int, str] | None:
    """The wall that stops ``step`` from ``cell``: the cell left of or above it, and ``right`` or ``below``; else None.

    The outer border is no such wall.
    """
    row, column = cell
    maze = MAZES[number]
    if step in "LR":
        column -= step == "L"
        return (row, column, "right") if 0 <= column < SIZE - 1 and maze.right[row][column] == "|" else None
    row -= step == "U"
    return (row, column, "below") if 0 <= row < SIZE - 1 and maze.below[row][column] == "-" else None


def move(cell: Cell, step: str) -> Cell | None:
    """The cell one ``step`` from ``cell``, walls not minded; None beyond the border."""
    row, column = cell[0] + STEPS[step][0], cell[1] + STEPS[step][1]
    return (row, column) if 0 <= row < SIZE and 0 <= column < SIZE else None


def path(number: int, start: Cell, goal: Cell) -> str:
    """The step letters of the way from ``start`` to ``goal`` in maze ``number``."""
    ways = {start: ""}
    queue = [start]
    for cell in queue:
        for step in STEPS:
            there = move(cell, step)
            if there is not None and there not in ways and wall_on(number, cell, step) is None:
                ways[there] = ways[cell] + step
                queue.append(there)
    return ways[goal]
