"""Keypads: four keys with symbols, to be pressed in the order of the column that holds them all."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, PLACES, SOLVED, STRIKE, Effect, Module, Moment, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import keypad as rules

ELEMENTS = tuple(f"key at the {PLACES[position]}" for position in rules.POSITIONS)
# How symbols may be named in a view; all but the first are for debugging and for a partner that reads the same.
RENDERINGS = ("looks", "glyph", "name")


class Keypad(Module):
    """The symbols of the keys in reading order and how many were pressed; a wrong press keeps the progress."""

    component = "Keypad"
    shows = "four square keys with strange symbols"
    __slots__ = ("_order", "progress", "red", "symbols")

    def __init__(self, edgework: Edgework, run: Stream, symbols: Sequence[str]) -> None:
        """Make a module with these four symbols."""
        super().__init__(edgework, run)
        self.symbols = tuple(symbols)
        self.progress = 0
        # The keys that were pressed wrongly since the last look.
        self.red: set[int] = set()
        order = rules.press_order(dict(zip(rules.POSITIONS, symbols, strict=True)))
        self._order = tuple(rules.POSITIONS.index(position) for position in order)

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw a column and four of its symbols."""
        column = rules.COLUMNS[1 + static.below(len(rules.COLUMNS))]
        return cls(edgework, run, static.sample(column, len(rules.POSITIONS)))

    def elements(self) -> Sequence[str]:
        """The keys in reading order."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        if element in self._order[: self.progress]:
            return refuse("the key is down already")
        if element != self._order[self.progress]:
            self.red.add(element)
            return STRIKE
        self.progress += 1
        self.red.discard(element)
        return SOLVED if self.progress == len(self._order) else CHANGED

    def calm(self) -> None:
        """Put out the red lights."""
        super().calm()
        self.red.clear()

    def _light(self, key: int) -> str | None:
        if key in self._order[: self.progress]:
            return "green"
        return "red" if key in self.red else None

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The keys in reading order."""
        keys = []
        for key, (position, name) in enumerate(zip(rules.POSITIONS, self.symbols, strict=True)):
            shown = name if symbols == "name" else getattr(rules.SYMBOLS[name], symbols)
            keys.append({"place": PLACES[position], "symbol": shown, "light": self._light(key) or "off"})
        return {"keys": keys}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per key."""
        keys = zip(marks, view["keys"], strict=True)
        return ["Keys:", *(f"  [{m}] {key['place']}: {key['symbol']}; light {key['light']}" for m, key in keys)]

    def state(self) -> dict[str, Any]:
        """The keys by place."""
        places = ("topLeft", "topRight", "bottomLeft", "bottomRight")
        return {
            place: {"symbol": symbol, "color": self._light(key)}
            for key, (place, symbol) in enumerate(zip(places, self.symbols, strict=True))
        }
