"""The few questions that rowproof asks git; every call is bounded in time and independent of the user's settings."""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rowproof.errors import HistoryGap, RowproofError

TIMEOUT_S = 30
# Settings that would hide files from the state of a checkout, add lines to output, tell another history of a file (a
# commit graph need not agree with the commits), or start programs.
OVERRIDES = tuple(
    part
    for setting in (
        f"core.excludesFile={os.devnull}",
        f"core.hooksPath={os.devnull}",
        "core.commitGraph=false",
        "core.fsmonitor=false",
        "log.showSignature=false",
        "log.follow=false",
    )
    for part in ("-c", setting)
)


def blob_id(data: bytes) -> str:
    """Git's object id (40 hex) of a file with these raw bytes: SHA-1 over ``blob <length>``, a zero byte, the bytes.

    Computed here and not by git, whose newline filters would give a CRLF copy the id of the original.
    """
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _call(repo: Path, *args: str, foreign: bool = True, given: bytes = b"") -> tuple[int, bytes, str]:
    """Exit code, standard output and first line of complaint of ``git -C repo args``.

    Args:
        repo: a folder of the repository.
        args: the command; what comes from evidence must stand behind ``--end-of-options`` or a fixed prefix.
        foreign: the repository may belong to another user (usual in containers) and is not trusted. Only object
            look-ups may be asked then, none of which executes anything that the repository or the user configures.
            False for the state of the checkout whose code runs: filters say which of its files are modified.
        given: standard input.

    Raises:
        HistoryGap: git is missing or does not answer in time.
        ValueError: an argument holds a NUL.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment.update(
        LC_ALL="C",
        GIT_CONFIG_NOSYSTEM="1",
        GIT_GRAFT_FILE=os.devnull,
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_OPTIONAL_LOCKS="0",
        GIT_TERMINAL_PROMPT="0",
    )
    settings = OVERRIDES
    if foreign:
        # An older git does not know of lazy fetching as something to refuse; without a protocol it cannot fetch.
        environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_NO_LAZY_FETCH="1", GIT_ALLOW_PROTOCOL="none")
        settings = (*OVERRIDES, "-c", "safe.directory=*")
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(repo), *settings, *args],
            input=given,
            capture_output=True,
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryGap(f"git did not answer within {TIMEOUT_S} s: try again on a faster disk") from error
    except OSError as error:
        raise HistoryGap(f"git could not be run: {error.strerror}") from error
    complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return done.returncode, done.stdout, complaint[0] if complaint else f"exit {done.returncode}"


def run(repo: Path, *args: str) -> bytes | None:
    """Standard output of ``git -C repo args``; None when git fails, is missing or takes too long."""
    return _run(repo, *args, foreign=True)


def _run(repo: Path, *args: str, foreign: bool) -> bytes | None:
    try:
        code, out, _ = _call(repo, *args, foreign=foreign)
    except (HistoryGap, ValueError):
        return None
    return out if code == 0 else None


@dataclass(frozen=True)
class TreeState:
    """Commit and cleanliness of a checkout, read once per launch.

    Attributes:
        commit: 40 hex digits, or ``unknown``.
        dirty: whether any file outside ``results/`` differs from the commit or is untracked; an unknown state is
            dirty. ``results/`` is left out because nothing that determines a row is read from there.
        changed: up to ten of the files that make it dirty.
    """

    commit: str
    dirty: bool
    changed: tuple[str, ...] = ()


def tree_state(root: Path) -> TreeState:
    """The state of the checkout at ``root``."""
    head = _run(root, "rev-parse", "HEAD", foreign=False)
    wanted = ("status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)results")
    status = _run(root, *wanted, foreign=False)
    if head is None or status is None:
        return TreeState("unknown", True, ("git could not tell the state of this checkout",))
    lines = status.decode("utf-8", "replace").splitlines()
    return TreeState(head.decode().strip(), bool(lines), tuple(line[3:] for line in lines[:10]))


def has_commit(repo: Path, commit: str) -> bool:
    """Whether the commit is in this clone."""
    return run(repo, "cat-file", "-e", "--end-of-options", f"{commit}^{{commit}}") is not None


def blob_at(repo: Path, commit: str, path: str) -> str | None:
    """Object id of ``path`` (relative to ``repo``) in ``commit``; None when it is not there."""
    out = run(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:./{path}")
    return out.decode().strip() if out else None


def file_at(repo: Path, commit: str, path: str) -> bytes | None:
    """Content of ``path`` (relative to ``repo``) in ``commit``; None when it is not there."""
    found = blob_at(repo, commit, path)
    return None if found is None else blob(repo, found)


def blob(repo: Path, blob_id: str) -> bytes | None:
    """The bytes of a blob; None when it is not in this clone."""
    return run(repo, "cat-file", "blob", "--end-of-options", blob_id)


def is_ancestor(repo: Path, older: str, newer: str) -> bool:
    """Whether ``older`` is ``newer`` or one of its ancestors."""
    return run(repo, "merge-base", "--is-ancestor", "--end-of-options", older, newer) is not None


def first_commit_with(repo: Path, commit: str, path: str, blob: str) -> str | None:
    """The oldest commit in the history of ``commit`` in which ``path`` holds ``blob``; None when there is none."""
    out = run(repo, "rev-list", "--reverse", "--end-of-options", commit, "--", path)
    for candidate in (out or b"").decode().split():
        if blob_at(repo, candidate, path) == blob:
            return candidate
    return None


def files_at(repo: Path, commit: str) -> dict[str, str]:
    """Path relative to ``repo`` -> object id of each regular file of ``commit`` below the folder ``repo``.

    Raises:
        HistoryGap: no repository, or the commit or one of its trees is not in this clone.
    """
    code, out, complaint = _call(repo, "ls-tree", "-r", "-z", "--end-of-options", commit)
    if code:
        raise HistoryGap(f"the files of commit {commit} must be in this clone: fetch it ({complaint})")
    entries = (entry.split(b"\t", 1) for entry in out.split(b"\0") if entry)
    files = ((os.fsdecode(path), *meta.decode("ascii").split()) for meta, path in entries)
    return {path: oid for path, mode, kind, oid in files if kind == "blob" and mode in ("100644", "100755")}


def blobs(repo: Path, oids: Iterable[str]) -> dict[str, bytes]:
    """Raw content of blobs by object id, all from one process of git.

    Raises:
        HistoryGap: git fails, or a blob is not in this clone, as in a partial one.
    """
    wanted = sorted(set(oids))
    code, out, complaint = _call(
        repo, "cat-file", "--batch", given="".join(f"{oid}\n" for oid in wanted).encode("ascii")
    )
    found: dict[str, bytes] = {}
    start = 0
    for oid in wanted:
        end = out.find(b"\n", start)
        head = out[start:end].split() if end >= 0 else []
        if code or len(head) != 3 or head[:2] != [oid.encode(), b"blob"]:
            raise HistoryGap(f"the content {oid} of a file must be in this clone: fetch all of it ({complaint})")
        start = end + 1 + int(head[2]) + 1
        found[oid] = out[end + 1 : start - 1]
    return found


def commit_day(repo: Path, commit: str) -> str | None:
    """The day (``2026-11-30``, of the committer, in UTC) of a commit; None when it is not in this clone."""
    out = run(repo, "cat-file", "commit", "--end-of-options", commit)
    if out is None:
        return None
    (seconds,) = (line.split()[-2] for line in out.partition(b"\n\n")[0].splitlines() if line.startswith(b"committer "))
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d")


def export(repo: Path, commit: str, folder: Path, below: Iterable[str]) -> None:
    """Write the files of ``commit`` below these folders into ``folder``, as they are: no filter, no attribute, no link.

    Raises:
        HistoryGap: see :func:`files_at` and :func:`blobs`.
    """
    tops = tuple(f"{name}/" for name in below)
    files = {path: oid for path, oid in files_at(repo, commit).items() if path.startswith(tops)}
    contents = blobs(repo, files.values())
    for path, oid in files.items():
        target = folder / path
        if ".." in Path(path).parts or (target.is_absolute() and not target.is_relative_to(folder)):
            raise RowproofError(f"commit {commit} must hold plain paths, found {path!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents[oid])


class History:
    """The history of a clone that somebody names as a witness: what it cannot answer is a :class:`HistoryGap`."""

    def __init__(self, repo: Path | None) -> None:
        """Ask the repository around ``repo``, a directory of a clone; None when there is none to ask."""
        self._repo = repo

    def _git(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> tuple[int, bytes]:
        if self._repo is None:
            raise HistoryGap("no git repository was given: name a clone that holds the tags")
        code, out, complaint = _call(self._repo, *arguments)
        if code not in accept:
            raise HistoryGap(f"git {arguments[0]}: {complaint}")
        return code, out

    def _require_repository(self) -> None:
        self._git("rev-parse", "--git-dir")

    def tag_commit(self, tag: str) -> str:
        """The commit (40 hex) that the tag stands for.

        Raises:
            HistoryGap: no repository, or no tag of exactly that name in it.
        """
        self._require_repository()
        # show-ref takes the name literally; rev-parse alone would evaluate expressions such as "x~1".
        code, _ = self._git("show-ref", "--verify", "--quiet", f"refs/tags/{tag}", accept=(0, 1))
        if code == 1:
            raise HistoryGap(f"tag {tag!r} is not in this clone: fetch tags (git fetch --tags)")
        return self._git("rev-parse", "--verify", f"refs/tags/{tag}^{{commit}}")[1].decode("ascii").strip()

    def require_commit(self, commit: str) -> None:
        """Raise :class:`HistoryGap` unless the commit (40 hex) is in the repository."""
        self._require_repository()
        code, _ = self._git("cat-file", "-e", "--end-of-options", f"{commit}^{{commit}}", accept=(0, 1, 128))
        if code:
            raise HistoryGap(f"commit {commit} is not in this clone: fetch the full history")

    def paths_of_blob(self, commit: str, blob: str) -> list[str]:
        """The paths in the tree of ``commit`` whose content has the object id ``blob``, sorted."""
        listing = self._git("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)[1].decode(
            "utf-8", "surrogateescape"
        )
        entries = [entry.split("\t", 1) for entry in listing.split("\0") if entry]
        return sorted(path for meta, path in entries if meta.split()[1:] == ["blob", blob])

    def is_ancestor(self, earlier: str, later: str) -> bool:
        """Whether ``earlier`` is ``later`` or one of its ancestors.

        Raises:
            HistoryGap: one of the commits is not here, or a shallow clone hides the path between them.
        """
        self.require_commit(earlier)
        self.require_commit(later)
        code, _ = self._git("merge-base", "--is-ancestor", "--end-of-options", earlier, later, accept=(0, 1))
        if code == 1 and self._git("rev-parse", "--is-shallow-repository")[1].strip() == b"true":
            raise HistoryGap("this clone is shallow and may hide the path between the commits: fetch --unshallow")
        return code == 0

    def file_at(self, commit: str, path: str) -> bytes:
        """The bytes of ``path`` (relative to the repository's root) in ``commit``.

        Raises:
            HistoryGap: the commit is not here.
            RowproofError: the commit is here and holds no such file.
        """
        self.require_commit(commit)
        code, data = self._git("cat-file", "blob", "--end-of-options", f"{commit}:{path}", accept=(0, 128))
        if code:
            raise RowproofError(f"commit {commit} must hold {path}, found none: commit it before the run")
        return data
