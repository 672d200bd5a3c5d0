"""Simon Says: a growing sequence of flashes, to be answered by presses.

The lamps follow from a few instants and are computed when looked at, so that time passes at no cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import (
    CHANGED,
    SAMPLE_MS,
    SAMPLES,
    SOLVED,
    STRIKE,
    Effect,
    Module,
    Moment,
    inline,
)
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import simon as rules

FLASH_ON_MS = 500
FLASH_OFF_MS = 250
# A pass over the stage starts this long after a new stage, a strike or a zoom; from the start of the game as well.
LEAD_MS = 1000
# Or this long after a press within a stage, or after the last flash went out.
PAUSE_MS = 5000
MIN_LENGTH = 3

ELEMENTS = ("top button", "left button", "right button", "bottom button")


class _Rhythm(NamedTuple):
    """From ``since_ms`` on: passes over ``stage`` flashes, the first one at ``first_ms``."""

    since_ms: int
    first_ms: int
    stage: int

    def flash_at(self, game_ms: int) -> int | None:
        """Which flash of the sequence is lit, if any; a flash is lit at its start and no longer at its end."""
        if game_ms < self.first_ms:
            return None
        flash_ms = FLASH_ON_MS + FLASH_OFF_MS
        into_ms = (game_ms - self.first_ms) % (self.stage * flash_ms - FLASH_OFF_MS + PAUSE_MS)
        flash, into_ms = divmod(into_ms, flash_ms)
        return flash if flash < self.stage and into_ms < FLASH_ON_MS else None


class Simon(Module):
    """The hidden sequence, the stage (from 1) and the correct presses in it.

    A wrong press keeps the stage and forgets the presses in it. So does a pass of flashes that starts.
    """

    component = "Simon"
    shows = "four coloured buttons in a diamond"
    needs_frames = True
    __slots__ = ("_progress", "_rhythms", "sequence", "stage")

    def __init__(self, edgework: Edgework, run: Stream, sequence: Sequence[str]) -> None:
        """Make a module in its first stage."""
        super().__init__(edgework, run)
        self.sequence = tuple(sequence)
        self.stage = 1
        self._progress = 0
        # The last rhythm, and those before it that the window of samples still reaches into.
        self._rhythms = [_Rhythm(0, LEAD_MS, 1)]

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw three to five colours."""
        return cls(edgework, run, [static.pick(rules.COLOURS) for _ in range(MIN_LENGTH + static.below(3))])

    def elements(self) -> Sequence[str]:
        """The buttons from the top."""
        return ELEMENTS

    def progress(self, game_ms: int) -> int:
        """Correct presses in this stage that still count."""
        return self._progress if game_ms < self._rhythms[-1].first_ms else 0

    def _restart(self, game_ms: int, delay_ms: int) -> None:
        oldest_ms = game_ms - (SAMPLES - 1) * SAMPLE_MS
        while len(self._rhythms) > 1 and self._rhythms[1].since_ms <= oldest_ms:
            del self._rhythms[0]
        if self._rhythms[-1].since_ms == game_ms:
            self._rhythms.pop()
        self._rhythms.append(_Rhythm(game_ms, game_ms + delay_ms, self.stage))

    def focus(self, game_ms: int) -> None:
        """Start a pass for the player who zooms in."""
        if not self.solved:
            self._progress = self.progress(game_ms)
            self._restart(game_ms, LEAD_MS)

    def _press(self, element: int, moment: Moment) -> Effect:
        progress = self.progress(moment.game_ms)
        expected = rules.button_for(self.sequence[progress], self.edgework.has_vowel, moment.strikes)
        delay_ms = LEAD_MS
        if rules.BUTTONS[element] != expected:
            effect, self._progress = STRIKE, 0
        elif progress + 1 < self.stage:
            effect, self._progress, delay_ms = CHANGED, progress + 1, PAUSE_MS
        elif self.stage < len(self.sequence):
            effect, self._progress = CHANGED, 0
            self.stage += 1
        else:
            effect, self._progress = SOLVED, 0
        # A solved module stays dark: its last rhythm never comes to its first pass.
        self._restart(moment.game_ms, 1 << 62 if effect.solved else delay_ms)
        return effect

    def _sample(self, game_ms: int) -> str:
        for rhythm in reversed(self._rhythms):
            if rhythm.since_ms <= game_ms:
                flash = rhythm.flash_at(game_ms)
                return "." if flash is None else self.sequence[flash][0].upper()
        return "."

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The buttons and which flashed, by first letters, oldest first."""
        top, left, right, bottom = rules.BUTTONS
        start_ms = game_ms - (SAMPLES - 1) * SAMPLE_MS
        flashes = "".join(self._sample(start_ms + i * SAMPLE_MS) for i in range(SAMPLES))
        return {"buttons": {"top": top, "left": left, "right": right, "bottom": bottom}, "flashes": flashes}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        buttons = inline(marks, [f"{place}: {colour}" for place, colour in view["buttons"].items()])
        return [
            f"Flashes over the last 4 s (4 looks per second, oldest first; first letters of the colours): "
            f"{view['flashes']}   {buttons}"
        ]

    def state(self) -> dict[str, Any]:
        """The whole sequence and the stage from 0."""
        return {"beepSequence": list(self.sequence), "solveProgress": self.stage - 1}
