"""What the needy modules share: they wake, want something within a time, rest, and wake again."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import Module
from rowproof.gptnt.bomb.prng import Stream

DORMANT, ACTIVE, RESTING = "dormant", "active", "resting"
# A solve or a strike anywhere on the bomb wakes a dormant module with this probability, after this delay.
WAKE_CHANCE = (85, 100)
WAKE_DELAY_MS = {"solved": 250, "strike": 750}
MIN_REST_S, REST_VALUES_S = 10, 31


class NeedyModule(Module):
    """A module with a countdown in game time, which strikes do not hurry.

    Attributes:
        duration_ms: of the countdown.
        phase: ``dormant``, ``active`` or ``resting``.
        event_ms: the game time at which it wakes or its countdown ends; None if nothing is due.
    """

    needy = True
    duration_ms: ClassVar[int]
    __slots__ = ("event_ms", "phase")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a dormant module; the bomb sets ``event_ms`` to the latest time at which it wakes."""
        super().__init__(edgework, run)
        self.phase = DORMANT
        self.event_ms: int | None = None

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> "NeedyModule":
        """Draw nothing: every activation draws anew."""
        return cls(edgework, run)

    def notice(self, event: str, game_ms: int) -> None:
        """Perhaps wake early because of an ``event``, ``solved`` or ``strike``, anywhere on the bomb."""
        if self.phase == DORMANT and self.run.chance(*WAKE_CHANCE):
            at_ms = game_ms + WAKE_DELAY_MS[event]
            self.event_ms = at_ms if self.event_ms is None else min(self.event_ms, at_ms)

    def on_event(self, game_ms: int) -> bool:
        """Do what is due at ``event_ms``, which is now; return whether it is a strike."""
        if self.phase != ACTIVE:
            self.phase = ACTIVE
            self.event_ms = game_ms + self.duration_ms
            self._activate(game_ms)
            return False
        strike = self._fails()
        self.struck = strike
        self._rest(game_ms)
        return strike

    def _rest(self, game_ms: int) -> None:
        self.phase = RESTING
        self.event_ms = game_ms + 1000 * (MIN_REST_S + self.run.below(REST_VALUES_S))

    def _activate(self, game_ms: int) -> None:
        raise NotImplementedError

    def _fails(self) -> bool:
        """Whether the end of the countdown is a strike."""
        return True

    def _seconds(self, game_ms: int) -> int | None:
        """What the countdown shows; None unless it runs."""
        if self.phase != ACTIVE or self.event_ms is None:
            return None
        return (self.event_ms - game_ms) // 1000


def countdown(view: Mapping[str, Any]) -> str:
    """The countdown of a view as text."""
    return "Countdown dark" if view["seconds"] is None else f"Countdown {view['seconds']:02d}"
