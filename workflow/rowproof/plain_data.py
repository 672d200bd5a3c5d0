"""Plain data that has no lines of its own, such as parsed JSON, as typed models."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rowproof.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


def read_model(data: Any, model: type[Model], where: str, *, whole: str = "document", entry: str = "key") -> Model:
    """``data`` as a typed model.

    Args:
        data: plain data.
        model: what it must be.
        where: the name of its file, in messages.
        whole: what messages call the data as a whole.
        entry: what messages call an entry of it.

    Raises:
        ConfigError: all problems, one per line, each with file and entry.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            key = ".".join(str(part) for part in item["loc"]) or f"({whole})"
            found = f", found {item['input']!r}" if isinstance(item["input"], str | int | float | bool) else ""
            message = f"unknown {entry}: remove it" if item["type"] == "extra_forbidden" else item["msg"] + found
            lines.append(f"{where}: {key}: {message}")
        raise ConfigError("\n".join(lines)) from None
