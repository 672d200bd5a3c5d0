"""The named random streams and the cluster bootstrap in plain Python: an oracle that shares no code with NumPy.

Written from the word-level recipe of the evidence specification, section 10 (SeedSequence, PCG64 and bounded integers
of 32 bits).
"""

import hashlib
import math
from collections.abc import Iterator, Sequence

MASK_32 = (1 << 32) - 1
MASK_64 = (1 << 64) - 1
MASK_128 = (1 << 128) - 1
PCG64_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


def spawn_key(label: str) -> tuple[int, int]:
    digest = hashlib.blake2b(label.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def words_of(number: int) -> list[int]:
    words = [number & MASK_32]
    while number := number >> 32:
        words.append(number & MASK_32)
    return words


class Hash:
    """The multiply-and-fold hash of SeedSequence; its constant moves on with every call."""

    def __init__(self, constant: int, multiplier: int):
        self.constant, self.multiplier = constant, multiplier

    def __call__(self, value: int) -> int:
        value ^= self.constant
        self.constant = self.constant * self.multiplier & MASK_32
        value = value * self.constant & MASK_32
        return value ^ value >> 16


def mix(x: int, y: int) -> int:
    result = (0xCA01F9DD * x - 0x4973F715 * y) & MASK_32
    return result ^ result >> 16


def seed_words(root_seed: int, key: tuple[int, int]) -> list[int]:
    """Four 64-bit words."""
    entropy = words_of(root_seed)
    entropy += [0] * (4 - len(entropy))
    entropy += words_of(key[0]) + words_of(key[1])
    fold = Hash(0x43B0D7E5, 0x931E8875)
    pool = [fold(word) for word in entropy[:4]]
    for source in range(4):
        for target in range(4):
            if target != source:
                pool[target] = mix(pool[target], fold(pool[source]))
    for word in entropy[4:]:
        for target in range(4):
            pool[target] = mix(pool[target], fold(word))
    unfold = Hash(0x8B51F9DD, 0x58F38DED)
    halves = [unfold(pool[index % 4]) for index in range(8)]
    return [halves[2 * index] | halves[2 * index + 1] << 32 for index in range(4)]


class PlainStream:
    """The stream (label, root seed): raw 64-bit outputs and bounded integers."""

    def __init__(self, label: str, root_seed: int):
        u0, u1, u2, u3 = seed_words(root_seed, spawn_key(label))
        self.increment = (2 * (u2 << 64 | u3) + 1) & MASK_128
        self.state = 0
        self._step()
        self.state = (self.state + (u0 << 64 | u1)) & MASK_128
        self._step()
        self.kept: int | None = None
        self.n_rejected = 0

    def _step(self) -> None:
        self.state = (self.state * PCG64_MULTIPLIER + self.increment) & MASK_128

    def raw(self) -> int:
        self._step()
        folded = (self.state >> 64 ^ self.state) & MASK_64
        turn = self.state >> 122
        return (folded >> turn | folded << (64 - turn)) & MASK_64

    def word(self) -> int:
        if self.kept is not None:
            word, self.kept = self.kept, None
            return word
        both = self.raw()
        self.kept = both >> 32
        return both & MASK_32

    def below(self, bound: int) -> int:
        if bound == 1:
            return 0
        product = self.word() * bound
        if product & MASK_32 < bound:
            threshold = ((1 << 32) - bound) % bound
            while product & MASK_32 < threshold:
                self.n_rejected += 1
                product = self.word() * bound
        return product >> 32

    def integers(self, bound: int, size: int) -> list[int]:
        return [self.below(bound) for _ in range(size)]


def iqm(values: Sequence[float]) -> float:
    ascending = sorted(values)
    trim = math.floor(len(ascending) * 0.25)
    kept = ascending[trim : len(ascending) - trim]
    return math.fsum(kept) / len(kept)


def percentile(ascending: Sequence[float], fraction: float) -> float:
    if not ascending:
        return math.nan
    position = (len(ascending) - 1) * fraction
    index = math.floor(position)
    gap = position - index
    low, high = ascending[index], ascending[min(index + 1, len(ascending) - 1)]
    return low + (high - low) * gap if gap < 0.5 else high - (high - low) * (1 - gap)


def resamples(clusters: Sequence[Sequence[float]], n_resamples: int, stream: PlainStream) -> Iterator[list[float]]:
    for _ in range(n_resamples):
        values: list[float] = []
        for index in stream.integers(len(clusters), len(clusters)):
            cluster = clusters[index]
            if cluster:
                values += [cluster[pick] for pick in stream.integers(len(cluster), len(cluster))]
        if values:
            yield values


def interval(clusters: Sequence[Sequence[float]], n_resamples: int, root_seed: int, label: str) -> tuple[float, float]:
    stream = PlainStream(label, root_seed)
    iqms = sorted(iqm(values) for values in resamples(clusters, n_resamples, stream))
    return percentile(iqms, 0.025), percentile(iqms, 0.975)
