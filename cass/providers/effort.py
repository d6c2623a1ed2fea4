"""Effort: how much a model is to reason, in each API's own words.

None: nobody said, and nothing is sent. ``none``: it is told not to. Any other word goes out as it is: what a provider
does not know it refuses, in its own words.
"""

from typing import Any

from cass.pattern import pattern

_SHARES = {"minimal": 0, "low": 1, "medium": 2, "high": 3}
"""Of four parts of the output limit, as a budget of thinking; a word that is not here takes as much as ``high``."""
_LEAST = 1024
"""Tokens: Anthropic takes no smaller budget."""
_CLAUDE = pattern(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")
_GEMINI_2 = pattern(r"gemini-(robotics|2)")
_GEMINI_SILENT = pattern(r"gemma|gemini-(1|2\.0)|image|tts")
_GEMINI_BUDGETS = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}
"""As Google itself reads the words of OpenAI. Source: https://ai.google.dev/gemini-api/docs/openai"""
_PLAIN_GPT = pattern(r"(^|/)(gpt-[34]|chatgpt|gpt-5[\w.]*-chat)")


def chat(no_thinking: str, effort: str | None) -> dict[str, Any]:
    """Of chat completions. `no_thinking`: the field that ends reasoning on this server (`Quirks`)."""
    if effort is None:
        return {}
    if effort != "none" or not no_thinking:
        return {"reasoning_effort": effort}
    said = {"thinking": {"type": "disabled"}, "reasoning": {"enabled": False}}
    return {no_thinking: said.get(no_thinking, {"enable_thinking": False})}


def responses(model: str, effort: str | None) -> dict[str, Any]:
    """Of the Responses API; what a model thought comes back, encrypted, so that it can go on from it.

    OpenAI refuses to be asked for that by a model that does not reason.
    """
    include: dict[str, Any] = {} if _PLAIN_GPT.search(model) else {"include": ["reasoning.encrypted_content"]}
    if effort is None:
        return include
    return {"reasoning": {"effort": effort} | ({} if effort == "none" else {"summary": "auto"})} | include


def anthropic(model: str, effort: str | None, max_tokens: int) -> dict[str, Any]:
    """Of the Messages API: a budget of tokens up to Claude 4.5, and for other makers' models; later ones take words.

    Source: https://platform.claude.com/docs/en/build-with-claude/effort
    """
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if adapts(model):
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    budget = max(_LEAST, max_tokens * _SHARES.get(effort, 3) // 4)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def adapts(model: str) -> bool:
    """Whether it is a Claude that decides itself how much it thinks."""
    version = _CLAUDE.search(model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (4, 6)


def gemini(model: str, effort: str | None) -> dict[str, Any]:
    """Of Gemini: a budget for version 2, a level since version 3; thoughts are told wherever there may be any."""
    if _GEMINI_SILENT.search(model) and effort is None:
        return {}
    said: dict[str, Any] = {"includeThoughts": effort != "none"}
    if effort == "none" or (effort in _GEMINI_BUDGETS and _GEMINI_2.search(model)):
        said["thinkingBudget"] = _GEMINI_BUDGETS[effort]
    elif effort is not None:
        said["thinkingLevel"] = effort
    return {"thinkingConfig": said}
