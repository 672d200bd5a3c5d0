"""The conversation with one model: what it is sent again in every turn, and what is dropped when there is no room."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rowproof.gptnt.capabilities import Capabilities
from rowproof.llm.calls import Message, Picture

_CHARACTERS_PER_TOKEN = 4
# A message must hold something, and dropping it would join the two answers around it.
GONE = "(picture no longer shown)"
# Room that is kept free, as estimates are what they are.
_USABLE = 0.9


@dataclass(frozen=True)
class Exchange:
    """Messages that belong together.

    Attributes:
        messages: in order.
        pinned: never dropped.
        input_tokens: of the whole request that ended in this exchange, as the provider counted; 0 if it did not.
    """

    messages: tuple[Message, ...]
    pinned: bool = False
    input_tokens: int = 0


class Rendered(NamedTuple):
    """A conversation as it is sent.

    Attributes:
        messages: no two neighbours have the same role.
        dropped: exchanges that are left out from this turn on.
    """

    messages: tuple[Message, ...]
    dropped: int


class Conversation:
    """Exchanges in order. An exchange that was dropped once stays out: what was counted later does not hold it.

    Rendering changes no exchange. Pictures leave the memory when their exchange is too old to show them.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        """Begin an empty conversation."""
        self._window = capabilities.preserve_last_frame_for_n_turns
        self._tokens_per_image = capabilities.tokens_per_image
        limit = capabilities.usage_limits.input_tokens_limit
        # The next turn brings pictures that nobody has counted.
        reserve = (capabilities.max_observations_per_request + 1) * capabilities.tokens_per_image
        self.budget = None if limit is None else _USABLE * limit - reserve
        self.exchanges: list[Exchange] = []
        self._dropped: set[int] = set()

    def add(self, exchange: Exchange) -> None:
        """Append an exchange and let go of the pictures that no later request shows."""
        self.exchanges.append(exchange)
        for index, old in enumerate(self.exchanges):
            if not old.pinned and not self._in_window(index) and any(message.pictures for message in old.messages):
                self.exchanges[index] = replace(old, messages=tuple(_shown(old.messages, 0)))

    def render(self) -> Rendered:
        """The messages to be sent before those of a new turn."""
        before = len(self._dropped)
        self._fit()
        messages: list[Message] = []
        for index, exchange in enumerate(self.exchanges):
            if index in self._dropped:
                continue
            kept = exchange.messages if exchange.pinned else _shown(exchange.messages, int(self._in_window(index)))
            messages += kept
        return Rendered(joined(messages), len(self._dropped) - before)

    def size(self, index: int) -> int:
        """Tokens that an exchange takes up, estimated."""
        exchange = self.exchanges[index]
        characters = sum(len(part) for m in exchange.messages for part in m.parts if isinstance(part, str))
        images = [len(message.pictures) for message in exchange.messages]
        if not exchange.pinned:
            images = [min(count, int(self._in_window(index))) for count in images]
        return math.ceil(characters / _CHARACTERS_PER_TOKEN) + sum(images) * self._tokens_per_image

    def _in_window(self, index: int) -> bool:
        return index >= len(self.exchanges) - self._window

    def _fit(self) -> None:
        if self.budget is None or not self.exchanges:
            return
        tokens = self._tokens()
        last = len(self.exchanges) - 1
        for index, exchange in enumerate(self.exchanges):
            if tokens <= self.budget:
                break
            if index not in self._dropped and not exchange.pinned and index != last:
                self._dropped.add(index)
                tokens -= self.size(index)

    def _tokens(self) -> int:
        """Tokens of the conversation: the newest count, and estimates of what came after it."""
        tokens = 0
        for index in reversed(range(len(self.exchanges))):
            if self.exchanges[index].input_tokens:
                return tokens + self.exchanges[index].input_tokens
            if index not in self._dropped:
                tokens += self.size(index)
        return tokens


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages without those that are empty, neighbours of one role made one: some servers insist on taking turns."""
    result: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if isinstance(part, Picture) or part.strip())
        if not parts:
            continue
        if result and result[-1].role == message.role:
            result[-1] = Message(message.role, (*result[-1].parts, *parts))
        else:
            result.append(Message(message.role, parts))
    return tuple(result)


def _shown(messages: Iterable[Message], images: int) -> Iterable[Message]:
    """The messages with only the last ``images`` pictures of each."""
    for message in messages:
        pictures = [index for index, part in enumerate(message.parts) if isinstance(part, Picture)]
        gone = set(pictures[: len(pictures) - images])
        parts = tuple(part for index, part in enumerate(message.parts) if index not in gone)
        yield Message(message.role, parts or (GONE,)) if gone else message
