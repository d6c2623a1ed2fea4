"""Reading: a chat as a viewer opens it, from its end, from some moment on, whole, or where another viewer ended.

A chat may be longer than memory: but for `everything`, which comes record by record, only its end is read.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cass import records
from cass.home import Files
from cass.records import Assistant, BadRecord, Meta, Notice, Record, User
from cass.tail import Tail

WINDOW = 1 << 20
"""Bytes from the end of a chat that opening it reads, unless they hold too few messages."""
FIRST_LINE = 1 << 20


def newest(files: Files, last: int | None, since: str = "") -> tuple[Tail, list[Record]]:
    """A tail at the end of the chat, and records before it: the first one, and enough for `last` messages, or for
    everything `since` a moment, written as in the records."""
    size = WINDOW
    while True:
        tail = Tail.last(files.chat, size)
        found = tail.read()
        messages = sum(isinstance(record, (User, Assistant)) for record in found)
        has_enough = moment(found[0]) < since if since and found else messages > (last or 0)
        if has_enough or size >= files.chat.stat().st_size:
            return tail, [*_first(files), *found]
        tail.close()
        size *= 8


def moment(record: Record) -> str:
    """When it was written; "" for a kind that does not say."""
    return getattr(record, "created_at", "")


def _first(files: Files) -> list[Record]:
    with open(files.chat, "rb") as chat, contextlib.suppress(BadRecord):
        record = records.decode(chat.readline(FIRST_LINE))
        return [record] if isinstance(record, Meta) else []
    return []


def everything(files: Files) -> Iterator[Record]:
    """Every record, line by line."""
    with open(files.chat, "rb") as chat:
        for number, line in enumerate(chat, 1):
            try:
                yield records.decode(line)
            except BadRecord as e:
                if line.endswith(b"\n"):  # else it is only not finished
                    yield Notice(level="warning", text=f"{files.chat}: line {number} is damaged and was skipped: {e}")


# ---- where another viewer ended -------------------------------------------------------------------------------------


class Growing(NamedTuple):
    """How far the answer that grows was given."""

    of: str
    text: int
    """Characters of it that were laid out, an unfinished block included."""
    thought: int
    has_thought: bool
    """Whether all of its reasoning was given."""


class Place(NamedTuple):
    """How far a screen is. As a word: ``CHAT.INODE.LIVE`` in bytes, then ``.OF.TEXT.THOUGHT.HAS`` of what grows."""

    chat: int
    """Bytes of the chat."""
    inode: int = 0
    live: int = 0
    """Bytes of the live file with that inode."""
    growing: Growing | None = None

    def __str__(self) -> str:
        word = f"{self.chat}.{self.inode}.{self.live}"
        if self.growing is not None:
            part = self.growing
            word += f".{part.of}.{part.text}.{part.thought}.{int(part.has_thought)}"
        return word

    @classmethod
    def parse(cls, word: str) -> "Place":
        """Raises ValueError."""
        chat, inode, live, *growing = word.split(".")
        if not growing:
            return cls(int(chat), int(inode), int(live))
        of, text, thought, has_thought = growing
        return cls(int(chat), int(inode), int(live), Growing(of, int(text), int(thought), has_thought == "1"))


def again(files: Files, place: Place) -> tuple[Tail, list[Record]]:
    """A tail at `place` of the chat, and the records before it."""
    found = _within(files.chat, max(place.chat - WINDOW, 0), place.chat)
    return Tail(files.chat, place.chat), [*_first(files), *found]


def again_live(files: Files, place: Place) -> tuple[Tail, list[Record]]:
    """A tail of the live file, and what it held at `place`, without the notices: they were given, and are not state."""
    tail = Tail(files.live, place.live)
    if not place.inode or tail.inode != place.inode:  # another turn
        tail.close()
        return Tail(files.live), []
    found = _within(files.live, 0, place.live)
    return tail, [record for record in found if not isinstance(record, Notice)]


def _within(path: Path, start: int, end: int) -> list[Record]:
    """The records of the whole lines from byte `start` to `end`; damaged ones were spoken of when they were new."""
    with open(path, "rb") as file:
        file.seek(start)
        lines = file.read(end - start).split(b"\n")
    found = []
    for line in lines[bool(start) :]:
        with contextlib.suppress(BadRecord):
            found.append(records.decode(line))
    return found
