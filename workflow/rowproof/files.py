"""Atomic writes: these functions move bytes and never make them."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path`` and rename it onto ``path`` when the block succeeds.

    A reader sees either the old content or all of the new content; a failing block leaves ``path`` untouched.

    Raises:
        OSError: naming ``path`` where the system names no file or the temporary one.
    """
    try:
        with _temporary_sibling(path) as temporary:
            yield temporary
            # mkstemp makes files private; evidence is meant to be read by others.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
    except OSError as error:
        if error.filename is None or Path(str(error.filename)).name.startswith(f".{path.name}."):
            error.filename = str(path)
        raise


@contextmanager
def _temporary_sibling(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes, durable: bool = True) -> None:
    """Write ``data`` to ``path`` as bytes, so that no platform translates newlines; see :func:`atomic_path`.

    Args:
        path: the target.
        data: its whole content.
        durable: wait until the disk holds it. Files that are derived anew at each start need not wait.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        stream.write(data)
        if durable:
            stream.flush()
            os.fsync(stream.fileno())


def write_if_changed(path: Path, data: bytes, durable: bool = True) -> bool:
    """Write ``data`` unless ``path`` already holds it; return whether it was written."""
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    write_atomic(path, data, durable)
    return True
