"""How much a model is to reason, in each API's words."""

from typing import Any

import pytest

from cass.providers import effort

BUDGET: dict[str, Any] = {"type": "enabled", "budget_tokens": 4000}


@pytest.mark.parametrize(
    ("model", "word", "sent"),
    [
        ("claude-sonnet-5", None, {}),
        ("claude-sonnet-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-4-5-20250929", "medium", {"thinking": BUDGET}),
        ("claude-opus-4-20250514", "medium", {"thinking": BUDGET}),
        ("claude-3-7-sonnet-20250219", "medium", {"thinking": BUDGET}),
        ("kimi-k3", "medium", {"thinking": BUDGET}),
        ("claude-haiku-4-5", "minimal", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 6000}}),
    ],
)
def test_anthropic_takes_a_budget_up_to_claude_4_5_and_for_models_of_others(model, word, sent):
    assert effort.anthropic(model, word, 8000) == sent


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-6", "claude-opus-4.7", "claude-sonnet-5", "claude-opus-5-5-20260901", "claude-fable-5"]
)
def test_later_claudes_decide_themselves_and_take_a_word(model):
    adaptive = {"type": "adaptive", "display": "summarized"}
    assert effort.anthropic(model, "xhigh", 8000) == {"thinking": adaptive, "output_config": {"effort": "xhigh"}}


@pytest.mark.parametrize(
    ("model", "word", "sent"),
    [
        ("gemini-2.5-flash", None, {"includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.5-pro", "most", {"includeThoughts": True, "thinkingLevel": "most"}),
        ("gemini-3-pro-preview", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-flash-latest", "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
    ],
)
def test_gemini_takes_a_budget_in_version_2_and_a_level_since_3(model, word, sent):
    assert effort.gemini(model, word) == {"thinkingConfig": sent}


@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemma-3-27b-it", "gemini-1.5-pro"])
def test_a_gemini_without_thoughts_is_not_asked_for_them(model):
    assert effort.gemini(model, None) == {}


def test_responses_asks_for_encrypted_thoughts_but_of_models_that_have_none():
    include = {"include": ["reasoning.encrypted_content"]}
    assert effort.responses("gpt-5.1", None) == include
    assert effort.responses("gpt-5.1", "low") == include | {"reasoning": {"effort": "low", "summary": "auto"}}
    assert effort.responses("gpt-5.1", "none") == include | {"reasoning": {"effort": "none"}}
    for model in ("gpt-4.1", "gpt-4o-mini", "openai/gpt-4.1", "chatgpt-4o-latest", "gpt-5.3-chat-latest"):
        assert effort.responses(model, None) == {}


@pytest.mark.parametrize(
    ("field", "word", "sent"),
    [
        ("", None, {}),
        ("", "none", {"reasoning_effort": "none"}),
        ("thinking", "max", {"reasoning_effort": "max"}),
        ("thinking", "none", {"thinking": {"type": "disabled"}}),
        ("reasoning", "none", {"reasoning": {"enabled": False}}),
        ("chat_template_kwargs", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_chat_completions_take_a_word_and_some_servers_a_field_for_none(field, word, sent):
    assert effort.chat(field, word) == sent
