"""Stop a turn in the middle of its answer; the chat stays whole and goes on."""

import asyncio

from cass import Session
from cass.records import Delta, TurnEnd


async def main() -> None:
    async with await Session.new(cwd=".") as session:
        async with session.turn("Tell me everything about this project.") as turn:
            async for record in turn:
                if isinstance(record, Delta):
                    break
            await turn.cancel()  # leaving the block does the same

        # The same from another task or a callback: the last records still come.
        async with session.turn("Tell me more.") as turn:
            asyncio.get_running_loop().call_later(0.02, turn.interrupt)
            async for record in turn:
                if isinstance(record, TurnEnd):
                    print(record.outcome)

        # Or with a limit of time around it.
        try:
            async with asyncio.timeout(0.02), session.turn("Tell me even more.") as turn:
                async for _ in turn:
                    pass
        except TimeoutError:
            pass
        print([record.outcome for record in session.records if isinstance(record, TurnEnd)])


asyncio.run(main())
