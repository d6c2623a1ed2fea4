"""Attention: how somebody who looks elsewhere learns what a chat does: title, bell, notice; and marks around turns.

Source: https://gitlab.freedesktop.org/Per_Bothner/specifications/blob/master/proposals/semantic-prompts.md (marks)
"""

import subprocess
from collections.abc import Mapping

from cass import announce
from cass.announce import FOCUS_REPORTS, KEEP_TITLE, NO_FOCUS_REPORTS, TITLE_OF_BEFORE
from cass.pattern import pattern

PROMPT, OUTPUT = "\x1b]133;A\x1b\\", "\x1b]133;C\x1b\\"
"""A user's message begins; it ended, and what the model says begins."""

_FOCUS = pattern(rb"\x1b\[[IO]")
_TMUX_S = 1.0


def done(is_well: bool) -> str:
    """The mark at the end of a turn."""
    return f"\x1b]133;D;{0 if is_well else 1}\x1b\\"


class Attention:
    """What is written for it on a terminal of the viewer's own; nothing is written here."""

    def __init__(self, chat_id: str, notify: str, environ: Mapping[str, str]) -> None:
        """`notify` is ``off``, ``bell`` or ``all``."""
        self._name = f"cass {chat_id}"
        self._notify = notify
        self._environ = environ
        self._state = ""
        self._is_focused = True
        """As the terminal said last; one that says nothing counts as looked at."""

    def begin(self) -> str:
        asks = self._notify != "off" and not self._in_tmux
        return (KEEP_TITLE if not self._state else announce.title(f"{self._name} {self._state}")) + FOCUS_REPORTS * asks

    def end(self) -> str:
        return TITLE_OF_BEFORE + NO_FOCUS_REPORTS * (self._notify != "off" and not self._in_tmux)

    def show(self, state: str) -> str:
        """The title, where it changes."""
        if state == self._state:
            return ""
        self._state = state
        return announce.title(f"{self._name} {state}")

    def hear(self, data: bytes) -> bytes:
        """Take what the terminal says about its focus out of what came from it."""
        for found in _FOCUS.findall(data):
            self._is_focused = found.endswith(b"I")
        return _FOCUS.sub(b"", data)

    def call(self, why: str) -> str:
        """Tell that the chat needs the person, or has done what they wanted; nothing where they see it."""
        if self._notify == "off" or self._is_looked_at():
            return ""
        return announce.call(f"{self._name}: {why}", self._environ, self._notify)

    @property
    def _in_tmux(self) -> bool:
        return bool(self._environ.get("TMUX") and self._environ.get("TMUX_PANE"))

    def _is_looked_at(self) -> bool:
        if not self._in_tmux:
            return self._is_focused
        asked = "#{window_active}#{?session_attached,1,0}"
        command = ["tmux", "display-message", "-p", "-t", self._environ["TMUX_PANE"], asked]
        try:
            answer = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TMUX_S)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return answer.stdout.strip() == b"11"
