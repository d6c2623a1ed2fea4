"""The relay: what an agent asks is asked in the chat that began it as well; the first answer anywhere wins."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from cass import jsonl
from cass.desk import Desk
from cass.progress import Progress
from cass.records import Approval, ApprovalRequest, Record, ToolCall
from cass.tools.tool import Asked


class Relay:
    """For one call."""

    def __init__(self, desk: Desk, progress: Progress, call: ToolCall) -> None:
        self._desk, self._progress, self._call = desk, progress, call
        self._open: dict[str, tuple[ApprovalRequest, asyncio.Task[None]]] = {}

    def take(self, piece: Asked | Approval) -> Iterator[Record]:
        """The records of this chat that stand for a question, or for its answer, there."""
        if isinstance(piece, Asked):
            request = replace(piece.request, tool_call_id=self._call.id, of=self._progress.of)
            self._progress.asking.add(request.request_id)
            yield self._progress.status(self._desk)
            yield request
            self._open[request.request_id] = request, asyncio.create_task(self._carry(request, piece))
        elif piece.request_id in self._open:
            self._settle(piece.request_id)
            yield replace(piece, tool_call_id=self._call.id)
            yield self._progress.status(self._desk)

    def lapse(self) -> Iterator[Record]:
        """What stands for the questions that nobody answered before the agent ended: nobody waits for that any more."""
        for request, _ in list(self._open.values()):
            self._settle(request.request_id)
            yield Approval(
                request_id=request.request_id,
                tool_call_id=self._call.id,
                decision="denied",
                reason="it asks no more",
                by="nobody",
                created_at=jsonl.now(),
                agent=request.agent,
            )
            yield self._progress.status(self._desk)

    async def close(self) -> None:
        """Nothing is asked any more."""
        left = [self._settle(request_id) for request_id in list(self._open)]
        await asyncio.gather(*left, return_exceptions=True)

    def _settle(self, request_id: str) -> asyncio.Task[None]:
        self._progress.asking.discard(request_id)
        _, carrying = self._open.pop(request_id)
        carrying.cancel()
        return carrying

    async def _carry(self, request: ApprovalRequest, asked: Asked) -> None:
        asked.tell(await self._desk.answer(request.request_id))
