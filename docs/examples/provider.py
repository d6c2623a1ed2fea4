"""Answer with a provider of your own: any object with these two methods."""

import asyncio
from collections.abc import AsyncIterator

from cass import Request, Session
from cass.jsonl import now
from cass.records import Assistant, Delta, User


class Parrot:
    """Says what it was told."""

    name = "parrot"

    async def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        """Pieces of the message `of`, then the whole of it. A failure is a `cass.errors.ProviderError`."""
        told = next(said.content for said in reversed(request.messages) if isinstance(said, User))
        for word in told.split():
            yield Delta(of=of, text=f"{word} ")
        yield Assistant(id=of, content=told, model=request.model, created_at=now())

    async def aclose(self) -> None:
        """Called when the session is closed."""


async def main() -> None:
    async with (
        await Session.new(cwd=".", provider=Parrot(), model="grey") as session,
        session.turn("Who is a clever bird?") as turn,
    ):
        async for record in turn:
            if isinstance(record, Assistant):
                print(record.content)


asyncio.run(main())
