"""The chat: one append-only file of records, its one writer, and how to find chats among many.

Bytes that were written are never changed or cut. A line that does not parse is skipped and named, never the end.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from cass import jsonl, presence, records
from cass.errors import CassError, ChatBroken, Held, NoChat
from cass.home import Files, Home, create_private
from cass.records import Fact, Live, Meta, Notice, Record, Status, System, ToolOutput, ToolResult
from cass.tail import Tail


class Chat:
    """A chat held for writing. Only one process can hold it: the lock is the kernel's."""

    def __init__(self, files: Files, mode: str) -> None:
        """Lock, read and mend. Raises NoChat, Held or ChatBroken."""
        if not files.chat.is_file():
            raise NoChat(f"no chat {files.chat_id} in {files.home.conversations}")
        files.make()
        self.files = files
        self._lock = presence.hold(files)
        self._fd = os.open(files.chat, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            presence.lock(files, self._fd)
        except Held:
            self.close()
            raise
        self.sign(mode)
        self._torn = self._ends_inside_a_line()
        self.records: list[Record] = read(files)
        """All records of the chat, damaged lines as warnings; grows with `append`."""

    def sign(self, mode: str, error: str | None = None) -> None:
        """Say in the lock file, for people, who holds it and in which mode, or why it is given up."""
        presence.sign(self._lock, mode, error)

    def append(self, record: Fact) -> None:
        """Write one line, in one write. Raises ChatBroken; whoever appends next starts on a line of its own."""
        line = records.encode(record)
        # A writer may die inside a line. Ending the line turns it into one bad record; cutting it off would move the
        # bytes under every viewer that remembers an offset.
        view = memoryview(b"\n" + line if self._torn else line)
        try:
            while view:
                self._torn = True
                view = view[os.write(self._fd, view) :]
        except OSError as e:
            raise ChatBroken(f"cannot append to {self.files.chat}: {os.strerror(e.errno or 0)}") from e
        self._torn = False
        self.records.append(record)

    def sync(self) -> None:
        """Make what was appended survive a power loss. Takes milliseconds: call it in a thread."""
        with contextlib.suppress(OSError):  # not every file system can; the bytes are with the kernel all the same
            getattr(os, "fdatasync", os.fsync)(self._fd)

    def check(self) -> None:
        """Raise ChatBroken when the file was replaced or removed under us: what we append would be lost."""
        mine = os.fstat(self._fd)
        try:
            found = os.stat(self.files.chat)
        except FileNotFoundError:
            raise ChatBroken(f"{self.files.chat} was removed while its worker ran") from None
        if (mine.st_dev, mine.st_ino) != (found.st_dev, found.st_ino):
            raise ChatBroken(f"{self.files.chat} was replaced while its worker ran; start the worker again")

    def close(self) -> None:
        """Give the chat up."""
        os.close(self._fd)
        os.close(self._lock)

    def _ends_inside_a_line(self) -> bool:
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"


class LiveFile:
    """What is only true for now, one file a turn; whoever loses it loses nothing."""

    OUTPUT_LIMIT = 1 << 20
    """Characters of tool output a call that are written as they come; a flood would only fill the disk."""
    SAMPLE = 4096
    """Beyond that the newest so many, once a second: a long build is still seen to move."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._fd = -1
        self._output: dict[str, int] = {}
        self._sampled_at = 0.0

    def begin(self, status: Status) -> None:
        """Start a new file in the place of the old one; whoever reads the old one sees it replaced."""
        self._output.clear()
        new = self._files.run / ".live.jsonl"
        try:
            new.unlink(missing_ok=True)
            fd = create_private(new, os.O_APPEND | os.O_EXCL)
        except OSError:
            return  # no room for a new file: the old one goes on
        with contextlib.suppress(OSError):
            os.write(fd, records.encode(status))
        new.rename(self._files.live)
        self.close()
        self._fd = fd

    def write(self, record: Live) -> None:
        """Append one line. A full disk costs the screen a line, not the person the turn."""
        line = self._sample(record) if isinstance(record, ToolOutput) else record
        if self._fd >= 0 and line is not None:
            with contextlib.suppress(OSError):
                os.write(self._fd, records.encode(line))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _sample(self, record: ToolOutput) -> ToolOutput | None:
        """`record`, or within a flood what is shown in its place."""
        total = self._output.get(record.tool_call_id, 0) + len(record.text)
        self._output[record.tool_call_id] = total
        if total <= self.OUTPUT_LIMIT:
            return record
        if time.monotonic() - self._sampled_at < 1:
            return None
        self._sampled_at = time.monotonic()
        text = f"\n… a flood of output, {total:,} characters so far; the newest:\n{record.text[-self.SAMPLE :]}"
        return ToolOutput(tool_call_id=record.tool_call_id, text=text)


# ---- making and reading ---------------------------------------------------------------------------------------------


def create(home: Home, *, cwd: Path, provider: str, model: str, system: str, **meta: object) -> Files:
    """Make a new chat; `meta` are further fields of its first record. Raises CassError when the disk refuses."""
    files = reserve(home)
    first = Meta(
        chat_id=files.chat_id,
        created_at=jsonl.now(),
        provider=provider,
        model=model,
        cwd=str(cwd),
        **meta,  # type: ignore[arg-type]
    )
    try:
        with open(files.chat, "ab", buffering=0) as file:
            file.write(records.encode(first) + records.encode(System(content=system)))
    except OSError as e:
        files.chat.unlink(missing_ok=True)
        raise CassError(f"cannot make a chat in {home.root}: {os.strerror(e.errno or 0)}") from e
    return files


def reserve(home: Home) -> Files:
    """The files of a new chat, whose own is empty yet. Raises CassError when the disk refuses."""
    home.make()
    while True:
        files = home.files(time.strftime("%Y-%m-%d-%H%M%S-") + os.urandom(2).hex())
        try:
            os.close(create_private(files.chat, os.O_EXCL))
        except FileExistsError:
            continue
        except OSError as e:
            raise CassError(f"cannot make a chat in {home.conversations}: {os.strerror(e.errno or 0)}") from e
        try:
            files.make()
        except OSError as e:
            files.chat.unlink(missing_ok=True)
            raise CassError(f"cannot make a chat in {home.root}: {os.strerror(e.errno or 0)}") from e
        return files


def read(files: Files) -> list[Record]:
    """All records of a chat; each damaged line is a `Notice` in its place."""
    tail = Tail(files.chat)
    found = tail.read()
    if tail.rest:
        found.append(tail.decode_rest())
    tail.close()
    return found


def meta(found: Sequence[Record]) -> Meta | None:
    """The newest `Meta`: a later one changes the workspace."""
    return next((record for record in reversed(found) if isinstance(record, Meta)), None)


def first(files: Files) -> Meta | None:
    """The first record of a chat, without reading on; None where there is none."""
    try:
        with open(files.chat, "rb") as file:
            record = records.decode(file.readline(1 << 20))
    except (OSError, records.BadRecord):
        return None
    return record if isinstance(record, Meta) else None


def family(found: Sequence[Record], files: Files) -> str:
    """The chat that this one and all its branches come from."""
    first = meta(found)
    return (first.family if first else None) or files.chat_id


def damage(found: list[Record]) -> list[Notice]:
    """The warnings about damaged lines among the records of a chat."""
    return [record for record in found if isinstance(record, Notice)]


def seen(found: Iterable[Record]) -> dict[str, str]:
    """What the model knows of files, from what its tools have told it."""
    known: dict[str, str] = {}
    for record in found:
        if isinstance(record, ToolResult) and record.seen:
            known.update(record.seen)
    return known
