"""Subjects whose verification ends otherwise than with a table; apart from tests, so that other processes find them."""

import os
import signal
from pathlib import Path

from rowproof.evidence.checks import CheckTable
from rowproof.evidence.subjects import Subject


class Named(Subject):
    """One that passes."""

    def verify(self) -> CheckTable:
        table = CheckTable(str(self.folder))
        table.add("a", True, "holds", f"{os.environ.get('OMP_NUM_THREADS')} threads")
        return table


class Killed(Subject):
    """One during which the process dies, as where memory runs out."""

    def verify(self) -> CheckTable:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def named(name: str) -> Named:
    """A subject called ``name``."""
    return Named("bundle", Path(name), None, None, None, False)


def killed(name: str) -> Killed:
    """A subject called ``name``."""
    return Killed("bundle", Path(name), None, None, None, False)
