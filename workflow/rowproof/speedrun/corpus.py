"""The generated corpus ``gen-v1``: the same bytes from every Python, on every machine.

Integer arithmetic alone makes the text: no float, hash, locale or order of a set enters. A *world* (words and what goes
with what) is fixed; a *stream seed* then writes documents from it without end. Tokens are the bytes of ASCII text, and
token 256 begins each document. Shards have the public speedrun's format: 256 little-endian 32-bit integers (magic
number, version, number of tokens, zeros), then the tokens as little-endian unsigned 16-bit integers.
"""

import sys
from array import array
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rowproof.errors import RecordError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.records import decode, encode_document

CORPUS = "gen-v1"
MANIFEST = "manifest.json"
DOCUMENT_START = 256
VOCABULARY = 288
"""Token values that a model must know: 257, padded."""

TRAIN_TOKENS = 4_000_000
VAL_TOKENS = 131_073
"""131,072 scored tokens, and the one before them."""
AUDIT_TOKENS = VAL_TOKENS

MAGIC = 20240520
VERSION = 1
HEADER_BYTES = 1024
MAX_SHARD_TOKENS = 100_000_000
OVERLAP_TOKENS = 64

_MASK = 2**64 - 1


class Shard(NamedTuple):
    """One file of the corpus."""

    split: str
    name: str
    tokens: int
    bytes: int
    sha256: str


SHARDS = (
    Shard(
        split="train",
        name="gen_train_000001.bin",
        tokens=TRAIN_TOKENS,
        bytes=8_001_024,
        sha256="cfaf951a78c9e6f3cee86e9f66856639e498eb6d1165c186daaa3915214a77ec",
    ),
    Shard(
        split="val",
        name="gen_val_000000.bin",
        tokens=VAL_TOKENS,
        bytes=263_170,
        sha256="5995c01bb48e7fe5beb62a9ff06deee30b2847d2a1c92b12ec3977171a54362c",
    ),
)
"""What ``gen-v1`` is: a generator that makes other bytes makes another corpus."""


class _Draws:
    """SplitMix64 (Steele, Lea and Flood 2014): a 64-bit counter, mixed."""

    def __init__(self, seed: int) -> None:
        self.state = seed & _MASK

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1; the bias is below n / 2**64."""
        self.state = state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((state ^ (state >> 31)) * n) >> 64

    def skewed(self, n: int) -> int:
        """An integer from 0 to n - 1, small ones far more often: the scaled product of two even draws."""
        return self.below(n) * self.below(n) // n


class _World(NamedTuple):
    """Words, most frequent first, and for each noun the verbs and adjectives that go with it."""

    names: list[str]
    nouns: list[str]
    verbs: list[list[str]]
    adjectives: list[list[str]]


_ONSETS = (
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "br",
    "st",
    "tr",
    "qu",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou", "y")
_CODAS = ("", "", "", "l", "n", "r", "s", "t", "x")
_INITIALS = "BDFGHKLMNPRSTV"
_PARTNERS = 6


@cache
def _world() -> _World:
    draws = _Draws(stream_seed("world"))
    taken: set[str] = set()

    def word(syllables: int) -> str:
        while True:
            parts = [
                _ONSETS[draws.below(len(_ONSETS))]
                + _VOWELS[draws.below(len(_VOWELS))]
                + _CODAS[draws.below(len(_CODAS))]
                for _ in range(syllables)
            ]
            text = "".join(parts)
            if text not in taken:
                taken.add(text)
                return text

    def name() -> str:
        while True:
            text = _INITIALS[draws.below(len(_INITIALS))] + word(2)[1:]
            if text not in taken:
                taken.add(text)
                return text

    nouns = [word(1 + draws.below(2)) for _ in range(300)]
    verbs = [word(1 + draws.below(2)) + "s" for _ in range(120)]
    adjectives = [word(2) for _ in range(120)]
    names = [name() for _ in range(200)]
    return _World(
        names,
        nouns,
        [[verbs[draws.below(120)] for _ in range(_PARTNERS)] for _ in nouns],
        [[adjectives[draws.below(120)] for _ in range(_PARTNERS)] for _ in nouns],
    )


def stream_seed(purpose: str) -> int:
    """The 64-bit seed of a stream: the first eight bytes of the SHA-256 of the corpus name and ``purpose``."""
    return int.from_bytes(sha256(f"{CORPUS}/{purpose}".encode("ascii")).digest()[:8], "big")


def audit_seed(patched_sha256: str, salt: bytes) -> int:
    """The seed of the audit stream of one patch: nobody can know the text before the patch and the salt are fixed.

    Args:
        patched_sha256: SHA-256 of the patched script, 64 hex digits.
        salt: the secret of the campaign; published when it closes.
    """
    return stream_seed(f"audit/{patched_sha256}/{salt.hex()}")


def documents(seed: int) -> Iterator[str]:
    """The documents of the stream ``seed``, without end."""
    world, draws = _world(), _Draws(seed)
    while True:
        # An even choice of names parts the streams: no 64 bytes of one are met in another.
        cast = [world.names[draws.below(200)] for _ in range(2 + draws.below(3))]
        things = [draws.skewed(300) for _ in range(2 + draws.below(4))]
        yield " ".join(_sentence(world, draws, cast, things) for _ in range(4 + draws.below(8))) + "\n"


def _sentence(world: _World, draws: _Draws, cast: list[str], things: list[int]) -> str:
    def who() -> str:
        return cast[draws.below(len(cast))]

    def thing() -> int:
        return things[draws.below(len(things))]

    def adjective(noun: int) -> str:
        return world.adjectives[noun][draws.below(_PARTNERS)]

    def verb(noun: int) -> str:
        return world.verbs[noun][draws.below(_PARTNERS)]

    template, noun, other = draws.below(6), thing(), thing()
    if template == 0:
        return f"{who()} {verb(noun)} the {adjective(noun)} {world.nouns[noun]}."
    if template == 1:
        return f"the {adjective(noun)} {world.nouns[noun]} of {who()} {verb(noun)} near the {world.nouns[other]}."
    if template == 2:
        a, b = draws.below(60), draws.below(60)
        return f"{who()} adds {a} and {b} and gets {a + b}."
    if template == 3:
        return f'"the {world.nouns[noun]} is {adjective(noun)}", says {who()}.'
    if template == 4:
        more = world.nouns[draws.skewed(300)]
        return f"{who()} has a {adjective(noun)} {world.nouns[noun]}, a {world.nouns[other]} and a {more}."
    return f"when {who()} {verb(noun)}, the {adjective(other)} {world.nouns[other]} {verb(noun)} {who()}."


def stream(seed: int, n_tokens: int) -> "array[int]":
    """The first ``n_tokens`` tokens (unsigned 16-bit) of the stream ``seed``; the last document is cut."""
    tokens = array("H")
    for text in documents(seed):
        tokens.append(DOCUMENT_START)
        tokens.extend(text.encode("ascii"))
        if len(tokens) >= n_tokens:
            return tokens[:n_tokens]
    raise AssertionError("documents never end")


def audit_stream(patched_sha256: str, salt: bytes) -> "array[int]":
    """The audit tokens (shape (131073,), unsigned 16-bit) of one patch; see :func:`audit_seed`."""
    return stream(audit_seed(patched_sha256, salt), AUDIT_TOKENS)


def overlap(first: "array[int]", second: "array[int]", length: int = OVERLAP_TOKENS) -> int:
    """How many different windows of ``length`` tokens of ``first`` occur anywhere in ``second``."""
    raw, other, step = first.tobytes(), second.tobytes(), first.itemsize
    size = step * length
    windows = {raw[i : i + size] for i in range(0, len(raw) - size + 1, step)}
    shared = (other[i : i + size] for i in range(0, len(other) - size + 1, step))
    return len({window for window in shared if window in windows})


def encode_shard(tokens: "array[int]") -> bytes:
    """The bytes of the shard that holds ``tokens``."""
    header = array("i", [MAGIC, VERSION, len(tokens)] + [0] * (HEADER_BYTES // 4 - 3))
    body = array("H", tokens)
    if sys.byteorder == "big":
        header.byteswap()
        body.byteswap()
    return header.tobytes() + body.tobytes()


def decode_shard(data: bytes, where: str) -> "array[int]":
    """The tokens of a shard; ``where`` names it in messages.

    Raises:
        RecordError: the header is not that of a shard, or the number of bytes is not what it says.
    """
    header, body = array("i", data[: min(HEADER_BYTES, len(data) // 4 * 4)]), array("H")
    if sys.byteorder == "big":
        header.byteswap()
    if len(header) != HEADER_BYTES // 4 or header[:2].tolist() != [MAGIC, VERSION] or any(header[3:]):
        raise RecordError(f"{where}: must begin with the header of a shard, found other bytes: write the corpus again")
    if not 0 <= header[2] <= MAX_SHARD_TOKENS or len(data) != HEADER_BYTES + 2 * header[2]:
        raise RecordError(
            f"{where}: must hold the {header[2]} tokens of its header, found {len(data)} bytes: write the corpus again"
        )
    body.frombytes(data[HEADER_BYTES:])
    if sys.byteorder == "big":
        body.byteswap()
    return body


def manifest() -> dict[str, Any]:
    """The manifest of ``gen-v1``: its name, and for each shard the split, name, tokens, bytes and SHA-256."""
    return {"corpus": CORPUS, "shards": [shard._asdict() for shard in SHARDS]}


def manifest_sha256() -> str:
    """SHA-256 of the manifest file (``data_manifest_sha256`` of a row)."""
    return sha256_hex(encode_document(manifest()))


def write_corpus(folder: Path) -> dict[str, Any]:
    """Generate all shards and the manifest into ``folder``; return the manifest. Takes some seconds.

    Raises:
        RecordError: this interpreter generated other bytes than ``gen-v1`` consists of; nothing is written then.
        OSError: a file cannot be written.
    """
    made = {}
    for shard in SHARDS:
        made[shard] = encode_shard(stream(stream_seed(shard.split), shard.tokens))
        _check(made[shard], shard, shard.name)
    for shard, data in made.items():
        write_atomic(folder / shard.name, data)
    # Last, so that a folder with a manifest is complete.
    write_atomic(folder / MANIFEST, encode_document(manifest()))
    return manifest()


def verify_corpus(folder: Path) -> dict[str, Any]:
    """Check manifest and shards in ``folder`` against what ``gen-v1`` consists of; return the manifest.

    Raises:
        RecordError: a file is missing or differs.
    """
    found = decode(_read(folder / MANIFEST), str(folder / MANIFEST))
    if found != manifest():
        raise RecordError(
            f"{folder / MANIFEST}: must be the manifest of {CORPUS}, found another: write the corpus again"
        )
    for shard in SHARDS:
        _check(_read(folder / shard.name), shard, str(folder / shard.name))
    return manifest()


def read_split(folder: Path, split: str) -> "array[int]":
    """The tokens (unsigned 16-bit) of the split ``train`` or ``val``, from a file that is checked first.

    Raises:
        RecordError: the file is missing or is not that of ``gen-v1``.
    """
    (shard,) = (shard for shard in SHARDS if shard.split == split)
    data = _read(folder / shard.name)
    _check(data, shard, str(folder / shard.name))
    return decode_shard(data, str(folder / shard.name))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: must be a readable file: {error.strerror}: write the corpus again") from None


def _check(data: bytes, shard: Shard, where: str) -> None:
    if len(data) != shard.bytes or sha256_hex(data) != shard.sha256:
        raise RecordError(
            f"{where}: must be {shard.bytes} bytes with SHA-256 {shard.sha256}, "
            f"found {len(data)} with {sha256_hex(data)}: write the corpus again"
        )
