"""What the models of this family's configuration share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Positive = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """Base of all models: unknown keys and silent conversions are refused, and nothing changes later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
