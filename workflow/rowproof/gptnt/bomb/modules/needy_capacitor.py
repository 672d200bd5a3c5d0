"""Capacitor Discharge: a charge that grows until the lever is held."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, Effect, Moment, inline, refuse
from rowproof.gptnt.bomb.modules.needy import ACTIVE, NeedyModule, countdown
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import needy_capacitor as rules

ELEMENTS = ("lever",)


class NeedyCapacitor(NeedyModule):
    """Whether the lever is held. Once active it stays so until the charge reaches its limit."""

    component = "NeedyCapacitor"
    shows = "lever beside a filling bar"
    holdable = True
    duration_ms = rules.CAPACITY_MS
    __slots__ = ("_charge_ms", "_since_ms", "held")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a dormant module."""
        super().__init__(edgework, run)
        self.held = False
        # The charge, in milliseconds of charging, at the last change of the lever.
        self._charge_ms = 0
        self._since_ms = 0

    def charge_ms(self, game_ms: int) -> int:
        """The charge, in milliseconds of charging; none unless active."""
        if self.phase != ACTIVE:
            return 0
        passed_ms = game_ms - self._since_ms
        if self.held:
            return max(0, self._charge_ms - rules.DISCHARGE_FACTOR * passed_ms)
        return self._charge_ms + passed_ms

    def _set_lever(self, held: bool, game_ms: int) -> None:
        self._charge_ms = self.charge_ms(game_ms)
        self._since_ms = game_ms
        self.held = held
        if self.phase == ACTIVE:
            self.event_ms = None if held else game_ms + self.duration_ms - self._charge_ms

    def _activate(self, game_ms: int) -> None:
        self._charge_ms = 0
        self._since_ms = game_ms
        if self.held:
            self.event_ms = None

    def elements(self) -> Sequence[str]:
        """The lever."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        return refuse("the lever must be held down for some time")

    def _hold(self, moment: Moment) -> Effect:
        if self.held:
            return refuse("the lever is held down already")
        self._set_lever(True, moment.game_ms)
        return CHANGED

    def _release(self, moment: Moment) -> Effect:
        if not self.held:
            return refuse("nothing is held down")
        self._set_lever(False, moment.game_ms)
        return CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Countdown (None unless active) and bar."""
        charge_ms = self.charge_ms(game_ms)
        seconds = (self.duration_ms - charge_ms) // 1000 if self.phase == ACTIVE else None
        return {"seconds": seconds, "bar_percent": 100 * charge_ms // self.duration_ms}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        return [f"{countdown(view)}; bar {view['bar_percent']} % full. {inline(marks, ELEMENTS)}"]

    def state(self) -> dict[str, Any]:
        """Lever, charge at its last change, and the time of the next event (game time in ms)."""
        return {
            "isBeingNeedy": self.phase == ACTIVE,
            "isHeld": self.held,
            "chargeMs": self._charge_ms,
            "chargeSinceMs": self._since_ms,
            "phase": self.phase,
            "nextEventMs": self.event_ms,
        }
