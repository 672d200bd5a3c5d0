"""The few questions that rowproof asks git; every call is bounded in time and independent of the user's settings."""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 30
# Settings of the user that would hide files from the state of a checkout, add lines to output, or start programs.
OVERRIDES = tuple(
    part
    for setting in (f"core.excludesFile={os.devnull}", "core.fsmonitor=false", "log.showSignature=false")
    for part in ("-c", setting)
)


def blob_id(data: bytes) -> str:
    """Git's object id of a file with these raw bytes (SHA-1 over ``blob <length>\\0`` and the bytes)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def run(repo: Path, *args: str, stdin: bytes | None = None) -> bytes | None:
    """Standard output of ``git -C repo args``; None when git fails, is missing or takes too long."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment.update(LC_ALL="C", GIT_CONFIG_NOSYSTEM="1", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    try:
        done = subprocess.run(
            ["git", "-C", str(repo), *OVERRIDES, *args],
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            env=environment,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):  # ValueError: an argument that holds a NUL
        return None
    return done.stdout if done.returncode == 0 else None


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
    head = run(root, "rev-parse", "HEAD")
    status = run(root, "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)results")
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
    return run(repo, "show", "--end-of-options", f"{commit}:./{path}")


def is_ancestor(repo: Path, older: str, newer: str) -> bool:
    """Whether ``older`` is ``newer`` or one of its ancestors."""
    return run(repo, "merge-base", "--is-ancestor", "--end-of-options", older, newer) is not None


def first_commit_with(repo: Path, commit: str, path: str, blob: str) -> str | None:
    """The oldest commit in the history of ``commit`` in which ``path`` holds ``blob``; None when there is none."""
    out = run(repo, "log", "--format=%H", "--reverse", "--end-of-options", commit, "--", path)
    for candidate in (out or b"").decode().split():
        if blob_at(repo, candidate, path) == blob:
            return candidate
    return None
