"""Says how far a long shard is, and ends it cleanly when the process is told to stop."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from rowproof.errors import RowproofError

log = logging.getLogger(__name__)

INTERVAL_S = 5.0


class Stopped(RowproofError):
    """The process was told to stop (SIGTERM) before the shard was complete."""

    exit_code = 128 + signal.SIGTERM


class Progress:
    """Counts episodes and control steps; a context in which SIGTERM waits for the episode under way.

    It observes only: no record depends on it.
    """

    def __init__(self, episodes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Expect ``episodes`` episodes; ``clock`` returns seconds."""
        self._total = episodes
        self._clock = clock
        self._done = 0
        self._steps = 0
        self._start_s = self._said_s = clock()
        self._stop = False

    def __enter__(self) -> "Progress":
        """Take over SIGTERM; only the main thread may."""
        self._handles = threading.current_thread() is threading.main_thread()
        if self._handles:
            self._previous = signal.signal(signal.SIGTERM, self._request_stop)
        return self

    def __exit__(self, *details: object) -> None:
        """Give SIGTERM back."""
        if self._handles:
            # None stands for a handler that was not installed from Python.
            signal.signal(signal.SIGTERM, self._previous or signal.SIG_DFL)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop = True

    def finished(self, steps: int) -> None:
        """Take note of one finished episode of ``steps`` control steps.

        Raises:
            Stopped: SIGTERM has arrived.
        """
        self._done += 1
        self._steps += steps
        now_s = self._clock()
        if self._stop:
            raise Stopped(
                f"the shard must run to its end, found SIGTERM after {self._done} of {self._total} episodes: "
                "nothing was written; start it again"
            )
        if now_s - self._said_s >= INTERVAL_S:
            self._said_s = now_s
            elapsed_s = now_s - self._start_s
            log.info(
                "%d of %d episodes, %.0f control steps/s, about %.0f s left",
                self._done,
                self._total,
                self._steps / elapsed_s,
                elapsed_s / self._done * (self._total - self._done),
            )
