"""Which runs are under way: each keeps a file with its process id, locked as long as it lives.

A lock ends with its process, however that ends: what is locked is never the id of a process that came later.
"""

import fcntl
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rowproof.errors import RecordError
from rowproof.gptnt.models import Strict
from rowproof.plain_data import read_model
from rowproof.records import decode, encode_line

FOLDER = "output/running"


class RunningRun(Strict):
    """A run under way.

    Attributes:
        run: name of its manifest.
        host: where it runs; a process id means nothing elsewhere.
        pid: of its process.
    """

    run: str
    host: str
    pid: int


@contextmanager
def registered(root: Path, run: str) -> Iterator[None]:
    """Let :func:`running_runs` know of this process inside the block."""
    entry = RunningRun(run=run, host=socket.gethostname(), pid=os.getpid())
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{run}-", suffix=".tmp", dir=folder)
    # Renamed once it is locked: whoever finds it must not take it for one that was left behind.
    path = Path(name).with_suffix(".json")
    with os.fdopen(handle, "wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(encode_line(entry.model_dump()).encode())
            stream.flush()
            Path(name).rename(path)
            yield
        finally:
            Path(name).unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def running_runs(root: Path) -> list[RunningRun]:
    """The runs of a project that are under way; files of processes that are gone are removed.

    Raises:
        RecordError: the file of a run is not one that :func:`registered` wrote.
    """
    found = []
    for path in sorted((root / FOLDER).glob("*.json")):
        try:
            with path.open("rb") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    found.append(_read(path, stream.read()))
                else:
                    path.unlink(missing_ok=True)
        except FileNotFoundError:
            # It ended in between.
            continue
    return found


def _read(path: Path, data: bytes) -> RunningRun:
    try:
        return read_model(decode(data, path.name), RunningRun, path.name)
    except Exception as error:
        raise RecordError(f"{path}: must be the file of a run, found another content: {error}") from None


def run_kill(root: Path, run: str | None, show: Callable[[str], object] = print) -> int:
    """Tell runs of a project to end once their games under way are over; 1 if one is on another machine.

    Args:
        root: the project.
        run: name of a manifest; None for all.
        show: where lines go.

    Raises:
        RecordError: see :func:`running_runs`.
    """
    entries = [entry for entry in running_runs(root) if run in (None, entry.run)]
    foreign = 0
    for entry in entries:
        if entry.host != socket.gethostname():
            foreign += 1
            show(f"{entry.run}: runs on {entry.host} (process {entry.pid}): call rowproof kill there")
            continue
        try:
            os.kill(entry.pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        show(f"{entry.run}: process {entry.pid} was told to end; it finishes and records the games under way")
    if not entries:
        show(f"no run {'of this project' if run is None else run} is under way")
    return 1 if foreign else 0
