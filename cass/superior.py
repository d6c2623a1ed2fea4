"""The superior of a worker: the worker of another chat whose tool started it, which it never exceeds."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cass import catalogue, chat, decisions, opening, presence
from cass.access import Mode
from cass.decisions import Process
from cass.errors import CassError, UsageError
from cass.home import Files, Home
from cass.records import Meta


class Superior:
    """Without a process none is known: a person started this worker, or a tool whose worker has ended since."""

    def __init__(self, files: Files | None = None, process: Process | None = None, mode: Mode = Mode.FULL_ACCESS):
        """`files`: of its chat, None where that is not known. `mode`: what holds until something is known of that."""
        self._files = files
        self._process = process
        self._mode = mode
        self.widest()

    @classmethod
    def of(cls, files: Files) -> "Superior":
        """That of this process, the worker of `files`."""
        above = decisions.worker_above()
        named = os.environ.get(decisions.TOOL_MARK) or os.environ.get("CASS_CHAT")
        if above is None:
            is_other = named and named != files.chat_id
            return cls(files.home.files(named), None, Mode.READ_ONLY) if named and is_other else cls()
        found = (other for other in _likely(files) if presence.holder(other).get("pid") == above.pid)
        return cls(next((other for other in found if presence.is_running(other)), None), above, Mode.READ_ONLY)

    def widest(self) -> Mode:
        """The mode of its chat now; where nobody holds that any more, as it was last."""
        if self._files is not None and self._is_there():
            with contextlib.suppress(ValueError):
                self._mode = Mode(str(presence.holder(self._files).get("mode")))
        return self._mode

    def is_caller(self, pid: int) -> bool:
        """Whether a process is that worker itself, not one of its tools: it carries answers of the person."""
        return self._process is not None and decisions.is_same(pid, self._process)

    def widest_at(self, root: Path, home: Home) -> Mode:
        """The same, where a chat can have that in the workspace `root`; else read-only."""
        widest = self.widest()
        if widest is not Mode.FULL_ACCESS:
            try:
                opening.check_mode(widest, root, home)
            except UsageError:
                return Mode.READ_ONLY
        return widest

    def admit(self, mode: Mode, meta: Meta, root: Path, home: Home) -> Mode:
        """`mode`, or what it leaves of that, for a chat of its first record `meta` in the workspace `root`, resolved.

        Raises CassError where an agent of its chat would work elsewhere than was decided: what lies in the workspace of
        that chat can be swapped by its tools, and by its other agents.
        """
        if self._files is not None and meta.agent_of == self._files.chat_id and meta.cwd != str(root):
            raise CassError(f"{meta.cwd} became a link, or lies behind one now; the agent does not work there")
        return min(mode, self.widest_at(root, home), key=lambda mode: mode.width)

    def has_left(self, origin: Mapping[str, Any]) -> bool:
        """Whether a message, by its `origin`, is what its tool asked for, and it is gone: nobody hears the answer."""
        if self._files is None or (origin.get("by"), origin.get("chat")) != ("agent", self._files.chat_id):
            return False
        # Another worker of that chat, perhaps begun since, has called nobody.
        return not presence.is_running(self._files) or presence.holder(self._files).get("pid") != origin.get("pid")

    def _is_there(self) -> bool:
        if self._files is None or not presence.is_running(self._files):
            return False
        return self._process is None or presence.holder(self._files).get("pid") == self._process.pid


def _likely(files: Files) -> Iterator[Files]:
    """Chats whose worker it may be: the one whose agent this chat is, then all others."""
    meta = chat.first(files)
    if meta is not None and meta.agent_of:
        yield files.home.files(meta.agent_of)
    for chat_id in catalogue.ids(files.home):
        yield files.home.files(chat_id)
