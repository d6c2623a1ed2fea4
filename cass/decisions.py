"""Decisions of the person: the socket that can tell who calls.

A FIFO or a file cannot say who wrote into it, so approvals and changes of the mode come over a Unix socket, where the
kernel names the caller. A tool must not answer for the person: whoever descends from any cass worker is refused, also
after a double fork and ``setsid``, because a worker is the subreaper of all that its tools start. Without a sandbox a
process of the same user can still find a way (a terminal multiplexer, a debugger); only the sandbox is a guarantee.
"""

import contextlib
import hashlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cass import callers, jsonl, presence
from cass.errors import CassError, NoWorker
from cass.home import Files
from cass.records import ApprovalRequest

WORKER_NAME = "cass-agent"
"""What every worker calls itself, so that any other worker knows it; tools below it cannot take that back."""
TOOL_MARK = "CASS_TOOL"
"""A variable that every tool is given: the chat it works for."""
_LIMIT = 1 << 16
_OPEN = "/proc/self/fd"


class Caller(NamedTuple):
    """Who asks, as the kernel says it."""

    pid: int
    uid: int

    def words(self, program: str) -> str:
        """For the chat: user, program (its own word for itself), pid."""
        return f"{callers.name(self.uid)} by {program}, pid {self.pid}"


def digest(request: ApprovalRequest) -> str:
    """What stands for the action that a person has seen: an approval of it allows nothing else."""
    what = [request.request_id, request.name, request.arguments, request.diff]
    seen = [*what, request.rule, request.reason, request.sandboxed]
    return hashlib.sha256(jsonl.dump(seen)).hexdigest()


class Answer(NamedTuple):
    """What the person decided about one request."""

    approved: bool
    by: str
    reason: str | None = None
    rule: str | None = None


class Refused(CassError):
    """The caller may not decide; the text says why."""

    status = 4


# ---- for callers ----------------------------------------------------------------------------------------------------


def ask(files: Files, request: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one request, return the answer: ``{"ok": true}`` or ``{"ok": false, "error": why}``.

    ``{"do": "approve", "request_id", "digest", "always"?}``, ``{"do": "deny", "request_id", "reason"?}`` or ``{"do":
    "mode", "mode"}``, each with the caller's word for itself as ``"program"``. Raises NoWorker.
    """
    nobody = NoWorker(f"no worker is running for {files.chat_id}; start one with: cass --resume {files.chat_id}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            with _near(files.run) as place:
                _connect(connection, f"{place}/{files.socket.name}", timeout_s)
            connection.sendall(jsonl.dump(request) + b"\n")
            said = b""
            while not said.endswith(b"\n") and (chunk := connection.recv(_LIMIT)):
                said += chunk
            answer = jsonl.load(said)
        except TimeoutError:
            raise CassError(f"the worker of {files.chat_id} did not answer in {timeout_s:.0f} s") from None
        except (OSError, ValueError):
            raise (presence.deaf(files) if presence.is_running(files) else nobody) from None
    return answer if isinstance(answer, dict) else {"ok": False, "error": "an answer that is none"}


def _connect(connection: socket.socket, name: str, patience_s: float) -> None:
    """Connect; while more callers come at once than the kernel queues, wait for a place."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.connect(name)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(0.01)


# ---- for the worker -------------------------------------------------------------------------------------------------


def listen(files: Files) -> socket.socket:
    """The listening socket. Make it only under the lock of the chat: one left by a dead worker is replaced."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new = f".{files.socket.name}"
    with _inside(files.run):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        listening.bind(new)
        os.chmod(new, 0o600)
        listening.listen(128)
        os.rename(new, files.socket.name)  # whoever finds it can be heard
    listening.setblocking(False)
    return listening


_standing = threading.Lock()


@contextlib.contextmanager
def _near(directory: Path) -> Iterator[str]:
    """A short path of `directory`, for a moment: that of a socket may have 107 bytes, 103 on macOS, and no more.

    Linux has one for each open directory, and no thread stands elsewhere because another one calls.
    """
    if not os.path.isdir(_OPEN):
        with _inside(directory):
            yield "."
        return
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_OPEN}/{fd}"
    finally:
        os.close(fd)


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """Stand in `directory` for a moment, as one thread after the other."""
    with _standing:
        before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.chdir(directory)
            yield
        finally:
            os.fchdir(before)
            os.close(before)


def parse(line: bytes) -> dict[str, Any]:
    """The request in one line. Raises CassError."""
    try:
        request = jsonl.load(line)
    except ValueError:
        request = None
    if not isinstance(request, dict) or request.get("do") not in ("approve", "deny", "mode"):
        raise CassError('expected {"do": "approve", "deny" or "mode", ...}')
    return request


def caller(connection: socket.socket, is_trusted: Callable[[int], bool] = lambda _: False) -> Caller:
    """Who is at the other end. Raises Refused for another user, for whoever is gone or descends from a worker.

    `is_trusted`: whether the process of a pid is let in, worker or not.
    """
    found = _peer(connection)
    if found.uid != os.geteuid():
        raise Refused("only the owner of this chat decides")
    if is_trusted(found.pid):
        return found
    before = _ancestors(found.pid)
    # Whoever ends in the middle of a walk changes what it finds; two equal walks were of one tree.
    if before != _ancestors(found.pid):
        raise Refused("the caller's processes changed while they were looked at; try again")
    if any(process.is_worker or _is_marked(process.pid) for process in before):
        raise Refused("a tool must not decide for the person: the caller was started by a cass worker")
    return found


def worker_above() -> "Process | None":
    """The nearest worker that this process descends from: it was started by a tool of it."""
    try:
        above = _ancestors(os.getppid())
    except Refused:
        return None
    return next((process for process in above if process.is_worker), None)


def is_same(pid: int, process: "Process") -> bool:
    """Whether `pid` is still that process, and not another one that was given its number."""
    try:
        return _process(pid).started == process.started and pid == process.pid
    except Refused:
        return False


def _is_marked(pid: int) -> bool:
    """Whether a process has what every tool is given: what a tool left behind outlives its worker."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # not ours, or no /proc
    return any(part.startswith(TOOL_MARK.encode() + b"=") for part in environ.split(b"\0"))


def _peer(connection: socket.socket) -> Caller:
    if sys.platform == "darwin":  # LOCAL_PEERPID and getpeereid, sys/un.h
        pid = struct.unpack("i", connection.getsockopt(0, 2, 4))[0]
        uid = struct.unpack("2I", connection.getsockopt(0, 1, 76)[:8])[1]
        return Caller(pid, uid)
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Caller(pid, uid)


class Process(NamedTuple):
    pid: int
    parent: int
    started: str
    """When, in the kernel's words; in their order."""
    is_worker: bool


def _ancestors(pid: int) -> list[Process]:
    """The process and all above it, up to the first of the system. Raises Refused where one cannot be read."""
    chain: list[Process] = []
    while pid > 0:  # the first process too: in a container it may be a worker
        process = _process(pid)
        # A pid may have been given to a new process since its child named it as parent: a parent is never younger.
        if chain and process.started > chain[-1].started:
            raise Refused("a parent of the caller is gone")
        chain.append(process)
        pid = process.parent
    if not chain:
        raise Refused("the caller cannot be seen from here")  # pid 0: it lives in another pid namespace
    return chain


def _process(pid: int) -> Process:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes() if sys.platform == "linux" else _ps(pid)
    except (OSError, subprocess.SubprocessError):
        raise Refused("the caller, or a parent of it, is gone or cannot be read") from None
    # The name stands in parentheses and may hold some itself: proc_pid_stat(5).
    name, _, rest = stat.partition(b"(")[2].rpartition(b") ")
    fields = rest.split()
    is_worker = name == WORKER_NAME.encode() or pid == os.getpid()
    return Process(pid, int(fields[1]), fields[19].decode().rjust(20, "0"), is_worker)


def _ps(pid: int) -> bytes:
    """What `/proc/PID/stat` would say, where there is none: pid, name, parent and start."""
    said = subprocess.run(
        ["ps", "-o", "ppid=,etime=,command=", "-p", str(pid)], capture_output=True, check=True, timeout=5
    ).stdout
    parent, _, command = said.split(None, 2)
    name = WORKER_NAME.encode() if WORKER_NAME.encode() in command else b"other"
    return b"%d (%s) S %s" % (pid, name, parent) + b" 0" * 18
