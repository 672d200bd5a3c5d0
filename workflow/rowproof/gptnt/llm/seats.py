"""Whoever a player's configuration describes, ready to be seated: a script, or a model behind its provider.

Apart from the scripts, so that the rows of boards, which scripts play, do not depend on the client of models.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from rowproof.errors import ConfigError
from rowproof.gptnt.llm.player import LLMPlayer
from rowproof.gptnt.llm.prompts import Sees
from rowproof.gptnt.player_config import Player as Config
from rowproof.gptnt.players.scripts import player_for
from rowproof.gptnt.room import Seat
from rowproof.llm.calls import Asker
from rowproof.llm.cassette import Mode, through
from rowproof.llm.client import DEFAULT_POLICY, Client, Clock, Limiter, Policy
from rowproof.llm.cost import Prices


def seat_for(
    config: Config,
    environment: Mapping[str, str],
    *,
    mode: Mode = "off",
    folder: Path | None = None,
    sees: Sees = "images",
    prices: Prices | None = None,
    policy: Policy = DEFAULT_POLICY,
    limiter: Limiter | None = None,
    clock: Clock | None = None,
) -> Seat:
    """Whoever a configuration describes, ready to be seated.

    Args:
        config: see :func:`rowproof.gptnt.player_config.load_player`.
        environment: holds address, key and access headers of the provider; a replay needs none of them.
        mode: see :func:`rowproof.llm.cassette.through`; scripts are never recorded.
        folder: of the cassettes, one per game and player, so that neither the order of games nor their number at a time
            matters.
        sees: how a model is shown the bomb.
        prices: of the model's tokens.
        policy: of the client.
        limiter: of the provider; share it between all who reach it.
        clock: of the client.

    Raises:
        ConfigError: a variable is unset, the folder is missing, or the model cannot play like that.
    """
    capabilities = config.capabilities.model_dump(mode="json")
    if config.model.script is not None or config.provider is None:
        return Seat(config.name, player_for(config.model.script or ""), capabilities)
    live: Asker | None = None
    if mode != "replay":
        live = Client(config.provider, environment, policy=policy, limiter=limiter, clock=clock)
    if mode == "replay" and (folder is None or not folder.is_dir()):
        raise ConfigError(f"there must be a folder of cassettes to replay, found {folder}: record it first")
    if mode == "record" and folder is None:
        raise ConfigError("mode record must have a folder for its cassettes, found none")

    def begin(stream: str) -> Asker:
        return through(mode, None if folder is None else folder / cassette_name(stream), live)

    return Seat(config.name, LLMPlayer(config, begin, sees=sees, prices=prices), capabilities)


def cassette_name(stream: str) -> str:
    """The file name of the cassette of a player in a game, from the name of its stream, which no other one has."""
    return f"{re.sub('[^A-Za-z0-9]+', '-', stream)}.jsonl"
