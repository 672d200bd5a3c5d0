"""Names what is no plain file or folder below a folder of results: evidence lies where its name says."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable

SHOWN = 10


def links_below(folder: Path) -> list[str]:
    """Every link, device, pipe and socket at or below ``folder``, with what it is; nothing behind them is looked at.

    Where ``folder`` lies in a folder ``results``, the folders on the way from there count as well.
    """
    way = [folder]
    absolute = folder.absolute()
    above = [parent for parent in absolute.parents if "results" in absolute.parts[: len(parent.parts)]]
    start = next((len(p.parts) for p in reversed(above) if p.name == "results"), None)
    if start is not None:
        way = [*(parent for parent in reversed(above) if len(parent.parts) >= start), folder]
    found = [f"{path} ({kind})" for path in way if (kind := _kind(path))]
    if not found and folder.is_dir():
        found = [f"{path} ({kind})" for path, kind in _walk(folder)]
    return found


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            path = folder / entry.name
            kind = _kind(path)
            if kind:
                yield path, kind
            elif entry.is_dir(follow_symlinks=False):
                yield from _walk(path)


def _kind(path: Path) -> str | None:
    try:
        status = path.lstat()
    except OSError:
        # What is not there is for others to say.
        return None
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISREG(mode):
        return f"a file with {status.st_nlink} names (hard links)" if status.st_nlink != 1 else None
    return None if stat.S_ISDIR(mode) else "a pipe, socket or device"


def link_table(folder: Path) -> CheckTable | None:
    """A failing table that names what :func:`links_below` finds; None when there is nothing."""
    found = links_below(folder)
    if not found:
        return None
    table = CheckTable(str(folder))
    table.add("files:links", False, "every file and folder is the thing itself, no link, pipe or device", told(found))
    return table


def told(found: list[str]) -> str:
    """What was found, and what to do."""
    more = [f"and {len(found) - SHOWN} more"] * (len(found) > SHOWN)
    return f"{', '.join([*found[:SHOWN], *more])}: put the files themselves there (cp -RL)"


def require_no_links(folder: Path) -> None:
    """Raise where :func:`links_below` finds anything.

    Raises:
        RowproofError: naming what was found.
    """
    found = links_below(folder)
    if found:
        raise RowproofError(f"{folder}: every file and folder must be the thing itself, found {told(found)}")
