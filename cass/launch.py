"""The launcher: the process that a person's shell started; it puts the terminal right whatever becomes of the rest.

It forks before anything heavy is loaded. The child becomes the composer; this process keeps the saved terminal state,
passes signals on, waits, restores, and says how to come back.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import termios
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cass import catalogue, color, config, heir, itself, joining, jsonl, listing, opening, standing
from cass.composer import panes
from cass.composer.attention import forget_state
from cass.config import Options
from cass.errors import UsageError
from cass.home import Files, Home
from cass.pattern import pattern
from cass.records import Assistant, User
from cass.tail import Tail
from cass.welcome import welcome

GRACE_S = 3
"""A composer that was told to end has so long before it is killed."""

ROWS_BELOW_TURN = 4
"""Of the screen that a person comes back to: how to resume, and the prompt of their shell."""

_RESTORE = "\x1b[?2004l\x1b[?1004l\x1b[?25h\x1b[?7h\x1b[>4m\x1b[0m"
"""Bracketed paste and focus reports off, cursor shown, lines wrapped, keys unmodified, plain text."""
_LEFT_BEHIND = "\x1b[?47l\r\n\x1b[J\x1b[23;2t"
"""Besides, of one that was killed: back from the page, below its input area, the title of before."""


def run(
    home: Home,
    options: Options,
    compose: Callable[..., int],
    *,
    resume: str | None = None,
    cwd: Path | None = None,
    worker_flags: Sequence[str] = (),
) -> int:
    """Start a chat, or join `resume`, on this terminal; return the exit status when the person leaves.

    `compose` is that of the composer, handed in so that it is loaded only after the fork. `worker_flags` say for a
    worker what `options` say. Going on in another chat replaces this process. Raises UsageError without a terminal.
    """
    if not (os.isatty(0) and os.isatty(1)):
        raise UsageError("a chat needs a terminal; without one: cass -p TEXT, or cass-send CHAT TEXT")
    settings = config.load(home, options, os.environ, probe=resume is None)
    greeting = "" if resume else welcome(home, settings, options, os.environ)
    if resume is None:
        files = opening.new(home, cwd or Path.cwd(), settings, options)
    else:
        files = heir.of(catalogue.find(home, resume), lambda said: print(said, file=sys.stderr))
        opening.check_cwd(files, cwd)
        if kept := joining.join(files, options):
            print(kept, file=sys.stderr)
    layout = choose_layout(settings.layout, os.environ)
    status, switch_to = guard(
        lambda child: compose(files, layout=layout, worker_flags=worker_flags, greeting=greeting, **child)
    )
    if switch_to:
        print(flush=True)
        _go_on(_without_cwd(worker_flags), options, switch_to)
    with contextlib.suppress(OSError):  # the terminal may be gone
        if layout == "panes":
            print("\n".join(_last_turn(files)))
        print(f"\nResume this chat with: cass --resume {files.chat_id}", flush=True)
    return status


def _last_turn(files: Files) -> list[str]:
    """The end of what stood in the viewer's pane, which is gone: the last turn, a screenful at most."""
    tail = Tail.last(files.chat)
    said = [record for record in tail.read() if isinstance(record, User | Assistant)]
    tail.close()
    count = next((n for n, record in enumerate(reversed(said), 1) if isinstance(record, User)), 0)
    if not count:
        return []
    size = os.get_terminal_size(1)
    _, has_colors = color.wanted(os.environ, is_terminal=True)
    look = ["--width", str(size.columns), "--color", "always" if has_colors else "never"]
    viewer = itself.argv("cass-view", files.chat_id, "--no-follow", "-n", str(count), *look)
    done = subprocess.run(viewer, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    first = next((n for n, line in enumerate(lines) if "❯" in line), 0)  # behind what the chat is about
    return lines[first:][-max(size.lines - ROWS_BELOW_TURN, 1) :]


def resume(
    home: Home, options: Options, pick: Callable[..., int | None], *, cwd: Path, worker_flags: Sequence[str]
) -> int | None:
    """Have the person pick a chat of `cwd` and go on with it, in place of this process; return 0 where they pick none.

    `pick` is that of the picker, handed in as `compose` is to `run`. None: there is no chat of `cwd`.
    """
    found = catalogue.summaries(home, cwd)
    if not found:
        return None
    lines = listing.choices(home, found, standing.look)

    def choose(child: dict[str, Any]) -> int:
        index = pick("go on with a chat", lines, child["early"])
        if index is not None:
            child["switch"](["--resume", found[index].chat_id])
        return 0

    status, switch_to = guard(choose)
    if switch_to:
        _go_on(worker_flags, options, switch_to)
    return status


def _go_on(flags: Sequence[str], options: Options, switch_to: Sequence[str]) -> None:
    """Be ``cass`` anew, with other arguments."""
    layout = ["--layout", options.layout] if options.layout else []
    os.execv(sys.executable, itself.argv("cass", *flags, *layout, *switch_to))


def choose_layout(wanted: str | None, environ: Mapping[str, str]) -> str:
    """``inline`` or ``panes``: what is wanted where it is possible, else panes in tmux and inline elsewhere."""
    if wanted == "inline" or not panes.is_possible(environ):
        return "inline"
    return "panes"


def _without_cwd(flags: Sequence[str]) -> list[str]:
    """`flags` for another chat, which has a workspace of its own."""
    if "--cwd" not in flags:
        return list(flags)
    place = flags.index("--cwd")
    return [*flags[:place], *flags[place + 2 :]]


# ---- the terminal ---------------------------------------------------------------------------------------------------


def guard(compose: Callable[[dict[str, Any]], int]) -> tuple[int, list[str]]:
    """Run `compose` in a child; return its exit status (128 + n after signal n) and what ``cass`` is to go on with.

    The terminal is as before, however the child ended. `compose` is given what it takes by name: ``early``,
    ``launcher`` and ``switch``.
    """
    saved = termios.tcgetattr(0)
    early = hush(0)
    reading, writing = os.pipe()
    sys.stdout.flush()
    launcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_composer(compose, {"early": early, "launcher": launcher, "switch": lambda to: _write(writing, to)})
    os.close(writing)
    status = _wait(pid)
    _restore(saved, was_killed=status < 0)
    if status < 0:
        forget_state()
    return (status if status >= 0 else 128 - status), _read(reading)


def hush(terminal: int) -> bytes:
    """Stop echoing and line editing; return what was typed before, as it would have come without them.

    Until now the kernel has shown it, and has made Enter a newline.
    """
    mode: list[Any] = termios.tcgetattr(terminal)
    mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    pieces = []
    while select.select([terminal], [], [], 0)[0]:
        piece = os.read(terminal, 65536)
        if not piece:
            break
        pieces.append(piece)
    return raw(b"".join(pieces))


_PASTE = pattern(rb"\x1b\[200~(.*?)(\x1b\[201~|\Z)", re.DOTALL)


def raw(typed: bytes) -> bytes:
    """`typed` in line mode as raw mode would have given it: a newline was Enter.

    In a paste every CR LF has become two newlines: where all of them come in pairs, each pair was one line end.
    """

    def paste(found: re.Match[bytes]) -> bytes:
        runs = re.findall(rb"\n+", found[0])
        return found[0].replace(b"\n\n", b"\n") if all(len(run) % 2 == 0 for run in runs) else found[0]

    return _PASTE.sub(paste, typed).replace(b"\n", b"\r").replace(b"\0", b"")


def _be_composer(compose: Callable[[dict[str, Any]], int], given: dict[str, Any]) -> None:
    """Never returns: the caller's frames belong to the launcher."""
    status = 1
    try:
        status = compose(given)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _wait(pid: int) -> int:
    """The child's exit status, negative where a signal ended it. Signals that mean us mean the child."""

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        signal.alarm(GRACE_S)

    def kill(*_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(pid, 0)
    signal.alarm(0)
    return os.waitstatus_to_exitcode(status)


def _restore(saved: list[Any], *, was_killed: bool) -> None:
    """Put the terminal back. A composer that was killed has left its input area on the screen: go below it."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcsetattr(0, termios.TCSANOW, saved)
        os.write(1, ((_LEFT_BEHIND if was_killed else "") + _RESTORE).encode())


def _write(fd: int, arguments: Sequence[str]) -> None:
    os.write(fd, jsonl.dump(list(arguments)))


def _read(fd: int) -> list[str]:
    data = os.read(fd, 65536)
    os.close(fd)
    return [str(argument) for argument in jsonl.load(data)] if data else []
