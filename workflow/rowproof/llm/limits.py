"""What may be asked of a provider; apart from the client, so that configuration files can say it."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]


class Limits(BaseModel):
    """What may be asked of a provider; part of a configuration file. None is no limit."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrent_requests: Count | None = None
