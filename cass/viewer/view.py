"""The viewer: follows a chat and shows it. It has no authority and never writes to a chat.

    chat and live file -> tails -> page -> finished lines, and what still grows -> a screen

What is asked of it is here, with what is printed once; to follow is the business of `screen`.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType

from cass import callers, preferences, presence, records
from cass.errors import UsageError
from cass.home import Files
from cass.records import BadRecord, Record
from cass.tail import Tail
from cass.viewer import reading
from cass.viewer.attention import Attention
from cass.viewer.look import SHORT_CHARACTERS, Look, look_for
from cass.viewer.page import Page
from cass.viewer.reading import Place
from cass.viewer.screen import TICK_S, Screen, waking
from cass.viewer.since import since
from cass.viewer.surface import STDIN, STDOUT, Frames, Stream, Surface, Terminal, columns, write
from cass.viewer.watch import Watch

BATCH = 256
"""Records of a chat that is printed whole, laid out and written at a time."""
NOTIFY = "bell"
"""Where the person has not said: heard where it is wanted, and tmux marks the window."""


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
    return look._replace(
        width=options.width or columns(),
        plain=options.plain or not (shows or escapes or options.width),
        escapes=escapes,
        color=look.color and escapes,
        full=options.full,
        reasoning=wanted.get("show_reasoning", False) if options.reasoning is None else options.reasoning,
        short_characters=wanted.get("ui_tool_result_limit", SHORT_CHARACTERS),
        user=callers.me(),
        is_framed=options.frames,
    )


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
        poll = waking(watch)
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
    look = look._replace(marks=look.escapes and not isinstance(surface, Stream))
    after = _place(options.after) if options.after is not None else None
    hints = options.hint and isinstance(surface, Terminal) and os.isatty(STDIN)
    viewer = Screen(files, Page(look), surface, attention, has_own_width=options.width is None, hints=hints)
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
