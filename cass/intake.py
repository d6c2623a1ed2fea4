"""The intake: the worker's side of the inbox. What is next, what was claimed and is not in the chat yet.

An item leaves the inbox for good only once the chat has it; whatever cannot be one is put aside, said, and never met
again.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from cass import inbox
from cass.errors import CassError
from cass.home import Files

AT_ONCE = frozenset({"cancel", "stop"})
_IN_LINE: Mapping[str, tuple[str, ...]] = {
    "message": ("content",),
    "compact": ("focus",),
    "model": ("provider", "model"),
    "effort": ("effort",),
    "clear": (),
}
"""Commands that take their turn among the messages, with those of their fields that are text where they are given."""
STEER = "steer"
"""The kind of a message that the running turn is to hear."""


class Intake:
    """Made under the lock of the chat."""

    def __init__(self, files: Files, known: dict[str, str], notice: Callable[[str, str], None]) -> None:
        """`known`: the messages that the chat has, id to content. `notice` takes a level and a text."""
        self._files = files
        self._known = known
        self._notice = notice
        self._leftovers = inbox.claimed(files)
        """Claimed by a worker that died, or by a turn that was cancelled before it heard them."""
        self._claimed: dict[str, str] = {}
        """Claimed messages that the chat does not have yet: id to name."""
        self._kinds: dict[str, str | None] = {}
        """What each waiting item is, by name: a long queue is not read anew at every ring."""
        self._unheard: list[str] = []
        """Lines from the bell that the inbox does not have yet."""
        inbox.sweep(files)

    def hear(self, lines: list[str]) -> None:
        """Queue what was written to the bell; on a full disk it is kept until there is room."""
        self._unheard += lines
        while self._unheard:
            item = inbox.message(self._unheard[0], ask=False, origin={"by": "fifo"})
            try:
                inbox.put(self._files, item)
            except CassError as e:
                self._notice("error", str(e))
                return
            del self._unheard[0]

    def command(self, is_busy: bool) -> str | None:
        """The next command that is to be obeyed at once; None where there is none.

        While nothing runs, one behind a message is left: it is meant for the turn that is about to begin.
        """
        for name, kind in self._look():
            if kind in AT_ONCE:
                if inbox.claim(self._files, name):
                    inbox.done(self._files, name)
                    return kind
            elif not is_busy:
                return None
        return None

    def next(self) -> tuple[str, dict[str, Any]] | None:
        """Claim the oldest item: its name and content."""
        while self._leftovers:
            name = self._leftovers.pop(0)
            if item := self._open(name):
                return name, item
        for name, kind in self._look():
            if kind in AT_ONCE:
                continue  # it came after `command` had looked
            if inbox.claim(self._files, name) and (item := self._open(name)):
                return name, item
        return None

    def is_steered(self) -> bool:
        """Whether a message waits that the running turn is to hear."""
        return any(kind == STEER for _, kind in self._look())

    def steering(self) -> tuple[str, dict[str, Any]] | None:
        """Claim the oldest of those."""
        for name, kind in self._look():
            if kind == STEER and inbox.claim(self._files, name) and (item := self._open(name)):
                return name, item
        return None

    def accept(self, name: str, item: dict[str, Any]) -> str | None:
        """The id of a claimed message that is to go into the chat; None where the chat has it already."""
        id, content = inbox.Waiting(name).id, item["content"]
        if id in self._known:
            if self._known[id] == content:
                inbox.done(self._files, name)
            else:
                self.put_aside(name, f"another message has the id {id}")
            return None
        self._known[id] = content
        self._claimed[id] = name
        return id

    def written(self, id: str) -> None:
        """The chat has the message `id` now."""
        if id in self._claimed:
            inbox.done(self._files, self._claimed.pop(id))

    def give_back(self) -> None:
        """What was claimed and not written comes next, before everything else."""
        for id, name in self._claimed.items():
            del self._known[id]
            self._leftovers.append(name)
        self._claimed.clear()

    def done(self, name: str) -> None:
        """A claimed command was carried out."""
        inbox.done(self._files, name)

    def put_aside(self, name: str, why: str) -> None:
        """A claimed item makes no sense, or broke what it met."""
        self._notice("warning", f"{why}; it was put aside in {self._files.inbox} as {inbox.reject(self._files, name)}")

    # ---- looking

    def _look(self) -> list[tuple[str, str | None]]:
        """Names and kinds of what waits, oldest first. What is no item is put aside here."""
        names = [item.name for item in inbox.waiting(self._files)]
        self._kinds = {name: self._kinds[name] if name in self._kinds else self._kind(name) for name in names}
        for name in [name for name, kind in self._kinds.items() if kind is None]:
            del self._kinds[name]
            if os.path.lexists(self._files.inbox / name):  # else its sender took it back while we looked
                self.put_aside(name, "what nobody understands was in the inbox")
        return list(self._kinds.items())

    def _kind(self, name: str) -> str | None:
        """What an item is; None for what is none."""
        item = inbox.read(self._files, name) if inbox.is_name(name) else None
        if item is None or _fault(item):
            return None
        return STEER if item["type"] == "message" and item.get("steer") else str(item["type"])

    def _open(self, name: str) -> dict[str, Any] | None:
        """A claimed item; one that cannot be served is put aside."""
        try:
            item = inbox.taken(self._files, name)
            fault = _fault(item)
        except ValueError as e:
            item, fault = {}, str(e)
        if fault:
            self.put_aside(name, fault)
            return None
        return item


def _fault(item: dict[str, Any]) -> str | None:
    """What is wrong with an item, if anything is."""
    kind = str(item["type"])
    if kind in AT_ONCE:
        return None
    if kind not in _IN_LINE:
        return f"unknown command {kind[:40]!r}"
    if any(not isinstance(item.get(field), str | None) for field in _IN_LINE[kind]):
        return f"a {kind} whose {' or '.join(_IN_LINE[kind])} is no text"
    if kind == "message" and not str(item.get("content") or "").strip():
        return "an empty message"
    return None
