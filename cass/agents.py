"""Agents: the chats that the tool `agent` begins, each with a worker of its own, and what comes of them.

An agent is a chat as every other: it can be watched, steered, approved and stopped with the same programs. What it asks
is asked in the chat that began it as well. It ends with the call: a cancelled call cancels it, and so does the death of
the worker that called.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from cass import chat, config, opening
from cass.access import Action, Effect, Mode
from cass.agent import Agent
from cass.config import Options, Settings
from cass.desk import Desk
from cass.errors import CassError, ToolError
from cass.flags import flags
from cass.home import Files
from cass.records import Record
from cass.rules import AGENT as NAME
from cass.toolbox import Toolbox
from cass.tools.arguments import Given
from cass.tools.paths import Place, reach
from cass.tools.tool import Arguments, Piece, Tool

DEPTH = 2
"""Chats of agents below each other."""
PER_TURN = 16
"""Agents that one turn may begin."""
IDLE_S = 2
"""An agent's worker waits so long for somebody who needs it."""

_DESCRIPTION = (
    "Give a task to an agent with a context of its own; its last message is the result. It knows only the prompt. "
    "Neighbouring calls run side by side."
)
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string"},
        "mode": {"type": "string", "enum": list(Mode), "description": "No wider than yours, which is the default"},
        "tools": {"type": "array", "items": {"type": "string"}},
        "cwd": {"type": "string"},
    },
    "required": ["prompt"],
}


class _Task(NamedTuple):
    """What one call asks for."""

    prompt: str
    mode: Mode
    tools: tuple[str, ...] | None
    cwd: str


class Agents:
    """Those of one chat."""

    def __init__(self, files: Files, depth: int, limit: int, desk: Callable[[], Desk], told: Callable[[], Options]):
        """`depth`: of the chat; `limit`: how many work at once. `told`: what its worker was told."""
        self._files, self._depth = files, depth
        self._desk, self._told = desk, told
        self._room = asyncio.Semaphore(limit)
        self._turn, self._begun = "", 0

    @classmethod
    def offer(
        cls,
        toolbox: Toolbox,
        files: Files,
        records: Sequence[Record],
        settings: Settings,
        desk: Callable[[], Desk],
        told: Callable[[], Options],
    ) -> None:
        """Put the tool into the box of a chat, unless it must have no agents."""
        meta = chat.meta(records)
        if meta is not None and meta.depth < DEPTH and settings.max_agents:
            agents = cls(files, meta.depth, settings.max_agents, desk, told)
            tool = Tool(NAME, _DESCRIPTION, _PARAMETERS, agents._action, agents._run, is_apart=True)
            toolbox.add(Effect.READS, tool)

    def _action(self, arguments: Arguments, place: Place) -> Action:
        task = self._task(arguments, place)
        reaches = [reach(task.cwd, place, write=task.mode is not Mode.READ_ONLY)] if "cwd" in arguments else []
        return Action(NAME, tuple(reaches), effect=Effect.READS)

    def _task(self, arguments: Arguments, place: Place) -> _Task:
        """Raises ToolError."""
        given = Given(NAME, arguments, tuple(_PARAMETERS["properties"]))
        prompt = given.text("prompt")
        if not prompt.strip():
            raise ToolError(f'{NAME}: "prompt" is empty')
        mode = Mode(given.choice("mode", (place.mode, *(mode for mode in Mode if mode is not place.mode))))
        if mode.width > place.mode.width:
            raise ToolError(f"{NAME}: {mode} is wider than {place.mode}, the mode of this chat")
        tools = tuple(map(str, given.items("tools", "a list of names of tools"))) if "tools" in given else None
        toolbox = self._desk().toolbox
        known = toolbox.portable(toolbox.names(place.mode, self._desk().rules))
        if unknown := sorted(set(tools or ()).difference(known)):
            raise ToolError(f"{NAME}: there is no tool {unknown[0]!r} to give; there are {', '.join(sorted(known))}")
        return _Task(prompt, mode, tools, given.path("cwd", "."))

    async def _run(self, arguments: Arguments, place: Place) -> AsyncGenerator[Piece, None]:
        task = self._task(arguments, place)
        self._count()
        if self._room.locked():
            yield "waits until another agent is done\n"
        async with self._room:
            bill = self._desk().bill
            bill.check()
            agent = self._begin(task, place, bill.left())
            async with aclosing(agent.pieces()) as pieces:
                async for piece in pieces:
                    yield piece
                    if isinstance(piece, str):  # it goes on; it knows its own share of the limit, not its neighbours'
                        bill.check()

    def _count(self) -> None:
        """Raises ToolError where a turn began too many."""
        if self._turn != self._desk().turn:
            self._turn, self._begun = self._desk().turn, 0
        if self._begun >= PER_TURN:
            raise ToolError(f"{NAME}: this turn has begun {PER_TURN} agents already; do the rest yourself")
        self._begun += 1

    def _begin(self, task: _Task, place: Place, left: float | None) -> Agent:
        """Make its chat, and start its worker. Raises ToolError."""
        options, home = self._options(task, left), self._files.home
        try:
            settings = config.load(home, options, os.environ, probe=False)
            cwd = reach(task.cwd, place, write=task.mode is not Mode.READ_ONLY).path
            files = opening.new(home, Path(cwd), settings, options, agent_of=self._files.chat_id, depth=self._depth + 1)
            if (meta := chat.first(files)) is None or meta.cwd != cwd:  # by now it leads elsewhere than was decided
                raise CassError(f"{task.cwd} became a link, or lies behind one now; nothing was begun")
            return Agent.begin(
                files,
                task.prompt,
                flags=["--idle", str(IDLE_S), *flags(options._asdict())],
                ask=place.asks,
                origin={"chat": self._files.chat_id, "call": place.call_id, "pid": os.getpid()},
            )
        except CassError as e:
            raise ToolError(f"{NAME}: {e}") from e
        except OSError as e:
            raise ToolError(f"{NAME}: {e.filename or home.root}: {e.strerror}") from e

    def _options(self, task: _Task, left: float | None) -> Options:
        told = self._told()
        mine = None if told.tools is None else self._desk().toolbox.portable(told.tools)
        return told._replace(mode=task.mode, max_cost=left, tools=mine if task.tools is None else task.tools)
