"""The Button: tap it, or hold it and let go at the right time."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, refuse
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import big_button as rules


class BigButton(Module):
    """Colour and label of the button, and the colour of its strip while it is held; each hold draws a new colour."""

    component = "BigButton"
    shows = "big round button under a cover, strip at its right"
    holdable = True
    __slots__ = ("_must_hold", "colour", "label", "strip_colour")

    def __init__(self, edgework: Edgework, run: Stream, colour: str, label: str) -> None:
        """Make a button that is up."""
        super().__init__(edgework, run)
        self.colour = colour
        self.label = label
        self.strip_colour: str | None = None
        self._must_hold = rules.matching_rule(colour, label, edgework)[1] == "hold"

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw colour and label."""
        colour = static.pick(rules.COLOURS)
        return cls(edgework, run, colour, static.pick(rules.LABELS))

    def elements(self) -> Sequence[str]:
        """The button."""
        return ("button",)

    def _press(self, element: int, moment: Moment) -> Effect:
        return STRIKE if self._must_hold else SOLVED

    def _hold(self, moment: Moment) -> Effect:
        if self.strip_colour is not None:
            return refuse("the button is held down already")
        self.strip_colour = self.run.pick(rules.STRIP_COLOURS)
        return CHANGED

    def _release(self, moment: Moment) -> Effect:
        if self.strip_colour is None:
            return refuse("nothing is held down")
        right = self._must_hold and rules.release_digit(self.strip_colour) in moment.display
        self.strip_colour = None
        return SOLVED if right else STRIKE

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The button and its strip."""
        return {"button_colour": self.colour, "button_text": self.label, "strip": self.strip_colour or "dark"}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        return [
            f'[{marks[0]}] {view["button_colour"]} button with the word "{view["button_text"]}"; strip {view["strip"]}.'
        ]

    def state(self) -> dict[str, Any]:
        """The button and its strip."""
        return {
            "buttonColor": self.colour,
            "buttonWord": self.label,
            "isHeld": self.strip_colour is not None,
            "stripColor": self.strip_colour,
        }
