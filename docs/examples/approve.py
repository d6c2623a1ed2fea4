"""Decide in the host program what the model may run: `ls`, and nothing else.

python approve.py "run ls -l"
"""

import asyncio
import sys

from cass import Mode, Session
from cass.records import Approval, ApprovalRequest, ToolOutput, ToolResult


async def main(text: str) -> None:
    async with (
        await Session.new(cwd=".", mode=Mode.WORKSPACE_EDIT) as session,
        session.turn(text) as turn,
    ):
        async for record in turn:
            match record:
                case ApprovalRequest(name="shell", arguments={"command": "ls -l"}):
                    turn.approve(record.request_id)
                case ApprovalRequest():
                    print(f"approval needed for {record.name}: {record.reason}", file=sys.stderr)
                    turn.deny(record.request_id, "only ls -l may be run here")
                case Approval():
                    print(f"{record.decision} by {record.by}", file=sys.stderr)
                case ToolOutput():
                    print(record.text, end="")
                case ToolResult(ok=False):
                    print(record.content)


asyncio.run(main(sys.argv[1]))
