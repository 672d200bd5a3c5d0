"""Wire Sequences: nine wires on four panels; each must be cut or not before the panel is left downwards."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import wire_sequence as rules

WIRES = 9
WIRES_PER_COLOUR_IN_POOL = 9
TERMINALS = range(1, rules.PANELS * rules.TERMINALS_PER_PANEL + 1)


class Wire(NamedTuple):
    """A wire from a left terminal (1 to 12) to a letter."""

    terminal: int
    colour: str
    letter: str


class WireSequence(Module):
    """All wires in the order of their terminals, those cut, and the panel that shows (1 to 4; 5 when solved)."""

    component = "WireSequence"
    shows = "panel of wires from numbers to letters"
    __slots__ = ("_elements", "_must_cut", "_panels", "cut", "panel", "wires")

    def __init__(self, edgework: Edgework, run: Stream, wires: Sequence[Wire]) -> None:
        """Make a module that shows its first panel."""
        super().__init__(edgework, run)
        self.wires = tuple(wires)
        self.cut: set[int] = set()
        self.panel = 1
        self._must_cut = rules.terminals_to_cut(wires)
        # Of panel 1 to 4, and none beyond.
        self._panels = tuple(
            tuple(wire for wire in wires if rules.panel_of(wire.terminal) == panel)
            for panel in range(1, rules.PANELS + 2)
        )
        self._elements = tuple(("up", *(f"wire from {w.terminal}" for w in p), "down") for p in self._panels)

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw nine wires, at least one of them on the first panel."""
        pool = [colour for colour in rules.COLOURS for _ in range(WIRES_PER_COLOUR_IN_POOL)]
        colours = static.sample(pool, WIRES)
        letters = [static.pick(rules.LETTERS) for _ in range(WIRES)]
        while True:
            terminals = sorted(static.sample(TERMINALS, WIRES))
            if rules.panel_of(terminals[0]) == 1:
                break
        return cls(edgework, run, [Wire(*wire) for wire in zip(terminals, colours, letters, strict=True)])

    @property
    def shown(self) -> tuple[Wire, ...]:
        """The wires of the panel that shows, from the top."""
        return self._panels[self.panel - 1]

    def elements(self) -> Sequence[str]:
        """Up, the wires of the panel that shows, down."""
        return self._elements[self.panel - 1]

    def _press(self, element: int, moment: Moment) -> Effect:
        if element == 0:
            if self.panel == 1:
                return refuse("this is the first panel")
            self.panel -= 1
            return CHANGED
        if element <= len(self.shown):
            terminal = self.shown[element - 1].terminal
            if terminal in self.cut:
                return refuse("the wire is cut already")
            self.cut.add(terminal)
            return CHANGED if terminal in self._must_cut else STRIKE
        if any(wire.terminal in self._must_cut - self.cut for wire in self.shown):
            return STRIKE
        self.panel += 1
        return SOLVED if self.panel > rules.PANELS else CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The wires of the panel that shows, and a light for each panel above it."""
        wires = [
            {"from": wire.terminal, "to": wire.letter, "colour": wire.colour, "cut": wire.terminal in self.cut}
            for wire in self.shown
        ]
        return {"panel": self.panel, "wires": wires, "lights": self.panel - 1}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per element."""
        lines = [f"Panel {view['panel']}; {view['lights']} of {rules.PANELS} panel lights on.", f"  [{marks[0]}] up"]
        for mark, wire in zip(marks[1:-1], view["wires"], strict=True):
            cut = ", cut" if wire["cut"] else ""
            lines.append(f"  [{mark}] {wire['from']} to {wire['to']}: {wire['colour']}{cut}")
        return [*lines, f"  [{marks[-1]}] down"]

    def state(self) -> dict[str, Any]:
        """All wires (terminals count from 0) and the panel."""
        return {
            "panel": self.panel,
            "wires": [
                {
                    "startPositionNumber": wire.terminal - 1,
                    "endPositionLetter": wire.letter,
                    "color": wire.colour,
                    "isCut": wire.terminal in self.cut,
                }
                for wire in self.wires
            ],
            "isEmerged": True,
        }
