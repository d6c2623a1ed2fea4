"""The link: the worker's end of the pipe to the host of its MCP servers, and their tools as every other.

Nothing is started before it is needed. What a server listed when it last ran is kept, so that its tools are offered
from the first message on; it is started when one of them is called. One that never ran is started at once, beside
everything else, and its tools come with the next message.
"""

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from cass import extras, jsonl
from cass.access import Action, Effect
from cass.errors import ToolError
from cass.home import Files, Home, create_private, make_private
from cass.mcp import names, servers
from cass.mcp.servers import Found, Server
from cass.records import Notice
from cass.tools.arguments import in_order
from cass.tools.deadman import Switch
from cass.tools.paths import Place
from cass.tools.tool import Arguments, Outcome, Tool
from cass.visible import safe, safe_line

LINE_BYTES = 64 << 20
"""Of what the host says in one line; it cuts what is longer."""
STALE_S = 24 * 3600
"""A list that is older is made anew beside everything else."""
GRACE_S = 4.0
"""For the host to end its servers."""


@dataclasses.dataclass
class Standing:
    """How one server is."""

    server: Server
    state: str = "not started"
    why: str = ""
    tools: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    is_known: bool = False
    """Whether it ever listed its tools."""
    is_stale: bool = False


class Link:
    def __init__(
        self,
        found: Found,
        home: Home,
        *,
        files: Files | None = None,
        root: Path,
        environ: Callable[[], Mapping[str, str]],
        tell: Callable[[Notice], None] = lambda _: None,
    ) -> None:
        """`files`: of the chat, where state and log are kept. `tell`: is given what the person should know."""
        self.servers = {server.name: Standing(server) for server in found.servers}
        self.notices = (*found.notices, *([self.problem] if self.problem else []))
        """What of the files is not used, and why."""
        self._home, self._files, self._root = home, files, root
        self._environ = environ
        self._tell = tell
        self._process: asyncio.subprocess.Process | None = None
        self._switch: Switch | None = None
        self._opening = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._begun: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        self._last = 0
        self._news = asyncio.Event()
        for standing in self.servers.values():
            self._remember(standing)

    @classmethod
    def of(
        cls, files: Files, root: Path, environ: Callable[[], Mapping[str, str]], tell: Callable[[Notice], None]
    ) -> "Link":
        """The servers of the person and of the project of the workspace `root`; those never seen are started."""
        found = servers.load(files.home, root, os.environ)
        link = cls(found, files.home, files=files, root=root, environ=environ, tell=tell)
        if link.servers:
            link._write_state()
        link.begin()
        return link

    @property
    def problem(self) -> str | None:
        """Why no server can be asked at all."""
        if self.servers and find_spec("mcp") is None:
            return f"MCP needs more than cass itself: {extras.adding('mcp')}"
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the entries of the servers hold that no tool may put out."""
        return tuple(secret for standing in self.servers.values() for secret in standing.server.secrets)

    def tools(self) -> dict[str, Tool]:
        """The tools of all servers, by the names that a model calls them; always in the same order."""
        return {
            name: self._tool(name, standing, told)
            for standing in self.servers.values()
            for name, told in standing.tools.items()
        }

    def begin(self) -> None:
        """Start the servers whose tools are not known, or were not looked at for long; in a running loop."""
        due = [one.server.name for one in self.servers.values() if not one.is_known or one.is_stale]
        if due and not self.problem:
            self._begun = asyncio.create_task(self.start(due))

    async def start(self, names: list[str]) -> None:
        """Start these servers; how that goes is in `servers`, and said."""
        try:
            await self._open()
        except OSError as e:
            self._say("warning", f"mcp: the host of the servers was not started: {e.strerror}")
            return
        for name in names:
            self.servers[name].state = "starting"
            await self._order({"do": "start", "server": name})
        self._write_state()

    async def settled(self, *, only_unknown: bool = False) -> None:
        """Wait until each server that was started is ready or gone; or only those that never ran before."""
        if self._begun is not None:
            await self._begun
        while any(one.state == "starting" and not (only_unknown and one.is_known) for one in self.servers.values()):
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        if self._begun is not None:
            self._begun.cancel()
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        if self._reading is not None:  # it ends with the host's output
            await asyncio.wait([self._reading], timeout=GRACE_S)
            self._reading.cancel()
        ended = asyncio.ensure_future(process.wait())
        await asyncio.wait([ended], timeout=GRACE_S)
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await ended
        if self._switch is not None:
            self._switch.release()
            await asyncio.wait([self._switch.exit], timeout=1)
        if self._files:
            self._files.mcp.unlink(missing_ok=True)

    # ---- tools

    def _tool(self, name: str, standing: Standing, told: dict[str, Any]) -> Tool:
        def action(arguments: Arguments, place: Place) -> Action:
            return Action(name, effect=Effect.RUNS, given=in_order(arguments), is_foreign=True)

        async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
            async for piece in self._call(standing.server.name, told["tool"], dict(arguments)):
                yield piece

        return Tool(name, told["description"], told["parameters"], action, run)

    async def _call(self, server: str, tool: str, arguments: dict[str, Any]) -> AsyncGenerator[str | Outcome, None]:
        """Progress as it comes, then the result. Raises ToolError. Closing it cancels the call."""
        if self.problem:
            raise ToolError(self.problem)
        try:
            await self._open()
        except OSError as e:
            raise ToolError(f"the host of the MCP servers was not started: {e.strerror}") from e
        self._last += 1
        id, heard = self._last, asyncio.Queue[dict[str, Any] | None]()
        self._calls[id] = heard
        await self._order({"do": "call", "id": id, "server": server, "tool": tool, "arguments": arguments})
        is_over = False
        try:
            while True:
                said = await heard.get()
                if said is None:
                    is_over = True
                    raise ToolError("the host of the MCP servers ended; the next call starts it again")
                if "progress" in said:
                    yield safe(said["progress"])
                    continue
                is_over = True
                if not said["ok"]:
                    raise ToolError(said["content"])
                yield Outcome(said["content"])
                return
        finally:
            self._calls.pop(id, None)
            if not is_over:
                await self._order({"do": "cancel", "id": id})

    # ---- the host

    async def _open(self) -> None:
        """Have a host. Raises OSError."""
        async with self._opening:
            if self._process is not None and self._process.returncode is None and not _is_over(self._reading):
                return
            log = self._files.mcp_log if self._files else Path(os.devnull)
            self._switch = await Switch.start()
            with open(create_private(log, os.O_APPEND), "ab") as stderr:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-m", "cass.mcp.host"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    cwd=self._root,
                    env=dict(self._environ()),
                    limit=LINE_BYTES,
                    start_new_session=True,
                )
            self._switch.arm(self._process.pid)
            assert self._process.stdout is not None
            self._reading = asyncio.create_task(self._read(self._process.stdout))
            known = [one.server._asdict() for one in self.servers.values()]
            await self._order({"servers": known, "environ": dict(self._environ())})

    async def _order(self, order: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(ConnectionError):  # it ended; `_read` says so
            self._process.stdin.write(jsonl.dump(order) + b"\n")
            await self._process.stdin.drain()

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        try:
            while line := await stdout.readline():
                self._hear(jsonl.load(line))
        except ValueError as e:
            self._say("warning", f"mcp: the host of the servers made no sense: {e}")
        finally:
            for heard in self._calls.values():
                heard.put_nowait(None)
            for standing in self.servers.values():
                if standing.state in ("starting", "ready"):
                    standing.state, standing.why = "gone", "the host of the servers ended"
            self._news.set()
            self._write_state()

    def _hear(self, said: dict[str, Any]) -> None:
        if "id" in said:
            if heard := self._calls.get(said["id"]):
                heard.put_nowait(said)
            return
        standing = self.servers[said["server"]]
        called = f"mcp: {safe_line(standing.server.name)}"
        if said["state"] == "ready":
            self._list(standing, said["tools"], called)
        elif self._process is not None:  # else it was ended by us
            if standing.state != "gone":
                self._say("warning", f"{called}: {safe_line(said['why'])}")
            standing.state, standing.why = "gone", said["why"]
            if not standing.is_known:  # looked at again each time, but nobody waits for it any more
                self._keep(standing.server, {"tools": [], "failed": True})
        self._news.set()
        self._write_state()

    def _say(self, level: Literal["info", "warning"], text: str) -> None:
        self._tell(Notice(level=level, text=text))

    def _list(self, standing: Standing, listed: list[Any], called: str) -> None:
        before, was_known = standing.tools, standing.is_known
        standing.tools, left = names.offered(standing.server, listed)
        standing.state, standing.why = "ready", ""
        standing.is_known, standing.is_stale = True, False
        if not was_known or before.keys() != standing.tools.keys():
            self._say("info", f"{called}: {_count(standing.tools)} from the next message on")
        for text in left:
            self._say("warning", f"{called}: {text}")
        self._keep(standing.server, {"tools": listed})

    # ---- what is kept

    def _keep(self, server: Server, value: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # then it is asked again the next time
            self._home.make()
            make_private(self._home.mcp_tools)
            path = self._kept(server)
            temporary = path.with_suffix(f".{os.getpid()}.tmp")
            with open(create_private(temporary, os.O_TRUNC), "wb") as file:
                file.write(jsonl.dump(value))
            temporary.replace(path)

    def _kept(self, server: Server) -> Path:
        return self._home.mcp_tools / f"{server.key}.json"

    def _remember(self, standing: Standing) -> None:
        path = self._kept(standing.server)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = jsonl.load(path.read_bytes())
            standing.tools, _ = names.offered(standing.server, kept["tools"])
            standing.is_known = True
            standing.is_stale = "failed" in kept or time.time() - path.stat().st_mtime > STALE_S

    def _write_state(self) -> None:
        if self._files is None:
            return
        how = ((name, one.server.key, one) for name, one in self.servers.items())
        state = {name: {"key": key, "state": one.state, "why": one.why} for name, key, one in how}
        with contextlib.suppress(OSError), open(create_private(self._files.mcp, os.O_TRUNC), "wb") as file:
            file.write(jsonl.dump(state))


def _is_over(task: asyncio.Task[None] | None) -> bool:
    return task is None or task.done()


def _count(tools: Mapping[str, Any]) -> str:
    return f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"
