"""Reading an answer: reasoning and one command out of whatever a model wrote, and what was wrong with it."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import json_repair

from rowproof.gptnt.players.turns import UNKNOWN, read_output
from rowproof.llm.calls import well_formed

# In the order in which they are reported.
ERRORS = (
    *("reasoning_absent", "action_not_present", "action_placed_before_reasoning", "content_after_action_complete"),
    *("multiple_actions_present", "reasoning_split_across_blocks", "reasoning_mixed_with_untagged_text"),
    *("malformed_tag_structure", "action_parsing_failed"),
)

_THOUGHT, _ACTION, _TEXT = "thought", "action", "text"
_NAMES = {"thought": _THOUGHT, "think": _THOUGHT, "action": _ACTION}
_TAG = re.compile(r"<(/?)(thought|think|action)>", re.IGNORECASE)
_UNCLOSED = re.compile(r"<(/?)\s*(thought|think|action)\b(?!>)\s*>?", re.IGNORECASE)
# What stands for text that the model should have put there itself.
_PLACEHOLDER = re.compile(
    r"(<(?:thought|think|action)>)\s*\{+\s*(?:\.\.\.|…|(?:your |the )?"
    r"(?:thoughts?|reasoning|actions?|commands?|json)(?: here)?)\s*\}+\s*(?=</)",
    re.IGNORECASE,
)
_BRACED = re.compile(r"(<(thought|think)>)\s*\{+([^{}<]*)\}+\s*(</\2>)", re.IGNORECASE)
_FENCE = re.compile(r"```[a-z]*\s*\n?(.*?)```", re.IGNORECASE | re.DOTALL)
_COMMAND_KEYS = frozenset({"result", "kind", "data", "message", "action"})


class Parsed(NamedTuple):
    """What was read.

    Attributes:
        thoughts: None if there are none.
        output: the command, see :func:`rowproof.gptnt.players.turns.read_output`; None if there is none.
        errors: kinds in the order of :data:`ERRORS`.
    """

    thoughts: str | None
    output: Mapping[str, Any] | None
    errors: tuple[str, ...]


class _Block(NamedTuple):
    kind: str
    text: str
    # Reasoning that goes on after an action inside of it.
    resumed: bool = False


def parse_tagged(answer: str, protocol: Mapping[str, Any]) -> Parsed:
    """Read an answer in tags, as leniently as it can be done without guessing.

    Args:
        answer: the whole text.
        protocol: of the role; a command that it does not allow was not read.
    """
    blocks, malformed = _blocks(answer)
    actions = [index for index, block in enumerate(blocks) if block.kind == _ACTION]
    reasoning = [index for index, block in enumerate(blocks) if block.kind == _THOUGHT and not block.resumed]
    first = actions[0] if actions else len(blocks)
    texts = [index for index, block in enumerate(blocks) if block.kind == _TEXT]
    found: set[str] = {"malformed_tag_structure"} if malformed else set()

    source = blocks[first].text if actions else None
    if source is None:
        # A bare command is as good as one in tags.
        bare = next((index for index in texts if _bare_command(blocks[index].text) is not None), None)
        if bare is None:
            found.add("action_not_present")
        else:
            source, first = blocks[bare].text, bare
            if not reasoning:
                texts.remove(bare)
    before = [block.text for block in blocks[:first] if block.kind != _ACTION]
    after = [blocks[index].text for index in reasoning if index > first]
    thoughts = "\n".join(before or after) or None

    if thoughts is None:
        found.add("reasoning_absent")
    if source is not None:
        if after and not any(index < first for index in reasoning):
            found.add("action_placed_before_reasoning")
        if any(block.kind != _ACTION and not block.resumed for block in blocks[first + 1 :]):
            found.add("content_after_action_complete")
    if len(actions) > 1:
        found.add("multiple_actions_present")
    if len(reasoning) > 1:
        found.add("reasoning_split_across_blocks")
    if texts and (reasoning or actions):
        found.add("reasoning_mixed_with_untagged_text")

    output = None if source is None else parse_command(source)
    if source is not None and (output is None or UNKNOWN in read_output(output, protocol)[1]):
        output = None
        found.add("action_parsing_failed")
    return Parsed(thoughts, output, tuple(error for error in ERRORS if error in found))


def parse_command(text: str) -> Mapping[str, Any] | None:
    """The first JSON object of a text, mended if need be; None if there is none. Code fences are taken off."""
    fenced = _FENCE.search(text)
    value = _load((fenced[1] if fenced else text).strip())
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, dict)), None)
    return _plain(value) if isinstance(value, dict) else None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json_repair.loads(text[start:])
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """The value with well-formed texts: an escape can spell half a character."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(str(key)): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _bare_command(text: str) -> Mapping[str, Any] | None:
    """The command of a text without tags: braces alone do not make one."""
    if "{" not in text:
        return None
    command = parse_command(text)
    return command if command is not None and not _COMMAND_KEYS.isdisjoint(command) else None


def _blocks(answer: str) -> tuple[list[_Block], bool]:
    """The blocks of an answer that are not blank, and whether its tags were damaged."""
    cleaned = _UNCLOSED.sub(lambda tag: f"<{tag[1]}{tag[2].lower()}>", answer)
    cleaned = _PLACEHOLDER.sub(r"\1", cleaned)
    cleaned = _BRACED.sub(r"\1\3\4", cleaned)
    malformed = cleaned != answer

    blocks: list[_Block] = []
    # The tags that are open, the innermost last.
    opened: list[str] = []
    resumed = False
    start = 0

    def close(end: int, kind: str) -> None:
        text = cleaned[start:end].strip()
        if text:
            blocks.append(_Block(kind, text, resumed))

    for tag in _TAG.finditer(cleaned):
        kind = _NAMES[tag[2].lower()]
        if not tag[1]:
            malformed = malformed or bool(opened)
            close(tag.start(), opened[-1] if opened else _TEXT)
            opened.append(kind)
            resumed = False
        elif opened and opened[-1] == kind:
            close(tag.start(), kind)
            opened.pop()
            resumed = bool(opened)
        elif kind in opened:
            # An inner tag was left open.
            malformed = True
            close(tag.start(), opened[-1])
            del opened[opened.index(kind) :]
            resumed = bool(opened)
        else:
            # Never opened: what stands before it is what it closes.
            malformed = True
            close(tag.start(), opened[-1] if opened else kind)
        start = tag.end()
    malformed = malformed or bool(opened)
    close(len(cleaned), opened[-1] if opened else _TEXT)
    return blocks, malformed


def parse_monologue(answer: str, reasoning: str | None, protocol: Mapping[str, Any]) -> Parsed:
    """Read an answer whose reasoning stands apart, or before the command in a tag of its own.

    Args:
        answer: the text without what the provider gave apart.
        reasoning: what it gave apart.
        protocol: see :func:`parse_tagged`.
    """
    if "</think>" in answer and "<think>" not in answer:
        # Some servers put the first tag into the prompt.
        answer = f"<think>{answer}"
    parsed = parse_tagged(answer, protocol)
    # A command without tags is what was asked for.
    fine = {"reasoning_absent", "reasoning_mixed_with_untagged_text"}
    errors = tuple(error for error in parsed.errors if error not in fine)
    return Parsed(reasoning or parsed.thoughts, parsed.output, errors)
