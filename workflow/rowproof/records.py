"""Canonical JSON: one byte string per value, and a reader that accepts nothing else.

Floats follow the encoding of the published bundles: the shortest decimal that reads back to the same double,
positional for 1e-5 <= \\|x\\| < 1e16 and for zero, otherwise with an exponent that carries a sign and no padding.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex

# Far beyond any record or recipe, and far below what Python can walk.
MAX_DEPTH = 100


def format_float(value: float) -> str:
    """The canonical decimal of ``value``; it always holds a decimal point or an exponent.

    Raises:
        RecordError: ``value`` is NaN or infinite.
    """
    if not math.isfinite(value):
        raise RecordError(f"a record may hold finite numbers only, found {value!r}")
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if -5 <= power < 0:
        # repr switches to an exponent below 1e-4, one decade before the published encoding does.
        sign = "-" if mantissa.startswith("-") else ""
        return sign + "0." + "0" * (-power - 1) + mantissa.lstrip("-").replace(".", "")
    return f"{mantissa}e{power:+d}"


def _encode_string(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RecordError(f"a record may hold Unicode text only, found the lone surrogate in {value!r}") from error
    return json.dumps(value, ensure_ascii=False)


def _encode(value: Any, sort_keys: bool, indent: int | None, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise RecordError(f"a record may be nested {MAX_DEPTH} levels deep, found more")
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is float:
        return format_float(value)
    if kind is str:
        return _encode_string(value)
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise RecordError(f"keys of a record must be strings, found {key!r}")
        keys = sorted(value) if sort_keys else value
        colon = ":" if indent is None else ": "
        items = [_encode_string(k) + colon + _encode(value[k], sort_keys, indent, depth + 1) for k in keys]
        return _wrap("{", items, "}", indent, depth)
    if kind in (list, tuple):
        return _wrap("[", [_encode(item, sort_keys, indent, depth + 1) for item in value], "]", indent, depth)
    # A NumPy scalar here would silently change type on the way back, so it is refused and not converted.
    raise RecordError(f"a record may hold str, int, float, bool, null, lists and objects, found {kind.__name__}")


def _wrap(left: str, items: list[str], right: str, indent: int | None, depth: int) -> str:
    if not items or indent is None:
        return left + ",".join(items) + right
    pad = " " * (indent * (depth + 1))
    return left + "\n" + ",\n".join(pad + item for item in items) + "\n" + " " * (indent * depth) + right


def encode_line(value: Any) -> str:
    """Compact JSON in the order of the keys as given, without a newline (one JSONL record)."""
    return _encode(value, sort_keys=False, indent=None, depth=0)


def encode_lines(values: Any) -> bytes:
    """A JSONL file: one :func:`encode_line` per value, each closed by one LF."""
    return "".join(encode_line(value) + "\n" for value in values).encode("utf-8")


def encode_document(value: Any) -> bytes:
    """Indented JSON in the order of the keys as given, closed by one LF (``bundle.json`` and its kin)."""
    return (_encode(value, sort_keys=False, indent=2, depth=0) + "\n").encode("utf-8")


def encode_sorted(value: Any) -> bytes:
    """Compact JSON with sorted keys and no final newline: the form that digests are taken of."""
    return _encode(value, sort_keys=True, indent=None, depth=0).encode("utf-8")


def digest(value: Any) -> str:
    """SHA-256 (64 hex) of :func:`encode_sorted`: independent of key order, white space and platform."""
    return sha256_hex(encode_sorted(value))


def _refuse_constant(name: str) -> Any:
    raise RecordError(f"numbers must be finite, found {name}")


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise RecordError(f"numbers must fit a double, found {text}")
    return value


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RecordError(f"keys of an object must be unique, found {key!r} twice")
            seen.add(key)
    return result


def decode(data: bytes, where: str) -> Any:
    """Parse one JSON text strictly.

    Args:
        data: the raw bytes; UTF-8 without byte-order mark.
        where: file (and line) for messages.

    Raises:
        RecordError: not UTF-8, a byte-order mark, malformed JSON, a duplicate key, NaN, an infinity,
            a number beyond a double, or nesting too deep to read.
    """
    try:
        if data.startswith(b"\xef\xbb\xbf"):
            raise RecordError("must start without a byte-order mark, found one: save as plain UTF-8")
        text = data.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_read_object, parse_constant=_refuse_constant, parse_float=_read_float
        )
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: must be UTF-8, found byte {data[error.start]:#04x} at {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: must be valid JSON: {error}") from None


def split_lines(data: bytes, where: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSONL file with their numbers from 1, split on LF alone.

    Raises:
        RecordError: the file is empty, holds CR or a blank line, or does not end in exactly one LF.
    """
    if not data.endswith(b"\n"):
        raise RecordError(f"{where}: must be non-empty and end with one LF, found {data[-1:]!r} at the end")
    if b"\r" in data:
        raise RecordError(f"{where}: lines must end with LF alone, found CR at byte {data.index(bytes([13]))}")
    for number, line in enumerate(data[:-1].split(b"\n"), start=1):
        if not line.strip():
            raise RecordError(f"{where}:{number}: lines must not be blank")
        yield number, line


Kinds = tuple[type, ...]
NULL = type(None)


def check_fields(value: Any, schema: Mapping[str, Kinds], where: str) -> dict[str, Any]:
    """``value`` if it is an object with exactly the keys of ``schema``, in that order and of those types.

    Types match exactly: a bool is no int, an int is no float.

    Raises:
        RecordError: naming the first key that is missing, unknown, misplaced or of another type.
    """
    if type(value) is not dict:
        raise RecordError(f"{where}: must be an object, found {type(value).__name__}")
    if list(value) != list(schema):
        missing = [key for key in schema if key not in value]
        unknown = [key for key in value if key not in schema]
        found = f"missing {missing}, unknown {unknown}" if missing or unknown else f"order {list(value)}"
        raise RecordError(f"{where}: keys must be {list(schema)} in this order, found {found}")
    for key, kinds in schema.items():
        if type(value[key]) not in kinds:
            allowed = " or ".join("null" if kind is NULL else kind.__name__ for kind in kinds)
            raise RecordError(f"{where}: {key} must be {allowed}, found {encode_line(value[key])}")
    return value


def decode_lines(data: bytes, schema: Mapping[str, Kinds], where: str) -> list[dict[str, Any]]:
    """Read a JSONL file of records that must be byte for byte what :func:`encode_lines` writes for them.

    Raises:
        RecordError: naming file, line and what differs.
    """
    records = []
    for number, line in split_lines(data, where):
        place = f"{where}:{number}"
        record = check_fields(decode(line, place), schema, place)
        if encode_line(record).encode("utf-8") != line:
            raise RecordError(f"{place}: must be in canonical form, expected {encode_line(record)}")
        records.append(record)
    return records
