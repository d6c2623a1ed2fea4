"""Generators abreast: several of them run side by side, as one."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def abreast(generators: Iterable[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """What each of them yields, as it comes. One goes on only when what it yielded was taken.

    What one raises ends them all and is raised here. Closed or cancelled, it closes them and waits for that.
    """
    found: asyncio.Queue[tuple[T, asyncio.Event] | None] = asyncio.Queue()

    async def drain(generator: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(generator) as pieces:
                async for piece in pieces:
                    taken = asyncio.Event()
                    found.put_nowait((piece, taken))
                    await taken.wait()
        finally:
            found.put_nowait(None)

    tasks = [asyncio.create_task(drain(generator)) for generator in generators]
    try:
        left = len(tasks)
        while left:
            item = await found.get()
            if item is None:
                left -= 1
                for task in tasks:
                    if task.done() and not task.cancelled() and (error := task.exception()):
                        raise error
                continue
            piece, taken = item
            yield piece
            taken.set()
        for task in tasks:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
