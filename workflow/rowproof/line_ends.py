"""Line endings of a checkout: texts that are hashed byte for byte must be here as they are in the repository."""

from pathlib import Path

from rowproof import git
from rowproof.errors import RowproofError

# What recipes and boards are hashed from; evidence itself is never converted.
HASHED = ("config", "requirements.lock", "resources", "workflow")


def converted(root: Path) -> list[str]:
    """Files below ``root`` that the repository has with LF and the checkout with CRLF; none without git."""
    listed = git.run(root, "ls-files", "--eol", "-z", "--", *HASHED) or b""
    found = []
    for line in listed.decode("utf-8", "replace").split("\0"):
        ends, _, path = line.partition("\t")
        if ends.split()[:2] in (["i/lf", "w/crlf"], ["i/lf", "w/mixed"]):
            found.append(path)
    return found


def require_unconverted(root: Path) -> None:
    """Refuse a checkout in which git or an editor converted line endings.

    Raises:
        RowproofError: naming the first such file and the commands that check everything out again.
    """
    found = converted(root)
    if found:
        others = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise RowproofError(
            f"{root / found[0]}{others}: must have the line endings of the repository (LF), since it is hashed byte "
            "for byte, found CRLF, as older clones have it with core.autocrlf. Commit or stash changes of your own, "
            "then: git rm -r -q --cached . && git reset -q --hard"
        )
