"""The door: the worker's end of the socket over which the person decides."""

import asyncio
import contextlib
import traceback
from typing import Any

from cass import decisions, jsonl
from cass.access import Mode
from cass.decisions import Answer
from cass.errors import CassError
from cass.session import Session

PATIENCE_S = 5.0
"""A caller that has not said what it wants for so long is left."""
VISITORS = 64
"""At once; more wait in the kernel's queue: descriptors are few, and the worker needs some itself."""


class Door:
    """Answers decisions for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._server: asyncio.Server | None = None
        self._room = asyncio.Semaphore(VISITORS)

    async def open(self) -> None:
        """Listen; a socket that a dead worker left is replaced."""
        listening = decisions.listen(self._session.files)
        self._server = await asyncio.start_unix_server(self._visit, sock=listening)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._session.files.socket.unlink(missing_ok=True)

    def is_open(self) -> bool:
        """Whether callers can still find it: a person may have removed the directory."""
        return self._session.files.socket.exists()

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One caller, one request, one answer. Nothing that it sends ends the worker."""
        async with self._room:
            answer: dict[str, Any] = {"ok": True}
            try:
                await self._hear(reader, writer)
            except (CassError, TimeoutError, ValueError, OSError) as e:
                answer = {"ok": False, "error": str(e) or "nothing was said", "status": getattr(e, "status", 1)}
            except Exception as e:
                traceback.print_exc()
                answer = {"ok": False, "error": f"a bug: {type(e).__name__}", "status": 1}
            with contextlib.suppress(OSError):  # the caller did not wait for its answer; what it decided holds
                writer.write(jsonl.dump(answer) + b"\n")
                await writer.drain()
            writer.close()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refused: CassError | None = None
        try:
            who = decisions.caller(writer.get_extra_info("socket"), self._session.superior.is_caller)
        except CassError as e:
            refused = e
        # Read in any case: closing a socket with unread bytes in it would take the answer away with them.
        async with asyncio.timeout(PATIENCE_S):
            line = await reader.readline()
        if refused is not None:
            raise refused
        self._act(decisions.parse(line), who)

    def _act(self, request: dict[str, Any], who: decisions.Caller) -> None:
        by = who.words(_text(request, "program")[:80] or "an unnamed program")
        if self._session.superior.is_caller(who.pid):  # it says who answered it; the mode is for the person alone
            by = _text(request, "by")[:300]
            if request["do"] == "mode":
                raise decisions.Refused("only the person changes the mode")
        match request["do"]:
            case "mode":
                self._session.set_mode(_mode(_text(request, "mode")))
            case "approve":
                self._answer(_text(request, "request_id"), self._approval(request, by))
            case _:
                self._answer(_text(request, "request_id"), Answer(False, by, _text(request, "reason") or None))

    def _approval(self, request: dict[str, Any], by: str) -> Answer:
        """Raises CassError where the person has seen another action than the one that waits."""
        pending = self._session.pending(_text(request, "request_id"))
        if pending is not None and request.get("digest") != decisions.digest(pending):
            raise CassError("what was shown is not what waits for a decision; look again")
        rule = pending.rule if pending is not None and request.get("always") is True else None
        return Answer(True, by, rule=rule)

    def _answer(self, request_id: str, answer: Answer) -> None:
        if problem := self._session.answer(request_id, answer):
            raise CassError(problem)


def _text(request: dict[str, Any], field: str) -> str:
    value = request.get(field)
    return value if isinstance(value, str) else ""


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise CassError(f"no mode {text[:40]!r}; there are {', '.join(Mode)}") from None
