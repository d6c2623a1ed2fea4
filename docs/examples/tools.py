"""Give the model tools of your own: functions of this program."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from cass import Effect, HostTool, Mode, Session
from cass.errors import ToolError
from cass.records import ApprovalRequest, ToolResult

TICKETS = {7: "The lamp in the hall is broken."}


async def ticket(arguments: dict[str, Any]) -> str:
    """A coroutine returns what the model reads."""
    found = TICKETS.get(arguments.get("number", 0))
    if found is None:
        raise ToolError("there is no such ticket")
    return found


async def deploy(arguments: dict[str, Any]) -> AsyncGenerator[str, None]:
    """A generator yields it in pieces, which are shown as they come."""
    yield f"sending {arguments.get('where')} … "
    await asyncio.sleep(0.01)
    yield "done"


async def note(arguments: dict[str, Any]) -> str:
    """What is named in `paths` comes absolute and resolved; blocking work belongs into a thread."""
    await asyncio.to_thread(Path(arguments["path"]).write_text, "noted\n")
    return "written"


TOOLS = [
    HostTool(
        name="ticket",
        description="The text of a ticket.",
        parameters={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
        run=ticket,
        effect=Effect.READS,
    ),
    HostTool(
        name="note",
        description="Write a note into a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        run=note,
        effect=Effect.WRITES,
        paths=("path",),
    ),
    HostTool(
        name="deploy",
        description="Send the project to a server.",
        parameters={"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]},
        run=deploy,
        effect=Effect.RUNS,
    ),
]


async def main() -> None:
    async with (
        await Session.new(cwd=".", mode=Mode.WORKSPACE_EDIT, tools=TOOLS) as session,
        session.turn("Read ticket 7, note it in notes.md, and deploy to staging.") as turn,
    ):
        async for record in turn:
            match record:
                case ApprovalRequest():
                    print(f"asked: {record.name}, {record.reason}")
                    turn.approve(record.request_id)
                case ToolResult():
                    print(f"{record.name}: {record.content}")


asyncio.run(main())
