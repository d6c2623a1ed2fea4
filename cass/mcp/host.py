"""The host: a process that holds the MCP servers of one worker, and the SDK that speaks with them.

A process of its own: the SDK takes most of a second and 60 MB to load, and whatever a server does to it, the worker
and the chat go on. It reads orders, one JSON object a line, from standard input, ends with it, and writes what comes of
them:

    {"servers": [SERVER, ...], "environ": {...}}                                the first line
    {"do": "start", "server": NAME}            {"server": NAME, "state": "ready", "tools": [...]} or "gone", with "why"
    {"do": "call", "id": N, "server": NAME, "tool": NAME, "arguments": {...}}
                                               {"id": N, "progress": TEXT} ..., {"id": N, "ok": BOOL, "content": TEXT}
    {"do": "cancel", "id": N}
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from cass import __version__, jsonl
from cass.mcp import words
from cass.mcp.pipe import Pipe
from cass.mcp.servers import Server
from cass.visible import safe

PAGES = 50
"""Of a list of tools; a server that has more never ends."""
LOG_CHARS = 1 << 20
"""Of what one server writes that is no answer; what comes after is not kept."""
Say = Callable[[dict[str, Any]], None]


class Gone(Exception):
    """The server cannot be asked, and why."""


class Held:
    """One server, running or not. A task holds the connection: the SDK's scopes must end where they began."""

    def __init__(self, server: Server, environ: dict[str, str], say: Say) -> None:
        self.server = server
        self._environ = environ
        self._say = say
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[ClientSession] | None = None
        self._over = asyncio.Event()
        self._changed = asyncio.Event()
        self._pipe: Pipe | None = None
        self._logged = 0

    async def session(self) -> ClientSession:
        """The session, started where there is none. Raises Gone."""
        if self._task is None or self._task.done():
            self._over.clear()
            self._ready = asyncio.get_running_loop().create_future()
            self._ready.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._task = asyncio.create_task(self._hold(self._ready))
        assert self._ready is not None
        return await asyncio.shield(self._ready)

    async def start(self) -> None:
        with contextlib.suppress(Gone):
            await self.session()

    async def close(self) -> None:
        self._over.set()
        if self._task is not None:
            if self._ready is not None and not self._ready.done():
                self._task.cancel()
            await asyncio.wait([self._task], timeout=5)

    async def call(self, tool: str, arguments: dict[str, Any], progress: Callable[[str], None]) -> tuple[bool, str]:
        """Whether it went well, and the result or the error as text."""
        name = self.server.name
        try:
            session = await self.session()
            async with asyncio.timeout(self.server.call_s):
                return await _call(session, tool, arguments, progress)
        except Gone as e:
            return False, f"the MCP server {name} cannot be asked: {e}"
        except TimeoutError:
            text = f'did not answer within {self.server.call_s:g} s ("call_timeout_s" of its entry)'
            return False, f"the MCP server {name} {text}{_and(self._pipe.last_words() if self._pipe else '')}"
        except MCPError as e:
            if e.error.code != mcp_types.CONNECTION_CLOSED:
                return False, f"the MCP server {name} says: {e.error.message}"
        except Exception as e:
            self._note(f"{type(e).__name__}: {e}")
        # Whatever else it was, the connection is not to be trusted any more; the next call begins a new one.
        self._over.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=5)
        return False, f"the MCP server {name} ended during the call{_and(self._last_words())}"

    async def _hold(self, ready: "asyncio.Future[ClientSession]") -> None:
        """Connect, list, and stay until it is over; say how it went."""
        why = ""
        try:
            async with asyncio.timeout(self.server.startup_s) as limit, self._connected() as session:
                tools = await _listed(session)
                limit.reschedule(None)
                self._say({"server": self.server.name, "state": "ready", "tools": tools})
                ready.set_result(session)
                await self._stay(session)
        except asyncio.CancelledError:
            why = "it was stopped"
        except TimeoutError:
            why = f'it was not ready within {self.server.startup_s:g} s ("startup_timeout_s" of its entry)'
        except FileNotFoundError as e:
            why = f"there is no {e.filename}"
        except BaseException as e:
            why = _reason(e)
        words = _joined(why, self._last_words())
        if not ready.done():
            ready.set_exception(Gone(words))
        self._say({"server": self.server.name, "state": "gone", "why": words})

    async def _stay(self, session: ClientSession) -> None:
        """Until it is over; list the tools again where the server says that they changed."""
        over = asyncio.create_task(self._over.wait())
        try:
            while not over.done():
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait([over, changed], return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if self._changed.is_set() and not over.done():
                    self._changed.clear()
                    async with asyncio.timeout(self.server.startup_s):
                        tools = await _listed(session)
                    self._say({"server": self.server.name, "state": "ready", "tools": tools})
        finally:
            over.cancel()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientSession]:
        info = mcp_types.Implementation(name="cassady", version=__version__)
        async with (
            self._streams() as (incoming, outgoing),
            ClientSession(incoming, outgoing, client_info=info, message_handler=self._heard) as session,
        ):
            await _greet(session)
            yield session

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        if self.server.url is None:
            self._pipe = Pipe(self.server, self._note)
            async with self._pipe.streams(self._environ) as streams:
                yield streams
            return
        self._pipe = None
        limits = httpx2.Timeout(30, read=max(300.0, self.server.call_s))
        async with (
            httpx2.AsyncClient(headers=self.server.headers, timeout=limits) as client,
            streamable_http_client(self.server.url, http_client=client) as streams,
        ):
            yield streams[0], streams[1]

    async def _heard(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed.set()

    def _last_words(self) -> str:
        return self._pipe.last_words() if self._pipe is not None else ""

    def _note(self, text: str) -> None:
        """Into the log, as long as there is not too much of it."""
        self._logged += len(text)
        if self._logged <= LOG_CHARS:
            print(f"{self.server.name}: {safe(text.rstrip())}", file=sys.stderr, flush=True)


async def _greet(session: ClientSession) -> None:
    """The handshake; servers that only know the protocol without one are asked what they are."""
    try:
        await session.initialize()
    except MCPError as e:
        if e.error.code == mcp_types.CONNECTION_CLOSED:
            raise
        await session.discover()


async def _listed(session: ClientSession) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    for _ in range(PAGES):
        page = await session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            text = tool.description or tool.title or ""
            found.append({"name": tool.name, "description": text, "schema": tool.input_schema})
        cursor = page.next_cursor
        if not cursor:
            break
    return found


async def _call(
    session: ClientSession, tool: str, arguments: dict[str, Any], tell: Callable[[str], None]
) -> tuple[bool, str]:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" + (f" of {total:g}" if total else "")
        tell(f"{message} ({share})\n" if message else f"{share}\n")

    result = await session.call_tool(tool, arguments, progress_callback=told)
    found = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return not result.is_error, words.text(found)


def _reason(error: BaseException) -> str:
    """Why it did not work, from the innermost of what the SDK wrapped."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        closed = error.error.code == mcp_types.CONNECTION_CLOSED
        return "" if closed else f"it says: {error.error.message}"
    if isinstance(error, OSError):
        return f"{error.filename or ''} {error.strerror or error}".strip()
    return str(error)[:500] or type(error).__name__


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part) or "it closed the connection"


def _and(text: str) -> str:
    return f"; {text}" if text else ""


# ---- the process ----------------------------------------------------------------------------------------------------


class Host:
    def __init__(self, say: Say) -> None:
        self._say = say
        self._held: dict[str, Held] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._starting: set[asyncio.Task[None]] = set()

    async def obey(self, order: dict[str, Any]) -> None:
        match order:
            case {"servers": servers, "environ": environ}:
                made = [Server(**{**one, "command": tuple(one["command"])}) for one in servers]
                self._held = {server.name: Held(server, environ, self._say) for server in made}
            case {"do": "start", "server": name}:
                task = asyncio.create_task(self._held[name].start())
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
            case {"do": "call", "id": id, "server": name, "tool": tool, "arguments": arguments}:
                self._running[id] = asyncio.create_task(self._call(id, self._held[name], tool, arguments))
            case {"do": "cancel", "id": id} if id in self._running:
                self._running[id].cancel()

    async def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*(held.close() for held in self._held.values()))

    async def _call(self, id: int, held: Held, tool: str, arguments: dict[str, Any]) -> None:
        try:
            ok, content = await held.call(tool, arguments, lambda text: self._say({"id": id, "progress": text}))
            self._say({"id": id, "ok": ok, "content": content})
        finally:
            del self._running[id]


async def _main(out: int) -> None:
    host = Host(lambda said: _put(out, jsonl.dump(said) + b"\n"))
    reader = asyncio.StreamReader(limit=64 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await host.obey(jsonl.load(line))
    await host.close()


def _put(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


def main() -> None:
    # Whatever prints on standard output, an answer is not torn by it.
    out = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asyncio.run(_main(out))


if __name__ == "__main__":
    main()
