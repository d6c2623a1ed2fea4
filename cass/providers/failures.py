"""Failures: what a provider's error says, in its own words, and what follows from it.

Pure, and the same for every kind: providers differ in where they put the message and in what they call too long.
"""

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from cass.errors import ProviderError
from cass.jsonl import dump, load
from cass.pattern import pattern

TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
WORDS = 2_000
"""Characters of an error that are shown."""
_SEARCHED = 1 << 16
"""Characters of an error that are searched for what it means."""
_LEVELS = 16
"""Of nesting at which an error's message is looked for."""

_TOO_LONG = pattern(
    r"context_length_exceeded|exceed_context_size|tokens_limit_reached|max_model_len|reduce the length"
    r"|maximum (context|prompt) length|prompt (is too long|exceeds)|input (is )?too long|too many (input )?tokens"
    r"|((exceed|great|long|larg)\w{0,9} than|exceed\w{0,9}|too (long|large|big))\b.{0,80}\bcontext"
    r"|context.{0,60}(exceed|overflow|too (long|small))|token count.{0,60}(exceed|only supports)"
    r"|exceed\w{0,9}.{0,40}token limit|range of input length|max_new_tokens\W{1,9}must be",
    re.IGNORECASE | re.DOTALL,
)
_SEES_NOT = pattern(r"\b(image|vision|multi-?modal|mmproj)", re.IGNORECASE)
_NO_KEY = pattern(r"API_KEY_INVALID|(incorrect|invalid) api[ _-]?key|api[ _-]?key (not valid|expired)", re.IGNORECASE)
"""Google and xAI refuse a key with 400."""
_PASSING = frozenset(
    "overloaded_error api_error rate_limit_error timeout_error server_error rate_limit_exceeded internal_error "
    "UNAVAILABLE RESOURCE_EXHAUSTED INTERNAL DEADLINE_EXCEEDED 429 500 502 503 504 529".split()
)
_RETRY_DELAY = pattern(r'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"')
_TAGS = pattern(r"(?s)<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*>")


def refused(status: int, headers: Mapping[str, str], text: str, url: str) -> ProviderError:
    """The error of an HTTP answer other than 200, in words of any length. `headers` with lower-case names."""
    message = _message(text) or "the server gave no reason"
    if 300 <= status < 400:
        message = f"the server points to {address(headers.get('location', 'another address'))}: set that as base URL"
    return ProviderError(
        message,
        url=url,
        http_status=status,
        transient=status in TRANSIENT,
        retry_after=retry_after(headers.get("retry-after"), time.time()) or _asked_wait(text),
        key_refused=status in (401, 403) or (status == 400 and _NO_KEY.search(text[:_SEARCHED]) is not None),
        too_long=status == 413 or (status != 429 and _TOO_LONG.search(text[:_SEARCHED]) is not None),
    )


class Sizes(NamedTuple):
    """Tokens of a request that was too long, and of what it may have."""

    asked: int
    limit: int


_NUMBER = pattern(r"(?<![\w.-])(\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w.-]*\d)")
_SUM = pattern(r"(\d{1,9}) \+ \d{1,9} > (\d{1,9})")
_LEAST = 100
"""A smaller number is no size of a request or of a context."""


def sizes(message: str) -> Sizes | None:
    """What a refusal for length says about both, if it does: the largest number was asked for, the next may be.

    Some say what the question and the room for its answer come to, or are: the question alone was asked then.
    """
    if said := _SUM.search(message):
        return Sizes(int(said[1]), int(said[2]))
    found = sorted({int(number.replace(",", "")) for number in _NUMBER.findall(message)}, reverse=True)
    parts = next(((a, found[0] - a) for a in found[1:] if found[0] - a in found[1:]), ())
    whole = [number for number in found if number >= _LEAST and number not in parts]
    return Sizes(max(parts, default=whole[0]), whole[1]) if len(whole) >= 2 else None


def advice(key_env: str | None, provider: str) -> str:
    """What to add to the words of a server that refused a key."""
    wrong = f"check the key in {key_env}" if key_env else "no API key was sent"
    return f"; {wrong} (cass login {provider} keeps one that works)"


def images(error: ProviderError, count: int) -> str:
    """What to add where a request with `count` images failed, and they may be why; a refusal of them never passes."""
    is_said = _SEES_NOT.search(error.message[:_SEARCHED]) is not None
    may_be = error.http_status in (400, 404, 413, 415, 422) or (error.http_status in (0, 500, 501) and is_said)
    if not count or not may_be or error.key_refused or (error.too_long and error.http_status != 413):
        return ""
    error.transient = error.too_long = False  # bytes were too many, not tokens
    held = "an image" if count == 1 else f"{count} images"
    return (
        f'; the request holds {held}: of a model that takes none "supports_images": false in models.json says so, and '
        "/clear leaves them out"
    )


def in_stream(error: Any, *, begun: bool = True) -> ProviderError:
    """The error that came inside an answer which had begun as a success, in words of any length.

    One that says it will pass may be tried again where nothing of the answer had come: `begun` says whether it had.
    """
    text = dump(error).decode()
    too_long = _TOO_LONG.search(text[:_SEARCHED]) is not None
    return ProviderError(_words(error) or text, transient=not (begun or too_long) and _passes(error), too_long=too_long)


def _passes(error: Any) -> bool:
    """Whether an error object names a trouble of the moment: an HTTP status, or one of the words in use for those."""
    if not isinstance(error, dict):
        return False
    codes = [error.get(key) for key in ("code", "status", "status_code", "type")]
    return any(code in TRANSIENT if type(code) is int else str(code) in _PASSING for code in codes)


def address(url: str) -> str:
    """`url` without what may be secret in it: name and password, and its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    query = "…" if parts.query else ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query, fragment=""))


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds that a ``Retry-After`` asks for: a number, or a date compared with `now`; None: nothing readable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None


def _asked_wait(text: str) -> float | None:
    """Seconds that the body of a refusal asks for, where no header does: the RetryInfo of Google's APIs."""
    found = _RETRY_DELAY.search(text[:_SEARCHED])
    return float(found[1]) if found else None


def _message(text: str) -> str:
    """The words of a body: JSON of any shape, or text, or a page of HTML."""
    try:
        found = _words(load(text))
    except ValueError:
        found = ""
    return found or " ".join(_TAGS.sub(" ", text).split())


def _words(value: Any, levels: int = _LEVELS) -> str:
    """The message inside an error, wherever it stands."""
    if isinstance(value, str):
        return value.strip()
    if levels and isinstance(value, list):
        return "; ".join(filter(None, (_words(item, levels - 1) for item in value)))
    if not levels or not isinstance(value, dict):
        return ""
    for key in ("error", "message", "detail", "errors", "msg", "error_message"):
        if found := _words(value.get(key), levels - 1):
            upstream = value.get("metadata") if key == "message" else None
            raw = _words(upstream.get("raw"), levels - 1) if isinstance(upstream, dict) else ""
            return f"{found}: {raw}" if raw else found
    return ""
