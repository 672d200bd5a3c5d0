"""Checkpoints as files: named by their content, whose hash is checked before a byte is parsed."""

import re
from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex

URI_PREFIX = "sha256:"
SUFFIX = ".safetensors"
# Several times the largest network that a training configuration here makes.
MAX_BYTES = 64 << 20


class CheckpointError(RowproofError):
    """A checkpoint is missing, is not the one that was asked for, or does not hold what it must."""


def uri_of(data: bytes) -> str:
    """``sha256:<64 hex>``, by which a checkpoint is named everywhere."""
    return URI_PREFIX + sha256_hex(data)


def file_name(uri: str) -> str:
    """Name of the file that holds the checkpoint ``uri``.

    Raises:
        CheckpointError: it is no checkpoint URI.
    """
    if re.fullmatch(URI_PREFIX + "[0-9a-f]{64}", uri) is None:
        raise CheckpointError(f"a checkpoint must be named sha256:<64 hex>, found {uri!r}")
    return uri.removeprefix(URI_PREFIX) + SUFFIX


def store(folder: Path, data: bytes) -> str:
    """Write a checkpoint under its content's name and return its URI."""
    uri = uri_of(data)
    write_atomic(folder / file_name(uri), data)
    return uri


def read_bytes(path: Path, uri: str) -> bytes:
    """The bytes of the checkpoint ``uri`` in ``path``.

    Raises:
        CheckpointError: the file is missing, too large, or other content than ``uri`` names.
    """
    file_name(uri)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise CheckpointError(f"{path}: a checkpoint must have at most {MAX_BYTES} bytes, found {size}")
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: must be the checkpoint {uri}, found {error.strerror}") from None
    if uri_of(data) != uri:
        raise CheckpointError(f"{path}: must be the checkpoint {uri}, found {uri_of(data)}: restore it, or train again")
    return data
