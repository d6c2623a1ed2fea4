"""A turn, as whoever runs it has it: its records as they come, decisions for what it asks, and a whole end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any, Protocol, Self

from cass.decisions import Answer
from cass.errors import Interrupted, UsageError
from cass.records import ApprovalRequest, Record


class Holder(Protocol):
    """Whoever holds the chat that a turn runs in."""

    def begin(self, turn: str) -> None:
        """A turn begins. Raises UsageError while another one runs."""
        ...

    def end(self) -> None: ...

    async def keep(self, record: Record) -> None:
        """Write a record where it belongs."""
        ...

    def pending(self, request_id: str) -> ApprovalRequest | None:
        """The request that waits for a decision, if it does."""
        ...

    def answer(self, request_id: str, answer: Answer) -> str | None:
        """Hand a decision on; return why it came to nothing, else None."""
        ...


class Turn:
    """A running turn: iterate it for its records; leaving it early cancels it and leaves the chat valid."""

    def __init__(self, holder: Holder, found: AsyncGenerator[Record, None], id: str = "") -> None:
        """`id` is that of the user message; "" where there is none."""
        self._holder = holder
        self._records = found
        self._id = id
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._thrown = False
        self._uncancel = False
        self._over = False

    async def __aenter__(self) -> Self:
        self._holder.begin(self._id)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if not self._over:
                await self.cancel()
        finally:
            self._holder.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        try:
            record = await self._step()
            await self._holder.keep(record)
        except asyncio.CancelledError:
            raise  # not ours: leaving the turn cancels it, and writes what keeps the chat valid
        except BaseException:
            self._over = True
            raise
        if task.cancelling() > cancelling:
            # Not ours either, but it arrived in the generator, which took it for the turn's: it must get through.
            self._cancelled = self._thrown = True
            raise asyncio.CancelledError
        return record

    async def _step(self) -> Record:
        if self._cancelled and not self._thrown:
            self._thrown = True
            found = self._records.athrow(asyncio.CancelledError())
        else:
            found = self._records.__anext__()
        self._task = asyncio.current_task()
        try:
            return await found
        except asyncio.CancelledError:
            if self._thrown:
                raise Interrupted("cancelled") from None
            raise
        finally:
            task, self._task = self._task, None
            if self._uncancel and task is not None:
                self._uncancel = False
                task.uncancel()  # the cancellation was ours and ended in the generator: the task itself goes on

    def interrupt(self) -> None:
        """Cancel the turn; its last records still come. May be called from a callback or another task."""
        if not self._cancelled:
            self._cancelled = True
            if self._task is not None:  # it waits inside the generator, where the cancellation must arrive
                self._thrown = self._uncancel = True
                self._task.cancel()

    async def cancel(self) -> None:
        """Cancel the turn and wait until the chat is whole again."""
        self.interrupt()
        with contextlib.suppress(Interrupted):
            async for _ in self:
                pass

    def approve(self, request_id: str, *, always: bool = False, by: str = "the host program") -> None:
        """Allow what was asked; `always` gives the rule it names for the life of the session. Raises UsageError."""
        request = self._holder.pending(request_id)
        rule = request.rule if request is not None and always else None
        self._decide(request_id, Answer(True, by, rule=rule))

    def deny(self, request_id: str, reason: str | None = None, *, by: str = "the host program") -> None:
        """Refuse what was asked; the model reads `reason`. Raises UsageError where nothing waits."""
        self._decide(request_id, Answer(False, by, reason))

    def _decide(self, request_id: str, answer: Answer) -> None:
        if problem := self._holder.answer(request_id, answer):
            raise UsageError(problem)
