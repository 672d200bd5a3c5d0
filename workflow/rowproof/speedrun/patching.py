"""Applying a patch to one script: exactly, all of it or nothing, wherever its hunks stand in the patch.

``exact`` is our own applier. ``seed-compat`` tries the four commands of the published environment, for comparison;
there each command gets a fresh copy of the script.
"""

import ast
import difflib
import os
import re
import subprocess
import tempfile
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex
from rowproof.speedrun.outcomes import Outcome

ApplyMode = Literal["exact", "seed-compat"]

COMMAND_TIMEOUT_S = 60
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# Extended headers of git that do more than change the text of one file.
_OTHER_CHANGE = re.compile(
    r"(old mode|new mode|new file mode|deleted file mode|rename|copy|similarity|dissimilarity|Binary files|GIT binary) "
)
NO_NEWLINE = "\\ No newline at end of file"


class PatchError(Exception):
    """The patch cannot be applied; ``outcome`` is the code and the message the detail."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        """An error with its code and its detail."""
        super().__init__(detail)
        self.outcome = outcome


@dataclass(frozen=True)
class Application:
    """What became of a patch.

    Attributes:
        patched: the patched script; None when the patch failed.
        diff: the canonical diff from the script to ``patched``; empty when the patch failed.
        failure: why it failed, or None.
        detail: the failure in a sentence, else empty.
        flags: sorted: ``located_by_hint``, ``whitespace_relaxed``.
    """

    patched: str | None
    diff: str
    failure: Outcome | None
    detail: str
    flags: tuple[str, ...]

    @property
    def patched_sha256(self) -> str | None:
        """SHA-256 of the patched script (UTF-8)."""
        return None if self.patched is None else sha256_hex(self.patched.encode("utf-8"))

    @property
    def diff_sha256(self) -> str:
        """SHA-256 of the canonical diff (UTF-8)."""
        return sha256_hex(self.diff.encode("utf-8"))

    @property
    def lines_added(self) -> int:
        """Added lines of the canonical diff."""
        return self._count("+")

    @property
    def lines_removed(self) -> int:
        """Removed lines of the canonical diff."""
        return self._count("-")

    def _count(self, sign: str) -> int:
        return sum(line.startswith(sign) for line in self.diff.split("\n")[2:])


@dataclass
class Hunk:
    """One hunk, with the numbers of its header if they are real.

    Attributes:
        number: its place in the patch, from 1.
        old_start: line of the script (from 1) where it begins, or None.
        old_count: lines of the script that it covers, or None.
        old_left: those of them that have not been read.
        new_left: lines of the result that have not been read.
        blanks: empty lines read since, which are context only if more of the hunk follows.
        lines: its lines with their sign.
    """

    number: int
    old_start: int | None = None
    old_count: int | None = None
    old_left: int = 0
    new_left: int = 0
    blanks: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def old(self) -> list[str]:
        """The lines that must stand in the script: context and removed."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    @property
    def changes(self) -> bool:
        """Whether the hunk removes or adds anything."""
        return any(line[0] != " " for line in self.lines)

    @property
    def open(self) -> bool:
        """Whether the header counts more lines than have been read; never without real numbers."""
        return self.old_left > 0 or self.new_left > 0

    def add(self, line: str) -> None:
        """Take one more line with its sign."""
        self.lines.append(line)
        self.old_left -= line[0] != "+"
        self.new_left -= line[0] != "-"


def apply_patch(source: str, patch: str, script_name: str, mode: ApplyMode = "exact") -> Application:
    """Apply ``patch`` to the script ``source``.

    Args:
        source: text of the script, LF line ends.
        patch: a unified diff, as :func:`rowproof.speedrun.extraction.extract` leaves it.
        script_name: the only file that the patch may name.
        mode: ``exact``, or ``seed-compat`` for the commands of the published environment.

    Raises:
        RowproofError: ``seed-compat`` needs git and patch, and one of them is missing.
    """
    flags: set[str] = set()
    try:
        hunks = parse_patch(patch, script_name)
        patched = _apply_commands(source, patch, script_name) if mode == "seed-compat" else _apply(source, hunks, flags)
        _check_result(source, patched)
    except PatchError as error:
        return Application(None, "", error.outcome, str(error), tuple(sorted(flags)))
    return Application(patched, canonical_diff(source, patched, script_name), None, "", tuple(sorted(flags)))


# --- Parsing ----------------------------------------------------------------------------------------------------------


def parse_patch(patch: str, script_name: str) -> list[Hunk]:
    """The hunks of a patch to the one file ``script_name``.

    Header numbers are real when they have the form ``@@ -a,b +c,d @@``; any other line that begins with ``@@`` opens a
    hunk without numbers. Counts serve to tell lines of the hunk from what looks like a file header, and nothing else.

    Raises:
        PatchError: the patch is no unified diff, or it does anything but change that file's text.
    """
    lines = patch.removesuffix("\n").split("\n")
    hunks: list[Hunk] = []
    hunk: Hunk | None = None
    named = False
    index = 0
    while index < len(lines):
        line = lines[index]
        following = lines[index + 1] if index + 1 < len(lines) else ""
        is_name = line.startswith("--- ") and following.startswith("+++ ") and not (hunk and hunk.open)
        if is_name:
            _check_name(line[4:], script_name)
            _check_name(following[4:], script_name)
            named, hunk = True, None
            index += 1
        elif line.startswith("@@"):
            if not named:
                raise PatchError(Outcome.PARSE_FAILED, f"line {index + 1}: a hunk must follow the two file names")
            hunk = _hunk_header(line, len(hunks) + 1)
            hunks.append(hunk)
        elif line.startswith("diff --git "):
            _check_git_names(line, script_name)
            hunk = None
        elif hunk is None:
            _check_between(line, index + 1)
        elif not line:
            # An empty line of context; but what follows all that the header counts may only part it from the next hunk.
            if hunk.open or hunk.old_count is None:
                hunk.add(" ")
            else:
                hunk.blanks += 1
        elif line[0] in " +-":
            while hunk.blanks:
                hunk.blanks -= 1
                hunk.add(" ")
            hunk.add(line)
        elif line[0] != "\\":
            raise PatchError(
                Outcome.PARSE_FAILED,
                f"line {index + 1}, hunk {hunk.number}: must begin with a space, + or -, found {line[:40]!r}",
            )
        index += 1
    return hunks


def _hunk_header(line: str, number: int) -> Hunk:
    match = _HUNK.match(line)
    if match is None:
        return Hunk(number)
    try:
        start, old, new = int(match[1]), int(match[2] or 1), int(match[4] or 1)
    except ValueError:  # Thousands of digits.
        return Hunk(number)
    return Hunk(number, start, old, old, new)


def _check_name(text: str, script_name: str) -> None:
    name = text.split("\t")[0].rstrip()
    if name.startswith(("a/", "b/")):
        name = name[2:]
    if name != script_name:
        raise PatchError(Outcome.PATCH_WRONG_FILE, f"the patch must name {script_name} alone, found {text[:200]!r}")


def _check_git_names(line: str, script_name: str) -> None:
    names = line.removeprefix("diff --git ").split(" ")
    for name in names:
        _check_name(name, script_name)


def _check_between(line: str, number: int) -> None:
    """A line outside all hunks: headers of git that say nothing, and blanks."""
    if _OTHER_CHANGE.match(line):
        raise PatchError(
            Outcome.PATCH_WRONG_FILE, f"line {number}: the patch must change text of the script, found {line[:80]!r}"
        )
    if line.strip() and not re.match(r"index [0-9a-f]+\.\.[0-9a-f]+", line):
        raise PatchError(
            Outcome.PARSE_FAILED, f"line {number}: must be a file name or a hunk of a unified diff, found {line[:40]!r}"
        )


# --- Exact applier ----------------------------------------------------------------------------------------------------


def _apply(source: str, hunks: list[Hunk], flags: set[str]) -> str:
    lines = source.removesuffix("\n").split("\n") if source else []
    # A hunk of context alone says nothing; the published environment drops it too.
    located = sorted((_locate(lines, hunk, flags), len(hunk.old), hunk.number, hunk) for hunk in hunks if hunk.changes)
    for (start, length, number, _), (other_start, other_length, other, _) in pairwise(located):
        if other_start < start + length or (start == other_start and length == other_length == 0):
            raise PatchError(
                Outcome.AMBIGUOUS_HUNK,
                f"hunks {number} and {other} must not overlap, found both at line {other_start + 1}: make them one",
            )
    for start, length, _, hunk in reversed(located):
        lines[start : start + length] = _new_lines(lines[start : start + length], hunk)
    return "".join(line + "\n" for line in lines)


def _new_lines(old: list[str], hunk: Hunk) -> list[str]:
    """What takes the place of the script's lines ``old``; context stays as it is in the script."""
    kept = iter(old)
    new = []
    for line in hunk.lines:
        if line[0] == "+":
            new.append(line[1:])
        else:
            text = next(kept)
            if line[0] == " ":
                new.append(text)
    return new


def _places(lines: list[str], block: list[str]) -> list[int]:
    last = len(lines) - len(block)
    return [i for i in range(last + 1) if lines[i] == block[0] and lines[i : i + len(block)] == block]


def _locate(lines: list[str], hunk: Hunk, flags: set[str]) -> int:
    """Index of the first line of the hunk in the script; flags tell how it was found."""
    block = hunk.old
    if not block:
        return _insertion(lines, hunk)
    places = _places(lines, block)
    if len(places) == 1:
        return places[0]
    if places:
        return _nearest(places, hunk, flags)
    places = _places([line.rstrip() for line in lines], [line.rstrip() for line in block])
    if len(places) == 1:
        flags.add("whitespace_relaxed")
        return places[0]
    if places:
        raise PatchError(Outcome.AMBIGUOUS_HUNK, _several(places, hunk))
    raise PatchError(
        Outcome.HUNK_NOT_FOUND, f"hunk {hunk.number}: its lines must stand in the script; {_near(lines, block)}"
    )


def _insertion(lines: list[str], hunk: Hunk) -> int:
    # With no old line, a unified diff gives the line after which the new ones stand.
    if hunk.old_start is None or hunk.old_count != 0:
        raise PatchError(
            Outcome.UNANCHORED_INSERT,
            f"hunk {hunk.number}: an insertion must have a context line or a real line number, found neither",
        )
    if hunk.old_start > len(lines):
        raise PatchError(
            Outcome.HUNK_NOT_FOUND,
            f"hunk {hunk.number}: must be in a script of {len(lines)} lines, found line {hunk.old_start}",
        )
    return hunk.old_start


def _nearest(places: list[int], hunk: Hunk, flags: set[str]) -> int:
    if hunk.old_start is not None:
        hint = hunk.old_start - 1
        distance = min(abs(place - hint) for place in places)
        nearest = [place for place in places if abs(place - hint) == distance]
        if len(nearest) == 1:
            flags.add("located_by_hint")
            return nearest[0]
    raise PatchError(Outcome.AMBIGUOUS_HUNK, _several(places, hunk))


def _several(places: list[int], hunk: Hunk) -> str:
    numbers = ", ".join(str(place + 1) for place in places[:5])
    return (
        f"hunk {hunk.number}: must fit one place of the script, found {len(places)} (at lines {numbers}): add context"
    )


def _near(lines: list[str], block: list[str]) -> str:
    """Where the most similar line to the first telling one of the block stands, for the message."""
    telling = next((line for line in block if line.strip()), "")
    best = difflib.get_close_matches(telling, lines, n=1, cutoff=0.6) if telling else []
    if not best:
        return "nothing alike"
    numbers = ", ".join(str(i + 1) for i, line in enumerate(lines) if line == best[0])
    return f"the line most like its first at {numbers}"


# --- Result -----------------------------------------------------------------------------------------------------------


def _parsed(source: str) -> str:
    """The syntax tree as text: free of comments, blank lines and formatting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(source))


def _check_result(source: str, patched: str) -> None:
    try:
        tree = _parsed(patched)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PatchError(Outcome.SYNTAX_ERROR, f"the patched script must parse as Python, found {error}") from None
    if tree == _parsed(source):
        raise PatchError(Outcome.NOOP_PATCH, "the patch must change code, found comments or formatting at most")


def canonical_diff(source: str, patched: str, script_name: str) -> str:
    """The unified diff from ``source`` to ``patched`` with three lines of context; empty when they are equal."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (source, patched))
    lines = difflib.unified_diff(old, new, f"a/{script_name}", f"b/{script_name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


# --- The published procedure ------------------------------------------------------------------------------------------

_GIT = ("git", "apply", "--unidiff-zero", "--verbose", "--whitespace=warn", "--ignore-whitespace", "--recount")
_PATCH = ("patch", "--batch", "--fuzz=5", "--input=patch.diff")
_COMMANDS = (
    (*_GIT, "--reject", "--ignore-space-change", "patch.diff"),
    (*_GIT, "patch.diff"),
    (*_PATCH, "-p1"),
    (*_PATCH, "-p0"),
)


def _published_normal_form(patch: str) -> str:
    """The patch with every hunk header starting at line 1 and lengths counted anew, as the published code makes it."""
    result: list[str] = []
    lines = patch.split("\n")[:-1]
    index = 0
    while index < len(lines):
        if not lines[index].startswith("@@"):
            result.append(lines[index])
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not lines[end].startswith(("@@", "---", "+++")):
            end += 1
        body = lines[index + 1 : end]
        if any(line and line[0] not in " +-" for line in body):
            raise PatchError(Outcome.PARSE_FAILED, "lines of a hunk must begin with a space, + or -")
        removed, added = (sum(line.startswith(sign) for line in body) for sign in "-+")
        context = len(body) - removed - added
        if removed or added:
            result.append(f"@@ -1,{context + removed} +1,{context + added} @@")
            result.extend(body)
        index = end
    return "".join(line + "\n" for line in result)


def _apply_commands(source: str, patch: str, script_name: str) -> str:
    normal = _published_normal_form(patch)
    for command in _COMMANDS:
        # Fresh for each command: one that fails may leave the script half patched.
        with tempfile.TemporaryDirectory(prefix="rowproof-patch-") as name:
            folder = Path(name)
            (folder / script_name).write_bytes(source.encode("utf-8"))
            (folder / "patch.diff").write_bytes(normal.encode("utf-8"))
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "LC_ALL": "C",
                "HOME": name,
                "GIT_CONFIG_NOSYSTEM": "1",
                # A repository around the temporary folder would change what the paths of the patch mean.
                "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
            }
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=COMMAND_TIMEOUT_S,
                    check=False,
                )
            except FileNotFoundError:
                raise RowproofError(
                    f"apply_mode seed-compat must find the command {command[0]}, found none: install it or use exact"
                ) from None
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0:
                try:
                    return (folder / script_name).read_bytes().decode("utf-8")
                except (OSError, UnicodeDecodeError):
                    continue
    raise PatchError(Outcome.HUNK_NOT_FOUND, "none of the four published commands could apply the patch")
