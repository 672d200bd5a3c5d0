"""Wires: three to six horizontal wires in six rows; one must be cut."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import SOLVED, STRIKE, Effect, Module, Moment, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import wires as rules

ROWS = 6


class Wires(Module):
    """Rows (from 0), colours and cuts of the wires from the top. A wrong cut is a strike and changes nothing else."""

    component = "Wires"
    shows = "horizontal wires between two strips"
    __slots__ = ("_correct", "_elements", "colours", "cut", "rows")

    def __init__(self, edgework: Edgework, run: Stream, rows: Sequence[int], colours: Sequence[str]) -> None:
        """Make a module with these wires."""
        super().__init__(edgework, run)
        self.rows = tuple(rows)
        self.colours = tuple(colours)
        self.cut = [False] * len(self.rows)
        self._elements = tuple(f"wire in row {row + 1}" for row in rows)
        self._correct = rules.wire_to_cut(colours, edgework.last_digit_odd) - 1

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw three to six wires; six as often as all others together."""
        count = min(ROWS, 3 + static.below(6))
        rows = sorted(static.sample(range(ROWS), count))
        return cls(edgework, run, rows, [static.pick(rules.COLOURS) for _ in rows])

    def elements(self) -> Sequence[str]:
        """The wires from the top."""
        return self._elements

    def _press(self, element: int, moment: Moment) -> Effect:
        if self.cut[element]:
            return refuse("the wire is cut already")
        self.cut[element] = True
        return SOLVED if element == self._correct else STRIKE

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The wires; rows count from 1."""
        wires = zip(self.rows, self.colours, self.cut, strict=True)
        return {"wires": [{"row": row + 1, "colour": colour, "cut": cut} for row, colour, cut in wires]}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per row."""
        marked = {wire["row"]: (mark, wire) for mark, wire in zip(marks, view["wires"], strict=True)}
        lines = ["From the top:"]
        for row in range(1, ROWS + 1):
            if row not in marked:
                lines.append(f"  row {row}: empty")
                continue
            mark, wire = marked[row]
            lines.append(f"  [{mark}] row {row}: {wire['colour']}{', cut' if wire['cut'] else ''}")
        return lines

    def state(self) -> dict[str, Any]:
        """The wires; positions count from 0."""
        wires = zip(self.rows, self.colours, self.cut, strict=True)
        return {"wires": [{"position": row, "color": colour, "isCut": cut} for row, colour, cut in wires]}
