"""Morse Code: a lamp blinks a word, whose frequency must be set and sent."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

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
    refuse,
)
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import morse as rules

# Length of a dot. The signal runs from the start of the game, whether or not anyone looks.
UNIT_MS = 250
WORDS = tuple(rules.FREQUENCIES_KHZ)
FREQUENCIES_KHZ = tuple(rules.FREQUENCIES_KHZ.values())
ELEMENTS = ("left arrow", "right arrow", "TX")
LEFT, RIGHT, TX = range(3)


class Morse(Module):
    """The word, and where the read-out stands in the list of frequencies (from 0)."""

    component = "Morse"
    shows = "blinking lamp above a frequency read-out"
    needs_frames = True
    __slots__ = ("_dark_from_ms", "_signal", "index", "word")

    def __init__(self, edgework: Edgework, run: Stream, word: str) -> None:
        """Make a module with the read-out at the lowest frequency."""
        super().__init__(edgework, run)
        self.word = word
        self.index = 0
        self._signal = rules.signal(word)
        # No end while it is unsolved.
        self._dark_from_ms = 1 << 62

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw a word."""
        return cls(edgework, run, static.pick(WORDS))

    def elements(self) -> Sequence[str]:
        """Two arrows and the sender."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        if element == TX:
            if WORDS[self.index] != self.word:
                return STRIKE
            self._dark_from_ms = moment.game_ms
            return SOLVED
        index = self.index + (1 if element == RIGHT else -1)
        if not 0 <= index < len(WORDS):
            return refuse("the read-out is at the end of its range")
        self.index = index
        return CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """Samples of the lamp, oldest first, and the frequency in MHz as text."""
        lamp = ""
        for i in range(1 - SAMPLES, 1):
            at_ms = game_ms + i * SAMPLE_MS
            lit = 0 <= at_ms < self._dark_from_ms
            lamp += self._signal[at_ms // UNIT_MS % len(self._signal)] if lit else "."
        return {"lamp": lamp, "frequency": f"3.{FREQUENCIES_KHZ[self.index] % 1000}"}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line."""
        return [
            f"Lamp over the last 4 s (4 looks per second, oldest first): {view['lamp']}   "
            f"Read-out {view['frequency']} MHz. {inline(marks, ELEMENTS)}"
        ]

    def state(self) -> dict[str, Any]:
        """The word and both frequencies, as the three decimals of the MHz."""
        return {
            "sequence": self.word,
            "currentFrequency": FREQUENCIES_KHZ[self.index] % 1000,
            "correctFrequency": rules.FREQUENCIES_KHZ[self.word] % 1000,
        }
