"""The ledger: which chat each task of a file was given, and what came of it. In the home, one for each file of tasks.

{"type":"begun","task","chat_id","cwd","digest","at"} · {"type":"result", ...} · {"type":"again","task"}
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cass import jsonl
from cass.errors import CassError
from cass.home import Files, Home, create_private, make_private


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a task."""

    chat_id: str = ""
    digest: str = ""
    result: dict[str, Any] | None = None
    """As it was printed; None: it was begun."""


class Ledger:
    def __init__(self, home: Home, key: str) -> None:
        self._home = home
        self._path = home.batches / f"{key}.jsonl"

    def entries(self) -> dict[str, Entry]:
        """By id of the task. A damaged line is passed over."""
        found: dict[str, Entry] = {}
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return found
        for line in data.split(b"\n"):
            match _decoded(line):
                case {"type": "begun", "task": str(task), "chat_id": str(chat_id)} as said:
                    found[task] = Entry(chat_id, str(said.get("digest", "")))
                case {"type": "result", "task": str(task)} as said:
                    was = found.get(task, Entry())
                    found[task] = Entry(was.chat_id, was.digest, {k: v for k, v in said.items() if k != "type"})
                case {"type": "again", "task": str(task)}:
                    found.pop(task, None)
        return found

    def chat(self, task: str, digest: str, make: Callable[[], Files]) -> tuple[Files, bool]:
        """The chat of a task, and whether it was made now; two processes that ask at once are given the same one."""
        with self._held():
            entry = self.entries().get(task)
            if entry is not None and (files := self._home.files(entry.chat_id)).chat.is_file():
                return files, False
            files = make()
            said = {"type": "begun", "task": task, "chat_id": files.chat_id, "digest": digest, "at": jsonl.now()}
            self._append(said)
            return files, True

    def done(self, result: dict[str, Any]) -> None:
        """Write a result down: its task is not run again."""
        with self._held():
            entry = self.entries().get(result["task"])
            if entry is None or entry.result is None:
                self._append({"type": "result", **result})

    def again(self, task: str) -> None:
        """Forget a task, so that it is run once more, in a new chat."""
        with self._held():
            self._append({"type": "again", "task": task})

    def _append(self, said: dict[str, Any]) -> None:
        """Raises CassError when it cannot be written: nothing is begun that is not in here."""
        try:
            fd = create_private(self._path, os.O_APPEND)
            try:
                # After a line that a dying process left unfinished.
                os.write(fd, (b"" if self._ends_whole() else b"\n") + jsonl.dump(said) + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as e:
            raise CassError(f"cannot write {self._path}: {os.strerror(e.errno or 0)}") from e

    def _ends_whole(self) -> bool:
        with open(self._path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            return size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"

    @contextmanager
    def _held(self) -> Iterator[None]:
        make_private(self._home.batches)
        fd = create_private(self._home.batches / f".{self._path.stem}.lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        said = jsonl.load(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
