"""Models that propose patches: the files of ``config/players`` and ``config/providers``, as far as they say how to ask.

Keys and access headers are named by their environment variables; nothing here holds them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rowproof.errors import ConfigError
from rowproof.llm.calls import Asker
from rowproof.llm.cassette import Mode, through
from rowproof.llm.client import Client, Limiter, Policy
from rowproof.llm.limits import Limits
from rowproof.plain_data import read_model
from rowproof.speedrun.players import LLMPlayer
from rowproof.speedrun.records_config import Strict
from rowproof.strict_yaml import parse

PLAYERS = "config/players"
PROVIDERS = "config/providers"
MAX_TOKENS = 16_000
"""Of one answer: a patch of 64 KiB, with some thinking."""
# A whole patch takes longer than an answer in a game.
POLICY = Policy(deadline_s=900.0, request_s=600.0)

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]


class Provider(Strict):
    """How a model is reached (``config/providers/<name>.yaml``)."""

    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s@]+$")] | None = None
    base_url_variable: Variable | None = None
    api_key_variable: Variable
    api_key_default: Literal["EMPTY"] | None = None
    header_variables: dict[str, Variable] = Field(default_factory=dict)
    limits: Limits | None = None

    def missing_variables(self, environment: Mapping[str, str]) -> list[str]:
        """Variables that a client needs and that are unset or empty, in order."""
        needed = [self.base_url_variable, self.api_key_variable, *self.header_variables.values()]
        optional = {self.api_key_variable} if self.api_key_default else set()
        return [name for name in needed if name and name not in optional and not environment.get(name)]


class Sampling(Strict):
    """How a model is sampled; the length of its answers is not taken from here, since it was chosen for a game."""

    max_tokens: int | None = None
    temperature: float = 0.6
    reasoning_effort: str | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)

    def parameters(self, max_tokens: int) -> dict[str, Any]:
        """The parameters of a request."""
        chosen: dict[str, Any] = {"max_completion_tokens": max_tokens, "temperature": self.temperature}
        if self.reasoning_effort is not None:
            chosen["reasoning_effort"] = self.reasoning_effort
        if self.extra_body:
            chosen["extra_body"] = self.extra_body
        return chosen


class Model(Strict):
    """What a player file says under ``model``."""

    id: Annotated[str, Field(min_length=1)]
    provider: Name
    settings: Sampling = Sampling()
    prices: dict[str, Any] | None = None


def load_model(root: Path, name: str, provider: str | None = None) -> tuple[Model, Provider]:
    """The model of a player file and its provider, or another ``provider``.

    Raises:
        ConfigError: there is no such file, it breaks its form, or the player is a script.
    """
    where = f"{PLAYERS}/{name}.yaml"
    data = _read(root, PLAYERS, name)
    said = data.get("model") if isinstance(data, dict) else None
    if isinstance(said, str) and re.fullmatch(r"[^:]+:.+", said):
        said = dict(zip(("provider", "id"), said.split(":", 1), strict=True))
    if not isinstance(said, dict) or "script" in said:
        raise ConfigError(f"{where}: must be a model with id and provider to propose patches, found a script or none")
    model = read_model(said if provider is None else said | {"provider": provider}, Model, where)
    return model, _provider(root, model.provider)


def _provider(root: Path, name: str) -> Provider:
    data = _read(root, PROVIDERS, name)
    try:
        provider = read_model(data, Provider, name)
    except ConfigError:
        # A key may stand where the name of a variable belongs: what was found is not shown.
        raise ConfigError(
            f"{PROVIDERS}/{name}.yaml: must be a provider that rowproof doctor accepts (its content is not shown here)"
        ) from None
    if (provider.base_url is None) == (provider.base_url_variable is None):
        raise ConfigError(f"{PROVIDERS}/{name}.yaml: must have either base_url or base_url_variable")
    return provider


def _read(root: Path, folder: str, name: str) -> Any:
    known = sorted(path.stem for path in (root / folder).glob("*.yaml") if not path.name.startswith("_"))
    if name not in known:
        raise ConfigError(f"{folder} must have a file for {name!r}, found {', '.join(known) or 'none'}")
    where = f"{folder}/{name}.yaml"
    try:
        return parse((root / where).read_bytes(), where).data
    except OSError as error:
        raise ConfigError(f"{where}: must be a readable file: {error.strerror}") from None


def model_player(
    model: Model,
    provider: Provider,
    mode: Mode,
    cassette: Path | None,
    environment: Mapping[str, str],
    max_tokens: int = MAX_TOKENS,
) -> LLMPlayer:
    """A proposer that asks a model, or a cassette of it.

    Raises:
        ConfigError: an environment variable is unset, or there is no cassette to replay.
    """
    live: Asker | None = None
    if mode != "replay":
        live = Client(provider, environment, policy=POLICY, limiter=Limiter(provider.limits))
    return LLMPlayer(model.id, through(mode, cassette, live), model.settings.parameters(max_tokens))
