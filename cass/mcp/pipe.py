"""The pipe: a server that is a child process, as a transport of the SDK, which forgives what servers do.

In place of the SDK's own `stdio_client`: noise on standard output is skipped and noted, standard error never blocks, a
dead process ends what waits for it at once, and none outlives this one.
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from cass.mcp.servers import Server
from cass.tools.deadman import Switch

LINE_BYTES = 32 << 20
"""A longer line is no answer: the server is given up."""
TAIL_BYTES = 2_000
"""Of standard error, for whoever asks why a server ended."""
GRACE_S = 1.0
"""To end after the end of its standard input, and again after SIGTERM."""
_PIECE = 65_536
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Pipe:
    """One server process; `streams` are the SDK's."""

    def __init__(self, server: Server, note: Callable[[str], None]) -> None:
        self.why = ""
        """Why it was given up, if not by its own end."""
        self._server = server
        self._note = note
        self._tail = b""
        self._status: int | None = None
        """With which it ended by itself."""
        self._is_ending = False
        self._glued = False

    @asynccontextmanager
    async def streams(self, environ: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
        """Start the process and end it. Raises OSError, ValueError."""
        switch = await Switch.start()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._server.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._server.cwd,
                env={**environ, **self._server.env},
                start_new_session=True,
                preexec_fn=_end_with_parent if _LIBC else None,
            )
        except BaseException:
            switch.release()
            await asyncio.wait([switch.exit], timeout=GRACE_S)
            raise
        switch.arm(self._process.pid)
        to_session, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, from_session = anyio.create_memory_object_stream[Any](0)
        tasks = [
            asyncio.create_task(self._read(to_session)),
            asyncio.create_task(self._write(from_session)),
            asyncio.create_task(self._hear()),
            asyncio.create_task(self._watch(to_session)),
        ]
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                self._is_ending = True
                await self._end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()
            switch.release()
            await asyncio.wait([switch.exit], timeout=GRACE_S)

    def last_words(self) -> str:
        """Why it ended, as far as is known: its status, and the end of what it wrote on standard error."""
        how = self.why or ("" if self._status is None else f"it ended with status {self._status}")
        glued = "it wrote other text in front of an answer, on the same line" if self._glued else ""
        said = self._tail.decode("utf-8", "replace").strip()
        return "; ".join(part for part in (how, glued, f"it said: {said}" if said else "") if part)

    async def _read(self, to_session: Any) -> None:
        """Hand on what is a message; note what is none."""
        assert self._process.stdout is not None
        pieces: list[bytes] = []
        size = 0
        while piece := await self._process.stdout.read(_PIECE):
            *lines, rest = piece.split(b"\n")
            for line in lines:
                await self._take(b"".join([*pieces, line]), to_session)
                pieces, size = [], 0
            pieces.append(rest)
            size += len(rest)
            if size > LINE_BYTES:
                self.why = f"it wrote a line of more than {LINE_BYTES >> 20} MiB"
                break
        await self._learn(GRACE_S / 4)
        to_session.close()

    async def _take(self, line: bytes, to_session: Any) -> None:
        if not line.strip():
            return
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._glued = self._glued or b'"jsonrpc"' in line
            self._note(f"no message: {line[:200].decode('utf-8', 'replace')}")
            return
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await to_session.send(SessionMessage(message))

    async def _write(self, from_session: Any) -> None:
        assert self._process.stdin is not None
        async for message in from_session:
            data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                self._process.stdin.write(data.encode() + b"\n")
                await self._process.stdin.drain()
            except (ConnectionError, OSError):
                return  # it is ending; `_watch` says so

    async def _hear(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(_PIECE):
            self._tail = (self._tail + piece)[-TAIL_BYTES:]
            self._note(piece.decode("utf-8", "replace"))

    async def _watch(self, to_session: Any) -> None:
        """End what waits when the process is gone, whoever still holds its standard output."""
        await self._learn(float("inf"))
        await asyncio.sleep(0.1)  # what it said last is still being read
        to_session.close()

    async def _end(self) -> None:
        """As the specification has it: the end of standard input, SIGTERM, SIGKILL."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not await self._is_gone():
            self._kill(signal.SIGTERM)
            await self._is_gone()
        self._kill(signal.SIGKILL)  # and whatever else of its group is left
        await self._is_gone()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()  # a descendant of it may hold the pipes for ever

    async def _learn(self, limit_s: float) -> None:
        """Its status, if it ends by itself so soon."""
        if await self._is_gone(limit_s) and not self._is_ending:
            self._status = self._process.returncode

    async def _is_gone(self, limit_s: float = GRACE_S) -> bool:
        # Not `wait`: on Python 3.11 it waits for the ends of the pipes, too.
        deadline = asyncio.get_running_loop().time() + limit_s
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    def _kill(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _end_with_parent() -> None:
    """In the child, before it becomes the server."""
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
