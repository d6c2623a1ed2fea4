"""Hooked: a chat with the person's hooks on it, and what comes of calling them.

A hook can deny a call of a tool, by the exit status 2 and a reason. It can allow nothing, what it says is only data,
and one that fails or hangs is a notice: the turn goes on.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cass import jsonl, tools
from cass.errors import ToolError
from cass.hooks import Hook
from cass.records import Notice
from cass.tools.paths import Place
from cass.visible import safe_line

DENIES = 2
"""The exit status that does, as hooks of other agents have it."""
MARK = "CASS_HOOK"
"""Names the event in a hook's environment; a chat that a hook starts calls none."""
SHOWN = 300
"""Characters of a hook's words in a notice."""


class Verdict(NamedTuple):
    """What the hooks of one event came to."""

    denied: str | None = None
    """Why the call must not be run."""
    notices: tuple[Notice, ...] = ()


class Hooked(NamedTuple):
    hooks: tuple[Hook, ...] = ()

    @classmethod
    def of(cls, hooks: tuple[Hook, ...], environ: Mapping[str, str] = os.environ) -> "Hooked":
        """None of them in what a hook has started: it would call itself without end."""
        return cls(() if environ.get(MARK) else hooks)

    async def call(self, event: str, place: Place, tool: str = "", **told: Any) -> Verdict:
        """Call the hooks of `event` one after the other, until one denies. `told`: what they get besides."""
        found = [hook for hook in self.hooks if hook.is_for(event, tool)]
        if not found:
            return Verdict()
        notices: list[Notice] = []
        more = {"tool": tool} if tool else {}
        given = {"event": event, "chat": place.chat_id, "cwd": str(place.root), **more, **told}
        place = replace(place, environ={**place.environ, MARK: event})
        for hook in found:
            try:
                said = await tools.call_hook(hook.run, jsonl.dump(given) + b"\n", place, hook.limit_s)
            except (ToolError, OSError) as e:
                notices.append(_notice(event, hook, str(e)))
                continue
            if said.timed_out:
                notices.append(_notice(event, hook, f"ended after {hook.limit_s:g} s"))
            elif said.status == DENIES and event == "before-tool":
                reason = _reason(said.text)
                return Verdict(f"a hook of the user denied it{f': {reason}' if reason else ''}", tuple(notices))
            elif said.status:
                what = f"exit status {said.status}" if said.status > 0 else f"killed by signal {-said.status}"
                notices.append(_notice(event, hook, f"{what}{f': {said.text}' if said.text else ''}"))
        return Verdict(None, tuple(notices))


def _notice(event: str, hook: Hook, text: str) -> Notice:
    return Notice(level="warning", text=f"the hook {safe_line(hook.run)[:80]} ({event}): {safe_line(text)[:SHOWN]}")


def _reason(text: str) -> str:
    """``{"reason": TEXT}``, or what it wrote as it is."""
    try:
        found = jsonl.load(text.encode())
    except ValueError:
        return text
    return str(found.get("reason", text)) if isinstance(found, dict) else text
