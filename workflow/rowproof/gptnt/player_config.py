"""Players and providers: ``config/players/<player>.yaml`` and ``config/providers/<provider>.yaml``.

A player is one model and how it is asked; a provider is how a model is reached. Keys and access headers are named by
their environment variables. They are read when a client is built, and nothing here holds them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from rowproof.errors import ConfigError
from rowproof.files import write_atomic
from rowproof.gptnt.capabilities import Capabilities, Count, Identity, UsageLimits
from rowproof.gptnt.models import ConfigName, Positive, Strict
from rowproof.gptnt.names import config_names, unknown_name
from rowproof.gptnt.players.scripts import known_scripts
from rowproof.gptnt.suite import Protocol
from rowproof.llm.cost import Prices
from rowproof.llm.limits import Limits
from rowproof.plain_data import read_model
from rowproof.strict_yaml import Document, Key, parse, validate

PLAYERS = "config/players"
PROVIDERS = "config/providers"
LIST_PLAYERS = "rowproof list players"

_VARIABLE = r"^[A-Z][A-Z0-9_]*$"
Variable = Annotated[str, StringConstraints(pattern=_VARIABLE)]
Script = Literal[*known_scripts()]


class Provider(Strict):
    """An endpoint of the OpenAI chat protocol."""

    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s@]+$")] | None = None
    base_url_variable: Variable | None = None
    api_key_variable: Variable
    # Servers of one's own may ask for no key. A real key must not stand in a file.
    api_key_default: Literal["EMPTY"] | None = None
    header_variables: dict[str, Variable] = Field(default_factory=dict)
    limits: Limits | None = None

    @model_validator(mode="after")
    def _one_address(self) -> "Provider":
        if (self.base_url is None) == (self.base_url_variable is None):
            raise ValueError("there must be either base_url or base_url_variable")
        return self

    def missing_variables(self, environment: Mapping[str, str]) -> list[str]:
        """Variables that a client needs and that are unset or empty, in order."""
        needed = [self.base_url_variable, self.api_key_variable, *self.header_variables.values()]
        optional = {self.api_key_variable} if self.api_key_default else set()
        return [name for name in needed if name and name not in optional and not environment.get(name)]


class Settings(Strict):
    """How a model is sampled."""

    max_tokens: Positive = 1000
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.6
    # Reasoning is scored in the visible answer, so hidden reasoning is kept low or off.
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    # Fields that a provider knows beyond the common ones; sent as they are.
    extra_body: dict[str, Any] = Field(default_factory=dict)


class PlayerModel(Strict):
    """A model behind a provider, or a script."""

    id: Annotated[str, Field(min_length=1)] | None = None
    provider: ConfigName | None = None
    settings: Settings = Field(default_factory=Settings)
    prices: Prices | None = None
    script: Script | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "PlayerModel":
        if self.script is None and (self.id is None or self.provider is None):
            raise ValueError("there must be id and provider, or script")
        if self.script is not None and self.model_fields_set != {"script"}:
            raise ValueError("a script must stand alone: remove the other keys of model")
        return self


class _Limits(UsageLimits):
    input_tokens_limit: Positive
    output_tokens_limit: Positive


class _Configured(Capabilities):
    """Capabilities with what every player file must say, and the defaults of player files."""

    player_type: Literal["ai", "human"] = "ai"
    thinking_method: Literal["inner-monologue", "thinking-out-loud"]
    structured_output_mode: Literal["prompted", "native", "tool"] | None
    interaction_location_method: Literal["set-of-marks", "coordinates"]
    usage_limits: _Limits
    preserve_last_frame_for_n_turns: Count = 1


class PlayerFile(Strict):
    """One file of ``config/players``."""

    capabilities: _Configured
    identity: Identity
    model: PlayerModel


@dataclass(frozen=True)
class Player:
    """A player with the provider that it is reached by.

    Attributes:
        config: name of its file.
        capabilities: see :class:`Capabilities`.
        identity: see :class:`Identity`.
        model: see :class:`PlayerModel`; its provider is the one chosen.
        provider: None for scripts.
    """

    config: str
    capabilities: Capabilities
    identity: Identity
    model: PlayerModel
    provider: Provider | None

    @property
    def name(self) -> str:
        """The name in specs, rosters and records."""
        return self.capabilities.player_name

    @property
    def fingerprint(self) -> str:
        """The capability fingerprint; the provider does not enter."""
        return self.capabilities.fingerprint

    @property
    def model_label(self) -> str:
        """The model's id, or the script."""
        return self.model.id or f"script {self.model.script}"

    def missing_variables(self, environment: Mapping[str, str]) -> list[str]:
        """Environment variables that are needed to reach the model and are unset or empty."""
        return self.provider.missing_variables(environment) if self.provider else []

    def can_act(self, role: Literal["defuser", "expert"], protocol: Protocol) -> bool:
        """Whether the player can ever do more than nothing in a role; only of scripts this is known beforehand."""
        script = self.model.script
        if script is None:
            return True
        if script == "test-expert":
            return protocol.allow_message_output
        if script.startswith("scripted"):
            # It asks and answers from the manual: its own, or as defuser its partner's.
            return protocol.include_manual or (role == "defuser" and protocol.allow_message_output)
        allowed = {"test-oracle": protocol.allow_magic_actions, "test-random": protocol.allow_lottery_actions}
        return role == "defuser" and allowed.get(script, True)


def load_provider(root: Path, name: str) -> Provider:
    """A provider by the name of its file.

    Raises:
        ConfigError: there is none of that name, or its file breaks the model.
    """
    known = config_names(root / PROVIDERS)
    if name not in known:
        raise unknown_name("a provider", name, known, LIST_PLAYERS)
    document = _document(root, f"{PROVIDERS}/{name}.yaml")
    _refuse_keys(document)
    return validate(document, Provider)


def _document(root: Path, where: str) -> Document:
    try:
        return parse((root / where).read_bytes(), where)
    except OSError as error:
        raise ConfigError(f"{where}: must be a readable file: {error.strerror}") from None


def _refuse_keys(document: Document) -> None:
    """Refuse what may be a key in place of a variable's name, without showing it as other messages do."""
    data = document.data if isinstance(document.data, dict) else {}
    headers = data.get("header_variables")
    places: dict[Key, Any] = {(key,): data.get(key) for key in ("api_key_variable", "base_url_variable")}
    places |= {
        ("header_variables", key): value for key, value in (headers if isinstance(headers, dict) else {}).items()
    }
    for key, value in places.items():
        if isinstance(value, str) and not re.fullmatch(_VARIABLE, value):
            raise document.error(key, "must be the name of an environment variable, as OPENAI_API_KEY (not shown here)")
    if isinstance(data.get("base_url"), str) and "@" in data["base_url"]:
        raise document.error(("base_url",), "must hold neither user nor password (not shown here)")
    if isinstance(data.get("api_key_default"), str) and data["api_key_default"] != "EMPTY":
        raise document.error(("api_key_default",), "must be EMPTY or left out, never a key (not shown here)")


def load_player(root: Path, name: str, provider: str | None = None) -> Player:
    """A player by the name of its file, reached by ``provider`` instead of its own if one is given.

    Raises:
        ConfigError: there is none of that name, a file breaks its model, or the provider cannot be overridden.
    """
    known = config_names(root / PLAYERS)
    if name not in known:
        raise unknown_name("a player", name, known, LIST_PLAYERS)
    document, short = _split_model(_document(root, f"{PLAYERS}/{name}.yaml"))
    file = validate(document, PlayerFile)
    model = file.model
    if provider is not None:
        if short or model.script is not None:
            has = f"model: {short}, a provider and an id in one" if short else f"the script {model.script}, no model"
            raise document.error(
                ("model",), f"must have id and provider apart for another provider ({provider}), found {has}"
            )
        model = model.model_copy(update={"provider": provider})
    if model.provider is None:
        return Player(name, file.capabilities, file.identity, model, None)
    try:
        reached = load_provider(root, model.provider)
    except ConfigError as error:
        raise document.error(("model", "provider"), str(error)) from None
    return Player(name, file.capabilities, file.identity, model, reached)


def read_player(data: bytes, where: str) -> PlayerFile:
    """A player of a file with these bytes, without its provider; ``where`` names the file in messages.

    Raises:
        ConfigError: the file breaks its model.
    """
    return validate(_split_model(parse(data, where))[0], PlayerFile)


def _split_model(document: Document) -> tuple[Document, str | None]:
    """A document whose ``model: provider:id`` is written out, and that text."""
    text = document.data.get("model") if isinstance(document.data, dict) else None
    if not isinstance(text, str):
        return document, None
    provider, colon, model_id = text.partition(":")
    if not (provider and colon and model_id):
        raise document.error(("model",), f"must be a mapping or <provider>:<id>, found {text!r}")
    data = document.data | {"model": {"provider": provider, "id": model_id}}
    return Document(document.name, data, document.lines), text


def list_players(root: Path) -> dict[str, list[dict[str, Any]]]:
    """What ``list players`` shows: players and providers; a file that cannot be read says so under ``error``."""
    players: list[dict[str, Any]] = []
    for name in config_names(root / PLAYERS):
        try:
            player = load_player(root, name)
        except ConfigError as error:
            players.append({"config": name, "error": str(error)})
            continue
        players.append(
            {
                "config": name,
                "player_name": player.name,
                "model": player.model_label,
                "provider": player.model.provider,
                "display_name": player.identity.display_name,
                "fingerprint": player.fingerprint,
            }
        )
    providers: list[dict[str, Any]] = []
    for name in config_names(root / PROVIDERS):
        try:
            provider = load_provider(root, name)
        except ConfigError as error:
            providers.append({"provider": name, "error": str(error)})
            continue
        address = provider.base_url or f"from {provider.base_url_variable}"
        providers.append({"provider": name, "base_url": address, "api_key_variable": provider.api_key_variable})
    return {"players": players, "providers": providers}


def new_file(root: Path, folder: Literal["config/players", "config/providers"], name: str) -> Path:
    """Copy the commented template of a folder to a new file and return its path.

    Raises:
        ConfigError: the name may not be a file name, or there is such a file.
    """
    read_model({"name": name}, _NewName, f"{folder}/{name}.yaml")
    path = root / folder / f"{name}.yaml"
    if path.exists():
        raise ConfigError(f"{folder}/{name}.yaml: must not be there yet: choose another name or edit the file")
    template = (root / folder / "_template.yaml").read_bytes()
    write_atomic(path, template.replace(b"NAME", name.encode()))
    return path


class _NewName(Strict):
    name: ConfigName


def with_tokens_per_image(text: str, tokens: int, where: str) -> str:
    """The text of a player file with another ``tokens_per_image``; all other lines stay as they are.

    Raises:
        ConfigError: ``tokens`` is not positive, or there is no top-level block ``capabilities`` to write it to.
    """
    if tokens < 1:
        raise ConfigError(f"{where}: tokens_per_image must be 1 or more, measured {tokens}: measure again")
    lines = text.splitlines(keepends=True)
    header = next((i for i, line in enumerate(lines) if re.match(r"capabilities:\s*(#.*)?$", line)), None)
    if header is None:
        raise ConfigError(f"{where}: there must be a top-level block capabilities to hold tokens_per_image")
    end = next((i for i in range(header + 1, len(lines)) if re.match(r"[^\s#]", lines[i])), len(lines))
    found = [(i, match) for i in range(header + 1, end) if (match := re.match(r"( +)([a-z_]+):", lines[i]))]
    indent = found[0][1][1] if found else "  "
    # Deeper blocks have keys of their own.
    own = {match[2]: i for i, match in found if match[1] == indent}
    line = f"{indent}tokens_per_image: {tokens}"
    if "tokens_per_image" in own:
        place = own["tokens_per_image"]
        comment = re.search(r"\s+#.*", lines[place])
        lines[place] = line + (comment[0] if comment else "") + "\n"
    else:
        lines.insert(own.get("player_name", header) + 1, line + "\n")
    return "".join(lines)
