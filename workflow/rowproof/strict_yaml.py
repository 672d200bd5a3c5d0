"""Configuration files: safe YAML with the value rules of YAML 1.2, and errors that name file, line and key."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rowproof.errors import ConfigError

Key = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Only the plain values of the YAML 1.2 core schema: ``yes`` and ``1:30`` are text, ``3.75e4`` is a number."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  (a class attribute by PyYAML's design)


for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|false", "tf"),
    ("tag:yaml.org,2002:null", r"null|~|", ["n", "~", ""]),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), list(_first))

_SCALARS = {
    "tag:yaml.org,2002:bool": lambda text: text == "true",
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
}


@dataclass(frozen=True)
class Document:
    """Plain data of one YAML file and the line of every key in it."""

    name: str
    data: Any
    lines: dict[Key, int]

    def error(self, key: Key, message: str) -> ConfigError:
        """A configuration error at ``key``, on the line of the nearest key that the file holds."""
        place = key
        while place and place not in self.lines:
            place = place[:-1]
        dotted = ".".join(str(part) for part in key) or "(document)"
        return ConfigError(f"{self.name}:{self.lines.get(place, 1)}: {dotted}: {message}")


def parse(text: bytes, name: str) -> Document:
    """Parse one YAML document.

    Args:
        text: the bytes of the file; must be UTF-8.
        name: the name of the file in messages.

    Raises:
        ConfigError: malformed YAML, more than one document, a tag, an alias, a merge key, or a duplicate key.
    """
    try:
        node = yaml.compose(text.decode("utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: must be UTF-8, found another byte at {error.start}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{name}:{line}: must be one valid YAML document: {problem}") from None
    lines: dict[Key, int] = {}
    if node is None:
        raise ConfigError(f"{name}:1: must hold a mapping, found an empty file")
    return Document(name, _construct(node, (), lines, name, set()), lines)


def _construct(node: yaml.Node, key: Key, lines: dict[Key, int], name: str, seen: set[int]) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(key, line)
    place = f"{name}:{line}: {'.'.join(map(str, key)) or '(document)'}"
    if id(node) in seen:
        raise ConfigError(f"{place}: must not use YAML aliases: write the value out")
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _SCALARS:
                raise ConfigError(f"{name}:{line}: keys must be plain text without tags")
            text = key_node.value
            if text in result:
                first = lines[(*key, text)]
                raise ConfigError(f"{name}:{line}: {text}: keys must be unique, already given on line {first}")
            lines[(*key, text)] = line
            result[text] = _construct(value_node, (*key, text), lines, name, seen)
        return result
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_construct(item, (*key, i), lines, name, seen) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return _SCALARS[node.tag](node.value)
    raise ConfigError(f"{place}: must not carry a YAML tag, found {node.tag!r}: write plain data")


def validate(document: Document, model: type[Model]) -> Model:
    """``document`` as a typed model.

    Raises:
        ConfigError: all problems, one per line, each with file, line and key.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError("\n".join(_describe(document, item) for item in error.errors())) from None


def _describe(document: Document, item: Any) -> str:
    key = tuple(part for part in item["loc"] if part != "[key]")
    message = item["msg"]
    if item["type"] == "extra_forbidden":
        message = "unknown key: remove it or correct its spelling (config/README.md lists the keys)"
    elif item["type"] == "missing":
        message = "required key is missing"
    elif isinstance(item["input"], str | int | float | bool):
        message = f"{message}, found {item['input']!r}"
    return str(document.error(key, message))


def load(path: Path, model: type[Model], root: Path) -> tuple[Model, Document]:
    """Read and validate the file ``path``; messages name it relative to ``root``.

    Raises:
        ConfigError: the file is missing, unreadable, malformed or breaks the model.
    """
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: must be a readable file: {error.strerror}") from None
    document = parse(text, name)
    return validate(document, model), document
