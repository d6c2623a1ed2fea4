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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cass import decisions, inbox, jsonl, presence
from cass.access import Mode
from cass.agent import Answer
from cass.config import Options, Settings
from cass.errors import CassError, ChatBroken, Held, Interrupted
from cass.home import Files
from cass.inbox import Bell
from cass.records import Notice, TurnEnd, User
from cass.session import Session, Turn
from cass.status import Outlook

IDLE_S = 60.0
LIST_EVERY_S = 2.0
"""A lost ring heals after so long; where a home is shared over the network this is the whole mechanism."""
_AT_ONCE = frozenset({"cancel", "stop"})
_IN_LINE = frozenset({"message", "compact", "model", "effort", "clear"})


class Worker:
    """Serves one chat until it is stopped or nobody needs it."""

    def __init__(self, session: Session, idle_s: float = IDLE_S) -> None:
        self.session = session
        self.files = session.files
        self.end: TurnEnd | None = None
        """The end of the turn that `serve` was to end with."""
        self._idle_s = idle_s
        self._wake = asyncio.Event()
        self._known = {record.id for record in session.records if isinstance(record, User)}
        self._claimed: dict[str, str] = {}
        """Claimed messages that the chat does not have yet: id to name in the inbox."""
        self._kinds: dict[str, str | None] = {}
        """What each waiting item is, by name: a long queue is not read anew at every ring."""
        self._unheard: list[str] = []
        """Lines from the bell that the inbox does not have yet."""
        self._leftovers: list[str] = []
        self._turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._until: str | None = None
        session.steering = self._steering

    async def serve(self, until: str | None = None, ready: Callable[[], None] = lambda: None) -> None:
        """Serve; with `until` end after the turn that takes in that message. Calls `ready` when the door is open.

        Raises ChatBroken when the chat cannot be written any more; what was accepted waits for the next worker.
        """
        self._until = until
        inbox.sweep(self.files)
        self._leftovers = [name for name, _ in inbox.claimed(self.files)]
        self._open_bell()
        door = await asyncio.start_unix_server(self._decide, sock=decisions.listen(self.files))
        ready()
        try:
            while not await self._round():
                pass
        except BaseException:
            self._close_bell()
            raise
        finally:
            door.close()
            self.files.socket.unlink(missing_ok=True)

    async def _round(self) -> bool:
        """Hear, begin what can begin, else wait for the next thing. True when it is over, with the bell closed."""
        self._wake.clear()
        self._hear(self._bell.lines())
        self._obey()
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            self._active_at = time.monotonic()
            task.result()
        if self._task is None:
            _reap()
            if self._stopped or self.end is not None:
                return self._close()
            if name := self._next():
                self._task = asyncio.create_task(self._serve_item(name))
                self._task.add_done_callback(lambda _: self._wake.set())
                await asyncio.sleep(0)
                return False
            if self._is_idle():
                return self._close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), min(LIST_EVERY_S, max(self._idle_s, 0.01)))
        return False

    # ---- beginning and ending

    def _open_bell(self) -> None:
        self._bell = Bell(self.files)
        asyncio.get_running_loop().add_reader(self._bell.fd, self._wake.set)
        self._active_at = time.monotonic()

    def _close_bell(self) -> None:
        asyncio.get_running_loop().remove_reader(self._bell.fd)
        self._hear(self._bell.retire())

    def _is_idle(self) -> bool:
        return time.monotonic() - self._active_at >= self._idle_s and not presence.is_needed(self.files)

    def _close(self) -> bool:
        """Close the bell, list once more; True when nothing came meanwhile, else everything is open again."""
        # Who stops a worker leaves what waits; who sends after that wants one again.
        left = {item.name for item in inbox.waiting(self.files)} if self._stopped else set()
        self._close_bell()
        if self.end is not None or {item.name for item in inbox.waiting(self.files)} <= left:
            return True
        self._stopped = False
        self._open_bell()
        return False

    def stop(self) -> None:
        """End as soon as the running turn is cancelled."""
        self._stopped = True
        self.interrupt()

    def interrupt(self) -> None:
        """Cancel the running turn, if one runs."""
        if self._turn is not None:
            self._turn.interrupt()
        self._wake.set()

    # ---- the inbox

    def _hear(self, lines: list[str]) -> None:
        """Queue what was written to the bell; on a full disk it is kept until there is room."""
        self._unheard += lines
        while self._unheard:
            item = {"type": "message", "content": self._unheard[0], "ask": False, "origin": {"by": "fifo"}}
            try:
                inbox.put(self.files, item)
            except CassError as e:
                self._notice("error", str(e))
                return
            del self._unheard[0]

    def _obey(self) -> None:
        """Do what is to be done at once; put aside what nobody understands."""
        begun = self._turn is not None
        for name, kind in self._look():
            if kind in _IN_LINE or kind == "steer":
                begun = begun or self._task is not None
                if self._task is None:
                    return  # a cancel behind a message is meant for its turn, which is about to begin
            elif inbox.claim(self.files, name) is None:
                continue
            elif kind in _AT_ONCE:
                inbox.done(self.files, name)
                self.stop() if kind == "stop" else self.interrupt()
            else:
                self._put_aside(name, f"unknown command {kind!r}" if kind else "not a command")

    def _look(self) -> list[tuple[str, str | None]]:
        """Names and kinds of what waits, oldest first; a message that is to steer is of the kind ``steer``."""
        names = [item.name for item in inbox.waiting(self.files)]
        self._kinds = {name: self._kinds[name] if name in self._kinds else self._kind(name) for name in names}
        return list(self._kinds.items())

    def _kind(self, name: str) -> str | None:
        item = inbox.read(self.files, name)
        if item is None:
            return None
        return "steer" if item["type"] == "message" and item.get("steer") else str(item["type"])

    def _put_aside(self, name: str, why: str) -> None:
        inbox.reject(self.files, name)
        self._notice("warning", f"{why} in the inbox; it was put aside as {inbox.BAD}{name}")

    def _next(self) -> str | None:
        """The oldest item to serve: one that a dead worker had claimed before any other."""
        if self._leftovers:
            return self._leftovers.pop(0)
        for waiting in inbox.waiting(self.files):
            if inbox.claim(self.files, waiting.name) is not None:
                return waiting.name
        return None

    async def _serve_item(self, name: str) -> None:
        try:
            item = inbox.parse((self.files.inbox / f"{inbox.TAKEN}{name}").read_bytes())
        except (ValueError, OSError) as e:
            self._put_aside(name, str(e))
            return
        try:
            if item["type"] == "message":
                user = self._message(name, item)
                if user is not None:
                    await self._run(self.session.turn(user))
            else:
                await self._command(item)
                inbox.done(self.files, name)
        except ChatBroken:
            raise  # what was claimed waits for the next worker
        except Interrupted:
            inbox.done(self.files, name)
        except CassError as e:
            inbox.done(self.files, name)
            self._notice("error", str(e))

    def _message(self, name: str, item: dict[str, Any]) -> User | None:
        """The message of a claimed item; None where the chat has it already, or it says nothing."""
        id, content = inbox.Waiting(name).id, item.get("content")
        if id in self._known or not isinstance(content, str) or not content.strip():
            inbox.done(self.files, name)
            return None
        self._known.add(id)
        self._claimed[id] = name
        origin = item.get("origin")
        return self.session.user(
            content, ask=item.get("ask") is True, origin=origin if isinstance(origin, dict) else {}, id=id
        )

    def _steering(self) -> list[User]:
        """Messages marked ``steer``, claimed."""
        found = []
        for name in [name for name, kind in self._look() if kind == "steer"]:
            data = inbox.claim(self.files, name)
            if data is not None:
                found.append(self._message(name, inbox.parse(data)))
        return [user for user in found if user is not None]

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
                    if isinstance(record, User) and record.id in self._claimed:
                        inbox.done(self.files, self._claimed.pop(record.id))
                    elif isinstance(record, TurnEnd) and self._until in record.answers:
                        self.end = record
        finally:
            self._turn = None

    def _notice(self, level: str, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
        self.session.live.write(Notice(level=level, text=text))

    # ---- the socket

    async def _decide(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Read first: closing a socket with unread bytes in it would take the answer away with them.
            line = await asyncio.wait_for(reader.readline(), 5)
            who = decisions.caller(writer.get_extra_info("socket"))
            request = decisions.parse(line)
            self._act(request, who)
            answer: dict[str, Any] = {"ok": True}
        except (CassError, ValueError, TimeoutError) as e:
            answer = {"ok": False, "error": str(e), "status": getattr(e, "status", 1)}
        except OSError:
            return
        try:
            writer.write(jsonl.dump(answer) + b"\n")
            await writer.drain()
        except ConnectionError:
            pass  # the caller did not wait for its answer; what it decided holds
        finally:
            writer.close()

    def _act(self, request: dict[str, Any], who: decisions.Caller) -> None:
        by = who.words(str(request.get("program") or "an unnamed program")[:80])
        if request["do"] == "mode":
            self.session.set_mode(_mode(request.get("mode")))
            return
        id = str(request.get("request_id"))
        pending = self.session.pending(id)
        rule = pending.rule if pending is not None and request.get("always") is True else None
        reason = request.get("reason")
        approved = request["do"] == "approve"
        answer = Answer(approved, by, reason if isinstance(reason, str) and not approved else None, rule)
        if problem := self.session.answer(id, answer):
            raise CassError(problem)


def _mode(text: Any) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise CassError(f"no mode {text!r}; there are {', '.join(Mode)}") from None


# ---- the process ----------------------------------------------------------------------------------------------------


def run(
    files: Files, options: Options, *, cwd: Path | None, idle_s: float = IDLE_S, ready_fd: int | None = None
) -> int:
    """Be the worker of a chat; return the exit status. Whoever started it hears through `ready_fd` how that went."""
    _guard()
    return asyncio.run(_run(files, options, cwd, idle_s, ready_fd))


def once(
    files: Files, options: Options, settings: Settings | None, content: str, *, cwd: Path | None, ask: bool
) -> tuple[TurnEnd, str]:
    """Be the worker of a chat for one turn; return its end, and the text of the answer.

    Meanwhile the chat can be watched and answered as any other. `settings` spares loading them again.
    """
    _guard()
    return asyncio.run(_once(files, options, settings, content, cwd, ask))


async def _run(files: Files, options: Options, cwd: Path | None, idle_s: float, ready_fd: int | None) -> int:
    told = False

    def tell(said: dict[str, Any]) -> None:
        nonlocal told
        presence.tell(None if told else ready_fd, said)
        told = True

    try:
        async with Session(files, options, cwd, widest=_widest(files)) as session:
            await _serve(Worker(session, idle_s), ready=lambda: tell({}))
    except CassError as e:
        tell({"error": str(e), "status": e.status, "held": isinstance(e, Held)})
        raise
    return 0


async def _once(
    files: Files, options: Options, settings: Settings | None, content: str, cwd: Path | None, ask: bool
) -> tuple[TurnEnd, str]:
    async with Session(files, options, cwd, settings, _widest(files)) as session:
        worker = Worker(session)
        item = {"type": "message", "content": content, "ask": ask, "origin": {"by": "send", "program": "cass -p"}}
        await _serve(worker, until=inbox.put(files, item))
        if worker.end is None:
            raise Interrupted("interrupted before the turn began; the message waits in the chat")
        outlook = Outlook()
        for record in session.records:
            outlook.add(record)
        return worker.end, outlook.last


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


def _widest(files: Files) -> Mode:
    """The mode that this worker may not exceed: whoever is started by a tool gets no more than the tool's chat has."""
    parent = os.environ.get("CASS_CHAT")
    if not parent or parent == files.chat_id:
        return Mode.FULL_ACCESS
    above = files.home.files(parent)
    try:
        return Mode(str(presence.holder(above).get("mode"))) if presence.is_running(above) else Mode.READ_ONLY
    except ValueError:
        return Mode.READ_ONLY


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
