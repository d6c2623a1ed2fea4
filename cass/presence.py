"""Who is present at a chat: the worker that holds its lock, those that need one, and how to get one.

The lock is the status. It is a `flock`, so the kernel frees it when its holder dies; what the lock file says of host,
pid and mode is for people only. The chat file is locked as well: it stays when somebody cleans up ``run``.
"""

import contextlib
import fcntl
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cass import inbox, itself, jsonl
from cass.errors import CassError, Held, NoWorker
from cass.home import Files, create_private

LOCK_PATIENCE_S = 2.0
"""A starter retries so long: someone who only asks "is it running?" holds the lock for a moment."""
START_PATIENCE_S = 20.0
HEARING_PATIENCE_S = 1.0
"""A worker hears its bell so long after it took the lock, at the latest."""


def is_running(files: Files) -> bool:
    """Whether a process holds this chat for writing."""
    return _is_locked(files.lock) or _is_locked(files.chat)


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return is_held(fd)
    finally:
        os.close(fd)


def is_held(fd: int) -> bool:
    """Whether another descriptor of an open file holds its lock. Close `fd` soon: it may hold a share of it now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def holder(files: Files) -> dict[str, Any]:
    """What the lock file says: ``{"host", "pid", "mode", "since", "error"?}``; {} where nothing is readable."""
    try:
        said = jsonl.load(files.lock.read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def hold(files: Files, patience_s: float = LOCK_PATIENCE_S) -> int:
    """Lock the chat for writing; return the descriptor that holds it. Raises Held, naming who does."""
    fd = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock(files, fd, patience_s)
    except Held:
        os.close(fd)
        raise
    return fd


def lock(files: Files, fd: int, patience_s: float = LOCK_PATIENCE_S) -> None:
    """Lock an open file of the chat, as soon as nobody looks at its lock any more. Raises Held."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            # A worker that answers its bell is no ghost of a status question: no need to wait it out.
            if time.monotonic() > deadline or inbox.ring(files):
                said = holder(files)
                who = f"pid {said.get('pid', '?')} on {said.get('host', '?')}, since {said.get('since', '?')}"
                raise Held(f"chat {files.chat_id} is held by another process ({who})") from None
        time.sleep(0.01)


def deaf(files: Files) -> Held:
    """The error of a chat that a program holds which is no worker: it hears nothing from outside."""
    said = holder(files)
    who = f"pid {said.get('pid', '?')} on {said.get('host', '?')}"
    return Held(f"chat {files.chat_id} is held by a program that takes nothing from outside ({who})")


def hear(files: Files, patience_s: float = HEARING_PATIENCE_S) -> None:
    """Return when a worker of the chat hears its bell. Raises NoWorker, and Held where whoever holds it never does."""
    deadline = time.monotonic() + patience_s
    while not inbox.ring(files):
        if not is_running(files):
            raise NoWorker(f"no worker is running for {files.chat_id}")
        if time.monotonic() > deadline:
            raise deaf(files)
        time.sleep(0.01)


def sign(lock: int, mode: str, error: str | None = None) -> None:
    """Write into the lock file who holds it, for people, and with `error` why it gives the chat up."""
    said: dict[str, Any] = {"host": os.uname().nodename, "pid": os.getpid(), "mode": mode, "since": jsonl.now()}
    line = jsonl.dump(said | ({"error": error} if error else {})) + b"\n"
    # Over the old text, then cut: on a full disk this still works, which is when the error matters most.
    with contextlib.suppress(OSError):
        os.pwrite(lock, line, 0)
        os.ftruncate(lock, len(line))


def attach(files: Files) -> int:
    """Say that a worker is needed as long as the returned descriptor is open."""
    files.make()
    fd = os.open(files.attached, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def is_needed(files: Files) -> bool:
    """Whether anybody is attached."""
    try:
        fd = os.open(files.attached, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


class Starting:
    """A worker on its way; readable on `fileno()` when it is ready or has failed."""

    def __init__(self, files: Files, fd: int, pid: int) -> None:
        self._files = files
        self._fd = fd
        self._pid = pid
        self._said = b""

    def fileno(self) -> int:
        return self._fd

    def wait(self, timeout_s: float = START_PATIENCE_S) -> None:
        """Return when a worker is there, this one or another that was faster. Raises its own error, with its status."""
        deadline = time.monotonic() + timeout_s
        try:
            while not self._said.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                    raise NoWorker(f"the worker of {self._files.chat_id} did not start in {timeout_s:.0f} s")
                chunk = os.read(self._fd, 65536)
                if not chunk:
                    raise NoWorker(f"the worker of {self._files.chat_id} died at its start; see {self._files.log}")
                self._said += chunk
        finally:
            os.close(self._fd)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)  # the first process of the two: it ends as soon as it has forked
        said = jsonl.load(self._said)
        if said.get("held") and inbox.ring(self._files):
            return  # another worker was faster, and listens
        if "error" in said:
            error = CassError(said["error"])
            error.status = said.get("status", 1)
            raise error


def start(files: Files, flags: Sequence[str] = (), environ: Mapping[str, str] = {}) -> Starting:
    """Start a detached worker: in a session of its own, its output in the chat's log, no terminal.

    `environ`: variables that it is given besides.
    """
    files.make()
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    log = create_private(files.log, os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    program = itself.argv("cass-agent", files.chat_id, "--detach")
    try:
        pid = os.posix_spawn(
            sys.executable,
            [*program, "--ready-fd", str(writing), *flags],
            {**os.environ, "CASS_HOME": str(files.home.root), **environ},
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
        )
    finally:
        for fd in (writing, log, null):
            os.close(fd)
    return Starting(files, reading, pid)


def tell(ready_fd: int | None, said: dict[str, Any]) -> None:
    """The worker's word to whoever started it: ``{}`` for ready, or ``{"error", "status", "held"}``."""
    if ready_fd is not None:
        with contextlib.suppress(BrokenPipeError):  # the starter did not wait
            os.write(ready_fd, jsonl.dump(said) + b"\n")
        os.close(ready_fd)
