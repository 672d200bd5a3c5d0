"""What calls cost, from prices that someone stated; nothing is guessed."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from rowproof.llm.calls import Usage

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_MILLION = 1_000_000


class Prices(BaseModel):
    """Prices of one million tokens, all in the same currency; part of a configuration file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    input_per_million: Price
    output_per_million: Price
    # Unknown is not the same as the price of other input.
    cached_input_per_million: Price | None = None


def cost(usage: Usage | None, prices: Prices | None) -> float | None:
    """The price of a call; None if tokens or a price that it needs are not known."""
    if usage is None or prices is None:
        return None
    cached = prices.cached_input_per_million
    if usage.cached_tokens and cached is None:
        return None
    fresh = usage.input_tokens - usage.cached_tokens
    total = (
        fresh * prices.input_per_million
        + usage.cached_tokens * (cached or 0.0)
        + usage.output_tokens * prices.output_per_million
    )
    return total / _MILLION
