"""Read-only questions to a git repository, and the object id that git gives a file.

The environment of the user (global configuration, hooks, replace refs) must not change an answer, so git runs
without it. A question that the repository cannot answer is never answered with yes or no: see :class:`HistoryGap`.
"""

import hashlib
import os
import subprocess
from pathlib import Path

from rowproof.errors import RowproofError

TIMEOUT_S = 20


class HistoryGap(RowproofError):
    """The repository, tag, commit or file needed to answer is not here; the message says which and what to do."""


def blob_id(data: bytes) -> str:
    """Git's object id (40 hex) of a file with these raw bytes: SHA-1 over ``blob <length>``, a zero byte, the bytes.

    Computed here and not by git, whose newline filters would give a CRLF copy the id of the original.
    """
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class History:
    """The git history under a directory."""

    def __init__(self, repo: Path | None) -> None:
        """Ask the repository around ``repo``, a directory of a clone; None when there is none to ask."""
        self._repo = repo

    def _git(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> tuple[int, bytes]:
        if self._repo is None:
            raise HistoryGap("no git repository was given: name a clone that holds the tags")
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        # Only object look-ups run here, none of which executes anything that the repository configures, so a clone
        # that another user owns (usual in containers) may be read.
        command = ["git", "-c", "safe.directory=*", "-C", os.fspath(self._repo), *arguments]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise HistoryGap(f"git did not answer within {TIMEOUT_S} s: try again on a faster disk") from error
        except OSError as error:
            raise HistoryGap(f"git could not be run: {error.strerror}") from error
        if done.returncode not in accept:
            text = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise HistoryGap(f"git {arguments[0]}: {text[0] if text else f'exit {done.returncode}'}")
        return done.returncode, done.stdout

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
        code, _ = self._git("cat-file", "-e", f"{commit}^{{commit}}", accept=(0, 1, 128))
        if code:
            raise HistoryGap(f"commit {commit} is not in this clone: fetch the full history")

    def paths_of_blob(self, commit: str, blob: str) -> list[str]:
        """The paths in the tree of ``commit`` whose content has the object id ``blob``, sorted."""
        listing = self._git("ls-tree", "-r", "-z", "--full-tree", commit)[1].decode("utf-8", "surrogateescape")
        entries = [entry.split("\t", 1) for entry in listing.split("\0") if entry]
        return sorted(path for meta, path in entries if meta.split()[1:] == ["blob", blob])

    def is_ancestor(self, earlier: str, later: str) -> bool:
        """Whether ``earlier`` is ``later`` or one of its ancestors.

        Raises:
            HistoryGap: one of the commits is not here, or a shallow clone hides the path between them.
        """
        self.require_commit(earlier)
        self.require_commit(later)
        code, _ = self._git("merge-base", "--is-ancestor", earlier, later, accept=(0, 1))
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
        code, data = self._git("cat-file", "blob", f"{commit}:{path}", accept=(0, 128))
        if code:
            raise RowproofError(f"commit {commit} must hold {path}, found none: commit it before the run")
        return data
