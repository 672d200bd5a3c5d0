"""Compares what a job opens below the project with what its recipe names.

Imports alone do not tell what decides a record: code may open data files, or load modules by computed names. What a
job loads or reads beyond its recipe is refused by name, since another content would pass under the same key.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from rowproof.closure import OBSERVERS, FolderSources, HashCache, closure
from rowproof.errors import StaleInputError

# Below these a job finds its inputs and products, tools and byte code, and nothing that a recipe could name.
OUTSIDE = ("work", "logs", "results", ".venv", ".git", ".snakemake", "output", "__pycache__")
# Hooks cannot be taken off again, so there is one, which writes to the audit that is open.
_open_audit: list["Audit"] = []
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _open_audit:
        _open_audit[-1].note(arguments)


@contextmanager
def unwatched() -> Iterator[None]:
    """What is opened or loaded in this block is no part of the stage: it may refuse, and hands over nothing."""
    paused, before = _open_audit[:], set(sys.modules)
    _open_audit.clear()
    try:
        yield
    finally:
        for audit in paused:
            audit.disregard(set(sys.modules) - before)
        _open_audit.extend(paused)


class Audit:
    """Watches one process from the start of its stage to the end.

    Attributes:
        read: files below the project that were opened for reading, relative to it, other than Python code.
    """

    def __init__(self, root: Path, recipe: Mapping[str, Any]) -> None:
        """Watch what is opened below ``root`` and compare it with ``recipe``."""
        self._root = os.path.realpath(root)
        self._checkout = root
        # Rows that are built in a folder of the project have their products below that.
        self._workdir = os.path.relpath(os.path.realpath(os.curdir), self._root).replace(os.sep, "/")
        self._recipe = recipe
        self.read: set[str] = set()
        self._before: set[str] = set()

    def note(self, arguments: tuple[Any, ...]) -> None:
        """Take note of an ``open`` event: path, mode, flags."""
        path, mode, flags = (*arguments, None, None, None)[:3]
        if not isinstance(path, str | bytes | os.PathLike):
            # A descriptor was opened before.
            return
        if (isinstance(mode, str) and not set(mode) & set("r+")) or (isinstance(flags, int) and _reads_nothing(flags)):
            return
        place = os.path.realpath(os.fsdecode(path))
        if place.startswith(self._root + os.sep):
            self.read.add(os.path.relpath(place, self._root).replace(os.sep, "/"))

    def disregard(self, modules: set[str]) -> None:
        """Take these modules, by name, for loaded before."""
        self._before |= modules

    def __enter__(self) -> "Audit":
        """Begin to watch."""
        global _hooked
        if not _hooked:
            sys.addaudithook(_hook)
            _hooked = True
        self._before = set(sys.modules)
        _open_audit.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End, and refuse what the recipe does not name.

        Raises:
            StaleInputError: a file was read, or a module loaded, that is not in the recipe.
        """
        _open_audit.remove(self)
        if kind is None:
            self.check()

    def check(self) -> None:
        """See :meth:`__exit__`."""
        unnamed = sorted(self.files_read() - set(self._recipe["data"]) - set(self._recipe.get("fetched", ())))
        if unnamed:
            raise StaleInputError(
                f"stage {self._recipe['stage']} may read files of the project that its recipe names "
                f"({', '.join(self._recipe['data']) or 'none'}), found it opened {', '.join(unnamed)}: "
                "name them in data_files of the engine, or take the content from the setup"
            )
        strange = sorted(self.modules_loaded() - set(self._recipe["files"])) if "producer" in self._recipe else []
        if strange:
            raise StaleInputError(
                f"stage {self._recipe['stage']} may load code that its recipe names, found it loaded "
                f"{', '.join(strange)}: import it by a statement, or name it in modules of the engine"
            )

    def files_read(self) -> set[str]:
        """What was opened below the project, but for code and for what lies in folders of tools and products."""
        return {
            path
            for path in self.read
            if path.split("/")[0] not in OUTSIDE
            and path.removeprefix(f"{self._workdir}/").split("/")[0] not in OUTSIDE
            and not any(part == "__pycache__" or part.endswith(".egg-info") for part in path.split("/"))
            and not path.endswith((".py", ".pyc"))
            # A name relative to an open folder, as in removing a tree, looks like one of this folder and is none.
            and (Path(self._root) / path).is_file()
        }

    def modules_loaded(self) -> set[str]:
        """The files of the project that were loaded as modules since the start, but for those that run nothing.

        Observers, and what they import, are left out.
        """
        found, observers = {}, []
        for name in sorted(set(sys.modules) - self._before):
            file = getattr(sys.modules[name], "__file__", None)
            # Modules that are no file may give any name for one, as those of torch do.
            given = Path(file) if isinstance(file, str) and file.endswith(".py") else None
            place = os.path.realpath(given) if given and given.is_absolute() and given.is_file() else ""
            if place.startswith(self._root + os.sep):
                path = os.path.relpath(place, self._root).replace(os.sep, "/")
                if path.split("/")[0] not in OUTSIDE and _runs(Path(place)):
                    found[path] = name
                    observers += [name] if name in OBSERVERS else []
        if not observers:
            return set(found)
        theirs = closure(FolderSources(self._checkout, HashCache(None)), (), observers, frozenset())
        return set(found) - set(theirs.files)


def _reads_nothing(flags: int) -> bool:
    """Whether a file that is opened by these flags is written alone, or holds nothing yet."""
    new = os.O_CREAT | os.O_EXCL
    return flags & os.O_ACCMODE == os.O_WRONLY or bool(flags & os.O_TRUNC) or flags & new == new


def _runs(path: Path) -> bool:
    """Whether a file holds any code; closures leave out those that do not."""
    body = ast.parse(path.read_bytes()).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)
