"""Complicated Wires: four to six vertical wires with LEDs and stars; each is judged alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import venn as rules

COLUMNS = 6


class Wire(NamedTuple):
    """One wire; columns count from 0."""

    column: int
    colour: str
    led: bool
    star: bool


class Venn(Module):
    """The wires from the left and their cuts; solved when all wires are cut that must be, whatever else is cut."""

    component = "Venn"
    shows = "vertical wires with lamps above and fields below"
    __slots__ = ("_elements", "_must_cut", "cut", "wires")

    def __init__(self, edgework: Edgework, run: Stream, wires: Sequence[Wire]) -> None:
        """Make a module with these wires; at least one must have to be cut, or it can never be solved."""
        super().__init__(edgework, run)
        self.wires = tuple(wires)
        self.cut = [False] * len(self.wires)
        self._elements = tuple(f"wire in column {wire.column + 1}" for wire in wires)
        self._must_cut = tuple(rules.must_cut(w.colour, w.led, w.star, edgework) for w in wires)

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw four to six wires, mostly six; if none would have to be cut, one is replaced."""
        count = min(COLUMNS, 4 + static.below(6))
        columns = sorted(static.sample(range(COLUMNS), count))
        wires = []
        for column in columns:
            colour = static.pick(rules.COLOURS)
            led = static.chance(1, 2)
            wires.append(Wire(column, colour, led, static.chance(1, 2)))
        if not rules.wires_to_cut([wire[1:] for wire in wires], edgework):
            index = static.below(count)
            letters = rules.letters_to_cut(edgework)
            key = static.pick([key for key in sorted(rules.LETTERS) if rules.LETTERS[key] in letters])
            red, blue, star, led = map(bool, key)
            colour = ", ".join(name for name, there in (("red", red), ("blue", blue)) if there) or "white"
            wires[index] = Wire(columns[index], colour, led, star)
        return cls(edgework, run, wires)

    def elements(self) -> Sequence[str]:
        """The wires from the left."""
        return self._elements

    def _press(self, element: int, moment: Moment) -> Effect:
        if self.cut[element]:
            return refuse("the wire is cut already")
        self.cut[element] = True
        if not self._must_cut[element]:
            return STRIKE
        whole = any(must and not cut for must, cut in zip(self._must_cut, self.cut, strict=True))
        return CHANGED if whole else SOLVED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The wires; columns count from 1."""
        return {
            "wires": [
                {
                    "column": wire.column + 1,
                    "colours": wire.colour.split(", "),
                    "lamp": "on" if wire.led else "off",
                    "star": wire.star,
                    "cut": cut,
                }
                for wire, cut in zip(self.wires, self.cut, strict=True)
            ]
        }

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per column."""
        marked = {wire["column"]: (mark, wire) for mark, wire in zip(marks, view["wires"], strict=True)}
        lines = ["From the left:"]
        for column in range(1, COLUMNS + 1):
            if column not in marked:
                lines.append(f"  column {column}: empty")
                continue
            mark, wire = marked[column]
            star = "star" if wire["star"] else "no star"
            colours = " and ".join(wire["colours"])
            cut = ", cut" if wire["cut"] else ""
            lines.append(f"  [{mark}] column {column}: {colours}, lamp {wire['lamp']}, {star}{cut}")
        return lines

    def state(self) -> dict[str, Any]:
        """The wires; positions count from 0."""
        return {
            "wires": [
                {
                    "position": wire.column,
                    "color": wire.colour,
                    "isLedOn": wire.led,
                    "hasStar": wire.star,
                    "isCut": cut,
                }
                for wire, cut in zip(self.wires, self.cut, strict=True)
            ]
        }
