"""The chat: one append-only file of records, its one writer, and how to find chats among many.

Bytes that were written are never changed or cut. A line that does not parse is skipped and named, never the end.
"""

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from cass import presence, records
from cass.errors import CassError, ChatBroken, NoChat, UsageError
from cass.home import Files, Home, create_private
from cass.records import Fact, Live, Meta, Notice, Record, Status, System, ToolOutput
from cass.tail import Tail

_HEAD = 4096
_TITLE_WITHIN = 1 << 18
"""The first user message stands behind the system prompt, with at most 32 KiB of project instructions in it."""
_SAID = re.compile(
    rb'\{"type":"message","role":"user","id":"[^"]*","content":"((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u]){0,400})'
)
"""The beginning of what a user says, as `records.encode` writes it: the line may be longer than what is read of it."""


class Chat:
    """A chat held for writing. Only one process can hold it: the lock is the kernel's."""

    def __init__(self, files: Files, mode: str) -> None:
        """Lock, read and mend. Raises NoChat, Held or ChatBroken."""
        if not files.chat.is_file():
            raise NoChat(f"no chat {files.chat_id} in {files.home.conversations}")
        files.make()
        self.files = files
        self._lock = presence.hold(files)
        self.sign(mode)
        self._fd = os.open(files.chat, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
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
    home.make()
    while True:
        chat_id = time.strftime("%Y-%m-%d-%H%M%S-") + os.urandom(2).hex()
        files = home.files(chat_id)
        try:
            fd = create_private(files.chat, os.O_EXCL)
        except FileExistsError:
            continue
        except OSError as e:
            raise CassError(f"cannot make a chat in {home.conversations}: {os.strerror(e.errno or 0)}") from e
        break
    first = Meta(
        chat_id=chat_id, created_at=records.now(), provider=provider, model=model, cwd=str(cwd), **meta  # type: ignore[arg-type]
    )
    try:
        os.write(fd, records.encode(first) + records.encode(System(content=system)))
        files.make()
    except OSError as e:
        files.chat.unlink(missing_ok=True)
        raise CassError(f"cannot make a chat in {home.root}: {os.strerror(e.errno or 0)}") from e
    finally:
        os.close(fd)
    return files


def read(files: Files) -> list[Record]:
    """All records of a chat; each damaged line is a `Notice` in its place."""
    tail = Tail(files.chat)
    found = tail.read()
    if tail.rest:
        found.append(tail.decode_rest())
    tail.close()
    return found


def meta(found: list[Record]) -> Meta | None:
    """The newest `Meta`: a later one changes the workspace."""
    return next((record for record in reversed(found) if isinstance(record, Meta)), None)


# ---- finding --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """A chat in a list."""

    chat_id: str
    created_at: str
    changed_at: str
    """When its last record was written; lists are ordered by it."""
    model: str
    cwd: str
    title: str
    """The beginning of its first user message, one line; "" where there is none yet."""


def ids(home: Home) -> list[str]:
    """All chat ids, in no order."""
    with contextlib.suppress(FileNotFoundError):
        return [name.removesuffix(".jsonl") for name in os.listdir(home.conversations) if name.endswith(".jsonl")]
    return []


def summaries(home: Home, cwd: Path | None = None) -> list[Summary]:
    """All chats, newest last record first; those of the workspace `cwd` only, where it is given."""
    wanted = str(cwd.resolve()) if cwd else None
    found = (summary(home.files(chat_id), wanted) for chat_id in ids(home))
    return sorted((s for s in found if s), key=lambda s: (s.changed_at, s.chat_id), reverse=True)


def summary(files: Files, cwd: str | None = None) -> Summary | None:
    """The summary of one chat from its head and its end; None where its file holds no `Meta`, or another `cwd`."""
    try:
        fd = os.open(files.chat, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        head = os.pread(fd, _HEAD, 0)
        if b"\n" not in head:  # a workspace with a long path, many project instructions
            head = os.pread(fd, _TITLE_WITHIN, 0)
        first = _decode(head.split(b"\n", 1)[0])
        if not isinstance(first, Meta) or (cwd is not None and os.path.realpath(first.cwd) != cwd):
            return None
        return Summary(
            chat_id=files.chat_id,
            created_at=first.created_at,
            changed_at=_changed_at(fd) or first.created_at,
            model=first.model,
            cwd=first.cwd,
            title=_title(fd),
        )
    except IsADirectoryError:
        return None
    finally:
        os.close(fd)


def _changed_at(fd: int) -> str | None:
    found = os.fstat(fd)
    end = os.pread(fd, _HEAD, max(0, found.st_size - _HEAD)).rstrip(b"\n")
    last = _decode(end.rpartition(b"\n")[2])
    at: str | None = getattr(last, "created_at", None)
    # The last line is longer than we read, or damaged: the file system knows as well, if only on this machine.
    return at or time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(found.st_mtime)) + ".000Z"


def _title(fd: int) -> str:
    for line in os.pread(fd, _TITLE_WITHIN, 0).split(b"\n")[1:]:
        if found := _SAID.match(line):
            return " ".join(records.load(b'"%b"' % found[1]).split())[:200]
    return ""


def _decode(line: bytes) -> Record | None:
    try:
        return records.decode(line)
    except records.BadRecord:
        return None


def find(home: Home, text: str, cwd: Path | None = None) -> Files:
    """The chat that `text` means: an id, a unique part of one, or ``.`` for ``$CASS_CHAT``, else the latest of `cwd`.

    Raises NoChat, or UsageError where several fit.
    """
    if text == ".":
        text = os.environ.get("CASS_CHAT") or _latest(home, cwd or Path.cwd())
    known = ids(home)
    fitting = [text] if text in known else sorted(chat_id for chat_id in known if text and text in chat_id)
    if not fitting:
        raise NoChat(f"no chat {text!r} in {home.conversations}; cass ls --all lists them")
    if len(fitting) > 1:
        shown = ", ".join(fitting[-5:]) + (" …" if len(fitting) > 5 else "")
        raise UsageError(f"{text!r} fits {len(fitting)} chats: {shown}")
    return home.files(fitting[0])


def _latest(home: Home, cwd: Path) -> str:
    found = summaries(home, cwd)
    if not found:
        raise NoChat(f"no chat in {cwd}; cass ls --all lists those of other directories")
    return found[0].chat_id


def damage(found: list[Record]) -> list[Notice]:
    """The warnings about damaged lines among the records of a chat."""
    return [record for record in found if isinstance(record, Notice)]
