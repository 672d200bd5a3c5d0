"""The client of the token server: the only way by which a training script gets data."""

import os
import struct

import numpy as np

_REQUEST = struct.Struct("<qq")
_REPLY = struct.Struct("<q")


def _receive(descriptor: int, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError("the token server must answer, found its connection closed")
        data += part
    return data


def read(offset: int, length: int) -> np.ndarray:
    """The training tokens ``offset`` to ``offset + length - 1`` as int64 of shape [length].

    Order and overlap of the windows are free.

    Raises:
        RuntimeError: this process has no token server, as when a checkpoint is evaluated.
        ValueError: the server refuses: the window is empty, too long or outside the stream, or the run has used up
            its requests.
    """
    descriptor = os.environ.get("SPEEDRUN_TOKENS_FD")
    if descriptor is None:
        raise RuntimeError("training tokens are served during training alone, found no token server here")
    os.write(int(descriptor), _REQUEST.pack(int(offset), int(length)))
    (count,) = _REPLY.unpack(_receive(int(descriptor), _REPLY.size))
    if count < 0:
        raise ValueError(f"the token server refuses the window of {length} tokens at {offset}")
    return np.frombuffer(_receive(int(descriptor), 2 * count), dtype="<u2").astype(np.int64)
