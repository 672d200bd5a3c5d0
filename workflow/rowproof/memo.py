"""Remembers what follows from content alone and takes long to find, such as the slices of an old plan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex


def _maker() -> str:
    """Names the program, on which what was found depends: the package's files with their sizes and times."""
    folder = Path(__file__).resolve().parent
    files = sorted(folder.rglob("*.py"))
    stamps = [(path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256_hex(json.dumps(stamps).encode())


class Memo:
    """Plain JSON data by a key that names all that it follows from, such as the object ids of files."""

    def __init__(self, path: Path | None) -> None:
        """Read the file ``path``; an unreadable one is dropped, ``None`` keeps nothing on disk."""
        self._path = path
        self._old: dict[str, Any] = {}
        self._new: dict[str, Any] = {}
        if path is not None:
            try:
                stored = json.loads(path.read_bytes())
                if stored["maker"] == _maker():
                    self._old = dict(stored["facts"])
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                self._old = {}

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """What ``key`` stands for, computed where it is not remembered."""
        if key not in self._new:
            self._new[key] = self._old[key] if key in self._old else compute()
        return self._new[key]

    def save(self) -> None:
        """Write what was used, atomically."""
        if self._path is not None and self._new != self._old:
            data = json.dumps({"maker": _maker(), "facts": self._new}, sort_keys=True).encode()
            write_atomic(self._path, data, durable=False)
