"""Ask about this directory, print the answer as it comes, and say how to go on with the chat."""

import asyncio
import sys

from cass import Mode, Session
from cass.records import Delta, TurnEnd


async def main() -> None:
    async with await Session.new(cwd=".", mode=Mode.READ_ONLY) as session:
        async with session.turn("Summarize this project in a few sentences.") as turn:
            async for record in turn:
                match record:
                    case Delta(text=str(text)):
                        print(text, end="", flush=True)
                    case TurnEnd(error=str(error)):
                        print(error, file=sys.stderr)
        print(f"\nResume this chat with: cass --resume {session.id}", file=sys.stderr)


asyncio.run(main())
