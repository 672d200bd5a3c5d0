"""What a project committed: the commits that its HEAD descends from, and the files in them.

Any commit object can be brought into a clone: a branch that nobody merged, one fetched from a fork, one without a
name. Only what HEAD descends from is history of the project. What a clone cannot tell is a
:class:`~rowproof.errors.HistoryGap` and never a no: it may be shallow or partial.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from rowproof import git
from rowproof.errors import HistoryGap, RowproofError

UNSHALLOW = "this clone is shallow: git fetch --unshallow"
MARK = "config/config.yaml"


class ForeignCommitError(RowproofError):
    """A commit is in the clone, and HEAD of the project does not descend from it."""


# Of whole histories alone: a clone may be deepened.
_WHOLE: dict[tuple[Path, str], frozenset[str]] = {}


def head_of(root: Path | None) -> str:
    """The commit (40 hex) of the project ``root``.

    Raises:
        HistoryGap: there is no project, or no commit of it.
    """
    if root is None:
        raise HistoryGap("no project at hand: name one with --project")
    out = git.run(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if out is None:
        raise HistoryGap(f"{root} has no git history: clone the project")
    commit = out.decode("ascii").strip()
    # An unpacked archive may lie in a folder of somebody's repository, which is not its history.
    if MARK not in files_of(root, commit):
        raise HistoryGap(f"the git repository around {root} does not hold the project: clone the project")
    return commit


@lru_cache(maxsize=256)
def files_of(root: Path, commit: str) -> Mapping[str, str]:
    """:func:`rowproof.git.files_at`, remembered."""
    return git.files_at(root, commit)


def _ancestors(root: Path, head: str) -> tuple[frozenset[str], bool]:
    """The commits from ``head`` backwards as far as the clone goes, and whether that is all of them."""
    if (root, head) in _WHOLE:
        return _WHOLE[root, head], True
    out = git.run(root, "rev-list", "--end-of-options", head)
    if out is None:
        raise HistoryGap(f"the history of {head} cannot be read: fetch it")
    found = frozenset(out.decode("ascii").split())
    whole = git.run(root, "rev-parse", "--is-shallow-repository") == b"false\n"
    if whole:
        _WHOLE[root, head] = found
    return found, whole


def require_ancestor(root: Path | None, commit: str) -> None:
    """Raise unless HEAD of the project ``root`` is the commit (40 hex) or descends from it.

    Raises:
        HistoryGap: it cannot be told: no project, no history, a shallow clone, or no such commit here.
        ForeignCommitError: the commit is here and none of this history.
    """
    _require_below(root, head_of(root), commit)


def _require_below(root: Path | None, head: str, commit: str) -> None:
    """:func:`require_ancestor` where HEAD is known."""
    assert root is not None
    found, whole = _ancestors(root, head)
    if commit in found:
        return
    if not re.fullmatch("[0-9a-f]{40}", commit) or not git.has_commit(root, commit):
        way = UNSHALLOW if not whole else "fetch the full history"
        raise HistoryGap(f"commit {commit} is not in this clone: {way}")
    if not whole:
        raise HistoryGap(f"whether HEAD descends from {commit} cannot be told: {UNSHALLOW}")
    raise ForeignCommitError(
        f"HEAD {head[:12]} of the project must descend from commit {commit}, found that it does not: merge it, or "
        f"check out the branch that holds it (git branch --all --contains {commit[:12]})"
    )


def committed_file(root: Path | None, commit: str, path: str) -> bytes | None:
    """The bytes of ``path`` in a commit that HEAD is or descends from; None when it holds no such file.

    Args:
        root: the project.
        commit: 40 hex digits, or ``HEAD``.
        path: relative to ``root``.

    Raises:
        HistoryGap: it cannot be told.
        ForeignCommitError: see :func:`require_ancestor`.
    """
    head = head_of(root)
    commit = head if commit == "HEAD" else commit
    _require_below(root, head, commit)
    assert root is not None
    oid = files_of(root, commit).get(path)
    return None if oid is None else _content(root, oid)


@lru_cache(maxsize=1024)
def _content(root: Path, oid: str) -> bytes:
    data = git.blobs(root, [oid])[oid]
    if git.blob_id(data) != oid:
        raise HistoryGap(f"object {oid} of {root} is not what its name says: git fsck")
    return data


def first_commit_with(root: Path | None, commit: str, path: str, blob: str) -> str | None:
    """The oldest commit in the history of ``commit`` in which ``path`` holds ``blob``; None when there is none.

    Raises:
        HistoryGap: it cannot be told; a shallow clone may still show that there is one.
        ForeignCommitError: see :func:`require_ancestor`.
    """
    head = head_of(root)
    assert root is not None
    start = head if commit == "HEAD" else commit
    _require_below(root, head, start)
    out = git.run(root, "rev-list", "--reverse", "--end-of-options", start, "--", path)
    if out is None:
        raise HistoryGap(f"the versions of {path} must be in this clone: fetch all of it (git fetch --refetch)")
    for candidate in out.decode("ascii").split():
        if files_of(root, candidate).get(path) == blob:
            return candidate
    if not _ancestors(root, head)[1]:
        raise HistoryGap(f"versions of {path} may be hidden: {UNSHALLOW}")
    return None


def dirty_files(root: Path) -> list[str]:
    """Files of the project that are not as HEAD has them, read without any filter; results do not count.

    Raises:
        HistoryGap: it has no history.
    """
    found = []
    for path, oid in files_of(root, head_of(root)).items():
        if path.startswith("results/"):
            continue
        try:
            data = (root / path).read_bytes()
        except OSError:
            found.append(path)
            continue
        if oid not in (git.blob_id(data), git.blob_id(data.replace(b"\r\n", b"\n"))):
            found.append(path)
    others = git.run(root, "ls-files", "-z", "--others", "--exclude-standard", "--", ".", ":(exclude)results") or b""
    return found + [path for path in others.decode("utf-8", "replace").split("\0") if path]


def standing(root: Path | None) -> str:
    """One line that names the project and its HEAD, and says what is not committed."""
    if root is None:
        return "judged without a project: history is unknown, name one with --project"
    try:
        head, dirty = head_of(root), dirty_files(root)
    except HistoryGap as gap:
        return f"judged by the project {root} without history ({gap})"
    more = f", modified: {', '.join(dirty[:3])}{' ...' if len(dirty) > 3 else ''}" if dirty else ""
    return f"judged by the project {root} at HEAD {head}{more}"
