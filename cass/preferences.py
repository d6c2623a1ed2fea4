"""Preferences of the person for their screens, from ``config.json``.

Only the keys that viewer and composer need are read here, in a millisecond; what is wrong in that file is said by
`config`, wherever a worker starts.
"""

from collections.abc import Callable
from typing import Any

from cass import jsonl
from cass.home import Home

NOTIFY = ("off", "bell", "all")
EDITING = ("emacs", "vi")


def read(home: Home) -> dict[str, Any]:
    """The keys below, as far as they are there and make sense."""
    try:
        found = jsonl.load(home.config.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: found[key] for key, is_right in _RIGHT.items() if key in found and is_right(found[key])}


_RIGHT: dict[str, Callable[[Any], bool]] = {
    "notify": lambda value: value in NOTIFY,
    "editing": lambda value: value in EDITING,
    "show_reasoning": lambda value: isinstance(value, bool),
    "ui_tool_result_limit": lambda value: type(value) is int and value > 0,
}
