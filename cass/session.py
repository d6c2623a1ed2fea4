"""A session: one chat held for writing, and its turns. The embedding API, and what every program runs.

    async with await Session.new(cwd=".") as session:
        async with session.turn("Where is main defined?") as turn:
            async for record in turn:
                match record:
                    case Delta(text=str(text)):
                        print(text, end="")
                    case ApprovalRequest(request_id=id):
                        turn.deny(id)

Experimental: it may change before 1.0.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cass import (
    access,
    agent,
    catalogue,
    chat,
    config,
    context,
    decisions,
    jsonl,
    opening,
    prompt,
    providers,
    records,
    summary,
)
from cass.access import Mode
from cass.bill import Bill
from cass.config import Options, Settings
from cass.desk import Answer, Desk
from cass.environment import for_tools
from cass.errors import CassError, ConfigError, Interrupted, UsageError
from cass.home import Files, Home
from cass.records import (
    ApprovalRequest,
    Compaction,
    Delta,
    Notice,
    Record,
    Status,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    User,
)
from cass.rules import RUNS, denied_paths
from cass.snapshots import Journal
from cass.tools import sandbox
from cass.tools.paths import Place

_LIVE = (Delta, ToolStarted, ToolOutput, ApprovalRequest, Status, Notice)


class Session:
    """One chat held for writing. Open it with `new` or `resume`, close it with `close` or ``async with``."""

    def __init__(
        self,
        files: Files,
        options: Options,
        cwd: Path | None = None,
        settings: Settings | None = None,
        widest: Mode = Mode.FULL_ACCESS,
    ) -> None:
        """Lock and mend the chat. Raises NoChat, Held, ConfigError, MissingKey, ChatBroken."""
        found = chat.read(files)
        self.settings: Settings = settings or opening.settings_of(found, files.home, options)
        config.require_key(self.settings)
        if self.settings.sandbox and (why := sandbox.problem()):
            raise ConfigError(f'--sandbox, or "sandbox" in the configuration, cannot be had: {why}')
        self._options, self._provider = options, self.settings.connection.provider
        self._widest = widest
        if self.settings.mode.width > widest.width:
            self.settings = replace(self.settings, mode=widest)
        meta = chat.meta(found)
        if meta is None:
            raise CassError(f"{files.chat} holds no meta record: it is no chat")
        root = opening.workspace(str(cwd or meta.cwd))
        opening.check_mode(self.settings.mode, root)
        self.settings = opening.of_project(self.settings, files.home, root)
        self.files = files
        self.chat = chat.Chat(files, self.settings.mode)
        self.live = chat.LiveFile(files)
        self.tell: Callable[[Record], None] = lambda _: None
        """Is given each record of a turn as it comes."""
        self.is_steered: Callable[[], bool] = lambda: False
        self.steering: Callable[[], User | None] = lambda: None
        self.state = "idle"
        self._busy = False
        self._pending: ApprovalRequest | None = None
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._decided: dict[str, str] = {}
        self.desk = self._make_desk(root)
        self.notices: tuple[str, ...] = ()
        """What the person should know of the settings and of the project's instructions."""
        self._mend(root)

    @classmethod
    async def new(cls, *, home: Path | None = None, cwd: str | Path = ".", **options: Any) -> Self:
        """A new chat; `options` as on the command line: `mode`, `provider`, `model`, `base_url`, `api_key_env` …"""
        found = Home(home) if home else Home.find()
        given = Options(**options)
        settings = config.load(found, given, os.environ)
        return cls(opening.new(found, Path(cwd), settings, given), given, settings=settings)

    @classmethod
    async def resume(cls, id: str, *, home: Path | None = None, cwd: str | Path | None = None, **options: Any) -> Self:
        """A chat that exists. Raises Held where a worker has it: nothing is written then."""
        files = catalogue.find(Home(home) if home else Home.find(), id)
        return cls(files, Options(**options), Path(cwd) if cwd else None)

    @property
    def id(self) -> str:
        return self.files.chat_id

    @property
    def records(self) -> list[Record]:
        """All that the chat holds."""
        return self.chat.records

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._busy

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the chat up. A turn that still runs must have been left first."""
        self.live.close()
        self.chat.close()
        await self.desk.provider.aclose()

    # ---- turns

    def turn(self, content: str | User, *, ask: bool = True) -> "Turn":
        """A turn that answers `content`, begun when it is entered. Raises UsageError while another one runs."""
        if self._busy:
            raise UsageError("a turn is running in this session: finish or leave it first")
        user = content if isinstance(content, User) else self.user(content, ask=ask, origin={"by": "api"})
        return Turn(self, agent.turn(self.desk, user), user.id)

    def compact(self, focus: str | None = None) -> "Turn":
        """Replace the history by a summary of the model's. Iterate it as a turn; a failure raises CassError."""
        if self._busy:
            raise UsageError("a turn is running in this session: finish or leave it first")
        return Turn(self, summary.compact(self.desk, focus))

    async def clear(self) -> None:
        """Leave the history out of later requests; the file keeps it."""
        used = context.used(self.records, self.desk.max_tool_output) or 0
        await self.keep(Compaction(summary="", first_kept_id=None, tokens_before=used, created_at=jsonl.now()))

    def user(self, content: str, *, ask: bool, origin: dict[str, Any], id: str | None = None) -> User:
        """A user message, with the note that tells the model what it does not know yet."""
        desk = self.desk
        facts = prompt.facts(
            mode=desk.mode,
            tools=sorted(access.tools(desk.mode)),
            workspace=str(desk.place.root),
            bounded=desk.mode is not Mode.FULL_ACCESS,
            model=desk.model,
            system=" ".join(os.uname()[i] for i in (0, 2, 4)),
            date=time.strftime("%Y-%m-%d"),
            shell=self._shell(),
        )
        return User(
            id=id or jsonl.new_id(),
            content=content,
            note=prompt.note(facts, context.kept(self.records)),
            mode=desk.mode,
            provider=desk.provider_name,
            model=desk.model,
            effort=desk.effort,
            ask=ask,
            origin=origin,
            created_at=jsonl.now(),
        )

    def _shell(self) -> str | None:
        """How commands are held in, for the model; None where there are none."""
        if not RUNS & access.tools(self.desk.mode):
            return None
        held = sandbox.holds(self.desk.mode, self.desk.sandbox)
        return sandbox.words(self.desk.place.net) if held else "not sandboxed"

    # ---- what the person decides

    def set_mode(self, mode: Mode) -> None:
        """A narrower mode holds at once, a wider one from the next turn. Raises UsageError where it cannot be."""
        if mode.width > self._widest.width:
            raise UsageError(f"a worker that a tool of another chat started is never wider than {self._widest}")
        opening.check_mode(mode, self.desk.place.root)
        self.desk.mode = mode
        self.chat.sign(mode)
        self.show(self.state)

    def set_model(self, provider: str | None, model: str | None, effort: str | None = None) -> None:
        """Go on with another model. Raises ConfigError or MissingKey, and then nothing changes."""
        wanted = provider or self.desk.provider_name
        if wanted == self.desk.provider_name:
            model, effort = model or self.desk.model, effort or self.desk.effort
        if wanted == self.desk.provider_name and not self._is_changed():
            settings = config.with_model(self.settings, self.files.home, model or self.desk.model, effort)
        else:
            given = replace(self._flags(wanted), provider=wanted, model=model, effort=effort)
            settings = config.load(self.files.home, given, os.environ)
            config.require_key(settings)
            self.desk.provider = providers.connect(settings.connection)
        self.settings = settings
        self.desk.place = replace(self.desk.place, environ=self._environ())
        self.desk.key = settings.connection.api_key
        self.desk.provider_name = settings.connection.provider
        self.desk.model, self.desk.effort = settings.model, settings.effort
        self.desk.context_limit, self.desk.max_tokens = settings.context_limit, settings.max_tokens
        self.desk.context_assumed, self.desk.bill.facts = settings.context_assumed, settings.facts
        self.desk.supports_tools = settings.supports_tools
        self.show(self.state)

    def _is_changed(self) -> bool:
        """Whether the files say something else about the provider in use than they did, such as another key."""
        provider = self.desk.provider_name
        given = replace(self._flags(provider), provider=provider)
        with contextlib.suppress(ConfigError):
            found = config.load(self.files.home, given, os.environ).connection
            return found.base_url == self.settings.connection.base_url and found != self.settings.connection
        return False

    def _flags(self, provider: str) -> Options:
        """What the command line said; an address and a key were said of the provider that this session began with."""
        return self._options if provider == self._provider else replace(self._options, base_url=None, api_key_env=None)

    def answer(self, request_id: str, answer: Answer) -> str | None:
        """Hand a decision to the turn that waits for it; the first wins. Return why it came to nothing, else None."""
        if request_id in self._decided:
            return f"already decided: {self._decided[request_id]}"
        waiting = self._asked.get(request_id)
        if waiting is None or waiting.done():
            return f"no request {request_id!r} is waiting"
        if answer.rule:
            self.desk.rules = self.desk.rules.allowing(answer.rule)
        self._decided[request_id] = f"{'approved' if answer.approved else 'denied'} by {answer.by}"
        waiting.set_result(answer)
        return None

    def pending(self, request_id: str) -> ApprovalRequest | None:
        """The request that waits for a decision, if it does."""
        return self._pending if self._pending is not None and self._pending.request_id == request_id else None

    # ---- records

    async def keep(self, record: Record) -> None:
        """Write a record where it belongs: facts into the chat, what is only true for now into the live file."""
        if isinstance(record, _LIVE):
            self.live.write(record)
            if isinstance(record, Status):
                self.state = record.state
            elif isinstance(record, ApprovalRequest):
                self._pending = record
                self._ask(record.request_id)  # it can be answered from now on, before the turn waits for it
            self.tell(record)
            return
        self.chat.append(record)
        if isinstance(record, (User, TurnEnd)) or (isinstance(record, ToolResult) and record.seen is not None):
            await asyncio.to_thread(self.chat.sync)
        self.tell(record)

    def show(self, state: str) -> None:
        """Say in the live file what the worker does."""
        self.state = state
        self.live.write(self.desk.status(state))

    def begin(self, turn: str) -> None:
        """A turn begins: a new live file. Raises UsageError while another one runs, ChatBroken."""
        if self._busy:
            raise UsageError("a turn is running in this session: finish or leave it first")
        self.chat.check()
        self._busy = True
        self._pending = None
        self._asked.clear()
        self.state, self.desk.turn = "thinking", turn
        self.live.begin(self.desk.status("thinking"))

    def end(self) -> None:
        self._busy = False
        self._pending = None
        self.desk.turn = ""
        self.show("idle")

    def repair(self, reason: str) -> None:
        """Close what a turn left open that did not come to its end."""
        for record in records.closing(self.records, reason, jsonl.now()):
            self.chat.append(record)

    # ---- opening

    def _make_desk(self, root: Path) -> Desk:
        settings = self.settings
        connection = settings.connection
        return Desk(
            records=self.chat.records,
            provider=providers.connect(connection),
            place=Place(
                root=root,
                home=Path(os.path.realpath(self.files.home.root)),
                out=self.files.out,
                call_id="",
                chat_id=self.files.chat_id,
                seen=_seen(self.chat.records),
                environ=self._environ(),
                net=settings.net,
                denied=denied_paths(settings.rules),
            ),
            model=settings.model,
            provider_name=connection.provider,
            mode=settings.mode,
            rules=settings.rules,
            effort=settings.effort,
            max_tokens=settings.max_tokens,
            max_turns=settings.max_turns,
            max_tool_output=settings.max_tool_output,
            context_limit=settings.context_limit,
            context_assumed=settings.context_assumed,
            bill=Bill(settings.facts, settings.max_cost),
            supports_tools=settings.supports_tools,
            answer=self._ask,
            is_steered=lambda: self.is_steered(),
            steering=lambda: self.steering(),
            key=connection.api_key,
            sandbox=settings.sandbox,
            keeping=Journal(self.files, chat.family(self.chat.records, self.files)).of_call,
        )

    def _mend(self, root: Path) -> None:
        """Close what a dead worker left open, and record a new workspace."""
        self.repair("the worker ended")
        if moved := opening.move(self.records, str(root), self.settings):
            self.chat.append(moved)
        self.live.begin(self.desk.status("idle"))
        self.notices = (*self.settings.notices, *opening.news(self.records, self.files.home, root))
        # That the demo is none is said by every screen already.
        said = [text for text in self.notices if not text.startswith("demo:")]
        for notice in [*chat.damage(self.records), *(Notice(level="info", text=text) for text in said)]:
            self.live.write(notice)

    def _environ(self) -> dict[str, str]:
        """The environment for tools."""
        kept = for_tools(
            os.environ,
            keys=config.secret_names(self.files.home) | {self.settings.connection.api_key_env},
            in_use=self.settings.connection.api_key,
            passed=self.settings.shell_env,
        )
        return kept | {decisions.TOOL_MARK: self.files.chat_id}

    def _ask(self, request_id: str) -> "asyncio.Future[Answer]":
        if request_id not in self._asked:
            self._asked[request_id] = asyncio.get_running_loop().create_future()
        return self._asked[request_id]


class Turn:
    """A running turn: iterate it for its records; leaving it early cancels it and leaves the chat valid."""

    def __init__(self, session: Session, found: AsyncGenerator[Record, None], id: str = "") -> None:
        """`id` is that of the user message; "" where there is none."""
        self._session = session
        self._records = found
        self._id = id
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._thrown = False
        self._uncancel = False
        self._over = False

    async def __aenter__(self) -> Self:
        self._session.begin(self._id)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if not self._over:
                await self.cancel()
        finally:
            self._session.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        try:
            record = await self._step()
            await self._session.keep(record)
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
        request = self._session.pending(request_id)
        rule = request.rule if request is not None and always else None
        self._decide(request_id, Answer(True, by, rule=rule))

    def deny(self, request_id: str, reason: str | None = None, *, by: str = "the host program") -> None:
        """Refuse what was asked; the model reads `reason`. Raises UsageError where nothing waits."""
        self._decide(request_id, Answer(False, by, reason))

    def _decide(self, request_id: str, answer: Answer) -> None:
        if problem := self._session.answer(request_id, answer):
            raise UsageError(problem)


def _seen(found: list[Record]) -> dict[str, str]:
    """What the model knows of files, from what its tools have told it."""
    seen: dict[str, str] = {}
    for record in found:
        if isinstance(record, ToolResult) and record.seen:
            seen.update(record.seen)
    return seen
