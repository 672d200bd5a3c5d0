"""Rows that somebody else hands in: read as hostile input, held against the maintainer's own project, then taken.

Nothing that is handed in is run, and nothing of it is written outside of a temporary folder before all of it is proven.
"""

import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO

from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.signatures import row_of
from rowproof.evidence.subjects import Subject
from rowproof.history import head_of, require_ancestor
from rowproof.layout import FIXED_FILES, PROVENANCE, TIMING
from rowproof.plain_text import visible
from rowproof.provenance import read_provenance
from rowproof.spot import DEFAULT_COUNT, add_spot_checks

# The largest row of this project has 4 MB.
MAX_ARCHIVE_BYTES = 1 << 26
MAX_ENTRIES = 2_000
MAX_FILE_BYTES = 1 << 26
MAX_TOTAL_BYTES = 1 << 28
# Records of one row are alike and shrink to a fortieth; small files may shrink further.
MAX_RATIO = 200
RATIO_FREE_BYTES = 1 << 20
MAX_DEPTH = 4
CHUNK_BYTES = 1 << 16
PART = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FILE = re.compile(
    "|".join(re.escape(name) for name in (*FIXED_FILES, TIMING))
    + r"|episodes_seed[0-9]+\.jsonl|(training|selection)_seed[0-9]+\.json|checkpoint_seed[0-9]+\.safetensors"
)

Entry = tuple[str, int, Callable[[], IO[bytes]]]
"""Name with ``/``, size in bytes as it is stated, and what opens it."""


def intake(root: Path, path: Path, beacon: str | None, accept: bool, cores: int, write: Callable[[str], object]) -> int:
    """Check what is handed in at ``path``, report it, and take it into ``root``'s results with ``accept``.

    Args:
        root: the maintainer's project.
        path: a folder or a zip archive with a bundle, or with bundles in folders named by board and row.
        beacon: a text that the maker of the rows could not know; records of engines that are not replayed in full are
            drawn by it.
        accept: copy the rows when nothing fails and nothing remains to be proven.
        cores: processes at once.
        write: takes the lines of the report.

    Returns:
        0 when everything is proven (and taken, with ``accept``), 1 when a check failed, 2 when one crashed, 3 when
        something is not proven.

    Raises:
        RowproofError: what is handed in is not made of bundles alone, or breaks a limit; nothing was verified then.
    """
    with tempfile.TemporaryDirectory(prefix="rowproof-intake-") as name:
        rows = _unpack(path, Path(name))
        tables = [_check(root, folder, row, beacon, cores) for row, folder in rows.items()]
        for row, table in zip(rows, tables, strict=True):
            table.subject = f"submitted {row}"
            table.render(write)
            write(_remains(table))
        failed = any(table.verdict == "fail" for table in tables)
        crashed = any(table.crashed for table in tables)
        proven = all(check.verdict == "pass" for table in tables for check in table.checks)
        if not proven:
            write("not taken: a check failed" if failed else "not taken: not everything is proven")
            return 1 if failed else 2 if crashed else 3
        if not accept:
            write("everything is proven: nothing was written, --accept takes it")
            return 0
        for row in _take(root, rows):
            write(f"wrote results/{row}: commit it, then render its board")
        write("taken")
        return 0


def _remains(table: CheckTable) -> str:
    left = [check.id for check in table.checks if check.verdict in ("unknown", "not proven")]
    learned = any(check.id.startswith("checkpoint:") for check in table.checks)
    own = [
        "that no other records were made and left out",
        "that records were made after the plan's commit, as they say",
    ]
    own += ["that the checkpoints come from the trainings (verify --retrain-one)"] if learned else []
    return visible(f"remains unproven: {'; '.join([*left, *own])}")


# --- Reading ---------------------------------------------------------------------------------------------------------


def _unpack(path: Path, folder: Path) -> dict[str, Path]:
    """Copy what is at ``path`` into ``folder/results/<board>/<row>``; ``<board>/<row>`` -> that folder, sorted.

    Raises:
        RowproofError: it is not made of bundles alone, or breaks a limit.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise RowproofError(f"{path}: must be a folder or a zip archive: {error.strerror}") from None
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise RowproofError(f"{path}: must be a folder or a zip archive, found neither")
    raw = folder / "raw"
    with ExitStack() as stack:
        entries = _folder_entries(path, stack) if stat.S_ISDIR(status.st_mode) else _zip_entries(path, stack)
        groups = _groups(list(entries))
        budget = MAX_TOTAL_BYTES
        for number, group in enumerate(groups.values()):
            target = raw / str(number)
            target.mkdir(parents=True)
            for name, size, opened in group:
                budget -= _copy(name, size, opened, target / PurePosixPath(name).name, budget)
    rows: dict[str, Path] = {}
    for number, place in enumerate(groups):
        row = row_of((raw / str(number) / "bundle.json").read_bytes())
        if not f"/results/{row}".endswith(f"/{place}") and place:
            raise RowproofError(f"{place}: must be named by board and row as its bundle is, {row}")
        if row in rows:
            raise RowproofError(f"{row} must be handed in once, found twice")
        rows[row] = folder / "results" / row
        rows[row].parent.mkdir(parents=True, exist_ok=True)
        (raw / str(number)).rename(rows[row])
    return dict(sorted(rows.items()))


def _said(text: str) -> str:
    """A message of bounded length that no name can forge lines of."""
    return visible(text if len(text) <= 400 else f"{text[:400]}…")


def _groups(entries: list[Entry]) -> dict[str, list[Entry]]:
    """The entries by their folder, once their names and stated sizes are as they must be."""
    if not entries:
        raise RowproofError("a submission must hold a bundle, found nothing")
    seen: set[str] = set()
    for name, size, _ in entries:
        *parts, last = name.split("/")
        if len(parts) > MAX_DEPTH or not all(PART.fullmatch(part) for part in parts) or not FILE.fullmatch(last):
            raise RowproofError(
                _said(f"{name!r}: must be a file of a bundle, in folders named by board and row, found another name")
            )
        if name.casefold() in seen:
            raise RowproofError(f"{name}: must be there once, found it twice")
        seen.add(name.casefold())
        if size > MAX_FILE_BYTES:
            raise RowproofError(f"{name}: must have at most {MAX_FILE_BYTES} bytes, found {size}")
    total = sum(size for _, size, _ in entries)
    if total > MAX_TOTAL_BYTES:
        raise RowproofError(f"all files together must have at most {MAX_TOTAL_BYTES} bytes, found {total}")
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry[0].rpartition("/")[0], []).append(entry)
    for place in groups:
        if f"{place}/bundle.json".lstrip("/") not in seen:
            raise RowproofError(f"{place or '.'}: must be a bundle, found no bundle.json in it")
    return groups


def _copy(name: str, size: int, opened: Callable[[], IO[bytes]], target: Path, budget: int) -> int:
    """Copy one file of exactly ``size`` bytes; what it states is not believed."""
    done = 0
    try:
        with opened() as source, target.open("wb") as sink:
            while chunk := source.read(CHUNK_BYTES):
                done += len(chunk)
                if done > min(size, budget):
                    raise RowproofError(f"{name}: must have the {size} bytes that are stated, found more")
                sink.write(chunk)
    except RowproofError:
        raise
    except Exception as error:
        # Of a damaged archive: zlib, zipfile and struct each have errors of their own.
        raise RowproofError(_said(f"{name}: must be readable, found {type(error).__name__}: {error}")) from None
    if done != size:
        raise RowproofError(f"{name}: must have the {size} bytes that are stated, found {done}")
    return done


def _folder_entries(path: Path, stack: ExitStack) -> Iterator[Entry]:
    count = 0
    for place, folders, files, handle in os.fwalk(path, follow_symlinks=False):
        folders.sort()
        inner = Path(place).relative_to(path).as_posix()
        prefix = "" if inner == "." else f"{inner}/"
        if len(PurePosixPath(inner).parts) > MAX_DEPTH or not (folders or files):
            raise RowproofError(_said(f"{inner!r}: must be a folder with a bundle, found an empty one or one too deep"))
        for name in sorted([*folders, *files]):
            count += 1
            if count > MAX_ENTRIES:
                raise RowproofError(f"a submission must hold at most {MAX_ENTRIES} entries, found more")
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise RowproofError(
                    _said(f"{prefix + name!r}: must be a regular file with one name, found a link or a special file")
                )
            # The walk closes its handle when it goes on.
            kept = os.dup(handle)
            stack.callback(os.close, kept)
            yield f"{prefix}{name}", status.st_size, _opener(name, kept)


def _opener(name: str, folder: int) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        # It may have been exchanged since it was looked at: neither a link is followed nor a pipe waited for.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RowproofError(f"{name}: must be a regular file, found another one")
        return os.fdopen(handle, "rb")

    return opened


def _zip_entries(path: Path, stack: ExitStack) -> Iterator[Entry]:
    if path.stat().st_size > MAX_ARCHIVE_BYTES:
        raise RowproofError(f"{path}: must have at most {MAX_ARCHIVE_BYTES} bytes, found {path.stat().st_size}")
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        infos = archive.infolist()
    except Exception as error:
        raise RowproofError(_said(f"{path}: must be a zip archive, found {type(error).__name__}: {error}")) from None
    if len(infos) > MAX_ENTRIES:
        raise RowproofError(f"{path}: must hold at most {MAX_ENTRIES} entries, found {len(infos)}")
    for info in infos:
        # The name as it is stored: that of zipfile ends at a NUL and has other separators.
        name = info.orig_filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        if name.endswith("/") and kind in (0, stat.S_IFDIR) and info.file_size == 0:
            if not all(PART.fullmatch(part) for part in name[:-1].split("/")):
                raise RowproofError(_said(f"{name!r}: must be a folder named by board or row, found another name"))
            continue
        if kind not in (0, stat.S_IFREG):
            raise RowproofError(_said(f"{name!r}: must be a regular file, found a link or a special file"))
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RowproofError(_said(f"{name!r}: must be stored or deflated and not encrypted, found otherwise"))
        if info.file_size > RATIO_FREE_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size):
            raise RowproofError(_said(f"{name!r}: must shrink at most {MAX_RATIO}-fold, found more"))
        yield name, info.file_size, _member(archive, info)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(info)


# --- Checking --------------------------------------------------------------------------------------------------------


def _check(root: Path, folder: Path, row: str, beacon: str | None, cores: int) -> CheckTable:
    table = Subject("bundle", folder, root, None, None, False).verify()
    must = "the code of every job was committed in the history of this project's HEAD"
    with table.guard("intake:history", must):
        jobs = read_provenance((folder / PROVENANCE).read_bytes())["jobs"]
        for commit in sorted({job["commit"] for job in jobs}):
            require_ancestor(root, commit)
        table.add("intake:history", True, must, f"in that of {head_of(root)}")
    must = "all records, or those that the maintainer's beacon draws, come out again"
    with table.guard("intake:records", must):
        replayed = {check.verdict for check in table.checks if check.id == "records:replay"}
        if replayed:
            table.add("intake:records", "pass" in replayed or None, must, "replayed in full" if replayed else "not run")
        else:
            _look(table, folder, root, beacon, cores, must)
    must = f"results/{row} is not there, or is the very same"
    with table.guard("intake:place", must):
        target = _place(root, row)
        same = not target.exists() or _same(folder, target)
        table.add("intake:place", same, must, "free or the same" if same else "another bundle is there")
    return table


def _look(table: CheckTable, folder: Path, root: Path, beacon: str | None, cores: int, must: str) -> None:
    """Draw records by the maintainer's beacon and run them again."""
    if beacon is None:
        raise HistoryGap("not spot-checked: give --beacon, a text that the maker of the row could not know")
    table.subject = str(folder)
    add_spot_checks([table], root, DEFAULT_COUNT, False, beacon, cores)
    found = [check for check in table.checks if check.id == "records:spot"][-1]
    verdict = {"pass": True, "fail": False}.get(found.verdict)
    table.add("intake:records", verdict, must, f"spot-checked: {found.found}")


def _place(root: Path, row: str) -> Path:
    place = root / "results"
    for part in row.split("/"):
        if place.is_symlink():
            raise RowproofError(f"{place}: must be a folder, found a link")
        place = place / part
    if place.is_symlink():
        raise RowproofError(f"{place}: must be a folder, found a link")
    return place


def _same(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in one.iterdir())
    if not other.is_dir() or names != sorted(path.name for path in other.iterdir()):
        return False
    plain = all((other / name).is_file() and not (other / name).is_symlink() for name in names)
    return plain and all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


# --- Taking ----------------------------------------------------------------------------------------------------------


def _take(root: Path, rows: dict[str, Path]) -> list[str]:
    """Copy the rows into ``results/``: all of them or none, each in one step, over nothing; return what was written."""
    umask = os.umask(0)
    os.umask(umask)
    staged: dict[str, Path] = {}
    taken: list[str] = []
    try:
        for row, folder in rows.items():
            target = _place(root, row)
            if target.exists():
                if not _same(folder, target):
                    raise RowproofError(f"results/{row} must not exist or be the very same, found another bundle")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = Path(tempfile.mkdtemp(prefix=".intake-", dir=target.parent))
            staged[row] = copy
            copy.chmod(0o777 & ~umask)
            for path in folder.iterdir():
                (copy / path.name).write_bytes(path.read_bytes())
        for row, copy in staged.items():
            # Onto a folder that has come to be in the meantime, and holds something, this fails.
            copy.rename(_place(root, row))
            taken.append(row)
    except BaseException:
        for row in taken:
            shutil.rmtree(_place(root, row), ignore_errors=True)
        raise
    finally:
        for copy in staged.values():
            shutil.rmtree(copy, ignore_errors=True)
    return taken
