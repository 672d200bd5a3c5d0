"""Memory: a digit over four digit buttons, five stages that refer to earlier ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, inline
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import memory as rules

DIGITS = (1, 2, 3, 4)
ELEMENTS = tuple(f"button {position} from the left" for position in DIGITS)


class Memory(Module):
    """Display, labels from the left, and position and label pressed in each stage so far.

    Every press but the last draws anew; a wrong one leads back to the first stage.
    """

    component = "Memory"
    shows = "digit display above four digit buttons"
    __slots__ = ("display", "labels", "pressed")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a module with the first draw of its stream."""
        super().__init__(edgework, run)
        self.pressed: list[tuple[int, int]] = []
        self._draw()

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw nothing beside the first stage."""
        return cls(edgework, run)

    def _draw(self) -> None:
        self.display = 1 + self.run.below(len(DIGITS))
        self.labels = self.run.shuffle(DIGITS)

    def elements(self) -> Sequence[str]:
        """The buttons from the left."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        position = element + 1
        if position != rules.position_to_press(self.display, self.labels, self.pressed):
            self.pressed.clear()
            self._draw()
            return STRIKE
        self.pressed.append((position, self.labels[element]))
        if len(self.pressed) == rules.STAGES:
            return SOLVED
        self._draw()
        return CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Display, labels from the left, and stage lights."""
        return {"display": self.display, "buttons": list(self.labels), "lights": len(self.pressed)}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        return [
            f"Display {view['display']}; {view['lights']} of {rules.STAGES} stage lights on. "
            f"Buttons from the left: {inline(marks, view['buttons'])}"
        ]

    def state(self) -> dict[str, Any]:
        """Display, labels and stage (from 1); digits always stand still here."""
        return {
            "displayNumber": self.display,
            "buttonNumbers": list(self.labels),
            "stage": len(self.pressed) + 1,
            "isEmerged": True,
        }
