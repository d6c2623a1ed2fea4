"""Snapshots: what files held before write, edit or a restore changed them, kept so that it can be brought back.

Before a file is changed, the content that is about to vanish goes to ``blobs/SHA256`` and a line to
``file-edits/CHAT.jsonl``: what the file holds, and what it is to hold. What a moment looked like is then what the first
change after it found. So a line for a change that never came about, after a crash, does no harm, and no line is missed
where nothing was changed. A change that could not be kept is one that others made: it is left alone.

    {"family", "path", "before": {"sha256", "mode", "size"}, "after": null, "call": ["MESSAGE ID", 0], "at"}

null stands for no file, and for the call of a restore.
"""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cass import blobs, jsonl
from cass.home import Files, Home
from cass.names import quoted, unquoted
from cass.pattern import pattern

LIMIT = 32 << 20
"""Bytes of a file that are kept; of a larger one only the hash is, so that a change of it costs no disk."""
_HEAD = 1 << 16
"""A line is shorter: paths are 4 KiB at most, and four times that when they are quoted."""

_SHA256 = pattern(r"[0-9a-f]{64}")

Call = tuple[str, int]
"""A tool call of a chat and of all its branches: id of the assistant's message, and its place in it from 0.

The id that a provider gives to a call may come again."""


@dataclass(frozen=True, slots=True)
class State:
    """A regular file at some moment."""

    sha256: str
    mode: int
    """Permission bits."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file; None stands for no file."""

    path: str
    """Absolute and resolved."""
    before: State | None
    after: State | None
    call: Call | None
    """None: a restore."""
    at: str
    """UTC with nanoseconds."""


class Target(NamedTuple):
    """What a file held at some moment."""

    path: str
    to: State | None
    known: tuple[State | None, State | None]
    """What the last change made of it, and what that one found: the file holds one of them unless others changed it."""


Keep = Callable[[str, int, State | None], str]
"""Hears of a change before it is made: absolute path, descriptor of its directory, what the file is to hold.

Returns what is to be said of it besides, from a ``;`` on, or nothing."""


def keep_nothing(path: str, folder: int, after: State | None) -> str:
    return ""


# ---- keeping --------------------------------------------------------------------------------------------------------


class Journal:
    """The journal of a chat. Any number of processes may write one."""

    def __init__(self, files: Files, family: str) -> None:
        """`family` is the chat that this one's branches come from, perhaps by way of others."""
        self._files = files
        self._family = family

    def of_call(self, call: Call) -> Keep:
        """Keeps what a call is about to change. The call goes on where that cannot be done, and says so."""

        def keep(path: str, folder: int, after: State | None) -> str:
            try:
                before = self.keep(path, folder, after, call)
            except OSError as e:
                return f"; this cannot be undone, its old content was not kept: {os.strerror(e.errno or 0)}"
            is_kept = before is None or before.size <= LIMIT
            return "" if is_kept else f"; this cannot be undone: files of more than {LIMIT >> 20} MiB are not kept"

        return keep

    def keep(self, path: str, folder: int, after: State | None, call: Call | None = None) -> State | None:
        """Keep what `path`, in the open directory `folder`, holds now, and return it. Raises OSError."""
        with blobs.shared(self._files.home):
            found = _read(os.path.basename(path), folder)
            before, content = found or (None, None)
            if before and content is not None:
                blobs.store(self._files.home, before.sha256, content)
            self._append(Edit(path, before, after, call, _now()))
        return before

    def _append(self, edit: Edit) -> None:
        line = jsonl.dump({"family": self._family} | asdict(edit) | {"path": quoted(edit.path)}) + b"\n"
        fd = os.open(self._files.edits, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # a writer died, or the disk was full
            blobs.write_all(fd, b"\n" + line if torn else line)
            os.fsync(fd)
        finally:
            os.close(fd)


def _read(name: str, folder: int) -> tuple[State, bytes | None] | None:
    """A file in an open directory, and its content where it is not too large; None where there is no file."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with open(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_size > LIMIT:
            return State(hashlib.file_digest(file, "sha256").hexdigest(), mode, status.st_size), None
        content = file.readall()
        return State(hashlib.sha256(content).hexdigest(), mode, len(content)), content


def look(name: str, folder: int) -> State | None:
    """What a file in an open directory holds now. Raises OSError."""
    found = _read(name, folder)
    return found[0] if found else None


def _now() -> str:
    """As `jsonl.now`, but fine enough to tell the changes of two chats apart."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds:09d}Z"


# ---- reading --------------------------------------------------------------------------------------------------------


def content(home: Home, state: State) -> bytes | None:
    """The content that was kept; None where it was not, or is not what it was any more."""
    return blobs.content(home, state.sha256)


def is_kept(home: Home, state: State) -> bool:
    """Whether there is a content to go back to."""
    path = home.blobs / state.sha256
    return path.is_file() and path.stat().st_size == state.size


def journals(home: Home) -> list[Path]:
    """All journals, by name."""
    return sorted(path for path in home.edits.glob("*.jsonl") if path.is_file())


def family_of(journal: Path) -> str:
    """The family that a journal belongs to: it outlives its chat."""
    with open(journal, "rb") as file:
        lines = file.read(_HEAD).split(b"\n")
    found = (value.get("family") for line in lines if (value := _load(line)))
    return next((family for family in found if isinstance(family, str)), journal.stem)


def edits(journal: Path) -> list[Edit]:
    """All that a journal says, in order; a damaged line is passed over, and one that no cass has written."""
    return [edit for line in journal.read_bytes().split(b"\n") if (edit := _decode(line))]


def history(home: Home, family: str) -> list[Edit]:
    """What a chat and all its branches changed, in the order in which it happened."""
    found: list[tuple[str, str, int, Edit]] = []
    for journal in journals(home):
        if family_of(journal) == family:
            at = ""
            for number, edit in enumerate(edits(journal)):
                at = max(at, edit.at)  # a clock that was set back changes no order within a chat
                found.append((at, journal.stem, number, edit))
    return [edit for *_, edit in sorted(found, key=lambda entry: entry[:3])]


def _load(line: bytes) -> dict[str, Any]:
    try:
        value = jsonl.load(line) if line.strip() else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _decode(line: bytes) -> Edit | None:
    value = _load(line)
    try:
        call = value["call"]
        path = unquoted(value["path"])
        if os.path.normpath(path) != path or not path.startswith("/") or "\0" in path:
            return None
        return Edit(
            path,
            _state(value["before"]),
            _state(value["after"]),
            (str(call[0]), int(call[1])) if call else None,
            str(value["at"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _state(value: Any) -> State | None:
    """Raises LookupError, TypeError, ValueError."""
    if value is None:
        return None
    found = State(str(value["sha256"]), int(value["mode"]), int(value["size"]))
    if not _SHA256.fullmatch(found.sha256) or not 0 <= found.mode <= 0o7777 or not 0 <= found.size < 1 << 63:
        raise ValueError
    return found


# ---- going back -----------------------------------------------------------------------------------------------------


def place(history: Sequence[Edit], at: str, done: Collection[Call], undone: Collection[Call]) -> int:
    """Where in `history` a moment of a chat is: how many changes lie before it.

    `at` is when it was, as UTC. What is known better than by a clock: calls of the chat that were `done` by then, and
    those that were not.
    """
    found = sum(edit.at <= at for edit in history)
    first = max((n + 1 for n, edit in enumerate(history) if edit.call in done), default=0)
    last = min((n for n, edit in enumerate(history) if edit.call in undone), default=len(history))
    return min(max(found, first), last)


def targets(history: Sequence[Edit], place: int) -> list[Target]:
    """What the files that were changed from `place` on held there, by path."""
    found: dict[str, Target] = {}
    for edit in history[place:]:
        to = found[edit.path].to if edit.path in found else edit.before
        found[edit.path] = Target(edit.path, to, (edit.after, edit.before))
    return sorted(found.values(), key=lambda target: target.path)
