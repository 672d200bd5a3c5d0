"""Identity hashes of seats: who played, in a form that anybody can derive again from four fields.

Source of the formulas: the published CHAMBER bundles, whose every identity and parameter digest they reproduce.
"""

import json
from collections.abc import Mapping

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex


def identity(class_name: str, seed: int, checkpoint_step: int | None, weights_uri: str | None) -> str:
    """The identity of a partner or policy, 16 lower-case hexadecimal digits.

    It is the start of the SHA-256 of the four values written as a Python tuple, for example
    ``('scripted_heuristic', 0, None, None)``; text is quoted as ``repr`` does it.

    Raises:
        TypeError: a value is of another type; a subclass or NumPy scalar would be written differently.
    """
    fields = (class_name, seed, checkpoint_step, weights_uri)
    kinds = ((str,), (int,), (int, type(None)), (str, type(None)))
    if any(type(value) not in allowed for value, allowed in zip(fields, kinds, strict=True)):
        raise TypeError(f"identity needs (str, int, int or None, str or None), found {fields!r}")
    return sha256_hex(repr(fields).encode("utf-8"))[:16]


def parameter_digest(params: Mapping[str, str]) -> str:
    """SHA-256 (64 hex) of the parameters as JSON: sorted keys, a space after comma and colon, ASCII escapes.

    Raises:
        ConfigError: a name or value is not text. The text is what is hashed, so ``2`` and ``2.0`` are two partners.
    """
    for name, value in params.items():
        if type(name) is not str or type(value) is not str:
            raise ConfigError(f"partner parameters must be text, found {name!r}: {value!r}; put the value in quotes")
    return sha256_hex(json.dumps(dict(params), sort_keys=True).encode("ascii"))


def member_uri(class_name: str, params: Mapping[str, str]) -> str:
    """The ``member://<class>/<digest>`` address that carries a scripted member's parameters into its identity.

    Raises:
        ConfigError: as :func:`parameter_digest`.
    """
    return f"member://{class_name}/{parameter_digest(params)}"
