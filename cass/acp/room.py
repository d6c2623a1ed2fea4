"""A room: one chat as an editor takes part in it. What is said there goes to the worker, and what comes to the editor.

The worker is the ordinary one: the chat can be watched, answered and gone on with from a terminal at the same time.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from acp import RequestError
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption

from cass import chat, decisions, inbox, jsonl, opening, presence, send, waiting
from cass.access import Mode
from cass.acp.before import Before
from cass.acp.updates import Updates
from cass.composer.seat import Seat
from cass.errors import CassError, UsageError
from cass.flags import flags
from cass.home import Files
from cass.records import ApprovalRequest, Assistant, Fact, Record, Status, TurnEnd, User
from cass.values import Attachment
from cass.visible import safe_line

PROGRAM = "cass acp"
SHORTEST_S, LONGEST_S = 0.002, 0.05
"""Between two looks at the chat while a turn runs."""


class Room:
    def __init__(self, files: Files, root: Path, mode: Mode, flags: Sequence[str], client: Client) -> None:
        """`flags`: what a worker is started with, but for the mode."""
        self.files = files
        self._root = root
        self._flags = flags
        self._client = client
        self._updates = Updates(Before(files, root), mode)
        self._seat = Seat(files)
        self._seat.look()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._waiting: str | None = None
        """Id of the message that is being answered."""
        self._taken_back = False
        self._left: list[Record] = []
        """What is still to be told."""
        self._stop: str = ""
        """How the last answer stopped."""

    @property
    def mode(self) -> Mode:
        return Mode(self._updates.mode)

    def close(self) -> None:
        """Leave. The worker ends when nobody needs it; a turn that runs goes on."""
        for task in self._asking.values():
            task.cancel()
        self._seat.close()

    async def replay(self) -> None:
        """Tell the editor all that the chat holds."""
        for record in chat.read(self.files):
            await self._tell(record)

    # ---- a turn

    async def prompt(self, text: str, attached: Sequence[Attachment] = ()) -> tuple[str, str | None]:
        """Say `text`, tell the editor what comes, and return how the turn ended: the protocol's word, and an error.

        Raises CassError: no worker can be had, or it died; UsageError while another message is being answered.
        """
        if self._waiting is not None:
            raise UsageError("a message of this session is being answered: wait for its end, or cancel it")
        id = jsonl.new_id()
        self._updates.own.add(id)
        self._waiting, self._taken_back = id, False
        try:
            say = partial(send.send, id=id, ask=True, flags=self._worker_flags(), program=PROGRAM, attached=attached)
            await asyncio.to_thread(say, self.files, text)
            end = await self._until(id)
        finally:
            self._waiting = None
        if end is None or end.outcome == "cancelled":
            return "cancelled", None
        if end.outcome == "failed" and self._stop == "length":
            return "max_tokens", None
        return "end_turn", end.error if end.outcome == "failed" else None

    async def _until(self, id: str) -> TurnEnd | None:
        """The end of the turn that takes in the message `id`; None where that was taken back."""
        pause, begun = SHORTEST_S, False
        while not self._taken_back:
            news, self._left = [*self._left, *self._seat.look()], []
            # Facts first: what the chat has settled supersedes what was live.
            for record in sorted(news, key=lambda record: not isinstance(record, Fact)):
                begun |= isinstance(record, User) and record.id == id
                await self._tell(record)
            for update in self._updates.flush():
                await self._client.session_update(self.files.chat_id, update)
            self._see_questions()
            if end := next((one for one in news if isinstance(one, TurnEnd) and id in one.answers), None):
                return end
            pause = SHORTEST_S if news else min(pause * 1.5, LONGEST_S)
            if pause == LONGEST_S and not self._seat.is_running:
                await self._hire(id, begun)
            await asyncio.sleep(pause)
        return None

    async def _hire(self, id: str, begun: bool) -> None:
        """A new worker for a message that still waits. Raises NoWorker for a turn whose worker died."""
        if begun:
            raise waiting.gone(self.files)
        await asyncio.to_thread(send.hire, self.files, id, True, self._worker_flags())

    async def _tell(self, record: Record) -> None:
        if isinstance(record, Assistant):
            self._stop = record.stop
        for update in self._updates.step(record):
            await self._client.session_update(self.files.chat_id, update)

    def _worker_flags(self) -> list[str]:
        return [*self._flags, *flags({"mode": self.mode})]

    def cancel(self) -> None:
        """Take the message back where it still waits; else interrupt the turn."""
        if self._waiting is None:
            return
        if inbox.withdraw(self.files, self._waiting):
            self._taken_back = True
            return
        with contextlib.suppress(CassError):  # no worker is there: there is nothing to interrupt
            send.command(self.files, {"type": "cancel"})

    # ---- decisions

    def set_mode(self, mode: Mode) -> None:
        """Raises CassError where it cannot be."""
        opening.check_mode(mode, self._root, self.files.home)
        if presence.is_running(self.files):
            self._decide({"do": "mode", "mode": mode})
            # What the worker said of its mode before that must not be told any more.
            self._left += [record for record in self._seat.look() if not isinstance(record, Status)]
        self._updates.mode = mode

    def _see_questions(self) -> None:
        """Put what waits for an approval to the person; take down what was settled elsewhere."""
        pending = {request.request_id: request for request in self._seat.standing.pending}
        for id in self._asking.keys() - pending.keys():
            self._asking.pop(id).cancel()
        for id in pending.keys() - self._asking.keys():
            self._asking[id] = asyncio.create_task(self._ask(pending[id]))

    async def _ask(self, request: ApprovalRequest) -> None:
        decision: dict[str, object] = {"do": "deny", "request_id": request.request_id}
        try:
            chosen = await self._choice(request)
        except ConnectionError:
            return  # the editor is gone: the question can be answered from elsewhere
        except RequestError as e:
            chosen, decision["reason"] = "", f"the editor could not ask: {e}"
        except ValueError:
            chosen, decision["reason"] = "", "the editor's answer was none"
        if chosen == "once" or (chosen == "always" and request.rule):
            seen = {"digest": decisions.digest(request), "always": chosen == "always"}
            decision = {"do": "approve", "request_id": request.request_id, **seen}
        with contextlib.suppress(CassError):  # answered elsewhere, or the turn is over
            self._decide(decision)

    async def _choice(self, request: ApprovalRequest) -> str:
        """``once``, ``always`` or ``no``; "" where the question was closed."""
        options = [PermissionOption(option_id="once", name="Allow", kind="allow_once")]
        if request.rule:
            name = f"Always allow {safe_line(request.rule)}"
            options.append(PermissionOption(option_id="always", name=name, kind="allow_always"))
        options.append(PermissionOption(option_id="no", name="Deny", kind="reject_once"))
        call = self._updates.question(request)
        answer = await self._client.request_permission(self.files.chat_id, call, options)
        return str(answer.outcome.option_id) if isinstance(answer.outcome, AllowedOutcome) else ""

    def _decide(self, decision: dict[str, object]) -> None:
        # Not in a thread: on macOS the whole process stands in the directory of the socket for a moment, to reach it.
        answer = decisions.ask(self.files, {**decision, "program": PROGRAM})
        if not answer.get("ok"):
            raise CassError(str(answer.get("error", "the worker refused")))
