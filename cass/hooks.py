"""Hooks: programs of the person's that are called when something happens in a chat.

    {"hooks": {"before-tool": [{"run": "~/.cass/hooks/no-push", "tools": ["shell"], "timeout_s": 5}],
               "turn-end": ["notify-send cass 'the turn is over'"]}}

They stand in the person's own ``config.json`` and nowhere else: what a project says is never run.
"""

import fnmatch
from collections.abc import Mapping
from typing import Any, NamedTuple

EVENTS = ("chat-start", "before-tool", "after-tool", "approval-needed", "turn-end")
LIMIT_S = 10.0
LONGEST_S = 600.0
_KEYS = frozenset({"run", "tools", "timeout_s"})

EXPECTED = (
    f"{{EVENT: [COMMAND, ...]}} with the events {', '.join(EVENTS)}; a COMMAND is a line for bash, or "
    f'{{"run": LINE, "tools": [NAME, ...], "timeout_s": N}} with N at most {LONGEST_S:.0f}; "tools" where there is one'
)


class Hook(NamedTuple):
    event: str
    run: str
    """A line for bash."""
    tools: tuple[str, ...] = ()
    """Names, with stars as in ``mcp__*``; empty: every tool."""
    limit_s: float = LIMIT_S

    def is_for(self, event: str, tool: str) -> bool:
        """Whether it is called for `event`; `tool`: its name, "" for none."""
        is_meant = not self.tools or any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.tools)
        return self.event == event and is_meant


def is_some(value: Any) -> bool:
    """Whether `value` is what ``"hooks"`` may hold."""
    return isinstance(value, dict) and not any(map(_wrong, value, value.values()))


def expected(value: Any) -> str:
    """What is, where `value` is not that, and what of it is wrong; says no more of a hook than where it stands."""
    wrong = next(filter(None, map(_wrong, value, value.values())), "") if isinstance(value, dict) else ""
    return f"{EXPECTED}{f'; {wrong}' if wrong else ''}"


def _wrong(event: str, found: Any) -> str:
    if event not in EVENTS:
        return f'there is no event "{event}"'
    if not isinstance(found, list):
        return f'"{event}" is no list'
    return next(
        (f'number {n} of "{event}" is no COMMAND' for n, one in enumerate(found, 1) if not _is_one(event, one)), ""
    )


def _is_one(event: str, value: Any) -> bool:
    if not isinstance(value, dict):
        return isinstance(value, str) and value.strip() != ""
    tools, limit = value.get("tools", []), value.get("timeout_s", LIMIT_S)
    return (
        value.keys() <= _KEYS
        and _is_one(event, value.get("run", ""))
        and isinstance(value.get("run"), str)
        and isinstance(tools, list)
        and all(isinstance(name, str) for name in tools)
        and not (tools and event in ("chat-start", "turn-end"))
        and type(limit) in (int, float)
        and 0 < limit <= LONGEST_S
    )


def of(value: Mapping[str, Any]) -> tuple[Hook, ...]:
    """What a value that `is_some` says."""
    return tuple(_one(event, one) for event, found in value.items() for one in found)


def _one(event: str, value: Any) -> Hook:
    if isinstance(value, str):
        return Hook(event, value)
    return Hook(event, value["run"], tuple(value.get("tools", ())), float(value.get("timeout_s", LIMIT_S)))
