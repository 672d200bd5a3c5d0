"""Who's on First: a word display over six word buttons, three stages."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, PLACES, SOLVED, STRIKE, Effect, Module, Moment
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import whos_on_first as rules

STAGES = 3
DISPLAYS = tuple(rules.READ_AT)
ELEMENTS = tuple(f"button at the {PLACES[position]}" for position in rules.POSITIONS)


class WhosOnFirst(Module):
    """Stage (from 1; 4 when solved), display ("" is empty) and labels in reading order.

    Every press but the last draws new words; a wrong one keeps the stage.
    """

    component = "WhosOnFirst"
    shows = "word display above six word buttons"
    __slots__ = ("display", "labels", "stage")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a module with the first words of its stream."""
        super().__init__(edgework, run)
        self.stage = 1
        self._draw()

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw nothing beside the first words."""
        return cls(edgework, run)

    def _draw(self) -> None:
        self.display = self.run.pick(DISPLAYS)
        group = rules.GROUPS[self.run.below(len(rules.GROUPS))]
        self.labels = self.run.sample(group, len(rules.POSITIONS))

    def elements(self) -> Sequence[str]:
        """The buttons in reading order."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        right = self.labels[element] == rules.label_to_press(self.display, self.labels)
        self.stage += right
        if self.stage > STAGES:
            return SOLVED
        self._draw()
        return CHANGED if right else STRIKE

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Display, labels in reading order, and stage lights."""
        return {"display": self.display, "buttons": list(self.labels), "lights": self.stage - 1}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per button."""
        display = f'Display "{view["display"]}"' if view["display"] else "Display empty"
        buttons = zip(marks, rules.POSITIONS, view["buttons"], strict=True)
        return [
            f"{display}; {view['lights']} of {STAGES} stage lights on.",
            *(f'  [{mark}] {PLACES[position]}: "{label}"' for mark, position, label in buttons),
        ]

    def state(self) -> dict[str, Any]:
        """Display, labels and stage; words always stand still here."""
        return {
            "displayWord": self.display,
            "buttonWords": list(self.labels),
            "stage": self.stage,
            "isEmerged": True,
        }
