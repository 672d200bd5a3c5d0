import pytest
from pydantic import ValidationError
from rowproof.llm.calls import Usage
from rowproof.llm.cost import Prices, cost

PRICES = Prices(input_per_million=2.0, output_per_million=10.0, cached_input_per_million=0.5)
UNCACHED = Prices(input_per_million=2.0, output_per_million=10.0)


@pytest.mark.parametrize(
    ("usage", "prices", "expected"),
    [
        (Usage(1_000_000, 0), PRICES, 2.0),
        (Usage(0, 1_000_000, reasoning_tokens=900_000), PRICES, 10.0),
        (Usage(1_000_000, 100_000, cached_tokens=400_000), PRICES, 1.2 + 0.2 + 1.0),
        (Usage(1_000_000, 100_000), UNCACHED, 3.0),
        (Usage(1_000_000, 100_000, cached_tokens=1), UNCACHED, None),
        (Usage(1_000_000, 100_000), None, None),
        (None, PRICES, None),
        (Usage(), PRICES, 0.0),
    ],
)
def test_costs_follow_from_stated_prices_alone(usage, prices, expected):
    assert cost(usage, prices) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("price", [-1.0, float("nan"), "2"])
def test_a_price_is_a_number(price):
    with pytest.raises(ValidationError):
        Prices(input_per_million=price, output_per_million=1.0)
