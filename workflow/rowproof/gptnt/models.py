"""What the typed models of this family share: strictness, names and the published digest."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# Of suites, mission sets, and of the files of players and providers: each is a file name.
ConfigName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
# Stands in the names of experiments and of their files; versions of models have dots.
PlayerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
Positive = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """Base of all models: unknown keys and silent conversions are refused, and nothing changes later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def stable_digest(value: Any) -> str:
    """The published digest of plain data: 32 hex digits.

    BLAKE2b with 16 bytes over JSON with sorted keys, separators with a space, ASCII escapes and Python's floats.
    """
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()
