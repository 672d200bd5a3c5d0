"""What a player is told before a game, put together from pieces of text that depend on its role and its model."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from rowproof.errors import ConfigError
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.llm.schema import output_schema, pointing
from rowproof.gptnt.models import Strict
from rowproof.gptnt.players.turns import DEFUSER, SYNC, Setup
from rowproof.records import encode_line
from rowproof.strict_yaml import parse, validate

FOLDER = Path(__file__).resolve().parents[4] / "resources" / "gptnt" / "prompts"
OUT_LOUD = "thinking-out-loud"

# How a Defuser is shown the bomb.
Sees = Literal["images", "text", "json"]


class _Refusals(Strict):
    phrases: list[str]


@cache
def piece(name: str) -> str:
    """One piece of text, without the line break at its end.

    Raises:
        ConfigError: there is no such piece.
    """
    try:
        return (FOLDER / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"resources/gptnt/prompts/{name}.md: must be a readable piece of a prompt: {error}") from None


@cache
def refusals() -> tuple[str, ...]:
    """Parts of texts by which an answer is declined, in lower case."""
    name = "resources/gptnt/prompts/refusals.yaml"
    return tuple(validate(parse((FOLDER / "refusals.yaml").read_bytes(), name), _Refusals).phrases)


def pieces(setup: Setup, capabilities: Capabilities, sees: Sees) -> list[str]:
    """The names of the pieces, in order; the schema that may follow is not among them."""
    defuser, how = setup.role == DEFUSER, pointing(capabilities)
    out_loud = capabilities.thinking_method == OUT_LOUD
    point = "marks" if how == "marks" else "coordinates"
    chosen = ["scenario-solo" if setup.alone else "scenario-cooperative"]
    if setup.alone:
        chosen.append(f"role-solo-{'without' if setup.manual is None else 'with'}-manual")
    else:
        chosen.append(f"role-{setup.role}")
    chosen.append("reasoning-out-loud" if out_loud else "reasoning-inner-monologue")
    if defuser:
        chosen.append(f"mechanics-defuser-{setup.style}")
        chosen.append("mechanics-images" if sees == "images" else "mechanics-text")
        chosen.append(f"location-{how}")
    else:
        chosen.append("mechanics-expert")
    chosen += ["commands", "command-nothing"]
    if not setup.alone:
        chosen.append("command-message")
    if defuser:
        chosen += ["command-game", f"command-game-{point}"]
    chosen.append("requirements")
    if defuser:
        chosen += ["requirements-actions", f"requirements-actions-{point}"]
        if setup.style != SYNC:
            chosen.append("requirements-real-time")
        chosen.append("requirements-observation-images" if sees == "images" else "requirements-observation-text")
    if not setup.alone:
        chosen.append(f"requirements-communication-{setup.role}")
    chosen.append(f"requirements-completion-{setup.role}")
    chosen.append("requirements-format-tagged" if out_loud else "requirements-format-structured")
    return chosen


def instructions(setup: Setup, capabilities: Capabilities, sees: Sees) -> str:
    """The system text of a player.

    Raises:
        ConfigError: a piece is missing.
    """
    size = capabilities.image_dimensions
    values: Mapping[str, str] = {
        "{seconds}": f"{setup.step_ms / 1000:g}",
        "{width}": str(size.width),
        "{height}": str(size.height),
        "{last_x}": str(size.width - 1),
        "{last_y}": str(size.height - 1),
    }
    texts = [piece(name) for name in pieces(setup, capabilities, sees)]
    for place, value in values.items():
        texts = [text.replace(place, value) for text in texts]
    if capabilities.include_schema_in_instructions:
        texts += [piece("schema"), encode_line(output_schema(setup, capabilities))]
    return "\n\n".join(texts)
