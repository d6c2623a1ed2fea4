"""The composer: one person's keyboard at a chat.

It follows the chat, puts messages into the inbox, asks the worker for decisions, and never writes to the chat. Any number
of composers may be at one chat; each has its own draft, and a question that one answers closes in all.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.search import SearchDirection, start_search

from cass import commands, foreground, history, keys, screen
from cass.access import Mode
from cass.blocks import safe, safe_line
from cass.console import Console
from cass.draft import Draft
from cass.errors import CassError
from cass.home import Files
from cass.question import QUIET_S, Fragments, Question, subject
from cass.records import Approval, Record, TurnEnd
from cass.seat import Seat
from cass.slash import Slash
from cass.transcript import Inline, Paned, Transcript

LEAVE_WITHIN_S = 1.5
HINT_S = 4.0
DRAFT_EVERY_S = 0.3
LOOK_BUSY_S = 0.03
LOOK_IDLE_S = 0.2
"""How often the chat is looked at: a look is a handful of stats, some 50 µs."""
PASTE_TAIL_S = 0.05
"""An Enter so soon after a paste belongs to it: its text held the code that ends a paste."""
NEW_WORKERS = 3
"""Workers that are started in a row for one message; one that dies of it each time would go on for ever."""


class _History(History):
    def __init__(self, path: Path, cwd: Callable[[], str]) -> None:
        super().__init__()
        self._path = path
        self._cwd = cwd

    def load_history_strings(self) -> list[str]:
        with contextlib.suppress(OSError):
            return history.load(self._path, self._cwd())
        return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk costs the history a line, not the person the message
            history.append(self._path, string, self._cwd())


class Composer:
    def __init__(
        self,
        files: Files,
        *,
        layout: str,
        worker_flags: Sequence[str],
        switch: Callable[[Sequence[str]], None] | None,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self.seat = Seat(files, worker_flags)
        self._switch = switch
        self._slash = Slash(self)
        self._draft = Draft(files)
        self._question: Question | None = None
        self._notice: Fragments = []
        self._hint = ("", 0.0)
        self._leaving_until = 0.0
        self._last_key = 0.0
        self._pasted_at = 0.0
        self._failures = 0
        self._is_starting = False
        self._jobs: set[asyncio.Task[None]] = set()
        self._drawn: object = None
        self.console = Console(self, _History(files.home.history, self.cwd), input=input, output=output)
        self.console.bind(keys.bind(self, is_asking=self._takes_answers, in_reason=lambda: self.console.in_reason))
        self.console.app.key_processor.after_key_press += self._after_key
        self._transcript = Transcript()
        if layout == "inline":
            self._transcript = Inline(files, self.console, self._warn)
        elif layout == "panes":
            self._transcript = Paned(files)

    # ---- running

    async def run(self, early: bytes = b"", launcher: int = 0) -> int:
        """Be there until the person leaves; return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, self.console.leave, 128 + number)
        self.console.draft.text = self._draft.load()
        self.console.draft.cursor_position = len(self.console.draft.text)
        keys.feed(self.console.app.input, early)
        self._do(self._follow(launcher))
        try:
            return await self.console.run()
        finally:
            for job in self._jobs:
                job.cancel()
            await asyncio.gather(*self._jobs, return_exceptions=True)
            await self._transcript.close()
            self._save_draft()
            self._draft.close()
            self.seat.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the keyboard; a bug in it ends the composer with its traceback."""
        job = asyncio.get_running_loop().create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._done)

    def _done(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        future = self.console.app.future
        if not job.cancelled() and (error := job.exception()) and future and not future.done():
            future.set_exception(error)

    async def _follow(self, launcher: int) -> None:
        """Look at the chat as long as we are here."""
        while not self.console.app.renderer.last_rendered_screen:
            await asyncio.sleep(0.001)  # the prompt stands before anything else is started
        self.seat.look()
        if not self.seat.is_running:
            self._start_worker("")
        self._do(self._show())
        saved_at = 0.0
        while not self.console.terminal.is_gone and (not launcher or os.getppid() == launcher):
            self._look()
            now = time.monotonic()
            if now - saved_at > DRAFT_EVERY_S:
                self._save_draft()
                saved_at = now
            is_near = self.seat.is_busy or self._is_starting or now - self._last_key < HINT_S
            await asyncio.sleep(LOOK_BUSY_S if is_near else LOOK_IDLE_S)
        self.console.leave(128 + signal.SIGHUP)

    def _look(self) -> None:
        was_running, was_busy = self.seat.is_running, self.seat.standing.is_busy
        for record in self.seat.look():
            self._notice_record(record)
        if was_running and not self.seat.is_running:
            self._worker_ended(was_busy)
        elif self.seat.needs_worker and not self._is_starting:
            self._start_worker("starting the worker")
        self._transcript.resize()
        self._update_question()
        self._draw_if_changed()

    def _draw_if_changed(self) -> None:
        elapsed = int(self._elapsed()) if self.seat.is_busy else 0
        drawn = (self.seat.standing, self.seat.is_running, tuple(self.seat.queue), elapsed, self._help_text())
        drawn = (*drawn, self._is_starting, self._takes_answers(), str(self._question), str(self._notice))
        if drawn != self._drawn:
            self._drawn = drawn
            self.console.redraw()

    def _notice_record(self, record: Record) -> None:
        match record:
            case Approval(request_id=id, decision=decision, by=by):
                question = self._question
                if question and question.request.request_id == id and not question.is_sent:
                    self.hint(f"{decision} by {safe_line(by)}")
            case TurnEnd():
                texts = self.seat.failed(record)
                if texts and not self.console.draft.text:
                    self._put_back(texts)
            case _:
                pass

    def _save_draft(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the draft is still on the screen
            self._draft.save(self.console.draft.text)

    # ---- the worker

    def _start_worker(self, said: str) -> None:
        if self._failures >= NEW_WORKERS:
            return
        self._is_starting = True
        if said:
            self.hint(said)
        try:
            starting = self.seat.start_worker()
        except (OSError, CassError) as e:
            self._worker_failed(str(e))
            return
        loop = asyncio.get_running_loop()

        def spoke() -> None:
            loop.remove_reader(starting.fileno())
            self._is_starting = False
            try:
                starting.wait(1)
                self.seat.is_running = True
            except CassError as e:
                self._worker_failed(str(e))

        loop.add_reader(starting.fileno(), spoke)

    def _worker_failed(self, why: str) -> None:
        """Say why; what waits for a worker that cannot start comes back to where it can be sent from again."""
        self._is_starting = False
        self._failures = NEW_WORKERS
        self._notice = [("class:error", safe(why))]
        self._put_back(self.seat.take_back(mine=True))

    def _worker_ended(self, was_busy: bool) -> None:
        self._failures += 1
        self._question = None
        if self.seat.needs_worker:
            self._start_worker("the worker ended; it is started again")
        else:
            self._notice = [("class:warning", "the worker ended; the next message starts it again")]

    async def _show(self) -> None:
        """Show the transcript where it was asked for, else here."""
        try:
            await self._transcript.show()
        except CassError as e:
            self._warn(f"no pane for the viewer: {safe_line(str(e))}; it is shown here")
            self._transcript = Inline(self.seat.files, self.console, self._warn)
            await self._transcript.show()

    # ---- what the console shows

    def live(self) -> str:
        return self._transcript.live

    def waiting(self) -> Fragments:
        texts = self.seat.waiting()
        return screen.queue_lines(texts, self.console.columns) if texts else []

    def notice(self) -> Fragments:
        return self._notice

    def question(self) -> Fragments:
        question = self._question
        return question.fragments(self._is_quiet(), self._question_rows()) if question else []

    def status(self, width: int) -> Fragments:
        seat = self.seat
        state = "" if seat.is_running else "starting" if self._is_starting or not self._drawn else "no worker"
        elapsed = self._elapsed()
        home = os.path.expanduser("~")
        chat_id, queued = seat.files.chat_id, len(seat.queue)
        return screen.status_line(
            seat.standing, state=state, chat_id=chat_id, queued=queued, elapsed_s=elapsed, home=home, width=width
        )

    def help(self, width: int, room: bool) -> Fragments:
        text = self._help_text()
        return [("class:warning", screen.cut(text, width))] if text else screen.help_line(width, room)

    def mode(self) -> str:
        return self.seat.standing.mode

    def cwd(self) -> str:
        return self.seat.standing.cwd or os.getcwd()

    def _help_text(self) -> str:
        text, until = self._hint
        return text if time.monotonic() < until else ""

    def _elapsed(self) -> float:
        since = self.seat.standing.since
        return max(time.time() - datetime.fromisoformat(since).timestamp(), 0) if since else 0

    # ---- what the slash commands use

    def say(self, text: str) -> None:
        self.console.print(text)

    def hint(self, text: str) -> None:
        self._hint = (text, time.monotonic() + HINT_S)
        self.console.redraw()

    def leave(self, *switch_to: str) -> None:
        if switch_to and self._switch is None:
            raise CassError(f"leave, then: cass {shlex.join(switch_to)}")
        if switch_to and self._switch is not None:
            self._switch(switch_to)
        self.console.leave(0)

    def set_mode(self, mode: Mode) -> None:
        if self.seat.is_busy:
            self.hint("mode can be changed when idle")
        else:
            self._do(self._ask({"do": "mode", "mode": mode.value}))

    def send_to_terminal(self, control: str) -> None:
        self.console.output.write_raw(control)
        self.console.output.flush()

    def _warn(self, text: str) -> None:
        self._notice = [("class:warning", text)]
        self.console.redraw()

    async def _ask(self, request: dict[str, Any]) -> None:
        try:
            await asyncio.to_thread(self.seat.ask, request)
        except CassError as e:
            self.hint(safe_line(str(e)))
            if self._question:
                self._question.is_sent = False

    # ---- questions

    def _update_question(self) -> None:
        """Put up the oldest pending approval, or take down the one that is settled."""
        pending = self.seat.standing.pending if self.seat.is_running else ()
        shown = self._question.request.request_id if self._question else None
        if shown in [request.request_id for request in pending]:
            return
        if self.console.in_reason:
            self.console.focus_reason(False)
        self._question = Question(pending[0], time.monotonic()) if pending else None
        if self._question and self._question.is_long(self._question_rows()):
            self.say(subject(pending[0]) + "\n")

    def _question_rows(self) -> int:
        return self.console.size.rows - 6

    def _is_quiet(self) -> bool:
        return bool(self._question and self._question.takes_keys(self._last_key, time.monotonic()))

    def _takes_answers(self) -> bool:
        return self._question is not None and self._question.stage != "reason" and self._is_quiet()

    def answer(self, key: str) -> None:
        """One of the answers' keys, from a quiet keyboard."""
        question = self._question
        assert question is not None
        match question.stage, key:
            case "ask", "y":
                self._decide({"do": "approve"})
            case "rule", "y":
                self._decide({"do": "approve", "always": True})
            case "ask", "n":
                question.stage = "reason"
                self.console.focus_reason(True)
            case "ask", "a" if question.request.rule:
                question.stage = "rule"
                question.shown_at = time.monotonic() - QUIET_S
            case "rule", _:
                question.stage = "ask"

    def _decide(self, decision: dict[str, Any]) -> None:
        assert self._question is not None
        self._question.is_sent = True
        self._question.stage = "ask"
        self._do(self._ask(decision | {"request_id": self._question.request.request_id}))

    # ---- keys: one method for each row of the table in `commands`

    def _after_key(self, _: object) -> None:
        self._last_key = time.monotonic()

    def enter(self, event: KeyPressEvent) -> None:
        if self.console.in_reason:
            reason = self.console.reason.text.strip()
            self.console.focus_reason(False)
            self._decide({"do": "deny"} | ({"reason": reason} if reason else {}))
        elif keys.more_follows(event) or time.monotonic() - self._pasted_at < PASTE_TAIL_S:
            self.console.draft.insert_text("\n")
        else:
            self._submit()

    def steer(self, event: KeyPressEvent) -> None:
        self._submit(steer=True)

    def newline(self, event: KeyPressEvent) -> None:
        self.console.draft.insert_text("\n")

    def paste(self, event: KeyPressEvent) -> None:
        text = keys.pasted(event.data)
        event.current_buffer.insert_text(text if not self.console.in_reason else text.replace("\n", " "))
        self._pasted_at = time.monotonic()

    def next_mode(self, event: KeyPressEvent) -> None:
        self.set_mode(Mode(self.seat.standing.mode or Mode.READ_ONLY).next)

    def tool_output(self, event: KeyPressEvent) -> None:
        self._press("C-o")

    def reasoning(self, event: KeyPressEvent) -> None:
        self._press("C-t")

    def _press(self, key: str) -> None:
        if not self._transcript.press(key):
            self.hint("no viewer takes this key here")

    def escape(self, event: KeyPressEvent) -> None:
        question = self._question
        if self.console.draft.complete_state:
            self.console.draft.cancel_completion()
        elif question and question.stage != "ask":
            question.stage = "ask"
            self.console.focus_reason(False)
        elif self.seat.is_busy:
            self._interrupt()

    def clear_or_leave(self, event: KeyPressEvent) -> None:
        now = time.monotonic()
        if self.console.in_reason:
            self.escape(event)
        elif self.seat.is_busy:
            self._interrupt()
        elif now < self._leaving_until:
            self.leave()
        else:
            self.console.draft.reset()
            self._leaving_until = now + LEAVE_WITHIN_S
            self._hint = ("Ctrl-C again to leave", self._leaving_until)

    def leave_if_empty(self, event: KeyPressEvent) -> None:
        if self.console.draft.text:
            self.console.draft.delete()
        else:
            self.leave()

    def search(self, event: KeyPressEvent) -> None:
        start_search(direction=SearchDirection.BACKWARD)

    def up(self, event: KeyPressEvent) -> None:
        draft = self.console.draft
        if draft.text or not self._put_back(self.seat.take_back(mine=False, newest=True)):
            draft.auto_up(count=event.arg)

    def complete(self, event: KeyPressEvent) -> None:
        draft = self.console.draft
        if draft.complete_state:
            draft.complete_next()
        else:
            draft.start_completion(insert_common_part=True)

    def edit(self, event: KeyPressEvent) -> None:
        self._do(self._edit())

    def suspend(self, event: KeyPressEvent) -> None:
        self._do(self._suspend())

    def page_up(self, event: KeyPressEvent) -> None:
        self._page("up")

    def page_down(self, event: KeyPressEvent) -> None:
        self._page("down")

    def _page(self, direction: str) -> None:
        if command := self._transcript.page(direction):
            self._do(self._aside(command))

    # ---- sending

    def _submit(self, *, steer: bool = False) -> None:
        draft = self.console.draft
        text = draft.text
        if not text.strip():
            return
        try:
            if commands.is_command(text):
                self._slash.run(text)
            elif text.startswith("!"):
                self._do(self._errand(text[2:] if text.startswith("!!") else text[1:], send=not text.startswith("!!")))
            else:
                self._send(text, steer=steer)
        except CassError as e:
            self.hint(safe_line(str(e)))
            return
        draft.reset(append_to_history=True)
        self._save_draft()

    def _send(self, text: str, *, steer: bool = False) -> None:
        self._notice = []
        self._failures = 0
        self.seat.send(text, steer=steer)
        self._look()

    def _interrupt(self) -> None:
        """Waiting messages come back first: the interrupted turn is not to be followed by the next one."""
        self._put_back(self.seat.take_back(mine=True))
        if self.seat.standing.is_busy:
            self.seat.order("cancel")

    def _put_back(self, texts: list[str]) -> bool:
        """Put texts in front of what stands in the draft; False where there are none."""
        draft = self.console.draft
        if texts:
            draft.text = "\n\n".join([*texts, draft.text] if draft.text else texts)
            draft.cursor_position = len(draft.text)
        return bool(texts)

    # ---- other programs on this terminal

    async def _aside(self, command: list[str], *, keep: bool = False) -> tuple[int, str]:
        async with self.console.aside():
            try:
                return await asyncio.to_thread(foreground.run, command, 0, keep=keep, cwd=self.cwd())
            except OSError as e:
                self.hint(f"{command[0]}: {e.strerror}")
                return 127, ""

    async def _errand(self, command: str, *, send: bool) -> None:
        self.say(f"$ {safe(command)}\n")
        status, output = await self._aside(["bash", "-c", command], keep=send)
        ended = f"\n[exit status {status}]" if status else ""
        if send:
            self._send(f"$ {command}\n{output.rstrip()}{ended}")

    async def _edit(self) -> None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        draft = self.console.draft
        with tempfile.TemporaryDirectory(prefix="cass-") as directory:
            path = Path(directory) / "message.md"
            path.write_text(draft.text, "utf-8")
            status, _ = await self._aside([*shlex.split(editor), str(path)])
            if status == 0:
                draft.text = path.read_text("utf-8", "replace").removesuffix("\n")
                draft.cursor_position = len(draft.text)
            else:
                self.hint(f"{editor} ended with status {status}; the draft is as it was")

    async def _suspend(self) -> None:
        async with self.console.aside():
            os.kill(0, signal.SIGTSTP)  # the whole job: launcher and viewer stop and come back with us


def run(
    files: Files,
    *,
    layout: str = "none",
    worker_flags: Sequence[str] = (),
    early: bytes = b"",
    launcher: int = 0,
    switch: Callable[[Sequence[str]], None] | None = None,
) -> int:
    """Be a composer at a chat until the person leaves; return the exit status.

    `layout` is ``inline``, ``panes`` or ``none`` (the transcript is shown elsewhere). `early` are keys that were typed
    before; `launcher` is the process without which this one must not go on; `switch` hears with which arguments ``cass``
    is to go on in another chat.
    """
    composer = Composer(files, layout=layout, worker_flags=worker_flags, switch=switch)
    return asyncio.run(composer.run(early, launcher))
