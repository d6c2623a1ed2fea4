"""The inbox of a chat: its waiting messages and commands, one file each, and the bell that says there are some.

A sender writes ``inbox/.NAME``, renames it to ``inbox/NAME`` and rings. From the rename on the item is accepted:
everyone sees it by listing, and it survives the death of every process. The worker claims by renaming to
``.taken-NAME`` and unlinks once the chat has it; whoever put it takes it back by unlinking. Of two who try, the kernel
lets one win.

The bell is a FIFO that carries no message of ours: a ring is one ``\\n`` and means "list the inbox". A line that a
shell writes into it (``echo hi > in``) is a plain message, never a command.
"""

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cass import jsonl
from cass.errors import CassError, UsageError
from cass.home import Files, create_private, make_private
from cass.pattern import pattern

if TYPE_CHECKING:
    from cass.values import Attachment

_ID = pattern(r"[A-Za-z0-9_-]{1,64}")
TAKEN = ".taken-"
BAD = ".bad-"
BACK = ".back-"
LARGEST = 64 << 20
"""Bytes of an item; what is larger was put there by no sender of ours."""
LONGEST_NAME = 128
FLOOD = 1000
"""Lines after which a writer that does not stop is no longer heard to its end."""
RING = 1 << 10
"""Bytes that are read from the bell at once: a writer that never stops must not keep everything else waiting."""
ABANDONED_AFTER_S = 3600
"""A sender that has not renamed its file for so long is dead."""
UNFINISHED_LINE_S = 2.0
"""Text on the bell without its line end becomes a line after so long."""


class Waiting(NamedTuple):
    """An item in the queue; `name` sorts by the time it was put."""

    name: str

    @property
    def id(self) -> str:
        _, dash, end = self.name.partition("-")
        return end if dash else self.name

    @property
    def at_ns(self) -> int:
        """When it was put, by its name; 0 where another kind of program chose that."""
        try:
            return int(self.name.partition("-")[0], 16)
        except ValueError:
            return 0


# ---- for senders ----------------------------------------------------------------------------------------------------


def message(
    content: str, *, ask: bool, origin: dict[str, Any], steer: bool = False, attached: "Iterable[Attachment]" = ()
) -> dict[str, Any]:
    """The item of a message. `steer`: the running turn is to hear it."""
    item: dict[str, Any] = {"type": "message", "content": content, "ask": ask, "origin": origin}
    if steer:
        item["steer"] = True
    if said := [attachment.said() for attachment in attached]:
        item["attachments"] = said
    return item


def put(files: Files, item: dict[str, Any], id: str | None = None) -> str:
    """Queue `item` and ring; return its id. Once this returns the item is accepted.

    Raises CassError, naming the path, when it cannot be written; then nothing is left behind.
    """
    id = jsonl.new_id() if id is None else id
    if not _ID.fullmatch(id):
        raise UsageError(f"a message id is 1 to 64 letters, digits, '-' or '_', not {id!r}")
    name = f"{time.time_ns():016x}-{id}"
    make_private(files.inbox)
    draft = files.inbox / f".{name}"
    try:
        _write(draft, jsonl.dump(item))
        draft.rename(files.inbox / name)
    except OSError as e:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise CassError(f"the message was not sent: {draft.parent}: {os.strerror(e.errno or 0)}") from e
    ring(files)
    return id


def _write(path: os.PathLike[str], data: bytes) -> None:
    fd = create_private(path, os.O_EXCL)  # type: ignore[arg-type]
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def ring(files: Files) -> bool:
    """Ring the bell; False where no worker listens to it. Never blocks, never writes into anything but our FIFO."""
    try:
        fd = os.open(files.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENXIO, errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EACCES):
            return False
        raise CassError(f"cannot ring {files.bell}: {os.strerror(e.errno or 0)}") from e
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return False
        os.write(fd, b"\n")
    except BlockingIOError:
        pass  # the pipe is full of rings nobody has read yet: one more says nothing new
    except BrokenPipeError:
        return False
    finally:
        os.close(fd)
    return True


def waiting(files: Files) -> list[Waiting]:
    """What is queued, oldest first."""
    return [Waiting(name) for name in sorted(_names(files)) if not name.startswith(".")]


def is_empty(files: Files) -> bool:
    """Whether nothing waits and nothing is claimed."""
    return not any(name.startswith(TAKEN) or not name.startswith(".") for name in _names(files))


def read(files: Files, name: str) -> dict[str, Any] | None:
    """A waiting item; None where it is gone, or is none."""
    try:
        return parse(_content(files.inbox / name))
    except (OSError, ValueError):
        return None


def _content(path: Path) -> bytes:
    """The bytes of a regular file. Raises OSError, and ValueError for anything else: nothing here may block."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise ValueError("no file that a sender would put here")
        return file.read()


def take_back(files: Files, name: str) -> dict[str, Any] | None:
    """Remove a waiting item and return it; None where the worker, or someone else, was faster."""
    mine = files.inbox / f"{BACK}{os.getpid()}-{name}"
    try:
        (files.inbox / name).rename(mine)  # a rename, not an unlink: what is returned is what was removed
    except OSError:
        return None
    try:
        return parse(_content(mine))
    except (OSError, ValueError):
        return None
    finally:
        mine.unlink(missing_ok=True)


def withdraw(files: Files, id: str) -> bool:
    """Take the waiting message `id` back; False where it waits no more, or the worker was faster."""
    item = next((item for item in waiting(files) if item.id == id), None)
    return item is not None and take_back(files, item.name) is not None


def parse(data: bytes) -> dict[str, Any]:
    """The item that `data` holds. Raises ValueError where it holds none."""
    item = jsonl.load(data)
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise ValueError('not a JSON object with a "type"')
    return item


# ---- for the worker -------------------------------------------------------------------------------------------------


def claim(files: Files, name: str) -> bool:
    """Take an item out of the queue; False where its sender took it back. It is gone for good after `done`."""
    try:
        (files.inbox / name).rename(files.inbox / f"{TAKEN}{name}")
    except FileNotFoundError:
        return False
    return True


def taken(files: Files, name: str) -> dict[str, Any]:
    """A claimed item. Raises ValueError where it is none."""
    try:
        return parse(_content(files.inbox / f"{TAKEN}{name}"))
    except OSError as e:
        raise ValueError(os.strerror(e.errno or 0)) from e


def claimed(files: Files) -> list[str]:
    """Names of the items that a dead worker claimed and never finished, oldest first."""
    return sorted(name.removeprefix(TAKEN) for name in _names(files) if name.startswith(TAKEN))


def done(files: Files, name: str) -> None:
    """The chat has the claimed item."""
    (files.inbox / f"{TAKEN}{name}").unlink(missing_ok=True)


def reject(files: Files, name: str) -> str:
    """Put an item that makes no sense aside, claimed or not, for a person to look at; return its name there."""
    aside = BAD + (name if len(os.fsencode(name)) <= LONGEST_NAME else f"{time.time_ns():016x}")
    for place in (files.inbox / f"{TAKEN}{name}", files.inbox / name):
        with contextlib.suppress(OSError):
            place.rename(files.inbox / aside)
            break
    return aside


def is_name(name: str) -> bool:
    """Whether a sender of ours could have made `name`: short, and with an id in it."""
    return len(os.fsencode(name)) <= LONGEST_NAME and _ID.fullmatch(Waiting(name).id) is not None


def sweep(files: Files) -> None:
    """Put back what a composer that died was taking back, remove what dead senders never finished."""
    before = time.time() - ABANDONED_AFTER_S
    for name in _names(files):
        path = files.inbox / name
        with contextlib.suppress(OSError):
            if name.startswith(BACK):
                pid, _, own = name.removeprefix(BACK).partition("-")
                if not _is_alive(int(pid) if pid.isdigit() else 0):
                    path.rename(files.inbox / own)
            elif name.startswith(".") and not name.startswith((TAKEN, BAD)) and path.lstat().st_mtime < before:
                path.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return pid > 0


def _names(files: Files) -> list[str]:
    try:
        return os.listdir(files.inbox)
    except FileNotFoundError:
        return []


class Bell:
    """The worker's end of the FIFO. Make it only under the lock of the chat."""

    def __init__(self, files: Files) -> None:
        """Raises CassError where something else than our FIFO stands in its place."""
        self._path = files.bell
        with contextlib.suppress(FileExistsError):
            os.mkfifo(files.bell, 0o600)
        foreign = CassError(f"{files.bell} is not a FIFO of yours; move it away")
        # An old FIFO is used again: a shell that is blocked in `echo hi > in` since then is heard.
        try:
            self.fd = os.open(files.bell, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as e:  # a link, a socket, or one that we may not read
            raise foreign from e
        found = os.fstat(self.fd)
        if not stat.S_ISFIFO(found.st_mode) or found.st_uid != os.geteuid():
            os.close(self.fd)
            raise foreign
        # Our own writing end: without it every last writer that closes would leave the reader at end of file, spinning.
        self._keep = os.open(files.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""
        self._since = 0.0

    def lines(self) -> list[str]:
        """Messages written to the bell since the last call; mere rings are left out. Never blocks."""
        chunk = self._read()
        if chunk:
            self._since = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if self._rest and time.monotonic() - self._since >= UNFINISHED_LINE_S:
            lines.append(self._rest)
            self._rest = b""
        return [text for text in (line.decode("utf-8", "replace") for line in lines) if text.strip()]

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, RING)
        except BlockingIOError:
            return b""

    def retire(self) -> list[str]:
        """Close the bell and return the lines that were still on their way.

        A new FIFO takes its name first: whoever opens from now on waits there for the next worker, and whoever holds
        the old one open is heard to the end.
        """
        new = self._path.with_name(".in")
        new.unlink(missing_ok=True)
        os.mkfifo(new, 0o600)
        new.rename(self._path)
        os.close(self._keep)
        lines = self.lines()
        deadline = time.monotonic() + UNFINISHED_LINE_S
        while self._is_held() and time.monotonic() < deadline and len(lines) < FLOOD:
            select.select([self.fd], [], [], 0.05)
            lines += self.lines()
        self._since = 0.0
        lines += self.lines()
        os.close(self.fd)
        return lines

    def _is_held(self) -> bool:
        """Whether a writer still has the FIFO open; what can be read is kept for `lines`."""
        try:
            chunk = os.read(self.fd, RING)
        except BlockingIOError:
            return True
        self._rest += chunk
        self._since = time.monotonic()
        return bool(chunk)
