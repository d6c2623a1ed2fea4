"""What a request costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass import models
from cass.bill import cost
from cass.known import PROVIDERS
from cass.models import Facts, Prices
from cass.records import Usage

PRICED = Facts(prices=((0, Prices(2, 10, 0.2, 2.5)), (200_000, Prices(4, 20))))


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(), 0),
        (Usage(input=1_000, output=100), 0.003),
        (Usage(input=1_000, output=100, reasoning=90), 0.003),
        (Usage(input=1_000, cache_read=1_000), 0.0002),
        (Usage(input=1_000, cache_write=1_000), 0.0025),
        (Usage(input=1_000, cache_read=600, cache_write=300), 0.00107),
        (Usage(input=200_000), 0.4),
        (Usage(input=200_001, output=1), 0.800024),
        (Usage(input=200_001, cache_read=200_001), 0.800004),
        (Usage(input=1, cache_read=1_000), 0.0002),
        (Usage(input=1_000, cost=0.5), 0.5),
    ],
)
def test_a_request_costs_what_its_tokens_do(usage, usd):
    assert cost(usage, PRICED) == pytest.approx(usd, abs=1e-9)


def test_without_prices_nothing_is_said_but_what_the_provider_reports():
    assert cost(Usage(input=1_000), Facts()) is None
    assert cost(Usage(input=1_000, cost=0.25), Facts()) == 0.25


COUNT = st.integers(0, 10_000_000)


@given(st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT), st.sampled_from(sorted(PROVIDERS)))
def test_no_request_costs_less_than_nothing(usage, provider):
    facts = models.find(provider, PROVIDERS[provider].model, "https://example.com")
    usd = cost(usage, facts)
    assert usd is None or usd >= 0
