"""Knobs: a knob that must point the right way when the countdown ends."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, Effect, Moment, inline
from rowproof.gptnt.bomb.modules.needy import ACTIVE, NeedyModule, countdown
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import needy_knob as rules

ELEMENTS = ("knob",)
DARK = "......"


class NeedyKnob(NeedyModule):
    """Where knob and word UP point, and the pattern of the lamps. The knob stays where it is between activations."""

    component = "NeedyKnob"
    shows = "round knob with twelve small lamps"
    duration_ms = 40_000
    __slots__ = ("knob_points", "pattern", "up_label_points")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a dormant module."""
        super().__init__(edgework, run)
        self.knob_points = "up"
        self.up_label_points = "up"
        self.pattern = rules.PATTERNS[0]

    @property
    def must_point(self) -> str:
        """The direction in which the knob must point when the countdown ends."""
        return rules.direction_for(self.pattern.position, self.up_label_points)

    def _activate(self, game_ms: int) -> None:
        self.pattern = self.run.pick(rules.PATTERNS)
        self.up_label_points = self.run.pick(rules.DIRECTIONS)

    def _fails(self) -> bool:
        return self.knob_points != self.must_point

    def elements(self) -> Sequence[str]:
        """The knob."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        place = rules.DIRECTIONS.index(self.knob_points)
        self.knob_points = rules.DIRECTIONS[(place + 1) % len(rules.DIRECTIONS)]
        return CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Countdown (None unless active), directions, and the lamps of both rows (``X`` is lit)."""
        active = self.phase == ACTIVE
        return {
            "seconds": self._seconds(game_ms),
            "up_label_points": self.up_label_points,
            "knob_points": self.knob_points,
            "lamps": [self.pattern.upper, self.pattern.lower] if active else [DARK, DARK],
        }

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """Head and two rows of lamps."""
        return [
            f"{countdown(view)}; the word UP points {view['up_label_points']}, the knob points {view['knob_points']}. "
            f"{inline(marks, ELEMENTS)}",
            f"  upper lamps {view['lamps'][0]} (X is lit)",
            f"  lower lamps {view['lamps'][1]}",
        ]

    def state(self) -> dict[str, Any]:
        """Lit lamps (0 to 5 upper row, 6 to 11 lower row), directions, and the next event (game time in ms)."""
        lamps = self.pattern.upper + self.pattern.lower
        return {
            "isBeingNeedy": self.phase == ACTIVE,
            "ledPosition": [index for index, lamp in enumerate(lamps) if lamp == "X"],
            "upLabelPoints": self.up_label_points,
            "knobPoints": self.knob_points,
            "phase": self.phase,
            "nextEventMs": self.event_ms,
        }
