"""A child: a process that a call runs, with its output as it comes.

Standard output and standard error are one pipe, so their order is the order in which they were written. The end of the
child is the end of the process, not of the pipe: what it left in the background may hold that open for ever.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from cass.errors import ToolError
from cass.tools.cell import Cell
from cass.tools.deadman import Switch
from cass.tools.paths import Place
from cass.walk import PASSED, descend

GRACE_S = 0.5
"""Between SIGTERM and SIGKILL: enough to remove a lock file, too short to be felt."""
_OPEN = "/proc/self/fd"
"""Where a system has it, an open directory stands there, whatever becomes of its path."""
PIPE_BYTES = 65_536
"""What a pipe of Linux holds: more cannot be read at once."""


class Child:
    """A running process, the leader of its session and group, which ends no later than this one."""

    def __init__(
        self, process: asyncio.subprocess.Process, pipe: int, switch: Switch, cell: Cell | None = None
    ) -> None:
        self.timed_out = False
        self.left_running = False
        """Whether processes that it began were there when it had ended."""
        self._process = process
        self._pipe = pipe
        self._switch = switch
        self._cell = cell
        switch.arm(process.pid)
        self._wake = asyncio.Event()
        self._exit = asyncio.ensure_future(process.wait())
        self._exit.add_done_callback(lambda _: self._wake.set())

    @classmethod
    async def start(
        cls, command: Sequence[str], place: Place, cell: Cell | None = None, stdin: int = asyncio.subprocess.DEVNULL
    ) -> "Child":
        """Run `command` in the workspace, in `cell`, or else with an open file to read. Raises ToolError."""
        pipe, theirs = os.pipe()
        os.set_blocking(pipe, False)
        environ = {**place.environ, "CASS_CHAT": place.chat_id}
        switch = ground = None
        try:
            ground = _ground(place)
            switch = await Switch.start()
            process = await asyncio.create_subprocess_exec(
                *(cell.wrap(command, environ) if cell else command),
                pass_fds=cell.descriptors if cell else (),
                stdin=cell.report if cell else stdin,
                stdout=theirs,
                stderr=theirs,
                cwd=f"{_OPEN}/{ground}" if os.path.isdir(_OPEN) else place.root,
                env=environ,
                start_new_session=True,
            )
        except BaseException as e:
            os.close(pipe)
            if cell:
                cell.close()
            if switch:
                switch.release()
                await asyncio.wait([switch.exit])
            if isinstance(e, OSError):
                raise ToolError(f"{command[0]} was not started: {e.filename}: {e.strerror}") from e
            raise
        finally:
            os.close(theirs)
            if ground is not None:
                os.close(ground)
            if cell:
                cell.release()
        return cls(process, pipe, switch, cell)

    @property
    def status(self) -> int:
        """The exit status; negative for a signal."""
        status = self._process.returncode or 0
        return self._cell.status(status) if self._cell else status

    async def output(self, limit_s: float) -> AsyncGenerator[bytes, None]:
        """Yield what it writes until it ends; at the limit, end its whole group. Close it before `close`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        loop.add_reader(self._pipe, self._wake.set)
        try:
            while not self._exit.done():
                left = deadline - loop.time()
                if left <= 0:
                    if self.timed_out:
                        break  # it did not listen; `close` kills it
                    self.timed_out = True
                    self._signal(signal.SIGTERM)
                    deadline += GRACE_S
                    continue
                # Not `wait_for`: that of Python 3.11 loses a cancellation that comes together with output.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._wake.wait()
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
        """What is left in the pipe. No more than fits: a background process may write for ever."""
        piece = None
        for _ in range(16):
            if not (piece := self._read()):
                break
            yield piece
        if self._cell:
            self.left_running = not self.timed_out and "left" in self._cell.lines
            return
        self.left_running = not self.timed_out and (piece is None or (self._signal(0) and _is_alive(self._process.pid)))

    async def close(self) -> None:
        """Free the pipe. A command at its limit, or one whose call was cancelled, ends with its whole group."""
        cut_short = self.timed_out or not self._exit.done()
        try:
            if cut_short and not self.timed_out:
                self._signal(signal.SIGTERM)
                await asyncio.wait([self._exit], timeout=GRACE_S)
        finally:
            os.close(self._pipe)
            if cut_short:
                self._signal(signal.SIGKILL)
            self._switch.release()
            if self._cell:
                self._cell.close()
        await asyncio.wait([self._exit, self._switch.exit], timeout=GRACE_S)
        if self._cell:
            await self._cell.gone(GRACE_S)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; whether there was anyone."""
        inner = self._cell.inner if self._cell else None
        if inner and number != signal.SIGKILL:
            return _send(inner, number)  # bubblewrap would end at once, and the command with it
        return _send(self._process.pid, number)


def _ground(place: Place) -> int:
    """Open the workspace, following no link; return the descriptor. Raises ToolError where it is another by now."""
    try:
        ground = descend(str(place.root), PASSED)
    except OSError as e:
        raise ToolError(f"the workspace {place.root} cannot be entered: {e.strerror}; nothing was run") from e
    status = os.fstat(ground)
    if place.ground not in (None, (status.st_dev, status.st_ino)):
        os.close(ground)
        raise ToolError(f"another directory stands at {place.root} since this was decided; nothing was run")
    return ground


def _send(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # macOS says so of a group of zombies, Linux of one that changed its user
    return True


def _is_alive(group: int) -> bool:
    """Whether a process group holds more than zombies; where there is no ``/proc`` to tell, that it does."""
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return True
    for number in numbers:
        with contextlib.suppress(OSError):
            # pid (name, which may hold anything) state parent group ...
            state, _, its_group = Path("/proc", number, "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in (b"Z", b"X"):
                return True
    return False
