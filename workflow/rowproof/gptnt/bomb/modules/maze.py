"""Mazes: a square to be led to a triangle between walls that cannot be seen."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, inline, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import maze as rules

ELEMENTS = ("up arrow", "left arrow", "right arrow", "down arrow")
STEPS = tuple(rules.STEPS)


class Maze(Module):
    """Number of the maze, cells (row, column from 0) of square and triangle, and the walls run into so far."""

    component = "Maze"
    shows = "dark grid with two green circles"
    __slots__ = ("goal", "hit", "number", "position")

    def __init__(self, edgework: Edgework, run: Stream, number: int, start: rules.Cell, goal: rules.Cell) -> None:
        """Make a module with the white square at ``start``."""
        super().__init__(edgework, run)
        self.number = number
        self.position = start
        self.goal = goal
        self.hit: list[tuple[int, int, str]] = []

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw a maze, a start, and a goal that does not touch it."""
        number = 1 + static.below(len(rules.MAZES))
        start = goal = divmod(static.below(rules.SIZE**2), rules.SIZE)
        while max(abs(start[0] - goal[0]), abs(start[1] - goal[1])) <= 1:
            goal = divmod(static.below(rules.SIZE**2), rules.SIZE)
        return cls(edgework, run, number, start, goal)

    def elements(self) -> Sequence[str]:
        """The arrows from the top."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        step = STEPS[element]
        there = rules.move(self.position, step)
        if there is None:
            return refuse("the border of the grid is there")
        wall = rules.wall_on(self.number, self.position, step)
        if wall is not None:
            if wall not in self.hit:
                self.hit.append(wall)
            return STRIKE
        self.position = there
        return SOLVED if there == self.goal else CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Everything as [row, column], counted from 1; a red wall lies right of or below its cell."""
        return {
            "circles": [[row + 1, column + 1] for row, column in rules.MAZES[self.number].circles],
            "white_square": [self.position[0] + 1, self.position[1] + 1],
            "red_triangle": [self.goal[0] + 1, self.goal[1] + 1],
            "red_walls": [[row + 1, column + 1, side] for row, column, side in sorted(self.hit)],
        }

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per kind of thing."""

        def cell(place: Sequence[Any]) -> str:
            return f"row {place[0]} column {place[1]}"

        walls = [f"{'right of' if side == 'right' else 'below'} {cell(place)}" for *place, side in view["red_walls"]]
        return [
            "Six rows and six columns, counted from the upper left:",
            f"  green circles at {' and '.join(map(cell, view['circles']))}",
            f"  white square at {cell(view['white_square'])}",
            f"  red triangle at {cell(view['red_triangle'])}",
            f"  red walls: {', '.join(walls) or 'none'}",
            f"  {inline(marks, ELEMENTS)}",
        ]

    def state(self) -> dict[str, Any]:
        """Rows and columns from 0."""

        def cell(place: rules.Cell) -> dict[str, int]:
            return {"row": place[0], "column": place[1]}

        return {
            "numRows": rules.SIZE,
            "numColumns": rules.SIZE,
            "squarePosition": cell(self.position),
            "trianglePosition": cell(self.goal),
            "circlePositions": [cell(circle) for circle in rules.MAZES[self.number].circles],
        }
