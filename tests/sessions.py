"""What tests of sessions stand on: a session whose model answers by a script, and its turns as lists of records."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from stage import script

from cass.records import Record
from cass.session import Session
from cass.turn import Turn


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def inner(*args: Any, **given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **given), 60))

    return inner


@pytest.fixture
def opened(home, workspace):
    """A session whose model answers with the given steps."""

    @asynccontextmanager
    async def made(*steps: dict[str, Any], **options: Any) -> AsyncIterator[Session]:
        script(home, *steps)
        async with await Session.new(home=home.root, cwd=workspace, provider="scripted", **options) as session:
            yield session

    return made


Watcher = Callable[[Turn, Record], None]


async def take(session: Session, text: str = "hi", on: Watcher = lambda *_: None, **more: Any) -> list[Record]:
    """All records of one turn; `on` sees each as it comes."""
    found = []
    async with session.turn(text, **more) as turn:
        async for record in turn:
            found.append(record)
            on(turn, record)
    return found


def of(found: list[Record], *kinds: type) -> list[Any]:
    return [record for record in found if isinstance(record, kinds)]
