"""Passwords: five wheels of six letters, which can spell one word of a list."""

import string
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.modules.base import CHANGED, SOLVED, STRIKE, Effect, Module, Moment, inline
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import password as rules

LETTERS_PER_COLUMN = 6
ELEMENTS = (
    *(f"upper arrow {column}" for column in range(1, rules.LENGTH + 1)),
    *(f"lower arrow {column}" for column in range(1, rules.LENGTH + 1)),
    "submit",
)


class Password(Module):
    """The goal, the letters of each column, and where each column stands (from 0)."""

    component = "Password"
    shows = "five letters with arrows above and below"
    __slots__ = ("columns", "goal", "indices")

    def __init__(self, edgework: Edgework, run: Stream, goal: str, columns: Sequence[str]) -> None:
        """Make a module with every column at its first letter, or the first one at its second if that is the goal."""
        super().__init__(edgework, run)
        self.goal = goal
        self.columns = tuple(columns)
        self.indices = [0] * rules.LENGTH
        if self.showing == goal.upper():
            self.indices[0] = 1

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw a goal, and for each column five letters beside its own that leave no other word possible."""
        goal = static.pick(rules.WORDS)
        left = [list(string.ascii_uppercase) for _ in range(rules.LENGTH)]
        for word in rules.WORDS:
            if word == goal or not all(letter in left[i] for i, letter in enumerate(word.upper())):
                continue
            column = static.pick([i for i in range(rules.LENGTH) if word[i] != goal[i]])
            left[column].remove(word[column].upper())
        columns = []
        for letter, letters in zip(goal.upper(), left, strict=True):
            letters.remove(letter)
            others = static.sample(letters, LETTERS_PER_COLUMN - 1)
            columns.append("".join(static.shuffle([*others, letter])))
        return cls(edgework, run, goal, columns)

    @property
    def showing(self) -> str:
        """The five capital letters that stand in the display."""
        return "".join(column[index] for column, index in zip(self.columns, self.indices, strict=True))

    def elements(self) -> Sequence[str]:
        """The upper arrows, the lower arrows, submit."""
        return ELEMENTS

    def _press(self, element: int, moment: Moment) -> Effect:
        if element == len(ELEMENTS) - 1:
            return SOLVED if self.showing == self.goal.upper() else STRIKE
        lower, column = divmod(element, rules.LENGTH)
        self.indices[column] = (self.indices[column] + (1 if lower else -1)) % LETTERS_PER_COLUMN
        return CHANGED

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """The letters in the display."""
        return {"letters": self.showing}

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """One line per row of elements."""
        upper, lower = slice(0, rules.LENGTH), slice(rules.LENGTH, 2 * rules.LENGTH)
        return [
            f"Letters from the left: {' '.join(view['letters'])}",
            f"  {inline(marks[upper], ELEMENTS[upper])}",
            f"  {inline(marks[lower], ELEMENTS[lower])}",
            f"  {inline(marks[-1:], ELEMENTS[-1:])}",
        ]

    def state(self) -> dict[str, Any]:
        """The words, in small letters as in the list."""
        return {"currentWord": self.showing.lower(), "goalWord": self.goal}
