"""The files of a bundle, their digest list, and the digest by which a document tells that it was edited."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex
from rowproof.records import decode, digest, encode_document, split_lines

BUNDLE_SCHEMA = "rowproof/bundle/2"

# Who made the bundle, when rebuilt, is another story than what it says; so provenance is outside the digests.
PROVENANCE = "provenance.json"
# Likewise what a clock showed, which no rebuild repeats.
TIMING = "timing.json"
UNLISTED = (PROVENANCE, TIMING)
SUMS = "SHA256SUMS.txt"
FIXED_FILES = (
    "REPRO.txt",
    SUMS,
    "bundle.json",
    "identities.json",
    "plan.yaml",
    PROVENANCE,
    "recipe.json",
)


def episode_file(seed: int) -> str:
    """Name of the record file of one cluster seed."""
    return f"episodes_seed{seed}.jsonl"


def learned_files(seed: int) -> tuple[str, str, str]:
    """Names of what a learned row holds of one training seed: how it was trained, why chosen, and the checkpoint."""
    return f"training_seed{seed}.json", f"selection_seed{seed}.json", f"checkpoint_seed{seed}.safetensors"


def bundle_files(seeds: Iterable[int], learned: bool = False, timed: bool = False) -> list[str]:
    """Names of all files of a bundle, sorted by code point.

    ``learned`` for a row whose policy was trained, ``timed`` for one whose runs were also timed.
    """
    own = [name for seed in seeds for name in (episode_file(seed), *(learned_files(seed) if learned else ()))]
    return sorted([*FIXED_FILES, *own, *([TIMING] if timed else [])])


def render_sums(files: Mapping[str, bytes]) -> bytes:
    """``SHA256SUMS.txt`` over ``files``, in the form that ``sha256sum -c`` reads."""
    return "".join(f"{sha256_hex(files[name])}  {name}\n" for name in sorted(files)).encode()


def read_sums(data: bytes) -> dict[str, str]:
    """File name -> SHA-256 of a ``SHA256SUMS.txt``.

    Raises:
        RecordError: a line is not ``<64 hex>  <plain file name>``, or a name occurs twice.
    """
    sums: dict[str, str] = {}
    for number, line in split_lines(data, SUMS):
        match = re.fullmatch(rb"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)", line)
        if match is None:
            raise RecordError(f"{SUMS}:{number}: must be <64 hex><two spaces><file name>, found {line!r}")
        name = match[2].decode()
        if name in sums:
            raise RecordError(f"{SUMS}:{number}: {name} must be listed once, found twice")
        sums[name] = match[1].decode()
    return sums


def document_digest(document: Mapping[str, Any]) -> str:
    """Digest over a document without its own ``digest`` entry: tells an edited document from a written one."""
    return digest({key: value for key, value in document.items() if key != "digest"})


def encode_timing(timing: Mapping[str, Any]) -> bytes:
    """``timing.json``: what was measured, and the digest that tells when it was edited."""
    return encode_document({**timing, "digest": document_digest(timing)})


def read_timing(data: bytes) -> dict[str, Any]:
    """What was measured, without the digest that guards it.

    Raises:
        RecordError: not as :func:`encode_timing` wrote it.
    """
    document = decode(data, TIMING)
    if not isinstance(document, dict) or document.get("digest") != document_digest(document):
        raise RecordError(f"{TIMING}: must be as it was written, found its digest does not fit")
    timing = {key: value for key, value in document.items() if key != "digest"}
    if encode_timing(timing) != data:
        raise RecordError(f"{TIMING}: must be as it was written, found other bytes than canonical")
    return timing
