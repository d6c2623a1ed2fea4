"""The viewer: follows a chat and shows it. It has no authority and never writes to a chat.

    chat and live file -> tails -> page -> finished lines, and what still grows -> a surface

With frames, standard input brings ``{"width": columns}``, ``{"key": "C-o"}`` or ``{"key": "C-t"}``, and with
``{"seen": [id]}`` the messages that stand on the screen already, one JSON object a line; its end ends the viewer.
"""

import contextlib
import math
import os
import pwd
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType

from cass import jsonl, preferences, presence, records
from cass.errors import CassError, UsageError
from cass.home import Files
from cass.records import BadRecord, Record, TurnEnd
from cass.tail import Tail
from cass.viewer import reading
from cass.viewer.attention import Attention
from cass.viewer.look import SHORT_CHARACTERS, SPIN_S, Look, look_for
from cass.viewer.page import Page
from cass.viewer.reading import Place
from cass.viewer.since import since
from cass.viewer.surface import STDIN, STDOUT, Frames, Stream, Surface, Terminal, columns, write
from cass.viewer.watch import Watch

BATCH = 256
"""Records of a chat that is printed whole, laid out and written at a time."""
TICK_S = 1.0
"""How often the seconds that something takes are counted on, and the lock is asked for."""
SETTLING_S = 0.05
"""The same until the watch is surely up, within `SETTLED_S`: what is appended meanwhile wakes nobody."""
SETTLED_S = 0.5
STARTING_S = 1.5
"""A worker that is started together with us needs some time: only after that it is said that there is none."""
KEYS = "q leaves · Ctrl-O tool output · Ctrl-T reasoning"
NO_WORKER = "no worker runs; a message or cass --resume starts one"
NOTIFY = "bell"
"""Where the person has not said: heard where it is wanted, and tmux marks the window."""
FIRST_WORD_S = 0.2
"""Whoever reads frames is given so long to say how wide they are to be; it is sent while we start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    frames: bool = False
    follow: bool | None = None
    """None: where the output is a terminal, or frames."""
    last: int | None = None
    """Only so many messages (lines, for `json`) of what the chat holds already; None: some screens, or everything where
    it is not followed."""
    since: str | None = None
    """Only what is not older: a duration, or a time."""
    full: bool = False
    reasoning: bool | None = None
    """None: as ``show_reasoning`` in config.json says, or else not."""
    plain: bool = False
    json: bool = False
    """The lines of the chat as they are."""
    live: bool = False
    """With `json`: the lines of the live file too."""
    width: int | None = None
    """Columns; None: the terminal's."""
    color: str = "auto"
    """``auto``, ``always`` or ``never``."""
    hint: bool = True
    """On a terminal: a line about the keys, and that no worker runs; who stands beside it says both himself."""
    notify: str | None = None
    """``off``, ``bell`` or ``all``; None: as in config.json, or else `NOTIFY`."""
    after: str | None = None
    """With `frames`: go on where a viewer before this one ended (``--after AT``). Each frame with ``print`` has ``at``
    too, a word that tells how far the screen is with it; whoever starts a viewer again gives the last one it has got.
    Nothing is then shown twice or left out, an answer that is half shown included."""


def run(files: Files, options: Options) -> int:
    """Show a chat that exists; return the exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)
    if options.frames:  # Ctrl-C is a key of whoever owns the terminal, and goes to all its processes
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if options.since is not None:
        options = replace(options, since=since(options.since, datetime.now()))
    is_terminal = os.isatty(STDOUT) and not options.frames
    follows = options.follow if options.follow is not None else is_terminal or options.frames
    try:
        if options.json:
            _pass_on(files, options, follows)
        elif follows:
            _follow(files, options, is_terminal)
        else:
            _print(files, options, is_terminal)
    except BrokenPipeError:  # whoever reads us has seen enough
        pass
    return 0


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # through every `finally`, which restores the terminal


def _look(files: Files, options: Options, is_terminal: bool) -> Look:
    wanted = preferences.read(files.home)
    shows = is_terminal or options.frames
    look = look_for(os.environ, shows, options.color)
    escapes = look.escapes and not options.plain
    return replace(
        look,
        width=options.width or columns(),
        plain=options.plain or not (shows or escapes or options.width),
        escapes=escapes,
        color=look.color and escapes,
        full=options.full,
        reasoning=wanted.get("show_reasoning", False) if options.reasoning is None else options.reasoning,
        short_characters=wanted.get("ui_tool_result_limit", SHORT_CHARACTERS),
        user=_user(),
        is_framed=options.frames,
    )


def _user() -> str:
    """The name of whoever reads, as an approval writes it down."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


# ---- printing -------------------------------------------------------------------------------------------------------


def _print(files: Files, options: Options, is_terminal: bool) -> None:
    """The chat as it is now, and no more."""
    page, surface = Page(_look(files, options, is_terminal)), Stream()
    if options.last is not None or options.since:
        tail, found = reading.newest(files, options.last, options.since or "")
        tail.close()
        surface.show(page.begin(found, options.last, options.since or ""), ())
    else:
        batch: list[Record] = []
        for record in reading.everything(files):
            batch.append(record)
            if len(batch) >= BATCH:
                surface.show(page.take(batch, is_running=False), ())
                batch = []
        surface.show(page.take(batch, is_running=False), ())
    is_running = presence.is_running(files)
    surface.show(page.take(Tail(files.live).read() if is_running else [], is_running), ())
    surface.show(page.live(time.time(), BATCH), ())


def _pass_on(files: Files, options: Options, follows: bool) -> None:
    """Lines as they are in the files; a live one only while a worker runs."""
    chat = _pass_on_until_now(files.chat, options.last, options.since or "")
    live = Tail(files.live)
    with contextlib.closing(Watch(files.chat, files.live)) as watch:
        poll = _poll(watch)
        while True:
            lines = live.lines() if options.live and presence.is_running(files) else []
            _write_lines([*lines, *chat.lines()])
            if not follows or STDOUT in [fd for fd, _ in poll.poll(TICK_S * 1000)]:
                return
            watch.drain()


def _pass_on_until_now(path: Path, last: int | None, since: str) -> Tail:
    """Write the whole lines of a chat, all, the last so many, or from a time on; return the tail of what follows."""
    size = reading.WINDOW
    while last is not None or since:
        tail = Tail.last(path, size)
        lines = tail.lines()
        first = 0 if last is None else max(len(lines) - last, 0)
        while first < len(lines) and _moment(lines[first]) < since:
            first += 1
        if first or size >= path.stat().st_size:
            _write_lines(lines[first:])
            return tail
        tail.close()
        size *= 8
    done = 0
    with open(path, "rb") as chat:
        while lines := [line for line in chat.readlines(reading.WINDOW) if line.endswith(b"\n")]:
            write(b"".join(lines))
            done += sum(map(len, lines))
    return Tail(path, done)


def _moment(line: bytes) -> str:
    try:
        return reading.moment(records.decode(line))
    except BadRecord:
        return ""


def _write_lines(lines: list[bytes]) -> None:
    write(b"".join(line + b"\n" for line in lines))


def _poll(watch: Watch) -> select.poll:
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    poll.register(STDOUT, 0)  # tells when its reader is gone
    return poll


# ---- following ------------------------------------------------------------------------------------------------------


def _follow(files: Files, options: Options, is_terminal: bool) -> None:
    look = _look(files, options, is_terminal)
    surface: Surface = Stream()
    attention = None
    if options.frames:
        surface = Frames()
    elif is_terminal and look.escapes:
        surface = Terminal()
        notify = options.notify or preferences.read(files.home).get("notify", NOTIFY)
        attention = Attention(files.chat_id, notify, os.environ)
    look = replace(look, marks=look.escapes and not isinstance(surface, Stream))
    after = _place(options.after) if options.after is not None else None
    hints = options.hint and isinstance(surface, Terminal) and os.isatty(STDIN)
    viewer = Viewer(files, Page(look), surface, attention, has_own_width=options.width is None, hints=hints)
    try:
        viewer.open(options.last, options.since or "", after)
        viewer.follow()
    finally:
        viewer.close()


def _place(word: str) -> Place:
    try:
        return Place.parse(word)
    except ValueError as e:
        raise UsageError(f"--after {word}: not a place that a frame named") from e


class Viewer:
    """One screen that follows one chat."""

    def __init__(
        self,
        files: Files,
        page: Page,
        surface: Surface,
        attention: Attention | None,
        *,
        has_own_width: bool,
        hints: bool,
    ) -> None:
        """`attention` where the terminal is our own, `hints` where a person has only us to tell of keys and worker."""
        self._files = files
        self._page = page
        self._surface = surface
        self._attention = attention
        self._asked = ""
        """Id of the last request that was seen to wait."""
        self._has_own_width = has_own_width
        self._hints = hints
        self._watch = Watch(files.chat, files.live)
        self._chat: Tail | None = None
        self._live = Tail(files.live)
        self._expects_worker_until = time.monotonic() + STARTING_S
        self._heard = b""
        self._is_to_suspend = False

    def open(self, last: int | None, since: str = "", after: Place | None = None) -> None:
        """The first paint."""
        if self._attention is not None:
            write(self._attention.begin().encode())
        is_told = isinstance(self._surface, Frames) and self._has_own_width
        if is_told and select.select([STDIN], [], [], FIRST_WORD_S)[0]:
            self._hear()  # how wide to paint
        if after is not None:
            self._chat, found = reading.again(self._files, after)
            self._live, live = reading.again_live(self._files, after)
            self._page.resume([*found, *live], after.growing)
        else:
            self._chat, found = reading.newest(self._files, last, since)
            self._hear_now()
            self._show(self._page.begin(found, last, since), ())

    def follow(self) -> None:
        """Until the person, the terminal or the reader is gone."""
        for number in (signal.SIGWINCH, signal.SIGCONT):
            signal.signal(number, self._shaken)
        if self._attention is not None:
            signal.signal(signal.SIGTSTP, self._shaken)
        poll = _poll(self._watch)
        if isinstance(self._surface, Frames) or (isinstance(self._surface, Terminal) and os.isatty(STDIN)):
            poll.register(STDIN, select.POLLIN)
        settled = time.monotonic() + SETTLED_S
        while True:
            self._update()
            wait = SETTLING_S if time.monotonic() < settled else self._step()
            ready = [fd for fd, _ in poll.poll(wait * 1000)]
            if STDOUT in ready or (STDIN in ready and not self._hear()):
                return
            self._watch.drain()
            if self._is_to_suspend:
                self._suspend()

    def _step(self) -> float:
        """Seconds until something is to be shown although nothing happened."""
        moves = self._page.is_busy and isinstance(self._surface, Terminal)
        return SPIN_S if moves else TICK_S

    def close(self) -> None:
        if self._attention is not None:
            with contextlib.suppress(OSError, CassError):  # the terminal is gone
                write(self._attention.end().encode())
        self._surface.close()
        self._watch.close()

    def _update(self) -> None:
        """Read what is new and show it."""
        assert self._chat is not None
        columns, height = self._surface.size()
        if columns and self._has_own_width and columns != self._page.look.width:
            self._page.look = replace(self._page.look, width=columns)
        # The live file first: what it says is about records that the chat then already holds.
        is_running = presence.is_running(self._files)
        found = self._live.read() if is_running else []
        facts = self._chat.read()
        self._hear_now()
        finished = self._page.take([*found, *facts], is_running)
        if is_running:
            self._expects_worker_until = 0.0
        elif time.monotonic() > self._expects_worker_until and isinstance(self._surface, Stream):
            self._expects_worker_until = math.inf  # said once, where it cannot be taken back
            finished += self._page.say(NO_WORKER)
        self._show(finished, self._bottom(height))
        if self._attention is not None:
            self._attend(self._attention, facts, is_running)

    def _bottom(self, height: int) -> list[str]:
        """What stands below the finished lines: what grows, and where nothing does, what the person can do."""
        growing = self._page.live(time.time(), height)
        if not self._hints or (self._page.is_running and growing):
            return growing
        is_missing = not self._page.is_running and time.monotonic() > self._expects_worker_until
        return [*growing, *self._page.hint(f"{NO_WORKER} · q leaves" if is_missing else KEYS)][-max(height, 1) :]

    def _attend(self, attention: Attention, facts: Sequence[Record], is_running: bool) -> None:
        """Tell the terminal what the chat does, and the person what they may be waiting for."""
        now = self._page.now
        said = attention.show(now.status.state if now.status is not None else "idle" if is_running else "stopped")
        said += "".join(attention.call(f"the turn is {end.outcome}") for end in facts if isinstance(end, TurnEnd))
        request = now.call.request if now.call is not None else None
        if request is not None and request.request_id != self._asked:
            self._asked = request.request_id
            said += attention.call(f"{request.name} needs your approval")
        write(said.encode("utf-8", "replace"))

    def _show(self, finished: Sequence[str], live: Sequence[str]) -> None:
        assert self._chat is not None
        place = Place(self._chat.place, self._live.inode, self._live.place, self._page.growing)
        self._surface.show(finished, live, str(place))

    def _shaken(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._is_to_suspend = True
        if number == signal.SIGCONT:
            self._surface.resume()
        self._watch.wake()

    def _suspend(self) -> None:
        """Ctrl-Z: leave the terminal as it was until we go on."""
        self._is_to_suspend = False
        assert self._attention is not None
        write(self._attention.end().encode())
        self._surface.close()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._shaken)
        self._surface.resume()
        write(self._attention.begin().encode())

    # ---- keys

    def _hear_now(self) -> None:
        """Hear what was said before the records just read were written: which of them are seen."""
        if isinstance(self._surface, Frames) and select.select([STDIN], [], [], 0)[0]:
            self._hear()

    def _hear(self) -> bool:
        """Obey what came on standard input; False when it ended, or the person leaves."""
        data = os.read(STDIN, 65536)
        if not isinstance(self._surface, Frames):
            keys = self._attention.hear(data) if self._attention is not None else data
            for key in keys.decode("utf-8", "replace"):
                self._press({"\x0f": "C-o", "\x14": "C-t"}.get(key, ""))
            return bool(data) and b"q" not in keys
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._obey(line)
        return bool(data)

    def _obey(self, line: bytes) -> None:
        try:
            said = jsonl.load(line)
        except ValueError:
            return  # not for us
        if isinstance(said, dict):
            width = said.get("width")
            if isinstance(width, int) and width > 0:
                self._page.look = replace(self._page.look, width=width)
            if isinstance(seen := said.get("seen"), list):
                self._page.seen.update(map(str, seen))
            self._press(str(said.get("key", "")))

    def _press(self, key: str) -> None:
        look = self._page.look
        if key == "C-o":
            words = "tool output short" if look.full else "tool output in full"
            again = self._page.again(replace(look, full=not look.full), words)
        elif key == "C-t":
            words = "reasoning hidden" if look.reasoning else "reasoning shown"
            again = self._page.again(replace(look, reasoning=not look.reasoning), words)
        else:
            return
        self._show(again, self._bottom(self._surface.size()[1]))
