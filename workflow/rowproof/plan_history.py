"""Which version of a plan binds a row, and what may not change any more.

A plan grows: later versions may add rows, notes and comments. What binds a row, its *slice*, stays as it was first
committed for as long as the row has records. The version that binds a row is the oldest one since which the slice has
not changed; it follows from the history alone, so a rebuild anywhere carries the same file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.boards import BoardSetup, Plan
from rowproof.errors import ConfigError, RowproofError
from rowproof.families import Engine
from rowproof.memo import Memo
from rowproof.records import digest
from rowproof.strict_yaml import parse, validate


@dataclass(frozen=True)
class Binding:
    """The version of a plan that binds a row.

    Attributes:
        blob: git's object id of the file.
        commit: the commit that brought it; None while it is not committed.
    """

    blob: str
    commit: str | None


def slice_digest(data: bytes, row: str, engine: Engine) -> str | None:
    """Digest of the slice of ``row`` in a version of a plan; None where it has none that can be read."""
    return slices_of(data, [row], engine)[row]


def slices_of(data: bytes, rows: list[str], engine: Engine) -> dict[str, str | None]:
    """:func:`slice_digest` of several rows, for one reading of the file."""
    try:
        plan = validate(parse(data, "plan"), Plan)
    except (RowproofError, ValueError, KeyError, TypeError):
        return dict.fromkeys(rows)
    found: dict[str, str | None] = {}
    for row in rows:
        try:
            found[row] = digest(plan.slice_of(row, engine)) if row in plan.rows else None
        except (RowproofError, ValueError, KeyError, TypeError):
            found[row] = None
    return found


def bindings(setup: BoardSetup, memo: Memo) -> dict[str, Binding]:
    """The binding version of every row of a board.

    Only commits that HEAD descends from count. Without history, or with an uncommitted plan, it is the file at hand.
    """
    rows, path = list(setup.board.rows), setup.plan_path
    today = git.blob_id(setup.plan_bytes)
    versions = _versions(setup.root, path)
    own = {row: digest(setup.plan.slice_of(row, setup.engine)) for row in rows}
    found = {row: Binding(today, None) for row in rows}
    if not versions or versions[0][1] != today:
        return found
    open_rows = set(rows)
    for commit, blob in versions:
        if not open_rows:
            break
        slices = own if blob == today else _slices_at(setup, blob, rows, memo)
        for row in sorted(open_rows):
            if slices[row] == own[row]:
                found[row] = Binding(blob, commit)
            else:
                open_rows.discard(row)
    return found


def _versions(root: Path, path: str) -> list[tuple[str, str]]:
    """Commit and blob of every version of a file in the history of HEAD, the newest first."""
    out = git.run(root, "rev-list", "--end-of-options", "HEAD", "--", path)
    commits = (out or b"").decode().split()
    blobs = [(commit, git.blob_at(root, commit, path)) for commit in commits]
    return [(commit, blob) for commit, blob in blobs if blob is not None]


def _slices_at(setup: BoardSetup, blob: str, rows: list[str], memo: Memo) -> dict[str, str | None]:
    key = f"slices:{setup.engine.name}:{blob}:{digest(rows)}"

    def compute() -> dict[str, str | None]:
        data = git.blob(setup.root, blob)
        return dict.fromkeys(rows) if data is None else slices_of(data, rows, setup.engine)

    return memo.get(key, compute)


def check_unchanged(setup: BoardSetup, recorded: dict[str, bytes]) -> None:
    """Refuse a plan whose slices with committed records are not what they were.

    Args:
        setup: the board.
        recorded: of every row whose bundle is committed, the plan in that bundle.

    Raises:
        ConfigError: naming these rows.
    """
    changed = []
    for row, data in recorded.items():
        if row in setup.plan.rows:
            was, now = slice_digest(data, row, setup.engine), digest(setup.plan.slice_of(row, setup.engine))
            if was is not None and was != now:
                changed.append(row)
    if changed:
        raise ConfigError(
            f"{setup.plan_path}: what binds a row must stay as it was committed before its records were made, found it "
            f"changed for {', '.join(f'{setup.board.board}/{row}' for row in changed)} "
            f"({_first_change(setup, changed[0], recorded[changed[0]])}): restore it, or write another version of the "
            "board with a plan of its own"
        )


def _first_change(setup: BoardSetup, row: str, data: bytes) -> str:
    was: Any = validate(parse(data, "plan"), Plan).slice_of(row, setup.engine)
    now: Any = setup.plan.slice_of(row, setup.engine)
    return next((f"{key}: {was[key]!r} -> {now[key]!r}"[:200] for key in now if was[key] != now[key]), "")
