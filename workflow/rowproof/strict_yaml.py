"""Configuration files: safe YAML with the value rules of YAML 1.2, and errors that name file, line and key."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from rowproof.errors import ConfigError

Key = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Only the plain values of the YAML 1.2 core schema: ``yes`` and ``1:30`` are text, ``3.75e4`` is a number."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  (a class attribute by PyYAML's design)


_TEXT = "tag:yaml.org,2002:str"
# Tag, pattern, first characters, conversion. A number does not begin with a superfluous zero: 010 is text.
_PLAIN = (
    ("tag:yaml.org,2002:bool", r"true|false", "tf", lambda text: text == "true"),
    ("tag:yaml.org,2002:null", r"null|~|", ["n", "~", ""], lambda text: None),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789", int),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
        "-+.0123456789",
        float,
    ),
)
for _tag, _pattern, _first, _ in _PLAIN:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"\A(?:{_pattern})\Z"), list(_first))
_SCALARS = {_TEXT: str, **{tag: convert for tag, _, _, convert in _PLAIN}}


def _implied_tag(node: yaml.ScalarNode) -> str:
    """The tag that the node has when its file states none."""
    if not node.style:
        for tag, pattern, _, _ in _PLAIN:
            if re.fullmatch(pattern, node.value):
                return tag
    return _TEXT


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
    lines: dict[Key, int] = {}
    try:
        node = yaml.compose(text.decode("utf-8"), Loader=_Loader)
        if node is None:
            raise ConfigError(f"{name}:1: must hold a mapping, found an empty file")
        return Document(name, _construct(node, (), lines, name, set()), lines)
    except RecursionError:
        raise ConfigError(f"{name}:1: must be nested a few levels deep, found too many to read") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: must be UTF-8, found another byte at {error.start}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{name}:{line}: must be one valid YAML document: {problem}") from None


def _construct(node: yaml.Node, key: Key, lines: dict[Key, int], name: str, seen: set[int]) -> Any:
    line, dotted = node.start_mark.line + 1, ".".join(map(str, key)) or "(document)"
    if id(node) in seen:
        # The node stands at its anchor; the key that uses it is what must change.
        used = lines.get(key) or lines.get(key[:-1], line)
        raise ConfigError(f"{name}:{used}: {dotted}: must not use YAML aliases: write the value out")
    lines.setdefault(key, line)
    place = f"{name}:{line}: {dotted}"
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _implied_tag(key_node):
                raise ConfigError(f"{name}:{line}: keys must be plain text without tags")
            text = key_node.value
            if text == "<<":
                raise ConfigError(f"{name}:{line}: must not use YAML merge keys: write the values out")
            if text in result:
                first = lines[(*key, text)]
                raise ConfigError(f"{name}:{line}: {text}: keys must be unique, already given on line {first}")
            lines[(*key, text)] = line
            result[text] = _construct(value_node, (*key, text), lines, name, seen)
        return result
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_construct(item, (*key, i), lines, name, seen) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode) and node.tag == _implied_tag(node):
        try:
            value = _SCALARS[node.tag](node.value)
        except ValueError:  # Python reads no integer of thousands of digits.
            value = math.inf
        if value in (math.inf, -math.inf):
            raise ConfigError(f"{place}: must be a number that fits a double, found {node.value[:40]}")
        return value
    raise ConfigError(f"{place}: must not carry a YAML tag, found {node.tag!r}: write plain data")


def validate(document: Document, model: type[Model], at: Key = ()) -> Model:
    """``document``, or the part of it at the key ``at``, as a typed model.

    Raises:
        ConfigError: all problems, one per line, each with file, line and key.
    """
    try:
        data = document.data
        for part in at:
            data = data[part]
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(_describe(document, item, at, model) for item in error.errors())) from None


def _allowed_keys(model: type[BaseModel], place: Key) -> list[str]:
    """The keys that the mapping at ``place`` may hold."""
    kinds: list[Any] = [model]
    for part in place:
        fields = [f for kind in kinds if _is_model(kind) for n, f in kind.model_fields.items() if part in (n, f.alias)]
        # Into the values of lists and mappings, and through Optional and Annotated, without minding which.
        inner = [argument for kind in kinds if not _is_model(kind) for argument in get_args(kind)]
        kinds = [field.annotation for field in fields] or inner
        while any(get_origin(kind) in (Union, UnionType, Annotated) for kind in kinds):
            kinds = [argument for kind in kinds for argument in (get_args(kind) or (kind,))]
    return [f.alias or n for kind in kinds if _is_model(kind) for n, f in kind.model_fields.items()]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _describe(document: Document, item: Any, at: Key, model: type[BaseModel]) -> str:
    key = (*at, *(part for part in item["loc"] if part != "[key]"))
    message = item["msg"]
    if item["type"] == "extra_forbidden":
        allowed = ", ".join(_allowed_keys(model, item["loc"][:-1]))
        message = f"unknown key: must be one of {allowed}; config/README.md tells what they mean"
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
