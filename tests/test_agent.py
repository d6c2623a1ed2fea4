"""An agent, as the chat above has it: what comes of it, and of the answers that are carried to it."""

import asyncio
import os
from contextlib import aclosing

from cass import chat, presence
from cass.agent import Agent
from cass.decisions import Answer
from cass.home import Files
from cass.presence import Starting
from cass.records import ApprovalRequest, Status, TurnEnd, User
from cass.tools.tool import Asked
from cass.waiting import Watch

AT = "2026-06-20T14:30:12.345Z"

ASKED = ApprovalRequest(
    request_id="r", tool_call_id="c", name="shell", arguments={}, reason="so", sandboxed=False, created_at=AT
)


def ready(files: Files) -> Starting:
    """A worker that has started."""
    reading, writing = os.pipe()
    os.write(writing, b"{}\n")
    os.close(writing)
    return Starting(files, reading, os.getpid())


def test_that_an_answer_gets_lost_is_said_also_while_more_comes(files):
    held, live = chat.Chat(files, "read-only"), chat.LiveFile(files)  # nobody hears at its door
    live.begin(Status(state="thinking", mode="read-only", provider="p", model="m", created_at=AT))

    async def pieces() -> list[object]:
        agent = Agent(files, presence.attach(files), Watch(files, with_live=True), "u1", ready(files))
        live.write(ASKED)
        held.append(User(id="u1", content="work", created_at=AT))
        found: list[object] = []
        async with aclosing(agent.pieces()) as pieces:
            async for piece in pieces:
                found.append(piece)
                if isinstance(piece, Asked):
                    before = asyncio.all_tasks()
                    piece.tell(Answer(True, "me"))
                    await asyncio.wait(asyncio.all_tasks() - before)  # it was carried there
                    held.append(TurnEnd(turn="u2", answers=("u2",), outcome="done", created_at=AT))
                elif "did not get through" in str(piece):
                    held.append(TurnEnd(turn="u1", answers=("u1",), outcome="done", created_at=AT))
        return found

    found = asyncio.run(asyncio.wait_for(pieces(), 20))
    held.close()
    live.close()
    assert [str(piece) for piece in found if "takes nothing from outside" in str(piece)]
