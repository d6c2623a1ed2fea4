"""The elder: a line as Cassady 0.4 wrote it, in the words of today.

    {"type":"user","content","ts"} · {"type":"assistant","content","reasoning","tool_calls","ts"}
    {"type":"tool","tool_call_id","name","ok","content","ts"}

`ts` is a time in UTC with nanoseconds and an offset; messages have no id.
"""

import binascii
import re
from pathlib import Path
from typing import Any

from cass import jsonl
from cass.pattern import pattern

KINDS = frozenset(("user", "assistant", "tool"))
"""The types of lines that only Cassady 0.4 wrote; its first two are those of today, with fewer fields."""

_LINES = 8
"""So many lines of a chat are looked at to tell who wrote it: its first message is the third."""
_TIME = pattern(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?\d*(?:\+00:00|Z)")


def wrote(chat: Path) -> bool:
    """Whether this file is a chat that Cassady 0.4 wrote."""
    try:
        with open(chat, "rb") as file:
            lines = [_object(file.readline()) for _ in range(_LINES)]
    except OSError:
        return False
    is_old = lines[0].get("type") == "meta" and "v" not in lines[0]
    return is_old and any(line.get("type") in KINDS for line in lines)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = jsonl.load(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def translate(value: dict[str, Any], line: bytes) -> dict[str, Any]:
    """The same as the line of today; its id is made of its bytes, so that it is the same whenever it is read."""
    kind, at = value["type"], _time(value.get("ts"))
    if kind == "tool":
        return {**value, "type": "tool_result", "created_at": at}
    digits = re.sub(r"\D", "", at)
    made = {**value, "type": "message", "role": kind, "created_at": at}
    made["id"] = f"{kind}-{digits}-{binascii.crc32(line.strip()):08x}"
    if kind == "assistant":
        calls = value.get("tool_calls") or []
        made |= {"reasoning": value.get("reasoning") or None, "stop": "tool_calls" if calls else "stop"}
        made["tool_calls"] = [_call(call) for call in calls]
    return made


def _call(call: Any) -> Any:
    """A call; arguments that are no object are kept as the text that they were."""
    arguments = call.get("arguments") if isinstance(call, dict) else None
    return {**call, "arguments": {}, "arguments_raw": arguments} if isinstance(arguments, str) else call


def _time(ts: Any) -> str:
    """`ts` with milliseconds and Z; as it is, where it is of another form."""
    found = _TIME.fullmatch(ts) if isinstance(ts, str) else None
    return f"{found[1]}.{(found[2] or '').ljust(3, '0')}Z" if found else str(ts or "")
