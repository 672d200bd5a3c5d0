"""Venting Gas: a question to be answered by yes or no."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, STRIKE, Effect, Moment, inline, refuse
from rowproof.gptnt.bomb.modules.needy import ACTIVE, NeedyModule, countdown
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import needy_vent_gas as rules

VENT, DETONATE = rules.KEY_FOR
DETONATE_CHANCE = (1, 10)
# Shown until the next look to a player who will not vent.
WARNING = "GAS MUST BE VENTED"

ELEMENTS = ("Y", "N")


class NeedyVentGas(NeedyModule):
    """The question, and whether its answer was just warned of."""

    component = "NeedyVentGas"
    shows = "small screen with Y and N keys"
    duration_ms = 40_000
    __slots__ = ("question", "warned")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a dormant module."""
        super().__init__(edgework, run)
        self.question = VENT
        self.warned = False

    def _activate(self, game_ms: int) -> None:
        self.question = DETONATE if self.run.chance(*DETONATE_CHANCE) else VENT
        self.warned = False

    def elements(self) -> Sequence[str]:
        """The keys."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        if self.phase != ACTIVE:
            return refuse("the screen asks nothing")
        right = ELEMENTS[element] == rules.KEY_FOR[self.question]
        if not right and self.question == VENT:
            self.warned = True
            return CHANGED
        self._rest(moment.game_ms)
        return CHANGED if right else STRIKE

    def calm(self) -> None:
        """Bring the question back."""
        super().calm()
        self.warned = False

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Countdown and screen; both empty unless it asks."""
        screen = "" if self.phase != ACTIVE else WARNING if self.warned else self.question
        return {"seconds": self._seconds(game_ms), "screen": screen}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        screen = f'screen "{view["screen"]}"' if view["screen"] else "screen dark"
        return [f"{countdown(view)}; {screen}. {inline(marks, ELEMENTS)}"]

    def state(self) -> dict[str, Any]:
        """The question and the end of the countdown (game time in ms)."""
        return {
            "isBeingNeedy": self.phase == ACTIVE,
            "message": "Vent" if self.question == VENT else "Detonate",
            "phase": self.phase,
            "nextEventMs": self.event_ms,
        }
