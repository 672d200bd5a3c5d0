"""Weights as a run leaves them: an ``npz`` file whose every byte is untrusted."""

import hashlib
import io
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.lib import format as npy

MAX_ARRAYS = 4096


class CheckpointError(Exception):
    """A file is not a checkpoint by the script contract; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, without its weights.

    Attributes:
        sha256: of names, shapes and values in the order of the names; the same weights give the same digest.
        n_params: numbers in all arrays.
        size_bytes: of the file.
        shapes: of the arrays by name.
    """

    sha256: str
    n_params: int
    size_bytes: int
    shapes: dict[str, tuple[int, ...]]


def read_checkpoint(data: bytes, limit_bytes: int) -> Checkpoint:
    """Check and describe a checkpoint; no object in it is ever built.

    Args:
        data: the whole file.
        limit_bytes: largest size of all arrays together, so that a small file cannot unpack to a huge one.

    Raises:
        CheckpointError: no archive of float32 arrays with distinct names, or above the limit.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = _read_arrays(archive, limit_bytes)
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise CheckpointError(f"final.npz must be an archive of arrays: {error}") from None
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}\0{list(array.shape)}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return Checkpoint(
        sha256=digest.hexdigest(),
        n_params=sum(int(array.size) for array in arrays.values()),
        size_bytes=len(data),
        shapes={name: tuple(arrays[name].shape) for name in sorted(arrays)},
    )


def _read_arrays(archive: zipfile.ZipFile, limit_bytes: int) -> dict[str, np.ndarray]:
    members = archive.infolist()
    if not 0 < len(members) <= MAX_ARRAYS:
        raise CheckpointError(f"final.npz must hold 1 to {MAX_ARRAYS} arrays, found {len(members)}")
    arrays: dict[str, np.ndarray] = {}
    left = limit_bytes
    for member in members:
        if member.filename in arrays:
            raise CheckpointError(f"arrays must have distinct names, found {member.filename!r} twice")
        with archive.open(member) as stream:
            content = stream.read(left + 1)
        left -= len(content)
        if left < 0:
            raise CheckpointError(f"final.npz must unpack to {limit_bytes} bytes at most, found more")
        arrays[member.filename] = _read_array(content, member.filename)
    return arrays


def _read_array(content: bytes, name: str) -> np.ndarray:
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    if version != (1, 0):
        raise CheckpointError(f"{name}: must be of npy version 1.0, found {version}")
    shape, fortran, dtype = npy.read_array_header_1_0(stream, max_header_size=10_000)
    if dtype != np.dtype("<f4") or fortran:
        raise CheckpointError(f"{name}: must be float32 in C order, found {dtype}")
    values = content[stream.tell() :]
    count = 1
    for length in shape:
        count *= length
    if any(length < 0 for length in shape) or len(values) != 4 * count:
        raise CheckpointError(f"{name}: must hold {count} numbers of 4 bytes, found {len(values)} bytes")
    return np.frombuffer(values, dtype="<f4").reshape(shape)
