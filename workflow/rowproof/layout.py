"""The files of a bundle, their digest list and the digest that guards the provenance."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rowproof.errors import RecordError
from rowproof.files import sha256_hex
from rowproof.records import digest, split_lines

BUNDLE_SCHEMA = "rowproof/bundle/1"
PROVENANCE_SCHEMA = "rowproof/provenance/1"

# Who made the bundle, when rebuilt, is another story than what it says; so provenance is outside the digests.
PROVENANCE = "provenance.json"
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


def bundle_files(seeds: Iterable[int]) -> list[str]:
    """Names of all files of a bundle, sorted by code point."""
    return sorted([*FIXED_FILES, *(episode_file(seed) for seed in seeds)])


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


def provenance_digest(provenance: Mapping[str, Any]) -> str:
    """Digest over a provenance document without its own ``digest`` entry: tells an edited one from a written one."""
    return digest({key: value for key, value in provenance.items() if key != "digest"})
