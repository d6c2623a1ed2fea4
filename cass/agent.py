"""An agent: a chat at work for another one, from its one message to the end of the turn that answers it."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from cass import context, decisions, inbox, presence, waiting
from cass.decisions import Answer
from cass.errors import CassError, ToolError
from cass.headline import headline
from cass.home import Files
from cass.presence import Starting
from cass.records import Approval, ApprovalRequest, Assistant, Notice, Record, TurnEnd
from cass.tools.tool import Asked, Outcome, Piece, Spent
from cass.visible import safe_line

LINE = 160
"""Characters of a line that says what it does."""
GRACE_S = 5.0
"""A cancelled turn has so long to end."""
CANCEL_EVERY_S = 0.5
"""A command may come just before the turn that it means, and is then said again."""
_SHORTEST_S, _LONGEST_S = 0.005, 0.1

_Said = TypeVar("_Said", ApprovalRequest, Approval)


class Agent:
    def __init__(self, files: Files, attached: int, watch: waiting.Watch, id: str, starting: Starting) -> None:
        self._files = files
        self._attached = attached
        self._watch = watch
        self._id = id
        self._starting = starting
        self._end: TurnEnd | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._troubles: list[Notice] = []

    @classmethod
    def begin(cls, files: Files, prompt: str, *, flags: Sequence[str], ask: bool, origin: dict[str, Any]) -> "Agent":
        """Send its message and start its worker, which is then on its way. Raises CassError."""
        attached = presence.attach(files)
        watch = waiting.Watch(files, with_live=True)
        try:
            item = {"type": "message", "content": prompt, "ask": ask, "origin": {"by": "agent", **origin}}
            id = inbox.put(files, item)
            # It is known whose agent this is, also to one that finds nobody above it at its start.
            environ = {decisions.TOOL_MARK: origin["chat"]}
            return cls(files, attached, watch, id, presence.start(files, flags, environ))
        except BaseException:
            watch.close()
            os.close(attached)
            raise

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """What it does, a line each, what it asks, and the outcome. Closed or cancelled, it cancels the turn."""
        starting = asyncio.create_task(asyncio.to_thread(self._starting.wait))
        try:
            yield f"chat {self._files.chat_id}\n"
            try:
                await starting
            except CassError as e:
                raise ToolError(f"agent: its worker did not start: {e}") from e
            async with aclosing(self._news()) as news:
                async for record in news:
                    for piece in self._pieces(record):
                        yield piece
            assert self._end is not None
            yield self._outcome(self._end)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self._close()

    async def _news(self) -> AsyncGenerator[Record, None]:
        """What comes, up to the end of the turn. Raises ToolError when its worker is gone."""
        pause, is_running = _SHORTEST_S, True
        while True:
            for record in chain(self._new_troubles(), self._watch.news()):
                pause = _SHORTEST_S
                if self._is_end(record):
                    return
                yield record
            if not is_running:  # it was looked at before the last news
                gone = f"{waiting.gone(self._files)}; what it did until then stands in that chat"
                raise ToolError(f"agent: {gone}")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_S)
            is_running = pause < _LONGEST_S or presence.is_running(self._files)

    def _new_troubles(self) -> Iterator[Notice]:
        """Each once; threads add to them meanwhile."""
        while self._troubles:
            yield self._troubles.pop(0)

    def _is_end(self, record: Record) -> bool:
        if isinstance(record, TurnEnd) and self._id in record.answers:
            self._end = record
        return self._end is not None

    def _pieces(self, record: Record) -> Iterator[Piece]:
        if (usd := context.cost(record)) is not None:
            yield Spent(usd)
        match record:
            case Assistant(content=content, tool_calls=calls) if calls and record.stop != "error":
                if said := safe_line(content.strip().partition("\n")[0]):
                    yield f"{said[:LINE]}\n"
                for call in calls:
                    yield f"· {safe_line(call.name)} {safe_line(headline(call))}"[:LINE] + "\n"
            case ApprovalRequest():
                yield Asked(self._named(record), lambda answer: self._tell(record, answer))
            case Notice(level=level, text=text) if level != "info":
                yield f"{level}: {safe_line(text)}\n"
            case Approval():
                yield self._named(record)

    def _named(self, record: _Said) -> _Said:
        """A question or its answer, with the chat that asks."""
        return replace(record, agent=record.agent or self._files.chat_id)

    def _outcome(self, end: TurnEnd) -> Outcome:
        text = self._watch.outlook.last.strip()
        where = f"[chat {self._files.chat_id}]"
        if end.outcome == "done":
            return Outcome(f"{text}\n\n{where}")
        what = {"failed": "failed", "cancelled": "was cancelled"}.get(end.outcome, "came to nothing")
        why = f"Error: the agent's turn {what}" + (f": {end.error}" if end.error else "")
        said = f"\nIts last words:\n{text}" if text else ""
        return Outcome(f"{why}{said}\n\n{where}", ok=False)

    # ---- towards it

    def _tell(self, request: ApprovalRequest, answer: Answer) -> None:
        """Carry the person's answer there."""
        telling = asyncio.create_task(asyncio.to_thread(self._carry, request, answer))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    def _carry(self, request: ApprovalRequest, answer: Answer) -> None:
        said: dict[str, Any] = {"do": "approve" if answer.approved else "deny", "request_id": request.request_id}
        said |= {"digest": decisions.digest(request), "always": answer.rule is not None}
        said |= {"reason": answer.reason, "by": answer.by, "program": answer.by}
        try:
            problem = decisions.ask(self._files, said).get("error")
        except CassError as e:
            problem = str(e)
        if problem:
            self._troubles.append(Notice(level="warning", text=f"the answer did not get through: {problem}"))

    async def _close(self) -> None:
        """Leave it; a turn that still runs is cancelled first, and a message that nobody took is taken back."""
        try:
            if self._end is None and not inbox.withdraw(self._files, self._id):
                await self._cancel()
        finally:
            self._watch.close()
            os.close(self._attached)

    async def _cancel(self) -> None:
        deadline = time.monotonic() + GRACE_S
        said_at = 0.0
        while self._end is None and presence.is_running(self._files) and time.monotonic() < deadline:
            if time.monotonic() - said_at >= CANCEL_EVERY_S:
                said_at = time.monotonic()
                inbox.put(self._files, {"type": "cancel"})
            await asyncio.sleep(_SHORTEST_S)
            for record in self._watch.news():
                if self._is_end(record):
                    break
