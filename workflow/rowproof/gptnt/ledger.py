"""Which specs are done, told by the records that are there; the one answer for doctor, run and status."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from rowproof.gptnt.recordings import PATTERN, Session, join, read_folder
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import Played, Progress, progress

Status = Literal["not_attempted", "done", "failed", "running"]
# In the order in which they are shown.
STATUSES: tuple[Status, ...] = ("not_attempted", "done", "failed", "running")

# A temporary file that old belongs to no writer any more: writing takes less than a second.
ORPHAN_AGE_S = 600.0


class Ledger(NamedTuple):
    """What a folder of records says.

    Attributes:
        sessions: all games that can be read, sorted by id.
        problems: path to what is wrong with a record, or missing beside it.
    """

    sessions: list[Session]
    problems: dict[Path, str]

    def played(self) -> list[Played]:
        """What each session played, and whether it counts and no record of it is missing."""
        found = []
        for number, session in enumerate(self.sessions):
            # Ids follow from what is played, so a second go has the id of the first and is still another session.
            whole = session.is_valid and session.is_whole
            found.append(Played(f"{session.session_id}/{number}", session.content, whole))
        return found

    def progress(self, specs: Mapping[str, Spec], fingerprints: Mapping[str, str]) -> Progress:
        """How far specs are; see :func:`rowproof.gptnt.specs.progress`."""
        return progress(specs, fingerprints, self.played())

    def newest(self) -> dict[str, Session]:
        """The newest valid session of each attempt name; where contents differ, of any content."""
        best: dict[str, Session] = {}
        for session in sorted(self.sessions, key=lambda session: (session.rank, session.session_id)):
            if session.is_valid:
                best[session.content.attempt_name] = session
        return dict(sorted(best.items()))


def read_ledger(folder: Path, workers: int = 1) -> Ledger:
    """Read all records below a folder; where there is no folder, nothing was played.

    A damaged record hides no other one. A session counts only by its own records. One whose expert took steps and has
    no record is told, and does not make its spec done: it is played again.
    """
    if not folder.is_dir():
        return Ledger([], {})
    found = read_folder(folder, workers)
    sessions, left = join(found.recordings)
    problems = dict(found.damaged)
    for one in left:
        assert one.path is not None
        problems[one.path] = f"{one.path}: must come with the record of the defuser, found none"
    for path in (session.defuser.path for session in sessions if not session.is_whole):
        assert path is not None
        problems[path] = f"{path}: must come with the record of the expert, found none"
    return Ledger(sessions, dict(sorted(problems.items())))


class Knows(Protocol):
    """What can tell how far specs are: a :class:`Ledger`, or another source."""

    @property
    def problems(self) -> dict[Path, str]:
        """Path to what could not be counted."""

    def progress(self, specs: Mapping[str, Spec], fingerprints: Mapping[str, str]) -> Progress:
        """How far specs are."""


def progress_of(
    specs: Mapping[str, Spec],
    fingerprints: Mapping[str, str],
    ledger: Knows,
    warn: Callable[[str], object],
) -> Progress:
    """How far specs are; what could not be counted is told to ``warn``."""
    for problem in ledger.problems.values():
        warn(f"not counted: {problem}")
    return ledger.progress(specs, fingerprints)


def status_for(
    specs: Mapping[str, Spec], fingerprints: Mapping[str, str], ledger: Knows, running: Iterable[str] = ()
) -> dict[str, Status]:
    """The status of each spec by attempt name, in the order of statuses and then of names.

    Args:
        specs: by attempt name.
        fingerprints: capability fingerprint of each player name in the specs.
        ledger: what was played.
        running: attempt names that are being played now.
    """
    found = ledger.progress(specs, fingerprints)
    status: dict[str, Status] = dict.fromkeys(found.not_attempted, "not_attempted")
    status |= dict.fromkeys(found.done, "done") | dict.fromkeys(found.failed, "failed")
    status |= {name: "running" for name in running if name in specs}
    return dict(sorted(status.items(), key=lambda item: (STATUSES.index(item[1]), item[0])))


def run_status(
    specs: Mapping[str, Spec],
    fingerprints: Mapping[str, str],
    ledger: Knows,
    running: Iterable[str] = (),
    show: Callable[[str], object] = print,
) -> int:
    """Show the status of each spec and how many there are of each; damaged records are told."""
    status = status_for(specs, fingerprints, ledger, running)
    for name, one in status.items():
        show(f"{one:<13}  {name}")
    counts = {one: sum(found == one for found in status.values()) for one in STATUSES}
    show(", ".join(f"{count} {one.replace('_', ' ')}" for one, count in counts.items()))
    outdated = ledger.progress(specs, fingerprints).outdated
    if outdated:
        show(f"{len(outdated)} were played in full with another state of the suite or setup of a player")
    for problem in ledger.problems.values():
        show(f"not counted: {problem}")
    return 0


# ---- cleaning up -----------------------------------------------------------------------------------------------


class Cleanup(NamedTuple):
    """What cleaning up would remove.

    Attributes:
        invalid: records of sessions that do not count, sorted.
        orphans: temporary files that no writer holds any more, sorted.
    """

    invalid: list[Path]
    orphans: list[Path]


def plan_cleanup(folder: Path, now_s: float | None = None) -> Cleanup:
    """What can go: records of invalid sessions, and temporary files of writers that were killed.

    Damaged records stay, since what they are worth is not known.

    Args:
        folder: searched at any depth.
        now_s: seconds since the epoch that ages are taken from; those of the clock by default.
    """
    sessions = read_ledger(folder).sessions
    kept = {one.path for session in sessions if session.is_valid for one in session.recordings}
    invalid = {one.path for session in sessions if not session.is_valid for one in session.recordings} - kept
    now_s = time.time() if now_s is None else now_s
    # Two spellings: that of this writer, and that of the benchmark's.
    temporary = [path for glob in (f".{PATTERN}.*.tmp", f"{PATTERN}.tmp") for path in folder.rglob(glob)]
    orphans = [path for path in temporary if path.is_file() and now_s - path.stat().st_mtime > ORPHAN_AGE_S]
    return Cleanup(sorted(path for path in invalid if path is not None), sorted(orphans))


def run_cleanup(folder: Path, execute: bool = False, show: Callable[[str], object] = print) -> int:
    """Show what can go, and with ``execute`` remove it."""
    plan = plan_cleanup(folder)
    for kind, paths in zip(("invalid session", "left by a writer"), plan, strict=True):
        for path in paths:
            show(f"{kind}: {path}")
            if execute:
                path.unlink(missing_ok=True)
    count = len(plan.invalid) + len(plan.orphans)
    show(f"{count} files removed" if execute else f"{count} files would be removed: add --execute")
    return 0
