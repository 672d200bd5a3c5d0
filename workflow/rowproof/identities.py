"""Identity hashes of seats: who played, in a form that anybody can derive again from four fields.

Source of both formulas: the published CHAMBER bundles, whose every identity and parameter digest they reproduce.
"""

import json
from collections.abc import Mapping

from rowproof.files import sha256_hex

IDENTITY_LENGTH = 16


def identity(class_name: str, seed: int, checkpoint_step: int | None, weights_uri: str | None) -> str:
    """The 16 hexadecimal digits that name a seat: the start of a SHA-256 over the text of a four-tuple.

    Strings stand in Python's ``repr`` form, so quotes and escapes in a URI cannot make two seats look alike.
    """
    text = f"({class_name!r}, {seed}, {checkpoint_step}, {weights_uri!r})"
    # A lone surrogate cannot be told apart by repr, which escapes it, so encoding never fails.
    return sha256_hex(text.encode("utf-8"))[:IDENTITY_LENGTH]


def parameter_digest(params: Mapping[str, str]) -> str:
    """SHA-256 (64 hex) of the JSON object of a member's parameters: keys sorted, ``", "`` and ``": "``, ASCII only."""
    return sha256_hex(json.dumps(dict(params), sort_keys=True, ensure_ascii=True).encode("ascii"))


def member_uri(class_name: str, params: Mapping[str, str]) -> str:
    """The ``weights_uri`` of a scripted member, through which its parameters reach its identity."""
    return f"member://{class_name}/{parameter_digest(params)}"
