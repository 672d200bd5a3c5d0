"""The bomb's random draws: SplitMix64, one generator per named stream, so that no draw depends on another module.

Generator: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
# Root of all draws. Its number rises with any change to what a mission and the same actions lead to.
SIMULATOR = "gptnt-bomb/1"
_MASK = (1 << 64) - 1
_BITS = 53


class Stream:
    """One running generator; its state is a 64-bit integer."""

    __slots__ = ("state",)

    def __init__(self, mission_key: str, name: str) -> None:
        """Start the stream ``name`` of a mission; see :attr:`rowproof.gptnt.bomb.mission.Mission.key`."""
        root = f"{SIMULATOR}|{mission_key}|{name}"
        self.state = int.from_bytes(hashlib.sha256(root.encode("utf-8")).digest()[:8], "big")

    def next(self) -> int:
        """The next 64-bit output."""
        z = self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1, from the upper 53 bits of one output."""
        return ((self.next() >> (64 - _BITS)) * n) >> _BITS

    def chance(self, a: int, b: int) -> bool:
        """True with probability a/b."""
        return self.below(b) < a

    def pick(self, items: Sequence[T]) -> T:
        """One of ``items``."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """``k`` different entries of ``items`` in the order in which they were drawn."""
        drawn = list(items)
        for i in range(k):
            j = i + self.below(len(drawn) - i)
            drawn[i], drawn[j] = drawn[j], drawn[i]
        return drawn[:k]

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """All of ``items`` in a random order."""
        return self.sample(items, len(items))
