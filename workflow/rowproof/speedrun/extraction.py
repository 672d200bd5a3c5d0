"""From the messages of a proposer to the text of a patch, in fixed steps that are all recorded."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from rowproof.speedrun.outcomes import Outcome

ThinkMode = Literal["require", "strip", "off"]
FenceMode = Literal["strip", "reject"]

MAX_PATCH_BYTES = 64 * 1024
MAX_CHANGED_LINES = 2000
MAX_LINE_CHARACTERS = 2000

THINK_END = "</think>"
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")


@dataclass(frozen=True)
class Extraction:
    """What was made of a completion.

    Attributes:
        patch: the text of the patch, closed by one LF; empty when there is none.
        failure: why there is none, or None.
        detail: the failure in a sentence, else empty.
        flags: what had to be mended, in order: ``format_violation``, ``prose_dropped``.
        steps: name of each step that was taken and the number of characters that it left, in order.
    """

    patch: str
    failure: Outcome | None
    detail: str
    flags: tuple[str, ...]
    steps: tuple[tuple[str, int], ...]


class _Failure(Exception):
    def __init__(self, outcome: Outcome, detail: str) -> None:
        self.outcome, self.detail = outcome, detail


def extract(
    messages: Sequence[Mapping[str, Any]], think_mode: ThinkMode = "strip", fence_mode: FenceMode = "strip"
) -> Extraction:
    """Extract the patch from the last assistant message.

    Args:
        messages: the dialogue, each message with ``role`` and ``content``.
        think_mode: ``require`` keeps what follows the last ``</think>``, and nothing if there is none (the published
            think parser); ``strip`` removes up to the last one if there is one; ``off`` leaves the text alone.
        fence_mode: ``strip`` takes the inside of the last fenced block that holds a patch; ``reject`` fails on a fence.
    """
    flags: list[str] = []
    steps: list[tuple[str, int]] = []
    try:
        text = _last_message(messages)
        steps.append(("last_message", len(text)))
        text = _without_thinking(text, think_mode)
        steps.append((f"think_{think_mode}", len(text)))
        text = _without_fences(text, fence_mode, flags)
        steps.append((f"fence_{fence_mode}", len(text)))
        text = _without_prose(text, flags)
        steps.append(("prose", len(text)))
        text = _normal_lines(text)
        steps.append(("lines", len(text)))
        text = text.rstrip("\n") + "\n"
        steps.append(("end", len(text)))
        if text == "\n":
            raise _Failure(Outcome.EMPTY_PATCH, "the answer must hold a patch, found none")
        _check_size(text)
        steps.append(("size", len(text)))
    except _Failure as failure:
        return Extraction("", failure.outcome, failure.detail, tuple(flags), tuple(steps))
    return Extraction(text, None, "", tuple(flags), tuple(steps))


def _last_message(messages: Sequence[Mapping[str, Any]]) -> str:
    contents = [message.get("content") for message in messages if message.get("role") == "assistant"]
    if not contents or not isinstance(contents[-1], str):
        raise _Failure(Outcome.PARSE_FAILED, "the dialogue must end in an assistant message with text, found none")
    return contents[-1]


def _without_thinking(text: str, mode: ThinkMode) -> str:
    if mode == "off":
        return text
    _, tag, rest = text.rpartition(THINK_END)
    if mode == "require":
        return rest.strip() if tag else ""
    return rest


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_fences(text: str, mode: FenceMode, flags: list[str]) -> str:
    # Lines of a patch begin with a character of their own, so a fence that matters stands in the first column.
    blocks: list[list[str]] = []
    fence = ""
    for line in _line_ends(text).split("\n"):
        match = _FENCE.fullmatch(line)
        if not fence and match:
            if mode == "reject":
                raise _Failure(Outcome.PARSE_FAILED, "the answer must be a bare patch, found a Markdown fence")
            fence = match[1]
            blocks.append([])
        elif fence and match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
        elif fence:
            blocks[-1].append(line)
    for block in reversed(blocks):
        if any(a.startswith("--- ") and b.startswith("+++ ") for a, b in pairwise(block)):
            flags.append("format_violation")
            return "\n".join(block)
    return text


def _without_prose(text: str, flags: list[str]) -> str:
    # Git's own header is no prose: it may say what the two file names do not, such as a change of mode.
    start = re.search(r"^(?:--- |diff --git )", text.replace("\r", "\n"), re.MULTILINE)
    dropped = text[: start.start()] if start else text
    if dropped.strip():
        flags.append("prose_dropped")
    return text[len(dropped) :]


def _normal_lines(text: str) -> str:
    return "\n".join(line for line in _line_ends(text).split("\n") if not line.startswith("***"))


def _check_size(patch: str) -> None:
    try:
        size = len(patch.encode("utf-8"))
    except UnicodeEncodeError:
        raise _Failure(Outcome.PARSE_FAILED, "the patch must be Unicode text, found a lone surrogate") from None
    lines = patch.split("\n")
    changed = sum(line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) for line in lines)
    longest = max(map(len, lines))
    for what, found, limit in (
        ("bytes", size, MAX_PATCH_BYTES),
        ("changed lines", changed, MAX_CHANGED_LINES),
        ("characters in a line", longest, MAX_LINE_CHARACTERS),
        ("NUL characters", patch.count("\0"), 0),
    ):
        if found > limit:
            raise _Failure(Outcome.PATCH_TOO_LARGE, f"a patch must have at most {limit} {what}, found {found}")
