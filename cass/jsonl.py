"""JSON lines: bytes and values, and the ids and times that the lines carry."""

import json
import math
import os
import time
from typing import Any

import orjson

_DEEPEST = 250
"""Levels of nesting that are written, a little less than orjson takes. Nobody means more; a stack holds no more."""


def dump(value: Any) -> bytes:
    """Encode as UTF-8 JSON without a newline; a lone surrogate becomes U+FFFD, a split pair is joined.

    What JSON has no word for (NaN, infinity), and what is nested too deeply, becomes null.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, an int beyond 64 bits, a key that is no string, nested too deeply
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def load(data: bytes | str) -> Any:
    """Decode JSON; what orjson refuses (lone surrogates, NaN, bad UTF-8, huge numbers) is tried once more, leniently.

    Raises ValueError.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
        try:
            return _plain(json.loads(text))
        except RecursionError as e:
            raise ValueError("nested too deeply") from e


def _plain(value: Any, levels: int = _DEEPEST) -> Any:
    """`value` as strict JSON can say it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (dict, list, tuple)) and not levels:
        return None
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, levels - 1) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None


def now() -> str:
    """UTC with milliseconds and Z: ``2026-06-20T14:30:12.345Z``."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 10**6:03d}Z"


def new_id() -> str:
    """A fresh id of 12 lower-case hexadecimal digits: for messages, calls, requests."""
    return os.urandom(6).hex()
