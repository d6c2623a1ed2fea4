"""A session: one chat held for writing, and its turns. The embedding API, and what every program runs.

    from cass import Session
    from cass.records import ApprovalRequest, Delta

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Self, Unpack

from cass import (
    attachments,
    briefing,
    catalogue,
    chat,
    config,
    elder,
    ends,
    gallery,
    heir,
    jsonl,
    loop,
    opening,
    providers,
    summary,
    variables,
)
from cass.access import Mode
from cass.agents import Agents
from cass.bill import Bill
from cass.brought import Brought, Chosen
from cass.config import Options, Settings
from cass.decisions import Answer
from cass.desk import Desk
from cass.edition import Edition
from cass.errors import CassError, ConfigError, UsageError
from cass.home import Files, Home
from cass.hooked import Hooked
from cass.mcp import servers
from cass.mcp.link import Link
from cass.providers import Provider
from cass.questions import Questions
from cass.records import (
    Approval,
    ApprovalRequest,
    Attachment,
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
from cass.rules import denied_paths
from cass.snapshots import Journal
from cass.superior import Superior
from cass.toolbox import Toolbox
from cass.tools import hidden, sandbox
from cass.tools.host import HostTool
from cass.tools.paths import Place
from cass.turn import Turn

_LIVE = (Delta, ToolStarted, ToolOutput, ApprovalRequest, Status, Notice)


class Session:
    """One chat held for writing. Open it with `new` or `resume`, close it with `close` or ``async with``."""

    def __init__(
        self,
        files: Files,
        options: Options,
        cwd: Path | None = None,
        settings: Settings | None = None,
        superior: Superior | None = None,
        brought: Brought | None = None,
    ) -> None:
        """Lock and mend the chat. Raises NoChat, Held, ConfigError, MissingKey, ChatBroken."""
        if elder.wrote(files.chat):
            raise UsageError(f"Cassady 0.4 wrote this chat; go on with it: cass --resume {files.chat_id}")
        found = chat.read(files)
        self.settings: Settings = settings or opening.settings_of(found, files.home, options)
        self._brought = brought or Brought()
        self._edition = Edition(files.home, options.config)
        config.require_key(self.settings)
        if self.settings.sandbox and (why := sandbox.problem()):
            raise ConfigError(f'--sandbox, or "sandbox" in the configuration, cannot be had: {why}')
        self._options, self._provider = options, self.settings.connection.provider
        self.superior = superior or Superior()
        meta = chat.meta(found)
        if meta is None:
            raise CassError(f"{files.chat} holds no meta record: it is no chat")
        root = opening.workspace(str(cwd or meta.cwd))
        self.settings = self.settings._replace(mode=self.superior.admit(self.settings.mode, meta, root, files.home))
        opening.check_mode(self.settings.mode, root, files.home)
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
        self._questions = Questions()
        self._closing: list[asyncio.Future[None]] = []
        self.notices: tuple[str, ...] = ()
        """What the person should know of the settings and of the project's instructions."""
        try:
            self.desk = self._make_desk(root)
            self.mcp = Link.of(files, root, lambda: self.desk.place.environ, self._tell_news)
            self.desk.secrets += self.mcp.secrets
            self._mend(root)
        except BaseException:
            self.live.close()
            self.chat.close()
            raise

    @classmethod
    async def new(
        cls,
        *,
        home: str | Path | None = None,
        cwd: str | Path = ".",
        provider: str | Provider | None = None,
        tools: Iterable[HostTool] = (),
        **options: Unpack[Chosen],
    ) -> Self:
        """A new chat in the directory `cwd`. Raises ConfigError, MissingKey, UsageError.

        `provider`: its id, or an object that answers; the session closes it. `tools`: those of the host program.
        """
        found, brought = _home(home), Brought.of(provider, tools, options)
        settings = config.with_instructions(brought.settings(found), found, opening.workspace(str(cwd)))
        config.require_key(settings)
        files = opening.new(found, Path(cwd), settings, brought.options)
        return cls(files, brought.options, settings=settings, brought=brought)

    @classmethod
    async def resume(
        cls,
        id: str,
        *,
        home: str | Path | None = None,
        cwd: str | Path | None = None,
        provider: str | Provider | None = None,
        tools: Iterable[HostTool] = (),
        **options: Unpack[Chosen],
    ) -> Self:
        """The chat of that id, or of a part of it that no other has; `cwd` moves it to another directory.

        One that Cassady 0.4 wrote goes on in a new chat. Raises NoChat, and Held where a worker has it: nothing is
        written then.
        """
        found, brought = _home(home), Brought.of(provider, tools, options)
        settings = brought.settings(found) if brought.provider is not None else None
        files = heir.of(catalogue.find(found, id), lambda _: None)
        return cls(files, brought.options, Path(cwd) if cwd else None, settings, brought=brought)

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
        await asyncio.gather(self.mcp.close(), self.desk.provider.aclose(), *self._closing)

    # ---- turns

    def turn(self, content: str | User, *, ask: bool = True, attach: Sequence[str | Path] = ()) -> Turn:
        """A turn that answers `content`, begun when it is entered; `attach` names images that go with it.

        Raises UsageError while another one runs, and for a file that is no image or too large.
        """
        if self._busy:
            raise UsageError("a turn is running in this session: finish or leave it first")
        if not isinstance(content, User):
            found = attachments.every(self.files.home, attach)
            content = self.user(content, ask=ask, origin={"by": "api"}, attached=found)
        return Turn(self, loop.turn(self.desk, content), content.id)

    def compact(self, focus: str | None = None) -> Turn:
        """Replace the history by a summary of the model's. Iterate it as a turn; a failure raises CassError."""
        if self._busy:
            raise UsageError("a turn is running in this session: finish or leave it first")
        return Turn(self, summary.compact(self.desk, focus))

    async def clear(self) -> None:
        """Leave the history out of later requests; the file keeps it."""
        used = self.desk.used() or 0
        await self.keep(Compaction(summary="", first_kept_id=None, tokens_before=used, created_at=jsonl.now()))

    def user(
        self,
        content: str,
        *,
        ask: bool,
        origin: dict[str, Any],
        id: str | None = None,
        attached: tuple[Attachment, ...] = (),
    ) -> User:
        """A user message, with the note that tells the model what it does not know yet."""
        desk = self.desk
        if not self._busy:  # a turn keeps the tools that it began with, and so does the prefix of its requests
            desk.toolbox.settle(self.mcp.tools())
            self._tell_changes()
        return User(
            id=id or jsonl.new_id(),
            content=content,
            note=briefing.note(desk, self.files.home, self.records),
            mode=desk.mode,
            provider=desk.provider_name,
            model=desk.model,
            effort=desk.effort,
            ask=ask,
            origin=origin,
            attachments=attached,
            created_at=jsonl.now(),
        )

    # ---- what the person decides

    def set_mode(self, mode: Mode) -> None:
        """A narrower mode holds at once, a wider one from the next turn. Raises UsageError where it cannot be."""
        widest = self.desk.ceiling()
        if mode.width > widest.width:
            raise UsageError(f"a worker that a tool of another chat started is never wider than {widest}")
        opening.check_mode(mode, self.desk.place.root, self.files.home)
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
            given = self._flags(wanted)._replace(provider=wanted, model=model, effort=effort)
            settings = config.load(self.files.home, given, os.environ)
            config.require_key(settings)
            left, self.desk.provider = self.desk.provider, providers.connect(settings.connection)
            self._closing.append(asyncio.ensure_future(left.aclose()))  # its connections, and a server of its own
        before, self.settings = self.settings, settings
        self.desk.place = replace(self.desk.place, environ=variables.given(self.settings, self.files))
        self.desk.secrets = (*variables.withheld(self.settings, self.files), *self.mcp.secrets)
        self.desk.use(settings, before)
        self.show(self.state)

    def _is_changed(self) -> bool:
        """Whether the files say something else about the provider in use than they did, such as another key."""
        provider = self.desk.provider_name
        given = self._flags(provider)._replace(provider=provider)
        with contextlib.suppress(ConfigError):
            found = config.load(self.files.home, given, os.environ).connection
            return found.base_url == self.settings.connection.base_url and found != self.settings.connection
        return False

    def _flags(self, provider: str) -> Options:
        """What the command line said; an address and a key were said of the provider that this session began with."""
        return self._options if provider == self._provider else self._options._replace(base_url=None, api_key_env=None)

    def answer(self, request_id: str, answer: Answer) -> str | None:
        """Hand a decision to the turn that waits for it; the first wins. Return why it came to nothing, else None."""
        request = self._questions.pending(request_id)
        problem = self._questions.answer(request_id, answer)
        if answer.rule and not problem and not (request and request.agent):  # that of an agent holds there alone
            self.desk.rules = self.desk.rules.allowing(answer.rule)
        return problem

    def pending(self, request_id: str) -> ApprovalRequest | None:
        """The request that waits for a decision, if it does."""
        return self._questions.pending(request_id)

    # ---- records

    async def keep(self, record: Record) -> None:
        """Write a record where it belongs: facts into the chat, what is only true for now into the live file."""
        if isinstance(record, _LIVE):
            self.live.write(record)
            if isinstance(record, Status):
                self.state = record.state
            elif isinstance(record, ApprovalRequest):
                self._questions.put(record)
            self.tell(record)
            return
        self.chat.append(record)
        if isinstance(record, Approval):
            self._questions.settle(record)
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
        self._questions.clear()
        self.state, self.desk.turn = "thinking", turn
        self.live.begin(self.desk.status("thinking"))

    def end(self) -> None:
        self._busy = False
        self._questions.clear()
        self.desk.turn = ""
        self.show("idle")

    def repair(self, reason: str) -> None:
        """Close what a turn left open that did not come to its end."""
        for record in ends.closing(self.records, reason, jsonl.now()):
            self.chat.append(record)

    # ---- opening

    def _make_desk(self, root: Path) -> Desk:
        """Raises UsageError for tools that there are not."""
        toolbox = self._toolbox(root)
        settings = self.settings
        connection = settings.connection
        return Desk(
            records=self.chat.records,
            provider=self._brought.provider or providers.connect(connection),
            toolbox=toolbox,
            hooked=Hooked.of(settings.hooks),
            place=Place(
                root=root,
                home=Path(os.path.realpath(self.files.home.root)),
                out=self.files.out,
                call_id="",
                chat_id=self.files.chat_id,
                seen=chat.seen(self.chat.records),
                environ=variables.given(self.settings, self.files),
                net=settings.net,
                writable=settings.sandbox_write,
                denied=denied_paths(settings.rules),
                kept=cache(partial(hidden.kept_in, str(root), os.environ)),
                private_hosts=settings.fetch_private,
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
            refused=lambda one: gallery.refusal(self.settings.connection.kind, self.settings.facts.images, one),
            image=partial(attachments.content, self.files.home),
            answer=self._questions.answer_to,
            ceiling=partial(self.superior.widest_at, root, self.files.home),
            is_steered=lambda: self.is_steered(),
            steering=lambda: self.steering(),
            secrets=variables.withheld(self.settings, self.files),
            sandbox=settings.sandbox,
            keeping=Journal(self.files, chat.family(self.chat.records, self.files)).of_call,
        )

    def _toolbox(self, root: Path) -> Toolbox:
        """The tools that are wanted; what is wrong with the person's own is a notice. Raises UsageError."""
        found, wrong = self._brought.toolbox.joined(
            self.files.home.root / "tools", variables.given(self.settings, self.files)
        )
        if self._brought.provider is None:
            Agents.offer(found, self.files, self.chat.records, self.settings, lambda: self.desk, self._flags_now)
        if self.settings.tools is not None:
            named = servers.load(self.files.home, root, os.environ).servers
            found.narrow(self.settings.tools, [server.name for server in named])
        said = (*self.settings.notices, *wrong, *found.strangers(self.settings.rules))
        self.settings = self.settings._replace(notices=said)
        return found

    def _flags_now(self) -> Options:
        """What a worker is to be told that asks the same model in the same way."""
        desk, meta = self.desk, chat.meta(self.records)
        base_url = meta.base_url if meta is not None and desk.provider_name == self._provider else None
        options = self._flags(desk.provider_name)
        options = options._replace(base_url=options.base_url or base_url)
        return options._replace(provider=desk.provider_name, model=desk.model, effort=desk.effort)

    def _mend(self, root: Path) -> None:
        """Close what a dead worker left open, and record a new workspace."""
        self.repair("the worker ended")
        if moved := opening.move(self.records, str(root), self.settings):
            self.chat.append(moved)
        self.live.begin(self.desk.status("idle"))
        told = self.settings.instructions or config.instructions(self.files.home, root)
        self.notices = (*self.settings.notices, *self.mcp.notices, *opening.news(self.records, told))
        # That the demo is none is said by every screen already.
        said = [text for text in self.notices if not text.startswith("demo:")]
        for notice in [*chat.damage(self.records), *(Notice(level="info", text=text) for text in said)]:
            self.live.write(notice)

    def _tell_changes(self) -> None:
        """Say which of the person's files were changed: this session goes on with what it has read."""
        how = f"end this worker, and say something: cass stop {self.id}"
        for path in self._edition.news():
            self._tell_news(Notice(level="warning", text=f"{path} was changed; to have that in this chat, {how}"))

    def _tell_news(self, notice: Notice) -> None:
        """Something about the servers, while the session goes on."""
        with contextlib.suppress(CassError, OSError, ValueError):  # it is being closed
            self.live.write(notice)
            self.tell(notice)


def _home(root: str | Path | None) -> Home:
    """``CASS_HOME``, else ``~/.cass``, where no other one is named."""
    return Home.find() if root is None else Home(Path(root).expanduser().absolute())
