"""The worker: a session with an inbox, a bell and a socket at its door.

It is the only writer of its chat. It ends by itself when nobody has needed it for a while; closing a terminal, or
killing it, loses nothing that was accepted.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cass import attachments, decisions, inbox, outlook, presence
from cass.config import Options, Settings
from cass.door import Door
from cass.errors import CassError, ChatBroken, Held, Interrupted
from cass.home import Files
from cass.inbox import Bell
from cass.intake import Intake
from cass.records import Attachment, Notice, Record, TurnEnd, User
from cass.session import Session
from cass.superior import Superior
from cass.turn import Turn
from cass.visible import safe

IDLE_S = 60.0
LIST_EVERY_S = 2.0
"""A lost ring heals after so long; where a home is shared over the network this is the whole mechanism."""


class Worker:
    """Serves one chat until it is stopped or nobody needs it."""

    def __init__(self, session: Session, idle_s: float = IDLE_S) -> None:
        self.session = session
        self.files = session.files
        self.end: TurnEnd | None = None
        """The end of the turn that `serve` was to end with."""
        self._idle_s = idle_s
        self._wake = asyncio.Event()
        known = {record.id: record.content for record in session.records if isinstance(record, User)}
        self._intake = Intake(self.files, known, self._notice)
        self._door = Door(session)
        self._turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None
        self._origin: dict[str, Any] = {}
        """Of the message that was last taken in."""
        self._stopped = False
        self._until: str | None = None
        session.is_steered = self._intake.is_steered
        session.steering = self._steering

    async def serve(self, until: str | None = None, ready: Callable[[], None] = lambda: None) -> None:
        """Serve; with `until` end after the turn that takes in that message. Calls `ready` when the door is open.

        Raises ChatBroken when the chat cannot be written any more; what was accepted waits for the next worker.
        """
        self._until = until
        self._open_bell()
        await self._door.open()
        ready()
        try:
            while not await self._round():
                pass
        except BaseException:
            self._close_bell()
            raise
        finally:
            self._door.close()

    async def _round(self) -> bool:
        """Hear, begin what can begin, else wait for the next thing. True when it is over, with the bell closed."""
        self._wake.clear()
        await self._keep_found()
        self._intake.hear(self._bell.lines())
        while command := self._intake.command(self._task is not None):
            self.stop() if command == "stop" else self.interrupt()
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            self._active_at = time.monotonic()
            task.result()
        self._mind_superior()
        if self._task is None:
            _reap()
            if self._stopped or self.end is not None:
                return self._close()
            if item := self._intake.next():
                self._task = asyncio.create_task(self._serve_item(*item))
                self._task.add_done_callback(lambda _: self._wake.set())
                await asyncio.sleep(0)
                return False
            if self._is_idle():
                return self._close()
        with contextlib.suppress(TimeoutError):
            soon = LIST_EVERY_S if self._task is not None else min(LIST_EVERY_S, max(self._idle_s, 0.01))
            async with asyncio.timeout(soon):
                await self._wake.wait()
        return False

    # ---- beginning and ending

    def _open_bell(self) -> None:
        self._bell = Bell(self.files)
        asyncio.get_running_loop().add_reader(self._bell.fd, self._wake.set)
        self._active_at = time.monotonic()

    def _close_bell(self) -> None:
        self._intake.hear(self._silence_bell())

    def _silence_bell(self) -> list[str]:
        asyncio.get_running_loop().remove_reader(self._bell.fd)
        return self._bell.retire()

    async def _keep_found(self) -> None:
        """Make bell and door anew where somebody removed them, with the whole directory perhaps."""
        if not self.files.bell.exists():
            self.files.make()
            self._close_bell()
            self._open_bell()
        if not self._door.is_open():
            self._door.close()
            await self._door.open()

    def _is_idle(self) -> bool:
        return time.monotonic() - self._active_at >= self._idle_s and not presence.is_needed(self.files)

    def _close(self) -> bool:
        """Close the bell, list once more; True when nothing came meanwhile, else everything is open again."""
        # Who stops a worker leaves what waits, on the bell too; who sends after that wants one again.
        left = {item.name for item in inbox.waiting(self.files)} if self._stopped else set()
        lines = self._silence_bell()
        arrived = {item.name for item in inbox.waiting(self.files)} - left
        is_wanted = bool(arrived) or (bool(lines) and not self._stopped)
        self._intake.hear(lines)
        if self.end is not None or not is_wanted:
            return True
        self._stopped = False
        self._open_bell()
        return False

    def stop(self) -> None:
        """End as soon as the running turn is cancelled."""
        self._stopped = True
        self.interrupt()

    def _mind_superior(self) -> None:
        """Never exceed it, and end what it waits for when it is gone: nobody would hear the answer."""
        widest = self.session.desk.ceiling()
        if self.session.desk.mode.width > widest.width:
            self.session.set_mode(widest)
        if self._turn is not None and self.session.superior.has_left(self._origin):
            self._origin = {}
            self.interrupt()

    def interrupt(self) -> None:
        """Cancel the running turn, if one runs."""
        if self._turn is not None:
            self._turn.interrupt()
        self._wake.set()

    # ---- serving

    async def _serve_item(self, name: str, item: dict[str, Any]) -> None:
        """Serve one claimed item. Nothing in it ends the worker; only a chat that cannot be written does."""
        try:
            if item["type"] == "message":
                if user := self._user(name, item):
                    await self._run(self.session.turn(user))
            else:
                await self._command(item)
                self._intake.done(name)
        except ChatBroken:
            raise  # what was claimed waits for the next worker
        except Interrupted:
            self._intake.done(name)
        except CassError as e:
            self._intake.done(name)
            self._notice("error", str(e))
        except Exception as e:
            traceback.print_exc()
            self.session.repair("a bug in cass")
            self._intake.put_aside(name, f"a bug, {type(e).__name__}: {e}; see {self.files.log}")

    def _user(self, name: str, item: dict[str, Any]) -> User | None:
        """The record of a claimed message; None where the chat has it already."""
        id = self._intake.accept(name, item)
        if id is None:
            return None
        origin = item.get("origin")
        origin = origin if isinstance(origin, dict) else {}
        self._origin = origin
        attached, wrong = attachments.checked(self.files.home, item.get("attachments"))
        for fault in wrong:
            self._notice("warning", fault)
        return self.session.user(item["content"], ask=item.get("ask") is True, origin=origin, id=id, attached=attached)

    def _steering(self) -> User | None:
        """The next message for the running turn, claimed."""
        while item := self._intake.steering():
            if user := self._user(*item):
                return user
        return None

    async def _command(self, item: dict[str, Any]) -> None:
        match item:
            case {"type": "clear"}:
                await self.session.clear()
            case {"type": "compact"}:
                await self._run(self.session.compact(item.get("focus")))
            case {"type": "model"}:
                self.session.set_model(item.get("provider"), item.get("model"))
            case {"type": "effort"}:
                self.session.set_model(None, None, item.get("effort"))
        self.session.show("idle")

    async def _run(self, turn: Turn) -> None:
        """Run one turn to its end."""
        self._turn = turn
        try:
            async with turn:
                async for record in turn:
                    if isinstance(record, User):
                        self._intake.written(record.id)
                    elif isinstance(record, TurnEnd) and self._until in record.answers:
                        self.end = record
        finally:
            self._turn = None
            self._intake.give_back()

    def _notice(self, level: str, text: str) -> None:
        print(safe(text), file=sys.stderr, flush=True)
        self.session.live.write(Notice(level=level, text=text))


# ---- the process ----------------------------------------------------------------------------------------------------


def run(
    files: Files, options: Options, *, cwd: Path | None, idle_s: float = IDLE_S, ready_fd: int | None = None
) -> int:
    """Be the worker of a chat; return the exit status. Whoever started it hears through `ready_fd` how that went."""
    _guard()
    return asyncio.run(_run(files, options, cwd, idle_s, ready_fd))


def once(
    files: Files,
    options: Options,
    settings: Settings | None,
    content: str,
    *,
    cwd: Path | None,
    ask: bool,
    tell: Callable[[Record], None] = lambda _: None,
    attached: Sequence[Attachment] = (),
    notices: bool = True,
) -> tuple[TurnEnd, str]:
    """Be the worker of a chat for one turn; return its end, and the text of the answer. `tell` is given what comes.

    Meanwhile the chat can be watched and answered as any other. `settings` spares loading them again. `notices`:
    whether what the person should know of the settings is said.
    """
    _guard()
    return asyncio.run(_once(files, options, settings, content, cwd, ask, tell, attached, notices))


async def _run(files: Files, options: Options, cwd: Path | None, idle_s: float, ready_fd: int | None) -> int:
    told = False

    def tell(said: dict[str, Any]) -> None:
        nonlocal told
        presence.tell(None if told else ready_fd, said)
        told = True

    try:
        async with Session(files, options, cwd, superior=Superior.of(files)) as session:
            await _serve(Worker(session, idle_s), ready=lambda: tell({}))
    except CassError as e:
        tell({"error": str(e), "status": e.status, "held": isinstance(e, Held)})
        raise
    return 0


async def _once(
    files: Files,
    options: Options,
    settings: Settings | None,
    content: str,
    cwd: Path | None,
    ask: bool,
    tell: Callable[[Record], None],
    attached: Sequence[Attachment],
    notices: bool,
) -> tuple[TurnEnd, str]:
    async with Session(files, options, cwd, settings, Superior.of(files)) as session:
        session.tell = tell
        for notice in session.notices if notices else ():
            print(safe(notice), file=sys.stderr, flush=True)
        worker = Worker(session)
        await session.mcp.settled(only_unknown=True)  # there is no next message that could have their tools
        item = inbox.message(content, ask=ask, origin={"by": "send", "program": "cass -p"}, attached=attached)
        await _serve(worker, until=inbox.put(files, item))
        if worker.end is None:
            raise Interrupted("interrupted before the turn began; the message waits in the chat")
        return worker.end, outlook.of(session.records).last


async def _serve(worker: Worker, *, until: str | None = None, ready: Callable[[], None] = lambda: None) -> None:
    """Serve with signals; the last words of a worker that cannot go on stand in the lock file."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, worker.stop)
    try:
        await worker.serve(until, ready)
    except CassError as e:
        worker.session.chat.sign(worker.session.desk.mode, str(e))
        raise
    except Exception as e:
        words = f"a bug, {type(e).__name__}: {e}; see {worker.files.log}"
        worker.session.chat.sign(worker.session.desk.mode, words)
        raise


_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def _guard() -> None:
    """Make this process a worker that others know, the parent of its tools' orphans, its memory and keys unreadable.

    Linux only (prctl(2)); elsewhere none of it can be had.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_NAME, decisions.WORKER_NAME.encode(), 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _reap() -> None:
    """Bury the orphans of tools. Only while no child of our own runs: its status would be lost."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
