"""The tool shell: one command of bash, in its own session and process group, with its output as it comes.

Standard output and standard error are one pipe, so their order is the order in which they were written. The end of the
call is the end of bash, not the end of the pipe: what bash left in the background may hold it open for ever.
"""

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from cass.access import Action
from cass.errors import ToolError
from cass.home import create_private, make_private
from cass.tools.arguments import Given
from cass.tools.paths import Place
from cass.tools.tool import Arguments, Outcome, Tool

DEFAULT_MS = 120_000
LIMIT_MS = 600_000
GRACE_S = 0.5
"""Between SIGTERM and SIGKILL: enough to remove a lock file, too short to be felt."""
PIPE_BYTES = 65_536
"""What a pipe of Linux holds: more cannot be read at once."""
KEPT_BYTES = 1 << 20
"""Kept in the result; of more, the first and the last half."""
FILE_BYTES = 64 << 20
"""Kept in the file of long output."""


def action(arguments: Arguments, place: Place) -> Action:
    return Action("shell", command=_parse(arguments)[0])


def _parse(arguments: Arguments) -> tuple[str, float]:
    """The command, and its limit in seconds."""
    given = Given("shell", arguments, ("command", "timeout_ms"))
    command = given.text("command")
    if not command.strip() or "\0" in command:
        raise given.error('"command" must be a command for bash')
    return command, given.integer("timeout_ms", DEFAULT_MS, 1, LIMIT_MS) / 1000


async def run(arguments: Arguments, place: Place) -> AsyncIterator[str | Outcome]:
    command, limit_s = _parse(arguments)
    output = Output(place.out / place.call_id)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    child = await Child.start(command, place)
    try:
        async for piece in child.output(limit_s):
            output.add(piece)
            if text := decoder.decode(piece):
                yield text
        await child.end()
    finally:
        child.close()
        output.close()
    problem = f"timed out after {limit_s:g} s" if child.timed_out else _problem(child.status)
    text = output.text() + _remark(child)
    if problem:
        yield Outcome(f"Error: {problem}\n{text}".rstrip("\n"), ok=False)
    else:
        yield Outcome(text or "(no output)")


def _problem(status: int) -> str | None:
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"killed by {name}"
    return f"exit status {status}" if status else None


def _remark(child: "Child") -> str:
    if not child.left_running:
        return ""
    return "\n[processes of this command still run in the background; what they print now is not read]"


# ---- the process ----------------------------------------------------------------------------------------------------


class Child:
    """A running bash, the leader of its session and group."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: int) -> None:
        self.timed_out = False
        self.left_running = False
        """Whether processes of the command were there when bash had ended."""
        self._process = process
        self._pipe = pipe
        self._wake = asyncio.Event()
        self._exit = asyncio.ensure_future(process.wait())
        self._exit.add_done_callback(lambda _: self._wake.set())

    @classmethod
    async def start(cls, command: str, place: Place) -> "Child":
        pipe, theirs = os.pipe()
        os.set_blocking(pipe, False)
        try:
            process = await asyncio.create_subprocess_exec(
                "bash",
                *("-c", command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                cwd=place.root,
                env={**place.environ, "CASS_CHAT": place.chat_id},
                start_new_session=True,
            )
        except BaseException as e:
            os.close(pipe)
            if isinstance(e, OSError):
                what = "bash is not installed" if e.filename == "bash" else f"{e.filename}: {e.strerror}"
                raise ToolError(f"the command was not started: {what}") from e
            raise
        finally:
            os.close(theirs)
        return cls(process, pipe)

    @property
    def status(self) -> int:
        """The exit status; negative for a signal."""
        return self._process.returncode or 0

    async def output(self, limit_s: float) -> AsyncIterator[bytes]:
        """Yield what the command writes until bash ends; at the limit, end its whole group."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        loop.add_reader(self._pipe, self._wake.set)
        try:
            while not self._exit.done():
                left = deadline - loop.time()
                if left <= 0:
                    if self.timed_out:
                        self._signal(signal.SIGKILL)
                        await self._exit
                        break
                    self.timed_out = True
                    self._signal(signal.SIGTERM)
                    deadline += GRACE_S
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), left)
                self._wake.clear()
                if piece := self._read():
                    yield piece
                elif piece is not None:
                    loop.remove_reader(self._pipe)  # its end: it would stay readable for ever
        finally:
            loop.remove_reader(self._pipe)
        for piece in self._rest():
            yield piece

    def _read(self) -> bytes | None:
        """What is there now; empty at the end of the pipe, None if there is nothing yet."""
        try:
            return os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return None

    def _rest(self) -> Iterator[bytes]:
        """What bash left in the pipe. No more than fits: a background process may write for ever."""
        piece = None
        for _ in range(16):
            if not (piece := self._read()):
                break
            yield piece
        self.left_running = piece is None or self._signal(0)

    async def end(self) -> None:
        """End the group of a command that ran into its limit; what it left is not to go on."""
        if self.timed_out:
            self._signal(signal.SIGKILL)
            self.left_running = False

    def close(self) -> None:
        """Free the pipe; a command that still runs (the call was cancelled) is killed with its group."""
        os.close(self._pipe)
        if not self._exit.done():
            self._signal(signal.SIGKILL)
            self._exit.cancel()

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; whether there was anyone."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # macOS says so of a group of zombies, Linux of one that changed its user
        return True


# ---- the output -----------------------------------------------------------------------------------------------------


class Output:
    """All that a command wrote, of which a bounded part is kept: in memory its two ends, in a file its beginning."""

    def __init__(self, path: Path) -> None:
        """`path`: made, private, once the output is longer than what is kept."""
        self.size = 0
        self._path = path
        self._head = bytearray()
        self._tail = bytearray()
        self._file: int | None = None
        self._filed = 0
        self._file_error = ""

    def add(self, piece: bytes) -> None:
        half = KEPT_BYTES // 2
        self.size += len(piece)
        if self.size > KEPT_BYTES and not self._filed and not self._file_error:
            self._open()
        self._write(piece)
        if (room := half - len(self._head)) > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if self.size > KEPT_BYTES and len(self._tail) > 2 * half:  # not at each piece: cutting copies
            del self._tail[:-half]

    def text(self) -> str:
        """The output; of a long one its ends, with a line between them that says what is missing and where it is."""
        if self.size <= KEPT_BYTES:
            return bytes(self._head + self._tail).decode("utf-8", "replace").rstrip("\n")
        tail = bytes(self._tail[-(KEPT_BYTES // 2) :])
        left_out = self.size - len(self._head) - len(tail)
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))  # no half character at its end
        while tail and tail[0] & 0xC0 == 0x80:
            tail = tail[1:]
        note = f"[{left_out:,} of {self.size:,} bytes left out here; {self._where()}]"
        return f"{head}\n{note}\n{tail.decode('utf-8', 'replace')}".rstrip("\n")

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _where(self) -> str:
        if self._file_error:
            return f"they could not be kept: {self._file_error}"
        if self._filed < self.size:
            return f"the first {self._filed:,} bytes are kept in {self._path}, for the person"
        return f"all of it is kept in {self._path}, for the person"

    def _open(self) -> None:
        try:
            make_private(self._path.parent)
            self._file = create_private(self._path, os.O_TRUNC | os.O_NOFOLLOW)
        except OSError as e:
            self._file_error = e.strerror or str(e)
            return
        self._write(bytes(self._head + self._tail))

    def _write(self, piece: bytes) -> None:
        if self._file is None or self._filed >= FILE_BYTES:
            return
        view = memoryview(piece)[: FILE_BYTES - self._filed]
        try:
            while view:
                written = os.write(self._file, view)
                self._filed += written
                view = view[written:]
        except OSError as e:
            self._file_error = e.strerror or str(e)
            self.close()


TOOL = Tool(
    "shell",
    "Run a bash command in the workspace. No terminal, no input.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_ms": {"type": "integer", "description": "default 120000, at most 600000"},
        },
        "required": ["command"],
    },
    action,
    run,
)
