"""Says how far a long job is, and ends it cleanly when the process is told to stop."""

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
    """The process was told to stop (SIGTERM) before its job was complete."""

    exit_code = 128 + signal.SIGTERM


class Progress:
    """Counts what is done; a context in which SIGTERM waits for the unit under way.

    It observes only: no result depends on it.
    """

    def __init__(self, total: int, unit: str, work: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Expect ``total`` units; speed is told in ``work`` per second; ``clock`` returns seconds."""
        self._total, self._unit, self._work = total, unit, work
        self._clock = clock
        self._done = self._worked = 0
        self._begin()
        self._stop = False

    def _begin(self) -> None:
        self._start_s = self._said_s = self._clock()
        self._done_before = self._done

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

    def resume(self, done: int) -> None:
        """Take note of ``done`` units that an earlier process has left."""
        self._done += done
        self._begin()
        log.info("%d of %d %s were done before", done, self._total, self._unit)

    def advance(self, units: int, work: int, note: str = "") -> None:
        """Take note of ``units`` more that took ``work``.

        Raises:
            Stopped: SIGTERM has arrived.
        """
        self._done += units
        self._worked += work
        now_s = self._clock()
        if self._stop:
            raise Stopped(
                f"the job must run to its end, found SIGTERM after {self._done} of {self._total} {self._unit}: "
                "start it again"
            )
        if now_s - self._said_s >= INTERVAL_S:
            self._said_s = now_s
            elapsed_s = now_s - self._start_s
            log.info(
                "%d of %d %s, %.0f %s/s, about %.0f s left%s",
                self._done,
                self._total,
                self._unit,
                self._worked / elapsed_s,
                self._work,
                elapsed_s / (self._done - self._done_before) * (self._total - self._done),
                f"; {note}" if note else "",
            )
