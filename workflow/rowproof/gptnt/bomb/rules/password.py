"""Passwords: exactly one word of the list can be spelled."""

from collections.abc import Sequence

LENGTH = 5
WORDS = (
    *("about", "after", "again", "below", "could"),
    *("every", "first", "found", "great", "house"),
    *("large", "learn", "never", "other", "place"),
    *("plant", "point", "right", "small", "sound"),
    *("spell", "still", "study", "their", "there"),
    *("these", "thing", "think", "three", "water"),
    *("where", "which", "world", "would", "write"),
)


def words_possible(columns: Sequence[str]) -> list[str]:
    """The words of the list that five columns of capital letters can spell."""
    return [w for w in WORDS if all(letter in column for letter, column in zip(w.upper(), columns, strict=True))]


def presses_down(columns: Sequence[str], word: str) -> list[int]:
    """For each column the presses of the lower arrow that lead from its first letter to that of ``word``."""
    return [column.index(letter) for letter, column in zip(word.upper(), columns, strict=True)]
