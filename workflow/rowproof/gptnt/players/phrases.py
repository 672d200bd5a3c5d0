"""How scripted players talk: sentences of a head and quoted items, as in ``Wires from the top: "red", "blue".``"""

import re
from collections.abc import Iterable, Sequence

Sentence = tuple[str, Sequence[str]]

_NONE = "none"
_SENTENCE = re.compile(r'([A-Za-z][\w -]*): (?:none|("[^"]*"(?:, "[^"]*")*))\.')
# Longer than anything a scripted player says. What comes after is not heard, as finding sentences in it takes too long.
HEARD = 4000
_ITEM = re.compile(r'"([^"]*)"')


def say(sentences: Iterable[Sentence]) -> str:
    """A message of these sentences; items must not hold quotation marks."""
    quoted = ((head, ", ".join(f'"{item}"' for item in items) or _NONE) for head, items in sentences)
    return " ".join(f"{head}: {items}." for head, items in quoted)


def hear(message: str) -> dict[str, list[str]]:
    """Head to items of each well-formed sentence in the first ``HEARD`` characters; of one head the last one counts."""
    return {head: _ITEM.findall(items) for head, items in _SENTENCE.findall(message[:HEARD])}
