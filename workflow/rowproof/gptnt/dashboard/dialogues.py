"""The dialogues of games as the viewer shows them: one entry per step, long texts cut, within a limit of size."""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rowproof.gptnt.bomb.rules.keypad import SYMBOLS
from rowproof.gptnt.players.turns import ASYNC, DEFUSER, EXPERT, NO_NEW_MESSAGES
from rowproof.records import encode_line

# Characters of one text that are shown; models run into loops and fill a message with them.
TEXT_LENGTH = 4_000
# Of what an observation holds, what drawings show; pictures are left out.
SEEN = ("turn", "side", "zoomed_in", "holding", "timer", "module", "slots", "edge", "marks")
GLYPHS = {name: symbol.glyph for name, symbol in SYMBOLS.items()}


def cut(text: str) -> str:
    """The start of a long text, with a note of how much is left out."""
    left = len(text) - TEXT_LENGTH
    return text if left <= 0 else f"{text[:TEXT_LENGTH]} … [{left:,} more characters are in the record]"


def _cut_all(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {key: _cut_all(entry) for key, entry in value.items()}
    return [_cut_all(entry) for entry in value] if isinstance(value, list) else value


def _given(messages: Any) -> str | None:
    if not messages:
        return None
    texts = messages if isinstance(messages, list) else [messages]
    if texts == [NO_NEW_MESSAGES]:
        return None
    return cut("\n".join(text if isinstance(text, str) else encode_line(text) for text in texts))


def viewer_step(step: Mapping[str, Any]) -> dict[str, Any]:
    """One step of a record, with its blobs unpacked, as the viewer shows it."""
    seen = step["observation"]
    return {
        "step": step["step"],
        "role": step["role"],
        "player": step["player_name"],
        "timestamp": step["timestamp"],
        "requested_at": step["requested_at"],
        "kind": step["output_kind"],
        "output": _cut_all(step["output"]),
        "raw": None if step["raw_output"] is None else cut(step["raw_output"]),
        "thoughts": None if step["thoughts"] is None else cut(step["thoughts"]),
        "given": _given(step["new_messages"]),
        "errors": step["error_type"] or [],
        "usage": step["usage"],
        "truncations": step["num_prompt_truncations"],
        "bomb": step["bomb_state"],
        "seen": {key: seen[key] for key in SEEN if key in seen} if isinstance(seen, Mapping) else None,
    }


def in_order(steps: Iterable[Mapping[str, Any]], style: str) -> list[Mapping[str, Any]]:
    """The steps of both players as they took effect; see :func:`rowproof.gptnt.room.merged_steps`."""
    first = DEFUSER if style == ASYNC else EXPERT
    return sorted(steps, key=lambda step: (bool(step["is_reflection"]), step["timestamp"], step["role"] != first))


def pack_dialogue(steps: Sequence[Mapping[str, Any]]) -> str:
    """The steps of one game as text: base64 of zlib of canonical JSON."""
    return base64.b64encode(zlib.compress(encode_line(list(steps)).encode(), 9)).decode()


def fair_order(games: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The first game of every pairing and outcome, then the second ones, and so on, for when space is short."""
    turns: dict[tuple[Any, ...], int] = {}
    ranked = []
    for place, game in enumerate(games):
        group = tuple(game[key] for key in ("suite", "revision", "defuser", "expert", "style", "outcome"))
        turns[group] = turns.get(group, 0) + 1
        ranked.append((turns[group], place))
    return (games[place] for _, place in sorted(ranked))
