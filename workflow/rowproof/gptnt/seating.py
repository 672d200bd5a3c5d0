"""Who takes the seats of a run: as many instances of each player as its manifest counts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rowproof.errors import ConfigError
from rowproof.gptnt.llm.player import sampling
from rowproof.gptnt.llm.seats import seat_for
from rowproof.gptnt.player_config import Player
from rowproof.gptnt.room import Seat
from rowproof.gptnt.statics.players import Ask
from rowproof.llm.calls import Asker, Message, Request
from rowproof.llm.cassette import Mode, through
from rowproof.llm.client import Client, Limiter


class Cassettes(NamedTuple):
    """Where answers of models are kept or taken from.

    Attributes:
        folder: of the cassettes; None with mode ``off``.
        mode: see :func:`rowproof.llm.cassette.through`.
    """

    folder: Path | None
    mode: Mode


class Limiters:
    """One limiter for each provider, shared by all who reach it."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_provider: dict[str, Limiter] = {}

    def of(self, player: Player) -> Limiter | None:
        """The limiter of a player's provider; None for scripts."""
        if player.provider is None or player.model.provider is None:
            return None
        return self._by_provider.setdefault(player.model.provider, Limiter(player.provider.limits))


def seat_makers(
    player: Player, count: int, cassettes: Cassettes, limiters: Limiters, environment: Mapping[str, str]
) -> list[Callable[[], Seat]]:
    """One maker for each of ``count`` instances of a player.

    Raises:
        ConfigError: from a maker: an environment variable is unset, or there are no cassettes to replay.
    """

    def make() -> Seat:
        return seat_for(
            player,
            environment,
            mode=cassettes.mode,
            folder=cassettes.folder,
            prices=player.model.prices,
            limiter=limiters.of(player),
        )

    return [make] * count


def asker_for(
    player: Player,
    task: str,
    cassettes: Cassettes,
    limiters: Limiters,
    environment: Mapping[str, str],
    max_tokens: int | None = None,
) -> Ask:
    """How a static task asks a model: one request for each question.

    ``max_tokens`` bounds answers; None leaves that to the player's file.

    Raises:
        ConfigError: the player is a script, an environment variable is unset, or there is no cassette to replay.
    """
    if player.provider is None or player.model.id is None:
        raise ConfigError(f"player {player.config}: must be a model to answer questions, found a script")
    live: Asker | None = None
    if cassettes.mode != "replay":
        live = Client(player.provider, environment, limiter=limiters.of(player))
    path = None if cassettes.folder is None else cassettes.folder / f"{task}-{player.config}.jsonl"
    asker = through(cassettes.mode, path, live)
    model, parameters = player.model.id, sampling(player.model.settings, max_tokens or player.model.settings.max_tokens)

    def ask(instruction, parts):
        messages = (Message("system", (instruction,)), Message("user", tuple(parts)))
        reply = asker.ask(Request(model, messages, parameters))
        return reply.text, reply.usage

    return ask
