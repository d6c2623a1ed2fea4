"""Attention: how a person who looks elsewhere learns what a chat does: title, bell, a word for tmux's status line."""

import os
import subprocess
from collections.abc import Callable, Mapping

from cass import announce
from cass.announce import KEEP_TITLE, TITLE_OF_BEFORE

STATE_OPTION = "@cass_state"
"""On the composer's pane: ``#{@cass_state}`` in a format of tmux shows it."""


class Attention:
    def __init__(
        self, chat_id: str, write: Callable[[str], None], environ: Mapping[str, str], *, notify: str, titled: bool
    ) -> None:
        """`notify` is ``off``, ``bell`` or ``all``; `titled`: whether the title of this terminal is ours to set."""
        self._chat_id = chat_id
        self._write = write
        self._environ = environ
        self._notify = notify
        self._titled = titled
        self._title = ""
        self._state = ""
        self.is_focused = True
        """As the terminal reported last; one that reports nothing counts as looked at."""

    def show(self, state: str) -> list[str]:
        """Put the chat and its state into the title; return the command that tells tmux, [] where it knows."""
        if self._titled and state != self._title:
            self._write(("" if self._title else KEEP_TITLE) + announce.title(f"cass {self._chat_id} {state}"))
            self._title = state
        if state == self._state or not self._pane:
            return []
        self._state = state
        return ["tmux", "set-option", "-p", "-t", self._pane, STATE_OPTION, state]

    def call(self, why: str) -> None:
        """Say that the chat needs the person, or has done what they wanted, unless they see it."""
        if not self.is_focused:
            self._write(announce.call(f"cass {self._chat_id}: {why}", self._environ, self._notify))

    def close(self) -> None:
        """Leave title and pane as they were."""
        if self._title:
            self._write(TITLE_OF_BEFORE)
        if self._state:
            forget_state(self._environ)

    @property
    def _pane(self) -> str:
        return self._environ.get("TMUX_PANE", "") if self._environ.get("TMUX") else ""


def forget_state(environ: Mapping[str, str] = os.environ) -> None:
    """Take the word for tmux back."""
    if environ.get("TMUX") and (pane := environ.get("TMUX_PANE")):
        command = ["tmux", "set-option", "-p", "-u", "-t", pane, STATE_OPTION]
        subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
