"""What is known about models."""

from pathlib import Path

import orjson
import pytest

from cass import models
from cass.known import PROVIDERS
from cass.models import Facts, Prices

DATA = Path(models.__file__).parent / "data"
TABLE = orjson.loads((DATA / "models.json").read_bytes())["models"]


def test_the_data_is_small_names_its_source_and_keeps_the_licence():
    assert (DATA / "models.json").stat().st_size < 200_000
    assert sum(map(len, TABLE.values())) > 750
    assert orjson.loads((DATA / "models.json").read_bytes())["source"].startswith("litellm ")
    assert "MIT" in (DATA / "LICENSE.litellm").read_text()


@pytest.mark.parametrize("provider", TABLE)
def test_every_row_can_be_used(provider):
    for model in TABLE[provider]:
        facts = models.find(provider, model, "https://example.com")
        assert facts.context is not None
        assert 0 < facts.context < 20_000_000, model
        assert facts.output is None or facts.output > 0, model
        assert not facts.is_elsewhere
        for least, prices in facts.prices:
            assert least >= 0
            assert all(price is None or 0 <= price < 1_000 for price in prices), model
        assert [least for least, _ in facts.prices] == sorted({least for least, _ in facts.prices})


@pytest.mark.parametrize("provider", [id for id, known in PROVIDERS.items() if known.key])
def test_the_default_models_are_known_with_their_prices_and_take_tools(provider):
    facts = models.find(provider, PROVIDERS[provider].model, PROVIDERS[provider].base_url)
    assert facts.context
    assert facts.tools
    assert facts.prices


SONNET = models.find("anthropic", "claude-sonnet-4-5")
GLM = models.find("fireworks", "accounts/fireworks/models/glm-5p3")


@pytest.mark.parametrize(
    ("provider", "model", "base_url", "same_as"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929", "", SONNET),
        ("anthropic", "claude-sonnet-4-5-latest", "", SONNET),
        ("anthropic", "claude-sonnet-4.5", "", SONNET),
        ("openrouter", "anthropic/claude-sonnet-4.5", "", SONNET),
        ("fireworks", "glm-5p3", "", GLM),
        ("my-own", "accounts/fireworks/models/glm-5p3", "https://api.fireworks.ai/inference/v1", GLM),
        ("gemini", "models/gemini-2.5-pro", "", models.find("gemini", "gemini-2.5-pro")),
        ("openai", "gpt-5.1-2025-11-13", "", models.find("openai", "gpt-5.1")),
    ],
)
def test_a_model_is_known_under_its_other_names(provider, model, base_url, same_as):
    assert same_as.context
    assert models.find(provider, model, base_url) == same_as


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("my-own", "claude-sonnet-4-5"),
        ("my-own", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("my-own", "Anthropic/Claude-Sonnet-4.5"),
    ],
)
def test_elsewhere_a_model_can_do_the_same_for_another_price(provider, model):
    facts = models.find(provider, model, "https://llm.example.com/v1")
    assert facts == SONNET._replace(prices=(), is_elsewhere=True)


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-flash", "anthropic/claude-sonnet-4.5:free"])
def test_what_a_gateway_asks_for_open_weights_or_gives_away_is_not_known(model):
    facts = models.find("openrouter", model)
    assert facts.context
    assert facts.prices == ()


@pytest.mark.parametrize("model", ["gpt-oss:20b", "llama3", "claude-sonnet-4-5"])
@pytest.mark.parametrize(("provider", "base_url"), [("ollama", ""), ("my-own", "http://127.0.0.1:9/v1")])
def test_on_this_machine_a_model_costs_nothing_and_its_server_says_what_it_takes(provider, base_url, model):
    facts = models.find(provider, model, base_url)
    assert facts.context is facts.output is facts.tools is None
    assert facts.prices == ((0, Prices(0, 0)),)


def test_nothing_is_known_of_a_model_that_nobody_has_heard_of():
    assert models.find("my-own", "no/such-model", "https://example.com") == Facts()


def test_what_the_person_says_stands_above_key_by_key():
    mine = [
        {"id": "claude-sonnet-4-5", "provider": "other", "context_length": 1},
        {"id": "claude-sonnet-4-5", "context_length": 50_000, "reasoning": {"default_effort": "low"}},
        {"id": "claude-sonnet-4-5", "provider": "anthropic", "prices": {"input": 1, "output": 2}},
    ]
    facts = models.find("anthropic", "claude-sonnet-4-5", mine=mine)
    assert (facts.context, facts.output, facts.effort) == (50_000, SONNET.output, "low")
    assert facts.prices == ((0, Prices(1, 2)),)
