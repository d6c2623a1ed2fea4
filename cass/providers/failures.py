"""Failures: what a provider's error says, in its own words, and what follows from it.

Pure, and the same for every kind: providers differ in where they put the message and in what they call too long.
"""

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

from cass.errors import ProviderError
from cass.jsonl import dump, load

TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
WORDS = 2_000
"""Characters of an error that are shown."""

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|tokens_limit_reached|max_model_len|reduce the length"
    r"|maximum (context|prompt) length|prompt is too long|input (is )?too long|too many (input )?tokens"
    r"|(exceed\w*|larger than|too (long|large|big))\b.{0,80}\bcontext|context.{0,60}(exceed|overflow|too (long|small))"
    r"|token count.{0,60}exceed|exceed\w*.{0,40}token limit",
    re.IGNORECASE | re.DOTALL,
)
_TAGS = re.compile(r"(?s)<(script|style).*?</\1>|<[^>]*>")


def refused(status: int, headers: Mapping[str, str], body: bytes, url: str, key_env: str | None) -> ProviderError:
    """The error of an HTTP answer other than 200. `headers` with lower-case names."""
    text = body.decode("utf-8", "replace")
    message = _message(text) or "the server gave no reason"
    if status in (401, 403):
        message += f"; check the key in {key_env}" if key_env else "; no API key was sent"
    elif 300 <= status < 400:
        message = f"the server points to {headers.get('location', 'another address')}: set that as base URL"
    return ProviderError(
        message,
        url=url,
        http_status=status,
        transient=status in TRANSIENT,
        retry_after=retry_after(headers.get("retry-after"), time.time()),
        too_long=status == 413 or (status != 429 and _TOO_LONG.search(text) is not None),
    )


def in_stream(error: Any) -> ProviderError:
    """The error that came inside an answer which had begun as a success."""
    text = dump(error).decode()
    return ProviderError(_words(error) or text[:WORDS], too_long=_TOO_LONG.search(text) is not None)


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


def _message(text: str) -> str:
    """The words of a body: JSON of any shape, or text, or a page of HTML."""
    try:
        found = _words(load(text))
    except ValueError:
        found = ""
    return (found or " ".join(_TAGS.sub(" ", text).split()))[:WORDS]


def _words(value: Any) -> str:
    """The message inside an error, wherever it stands."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return "; ".join(filter(None, map(_words, value)))
    if not isinstance(value, dict):
        return ""
    for key in ("error", "message", "detail", "errors", "msg", "error_message"):
        if found := _words(value.get(key)):
            upstream = value.get("metadata") if key == "message" else None
            raw = _words(upstream.get("raw")) if isinstance(upstream, dict) else ""
            return f"{found}: {raw}" if raw else found
    return ""
