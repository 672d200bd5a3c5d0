"""The outputs that a player may give, as JSON schema and as the protocol that reads them."""

from typing import Any, Literal

from rowproof.gptnt.bomb.bomb import ACTIONS, MARK_ACTIONS
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.players.turns import DEFUSER, LOTTERY, MAGIC, Setup

Schema = dict[str, Any]
Pointing = Literal["marks", "absolute", "normalised"]

NORMALISED_MAX = 1000
_LETTERS = [chr(ord("A") + index) for index in range(26)]


def pointing(capabilities: Capabilities) -> Pointing:
    """How a player points at things."""
    if capabilities.interaction_location_method == "set-of-marks":
        return "marks"
    return capabilities.coordinate_mode


def protocol(setup: Setup) -> dict[str, Any]:
    """What :func:`rowproof.gptnt.players.turns.read_output` needs to know of a role."""
    return {
        "role": setup.role,
        "is_playing_alone": setup.alone,
        "allow_magic_actions": setup.magic,
        "allow_lottery_actions": setup.lottery,
    }


def output_schema(setup: Setup, capabilities: Capabilities) -> Schema:
    """The JSON schema of an answer; every object is closed and every key required, as strict decoders demand."""
    kinds = [_kind("do_nothing", {})]
    if not setup.alone:
        kinds.append(_kind("send_message", {"message": {"type": "string"}}))
    if setup.role == DEFUSER:
        plain = [name for name in ACTIONS if name not in MARK_ACTIONS]
        pointed = [name for name in ACTIONS if name in MARK_ACTIONS]
        location = _location(pointing(capabilities), capabilities)
        kinds.append(_kind("interact_game", {"action": _one_of(plain)}))
        kinds.append(_kind("interact_game", {"action": _one_of(pointed), "location": location}))
        if setup.magic:
            kinds.append(_kind("perform_magic", {"action": _one_of([MAGIC])}))
        if setup.lottery:
            kinds.append(_kind("perform_lottery", {"action": _one_of([LOTTERY])}))
    return _object({"result": {"anyOf": kinds}})


def _location(how: Pointing, capabilities: Capabilities) -> Schema:
    if how == "marks":
        return _one_of(_LETTERS)
    size = capabilities.image_dimensions
    last = (size.width - 1, size.height - 1) if how == "absolute" else (NORMALISED_MAX, NORMALISED_MAX)
    return _object({key: _integer(most) for key, most in zip(("x_pos", "y_pos"), last, strict=True)})


def _kind(kind: str, data: Schema) -> Schema:
    return _object({"kind": _one_of([kind]), "data": _object(data)})


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(names: list[str]) -> Schema:
    return {"type": "string", "enum": names}


def _integer(most: int) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": most}
