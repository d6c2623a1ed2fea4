"""Aside: the heavy part of a call, in a thread of its own, while everything else of the worker goes on.

A cancelled call ends where it can without having done anything. What is done by then has happened: its outcome comes
out first, and the cancellation after it.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable

from cass.tools.tool import Outcome

PATIENCE_S = 1.0
"""For work that only reads, and may be left behind where a file system does not answer."""


class Stopped(Exception):
    """The work was told to stop, did so, and has changed nothing."""


class Stop:
    """The word to stop, as the work hears it."""

    def __init__(self) -> None:
        self._is_said = False

    def say(self) -> None:
        self._is_said = True

    def check(self) -> None:
        """Raises Stopped. To be called often, and for the last time before the first change."""
        if self._is_said:
            raise Stopped


async def aside(work: Callable[[Stop], Outcome], *, changes: bool = False) -> AsyncGenerator[Outcome, None]:
    """Yield what `work` comes to; raises what it raises.

    `changes`: whether it changes anything, so that its end must be waited for whatever happens.
    """
    stop = Stop()
    future = _begin(work, stop)
    cancelled: asyncio.CancelledError | None = None
    patience = None
    while not future.done():
        try:
            await asyncio.wait([future], timeout=patience)
        except asyncio.CancelledError as e:
            cancelled = e
            stop.say()
            patience = None if changes else PATIENCE_S
            continue
        if cancelled and not changes:
            break
    if cancelled and (not future.done() or future.exception()):
        raise cancelled
    yield future.result()
    if cancelled:
        raise cancelled


def _begin(work: Callable[[Stop], Outcome], stop: Stop) -> "asyncio.Future[Outcome]":
    # Not `asyncio.to_thread`: the end of the program would wait for a thread that the disk holds for ever.
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome | None, error: BaseException | None) -> None:
        if error is not None:
            future.set_exception(error)
        elif outcome is not None:
            future.set_result(outcome)

    def run() -> None:
        outcome: Outcome | None = None
        error: BaseException | None = None
        try:
            outcome = work(stop)
        except BaseException as e:
            error = e
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome, error)

    future.add_done_callback(lambda settled: settled.exception())  # nobody may be there any more to look at it
    threading.Thread(target=run, name="cass-tool", daemon=True).start()
    return future
