"""The composer: one person's keyboard at a chat.

It follows the chat, puts messages into the inbox, asks the worker for decisions, and never writes to the chat. Any
number of composers may be at one chat; each has its own draft, and a question that one answers closes in all.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from cass import commands, jsonl, preferences
from cass.composer import expansion, footer, helper, keys, mentions, models, pager, picker
from cass.composer.asking import Asking
from cass.composer.attention import Attention
from cass.composer.branching import Branching
from cass.composer.choice import Choice
from cass.composer.console import Console
from cass.composer.draft import Draft
from cass.composer.employer import Employer
from cass.composer.errands import Errands
from cass.composer.footer import Surroundings
from cass.composer.git import branch
from cass.composer.keyboard import Keyboard
from cass.composer.pastes import Pastes
from cass.composer.question import Fragments
from cass.composer.recall import Recall
from cass.composer.rows import fold
from cass.composer.seat import Seat
from cass.composer.slash import Slash
from cass.composer.transcript import ALL_ROWS, Inline, Paned, Transcript
from cass.composer.words import READ_S, Words
from cass.errors import CassError
from cass.home import Files
from cass.records import Approval, Attachment, Record, TurnEnd
from cass.standing import STARTING, STOPPED
from cass.visible import safe_line

DRAFT_EVERY_S = 0.3
LOOK_BUSY_S = 0.03
LOOK_IDLE_S = 0.2
"""How often the chat is looked at: a look is a handful of stats, some 50 µs."""
TAKEN_WITHIN_S = 0.4
ROWS_BELOW_ANSWER = 5
LAYOUTS = ("inline", "panes", "none")


class Composer:
    def __init__(
        self,
        files: Files,
        *,
        layout: str,
        worker_flags: Sequence[str] = (),
        switch: Callable[[Sequence[str]], None] | None = None,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self.seat = Seat(files, worker_flags)
        wanted = preferences.read(files.home)
        self.pastes = Pastes()
        recall = Recall(files.home.history, self.cwd, self.pastes)
        vi = wanted.get("editing") == "vi"
        self.console = Console(self, recall, self.pastes.shown, vi=vi, input=input, output=output)
        self.attention = Attention(
            files.chat_id,
            self.send_to_terminal,
            os.environ,
            notify=wanted.get("notify", "bell"),
            titled=layout == "inline",
        )
        self.errands = Errands(self.console, self.cwd, self.hint)
        self.asking = Asking(self.seat, self.console, self.decide)
        self.transcript = Transcript()
        if layout == "inline":
            self.transcript = Inline(files, self.console, self._warn)
        elif layout == "panes":
            self.transcript = Paned(files, self.console, self._warn)
        self.branching = Branching(self)
        self.choice = Choice(self)
        self._slash = Slash(self)
        self._switch = switch
        self._draft = Draft(files)
        self._words = Words()
        self._employer = Employer(self.seat, self, self.put_back)
        self._branch = ""
        self._failed: list[str] = []
        """What a turn failed on, until the keyboard is quiet."""
        self._picks = False
        """Whether the person chooses from a list."""
        self._jobs: set[asyncio.Task[None]] = set()
        self._drawn: tuple[object, ...] = ()
        self._keyboard = Keyboard(self)
        self.console.app.key_bindings = self._keyboard.bindings()
        self.console.app.key_processor.before_key_press += lambda _: self._words.key_begins()
        self.console.app.key_processor.after_key_press += lambda _: self._key_ends()

    # ---- running

    async def run(self, early: bytes = b"", launcher: int = 0, greeting: str = "") -> int:
        """Be there until the person leaves; return the exit status."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is a key; a signal is meant for somebody else
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, self.console.leave, 128 + number)
        self.put_back([text] if (text := self._draft.load()) else [])
        keys.feed(self.console.app.input, early)
        self.do(self._follow(launcher, greeting))
        try:
            return await self.console.run()
        finally:
            await self._close()

    async def _close(self) -> None:
        jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await self.transcript.close()
        self.attention.close()
        self._save_draft()
        self._draft.close()
        self.seat.close()

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the keyboard; a bug in it ends the composer with its traceback."""
        job = asyncio.get_running_loop().create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._done)

    def _done(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        future = self.console.app.future
        if not job.cancelled() and (error := job.exception()) and future and not future.done():
            future.set_exception(error)

    async def _follow(self, launcher: int, greeting: str) -> None:
        """Look at the chat as long as there is a terminal, and a launcher where there was one."""
        await self.console.drawn.wait()  # the prompt stands before anything else is started
        self.seat.look()
        self._employer.begin()
        if greeting:
            self.console.print(fold(greeting, self.console.columns))
        self.do(self._show())
        saved_at = 0.0
        while not self.console.terminal.is_gone and launcher in (0, os.getppid()):
            self._look()
            if time.monotonic() - saved_at > DRAFT_EVERY_S:
                self._save_draft()
                self._branch = branch(self.cwd())
                saved_at = time.monotonic()
            is_near = self.seat.is_busy or self._employer.is_starting or self.asking.question
            await asyncio.sleep(LOOK_BUSY_S if is_near else LOOK_IDLE_S)
        self.console.leave(128 + signal.SIGHUP)

    def _look(self) -> None:
        was_running = self.seat.is_running
        for record in self.seat.look():
            self._hear(record)
        self._give_back()
        self._employer.look(was_running)
        self.transcript.resize()
        self._fit()
        if self.asking.update():
            self.attention.call("an approval waits for you")
        self._show_state()
        self._draw_if_changed()

    def _fit(self) -> None:
        is_asked = self.asking.question is not None
        rows = ALL_ROWS if self.asking.is_long() or self._picks else self.console.wanted_rows()
        self.transcript.fit(rows, may_shrink=not is_asked)

    def _show_state(self) -> None:
        if command := self.attention.show(self.state):
            self.do(self._tell(command))

    @staticmethod
    async def _tell(command: Sequence[str]) -> None:
        """Run a program; what becomes of it is not needed."""
        await helper.told(command)

    def _draw_if_changed(self) -> None:
        seat, question = self.seat, self.asking.question
        words = (str(self._words.noticed), self._hinted())
        drawn = (seat.standing, seat.is_running, self._employer.is_starting, tuple(self._queued()), words, self._branch)
        asked = (str(question), self.asking.takes_answers())
        drawn_now = (drawn, asked, int(self._elapsed()) if seat.is_busy else 0)
        if drawn_now != self._drawn:
            self._drawn = drawn_now
            self.console.redraw()

    def _hear(self, record: Record) -> None:
        match record:
            case Approval():
                if words := self.asking.answered_elsewhere(record):
                    self.hint(words)
            case TurnEnd():
                self.attention.call(f"the turn is {record.outcome}")
                self._failed += self.seat.failed(record)
            case _:
                pass

    def _give_back(self) -> None:
        """Put what failed into an empty draft once the keyboard is quiet: it must not join what is typed just then."""
        if self._failed and (self.draft or self.asking.is_quiet()):
            texts, self._failed = self._failed, []
            if not self.draft:
                self.put_back(texts)

    def _save_draft(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the draft is still on the screen
            self._draft.save(self.draft)

    async def _show(self) -> None:
        """Show the transcript where it was asked for, else here."""
        try:
            await self.transcript.show()
        except CassError as e:
            self._warn(f"no pane for the viewer: {safe_line(str(e))}; it is shown here")
            self.transcript = Inline(self.seat.files, self.console, self._warn)
            await self.transcript.show()

    def decide(self, decision: dict[str, Any]) -> None:
        self.do(self._ask(decision))

    async def _ask(self, request: dict[str, Any]) -> None:
        try:
            await asyncio.to_thread(self.seat.ask, request)
        except CassError as e:
            self.hint(safe_line(str(e)))
            self.asking.not_taken()

    # ---- what the console shows

    def live(self) -> str:
        return "" if self.asking.question else self.transcript.live  # which it shows in full

    def waiting(self) -> Fragments:
        texts = self._queued()
        return footer.queue_lines(texts, self.console.columns) if texts else []

    def _queued(self) -> list[str]:
        """What waits, but for what an idle worker is just taking: it would come and go within a blink."""
        return self.seat.waiting(0 if self.seat.standing.is_busy else TAKEN_WITHIN_S)

    def noticed(self) -> Fragments:
        return [(style, fold(text, self.console.columns)) for style, text in self._words.noticed]

    def question(self) -> Fragments:
        return self.asking.fragments()

    def status(self, width: int) -> Fragments:
        seat = self.seat
        around = Surroundings(
            seat.files.chat_id, self.state, self._elapsed(), len(self._queued()), self._branch, os.path.expanduser("~")
        )
        return footer.status_line(seat.standing, around, width)

    @property
    def state(self) -> str:
        """What the worker does, or that it is starting, or stopped."""
        if not self.seat.is_running and not self._employer.is_starting:
            return STOPPED
        return self.seat.standing.state or STARTING

    def help(self, width: int, room: bool) -> Fragments:
        if hint := self._hinted():
            return [("class:warning", fold(hint, width))]
        return footer.help_line(width, room)

    def mode(self) -> str:
        return self.seat.standing.mode

    def cwd(self) -> str:
        return self.seat.standing.cwd or os.getcwd()

    def own_commands(self) -> list[commands.Command]:
        return expansion.found(self.seat.files.home, Path(self.cwd()))

    def providers(self) -> list[str]:
        return models.providers(self.seat.files.home)

    def is_hinted(self, text: str) -> bool:
        """Whether this hint stands on the screen."""
        return self._hinted() == text

    def _hinted(self) -> str:
        return self._words.hinted(time.monotonic())

    def _elapsed(self) -> float:
        since = self.seat.standing.since
        return max(time.time() - datetime.fromisoformat(since).timestamp(), 0) if since else 0

    def notice(self, style: str, text: str) -> None:
        """Show a line above the draft until it was read; `style` is ``warning`` or ``error``."""
        self._words.notice(style, text, time.monotonic())
        self.console.redraw()

    def _warn(self, text: str) -> None:
        self.notice("warning", text)

    def _key_ends(self) -> None:
        if self._keyboard.takes_report():
            self._words.report_ends()
            return
        self._words.key_ends(time.monotonic())
        self.asking.key_came()

    # ---- what keys and slash commands do

    def say(self, command: str, text: str) -> None:
        """Print the answer to a command, under what was asked and apart from what stands above."""
        text = fold(text, self.console.columns)
        lines = text.splitlines()
        if self.transcript.is_above and len(lines) > self.console.size.rows - ROWS_BELOW_ANSWER:
            self.pick(command, lines, lambda _: None)  # most of it would be out of sight
            return
        self.console.print(f"\n❯ {safe_line(command)}\n{text}")

    def hint(self, text: str, seconds: float = READ_S) -> None:
        self._words.hint(text, time.monotonic(), seconds)
        self.console.redraw()

    def leave(self, *switch_to: str) -> None:
        if switch_to and self._switch is None:
            raise CassError(f"leave, then: cass {shlex.join(switch_to)}")
        if switch_to and self._switch is not None:
            self._switch(switch_to)
        self.console.leave(0)

    def take_back(self, name: str) -> None:
        if not self.put_back(self.seat.take_one(name)):
            self.hint("the worker was faster: it has that message")

    def pick(self, title: str, choices: Sequence[str], then: Callable[[int], None], at: int = 0) -> None:
        async def choose() -> None:
            self._picks = True
            try:
                async with self.console.handed_over():
                    index = await picker.pick(
                        title, choices, input=self.console.app.input, output=self.console.output, at=at
                    )
            finally:
                self._picks = False
            if index is not None:
                self._try(lambda: then(index))

        self.do(choose())

    def read_back(self) -> None:
        """Show the transcript as a page."""

        async def read() -> None:
            async with self.console.handed_over():
                await pager.read(
                    self.seat.files, input=self.console.app.input, output=self.console.output, note=self._note
                )

        self.do(read())

    def _note(self) -> str:
        return "an approval waits for you" if self.asking.question else ""

    def _try(self, act: Callable[[], None]) -> bool:
        """Whether it could be done; if not, why not is said."""
        try:
            act()
        except CassError as e:
            self.hint(safe_line(str(e)))
            return False
        return True

    def send_to_terminal(self, control: str) -> None:
        self.console.output.write_raw(control)
        self.console.output.flush()

    def submit(self, *, steer: bool = False) -> None:
        """Do what the draft says: a command, a line of shell, else a message. A blank one says nothing."""
        text = self.draft
        if not text.strip():
            return
        if self._try(lambda: self._obey(text, steer)):
            self.console.draft.reset(append_to_history=True)
            self._save_draft()

    def _obey(self, text: str, steer: bool) -> None:
        text = commands.completed(text, self.own_commands()) if text.startswith("/") else text
        if message := expansion.message(text, self.seat.files.home, Path(self.cwd())):
            self._send(message, steer=steer, attached=self._mentioned())
        elif commands.is_command(text):
            self._slash.run(text)
        elif text.startswith("!"):
            self.do(self._shell(text))
        else:
            self._send(text, steer=steer, attached=self._mentioned())

    def _mentioned(self) -> tuple[Attachment, ...]:
        """The images that the draft names where it can be seen: no paste that is folded does. Raises UsageError."""
        return mentions.found(self.console.draft.text, self.seat.files.home, self.cwd())

    async def _shell(self, text: str) -> None:
        is_sent = not text.startswith("!!")
        said = await self.errands.shell(text.lstrip("!").strip(), keep=is_sent)
        if is_sent:
            id = jsonl.new_id()
            if not self.seat.is_busy:  # it comes next, right below what it wrote
                self.transcript.seen(id)
            self._send(said, id=id)

    def _send(
        self, text: str, *, steer: bool = False, id: str | None = None, attached: Sequence[Attachment] = ()
    ) -> None:
        self._words.forget_notice()
        self._employer.try_again()
        self._failed = []
        self.seat.send(text, steer=steer, id=id, attached=attached)
        self._look()

    def interrupt(self) -> None:
        """Waiting messages come back first: the interrupted turn is not to be followed by the next one."""
        self.put_back(self.seat.take_back(mine=True))
        if self.seat.standing.is_busy:
            self.seat.order("cancel")

    def put_back(self, texts: list[str]) -> bool:
        """Put texts in front of what stands in the draft; False where there are none."""
        if texts:
            self.draft = "\n\n".join([*texts, self.draft] if self.draft else texts)
        return bool(texts)

    @property
    def draft(self) -> str:
        """The whole text of the draft, pastes included; giving one puts the cursor at its end."""
        return self.pastes.whole(self.console.draft.text)

    @draft.setter
    def draft(self, text: str) -> None:
        self.console.draft.text = self.pastes.held(text)
        self.console.draft.cursor_position = len(self.console.draft.text)


def run(
    files: Files,
    *,
    layout: str = "none",
    worker_flags: Sequence[str] = (),
    early: bytes = b"",
    launcher: int = 0,
    switch: Callable[[Sequence[str]], None] | None = None,
    greeting: str = "",
) -> int:
    """Be a composer at a chat until the person leaves; return the exit status.

    `layout` is ``inline``, ``panes`` or ``none`` (the transcript is shown elsewhere). `early` are keys that were typed
    before; `launcher` is the process without which this one must not go on; `switch` hears with which arguments
    ``cass`` is to go on in another chat; `greeting` is printed first.
    """
    composer = Composer(files, layout=layout, worker_flags=worker_flags, switch=switch)
    return asyncio.run(composer.run(early, launcher, greeting))
