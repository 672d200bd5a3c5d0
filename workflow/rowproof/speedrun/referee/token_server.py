"""The token server: it owns the training data, hands out windows, and counts what it hands out."""

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType

import numpy as np

REQUEST_LIMIT = 20_000
"""Requests that one run may make."""
WINDOW_LIMIT = 1 << 17
"""Tokens that one request may ask for."""

_REQUEST = struct.Struct("<qq")
_REPLY = struct.Struct("<q")
_REFUSAL = _REPLY.pack(-1)


class TokenServer:
    """Serve one training stream to one run, from a thread; use as a context manager.

    A request is offset and length as little-endian 64-bit integers. The answer is the length and that many
    little-endian unsigned 16-bit tokens, or -1 if the window is empty, too long or outside the stream. A run that has
    used up its requests gets -1 and the end of the connection.

    Attributes:
        descriptor: the end of the connection that the run inherits; closed by :meth:`hand_over`.
        requests: answered requests so far, refusals included.
        tokens: tokens delivered so far, repeated ones included.
        largest_window: length of the longest window delivered.
    """

    def __init__(self, stream: np.ndarray) -> None:
        """Prepare to serve ``stream`` (unsigned 16-bit of shape [n])."""
        self._data = np.ascontiguousarray(stream, dtype="<u2")
        self._seen = np.zeros(len(stream), dtype=bool)
        self._ours, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.descriptor = self._theirs.fileno()
        self.requests = 0
        self.tokens = 0
        self.largest_window = 0

    def __enter__(self) -> "TokenServer":
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving and forget the data."""
        self.hand_over()
        # Wakes the thread where it waits for a run that is gone.
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._data = np.zeros(0, dtype="<u2")

    def hand_over(self) -> None:
        """Close this process's copy of the run's end; call it once the run has inherited it."""
        self._theirs.close()

    @property
    def distinct_tokens(self) -> int:
        """Positions of the stream that were delivered at least once."""
        return int(self._seen.sum())

    def _serve(self) -> None:
        try:
            while request := self._ours.recv(_REQUEST.size, socket.MSG_WAITALL):
                if len(request) < _REQUEST.size:
                    return
                if self.requests >= REQUEST_LIMIT:
                    self._ours.sendall(_REFUSAL)
                    return
                self._ours.sendall(self._answer(*_REQUEST.unpack(request)))
        except OSError:
            # The run is over, or has closed its end.
            return
        finally:
            self._ours.close()

    def _answer(self, offset: int, length: int) -> bytes:
        end = offset + length
        self.requests += 1
        if not 0 < length <= WINDOW_LIMIT or offset < 0 or end > len(self._data):
            return _REFUSAL
        self.tokens += length
        self.largest_window = max(self.largest_window, length)
        self._seen[offset:end] = True
        return _REPLY.pack(length) + self._data[offset:end].tobytes()
