"""Known: the providers and models that need no configuration, and the model servers found on this machine."""

import re
import socket
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from cass.pattern import pattern


class Quirks(NamedTuple):
    """Where a server departs from the API that it is said to be compatible with."""

    max_tokens_field: str = "max_tokens"
    reasoning_field: str = ""
    """Where an answer's reasoning goes back: some refuse a tool call without what led to it. Empty: nowhere."""
    counts_unasked: bool = False
    """Whether it refuses to be asked for usage, which it sends anyway."""
    no_thinking: str = ""
    """The field by which a model is told not to reason (see `providers.effort`); empty: by the effort ``none``."""
    call_ids: str = r".{1,40}"
    """A pattern of the ids of tool calls that it takes, where another model made them. OpenAI: 40 characters."""


class Known(NamedTuple):
    """A provider that needs no configuration but its key."""

    id: str
    base_url: str
    key: str | None = None
    """Name of the environment variable; None for a server on this machine."""
    model: str = ""
    """Default model; empty: the first one that the server lists."""
    quirks: Quirks = Quirks()
    kind: str = "openai-compatible"
    compatible_url: str = ""
    """Where its OpenAI form is, if that has an address of its own."""


FIREWORKS = "accounts/fireworks/models/qwen3p7-plus"
_COMPLETION_TOKENS = Quirks(max_tokens_field="max_completion_tokens")
_REASONING = Quirks(reasoning_field="reasoning")
_REASONING_CONTENT = Quirks(reasoning_field="reasoning_content", no_thinking="thinking")
_TOGETHER = Quirks(no_thinking="reasoning")
_TEMPLATE = Quirks(no_thinking="chat_template_kwargs")
_MISTRAL = Quirks(counts_unasked=True, call_ids="[a-zA-Z0-9]{9}")
_RESPONSES = "openai-responses"
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta"

# Names of models go stale: this is the one place for them. The order is the order of preference.
PROVIDERS: dict[str, Known] = {
    known.id: known
    for known in (
        Known("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", FIREWORKS),
        # Later models of OpenAI take tools only through its Responses API; in the other form none takes `max_tokens`.
        Known("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.1", _COMPLETION_TOKENS, _RESPONSES),
        Known("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-5", kind="anthropic"),
        Known(
            "gemini",
            _GOOGLE,
            "GEMINI_API_KEY",
            "gemini-flash-latest",
            kind="gemini",
            compatible_url=f"{_GOOGLE}/openai",
        ),
        Known("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-v4-flash", _REASONING_CONTENT),
        Known("kimi", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k3", _REASONING_CONTENT),
        Known("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-5.1", _REASONING),
        Known("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
        Known("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-medium-latest", _MISTRAL),
        Known("xai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.3"),
        Known("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "moonshotai/Kimi-K3.1-Pro", _TOGETHER),
        Known("ollama", "http://127.0.0.1:11434/v1"),
        Known("llama.cpp", "http://127.0.0.1:8080/v1", quirks=_TEMPLATE),
        Known("lmstudio", "http://127.0.0.1:1234/v1", quirks=_TEMPLATE),
        Known("vllm", "http://127.0.0.1:8000/v1", quirks=_TEMPLATE),
        Known("local", "", kind="local"),  # a file; cass starts its server
        Known("demo", "", None, "demo"),
    )
}
MODEL_LISTS: dict[str, str] = {
    "fireworks": "https://fireworks.ai/models",
    "openai": "https://platform.openai.com/docs/models",
    "anthropic": "https://docs.anthropic.com/en/docs/about-claude/models",
    "gemini": "https://ai.google.dev/gemini-api/docs/models",
    "deepseek": "https://api-docs.deepseek.com/quick_start/pricing",
    "kimi": "https://platform.moonshot.ai/docs",
    "openrouter": "https://openrouter.ai/models",
    "groq": "https://console.groq.com/docs/models",
    "mistral": "https://docs.mistral.ai/getting-started/models/",
    "xai": "https://docs.x.ai/docs/models",
    "together": "https://docs.together.ai/docs/serverless-models",
    "ollama": "https://ollama.com/library",
}
"""Where people find the names of a provider's models."""
PROBED = ("ollama", "llama.cpp")
"""Local servers that are tried when nothing is chosen: those whose port belongs to them by custom."""


LOCAL_CONTEXT = 32_768
"""Tokens that a model from a file is given at most: room for them is taken at once."""
ASSUMED_CONTEXT = 32_768
"""Tokens that a model of which nothing is known is given."""


_LOCAL = pattern(r"localhost|127(\.\d{1,3}){3}|0\.0\.0\.0|::1")


def is_url(text: str) -> bool:
    """Whether `text` is the address of a web server."""
    try:
        parts = urlsplit(text.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of urlsplit: brackets that do not match; of port: no number
        return False


_SECRET = "(?i)key|token|secret|pass|auth|sig|code|cred"


def is_base_url(text: str) -> bool:
    """Whether it is one that may be shown: without name and password, its query no more than ``?api-version=1``."""
    if not is_url(text):
        return False
    parts = urlsplit(text.strip())
    query = [part.partition("=") for part in parts.query.split("&") if part]
    return "@" not in parts.netloc and not any(re.search(_SECRET, name) or not value for name, _, value in query)


def is_local(url: str) -> bool:
    """Whether a server is on this machine."""
    return _LOCAL.fullmatch(urlsplit(url).hostname or "") is not None


def listed(base_url: str, deadline: float) -> dict[str, int | None]:
    """Models that a local server lists, with the length of their context where it says so; empty: none answers.

    HTTP/1.0 by hand: no chunks to take apart, and `http.client` costs a start 10 ms. `deadline` is monotonic, in s.
    """
    place = urlsplit(base_url)
    path = place.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    request = f"GET {path}/models HTTP/1.0\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
    answer = b""
    try:
        address = (place.hostname or "", place.port or 80)
        with socket.create_connection(address, timeout=max(0.001, deadline - time.monotonic())) as server:
            server.sendall(request.encode())
            while (left := deadline - time.monotonic()) > 0 and len(answer) < 1 << 20:
                server.settimeout(left)
                piece = server.recv(1 << 16)
                if not piece:
                    break
                answer += piece
        models = orjson.loads(answer.partition(b"\r\n\r\n")[2])["data"]
        return {str(model["id"]): _context(model) for model in models}
    except (OSError, ValueError, LookupError, TypeError):  # not there, too slow, or something else on that port
        return {}


def _context(model: Mapping[str, Any]) -> int | None:
    """``max_model_len`` of vLLM, ``meta.n_ctx`` of llama.cpp, which may be less than what its model was trained for."""
    meta = model.get("meta") or {}
    length = model.get("max_model_len") or meta.get("n_ctx") or min(meta.get("n_ctx_train") or 0, ASSUMED_CONTEXT)
    return length if type(length) is int and length > 0 else None
