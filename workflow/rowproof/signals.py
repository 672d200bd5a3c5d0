"""How Snakemake is told by time stamps what is current, whatever clocks say.

Time stamps are compared with one another alone: the clock of this process, that of a file server and that of another
host may be apart by seconds or by days.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rowproof.files import write_atomic, write_if_changed
from rowproof.records import encode_document

# Time stamp of files whose own one Snakemake cannot compare.
SETTLED_S = 1.0


def signal(
    path: Path, key: str, state: str, outputs: Iterable[Path], reasons: Iterable[str], superseded: dict[str, str]
) -> None:
    """Tell Snakemake by time stamp and content whether a target is current.

    Current: the time stamp is 0, so no output is ever older, whatever times a clone or a ``touch`` left. Otherwise it
    is that of the moment, as the file system has it, and older ones are given to outputs that are not older; the
    content is new as well, because Snakemake ignores a newer time stamp on content that it remembers.
    """
    data: dict[str, Any] = {"key": key, "state": state}
    if state == "current":
        write_if_changed(path, encode_document(data), durable=False)
        if path.stat().st_mtime != 0:
            os.utime(path, (0, 0))
        return
    # The clock of this process only makes the content another one than ever before.
    data |= {"reasons": list(reasons), "superseded": superseded, "given_ns": time.time_ns()}
    write_atomic(path, encode_document(data), durable=False)
    given_s = path.stat().st_mtime
    for output in outputs:
        # What is not there, or not ours to change, is for Snakemake to tell.
        with suppress(OSError):
            if output.lstat().st_mtime >= given_s:
                os.utime(output, (SETTLED_S, SETTLED_S), follow_symlinks=False)


def settle(paths: Iterable[Path]) -> None:
    """Give files whose time stamp is 0, or later than their last change, one of the past.

    For Snakemake 0 is no time, so no input is newer; and it refuses whatever a job reads from the future, even where
    it would ignore the time. Archives leave such files. When a file was last changed nobody but the file system says.
    """
    for path in paths:
        with suppress(OSError):
            found = path.lstat()
            if not 0 < found.st_mtime_ns <= found.st_ctime_ns:
                os.utime(path, (SETTLED_S, SETTLED_S), follow_symlinks=False)


def settle_inputs(inputs: Iterable[str], outputs: Iterable[str]) -> None:
    """Make no input of a job that ended well newer than its outputs, as when a clock was set back meanwhile.

    Snakemake would call the job failed, and remove what it made. Nothing else asks for these time stamps: a job that
    must run again is told so by name or by :func:`signal`, which is given anew at each start.
    """
    with suppress(OSError, ValueError):
        made_ns = min(Path(output).lstat().st_mtime_ns for output in outputs)
        for path in map(Path, inputs):
            if path.stat().st_mtime_ns > made_ns:
                os.utime(path, (SETTLED_S, SETTLED_S))
