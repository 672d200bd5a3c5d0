"""Named random sub-streams: every draw comes from a (label, root seed) pair and from nothing else."""

import hashlib

import numpy as np


def spawn_key(label: str) -> tuple[int, int]:
    """Two unsigned 64-bit integers from the 16-byte BLAKE2b digest of ``label`` (UTF-8), big-endian halves."""
    digest = hashlib.blake2b(label.encode("utf-8"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def substream(label: str, root_seed: int) -> np.random.Generator:
    """NumPy's PCG64 generator of the stream ``label`` under ``root_seed``.

    The same pair always gives the same sequence; different labels are independent streams.

    Raises:
        ValueError: ``root_seed`` is negative.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=root_seed, spawn_key=spawn_key(label)))
