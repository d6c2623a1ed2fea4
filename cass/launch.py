"""The launcher: the process that a person's shell started, and that puts the terminal right whatever becomes of the rest.

It forks before anything heavy is loaded. The child becomes the composer; this process keeps the saved terminal state,
passes signals on, waits, restores, and says how to come back.
"""

import contextlib
import os
import re
import select
import signal
import sys
import termios
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cass import panes, records
from cass.errors import UsageError
from cass.home import Files

GRACE_S = 3
"""A composer that was told to end has so long before it is killed."""
LAYOUTS = ("inline", "panes")

_RESTORE = "\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[>4m\x1b[0m"
"""Bracketed paste off, cursor shown, lines wrapped, keys unmodified, plain text."""


@dataclass(frozen=True, slots=True)
class Child:
    """What the launcher gives to the composer it has forked."""

    early: bytes
    """What was typed meanwhile, as a terminal in raw mode gives it."""
    launcher: int
    """The launcher's process id."""
    switch: Callable[[Sequence[str]], None]
    """Says with which further arguments ``cass`` goes on after the composer's end."""


def choose_layout(wanted: str | None, environ: Mapping[str, str]) -> str:
    """``inline`` or ``panes``: what is wanted where it is possible, else panes in tmux and inline elsewhere."""
    if wanted == "inline" or not panes.is_possible(environ):
        return "inline"
    return "panes"


def run(files: Files, compose: Callable[[Child], int], *, again: Sequence[str]) -> int:
    """Run `compose` in a child on this terminal; return its exit status (128 + n where signal n ended it).

    `again` is the command that goes on in another chat, without the arguments that name one; it then replaces this
    process. Raises UsageError without a terminal.
    """
    if not (os.isatty(0) and os.isatty(1)):
        raise UsageError("a chat needs a terminal; without one: cass -p PROMPT, or cass-send CHAT TEXT")
    saved = termios.tcgetattr(0)
    early = hush(0)
    reading, writing = os.pipe()
    sys.stdout.flush()
    launcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_composer(compose, Child(early, launcher, lambda arguments: _write(writing, arguments)))
    os.close(writing)
    status = _wait(pid)
    _restore(saved, was_killed=status < 0)
    switch_to = _read(reading)
    if switch_to:
        os.execv(again[0], [*again, *switch_to])
    with contextlib.suppress(OSError):
        print(f"Resume this chat with: cass --resume {files.chat_id}", flush=True)
    return status if status >= 0 else 128 - status


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


_PASTE = re.compile(rb"\x1b\[200~(.*?)(\x1b\[201~|\Z)", re.DOTALL)


def raw(typed: bytes) -> bytes:
    """`typed` in line mode as raw mode would have given it: a newline was Enter.

    In a paste every CR LF has become two newlines: where all of them come in pairs, each pair was one line end.
    """

    def paste(found: re.Match[bytes]) -> bytes:
        runs = re.findall(rb"\n+", found[0])
        return found[0].replace(b"\n\n", b"\n") if all(len(run) % 2 == 0 for run in runs) else found[0]

    return _PASTE.sub(paste, typed).replace(b"\n", b"\r").replace(b"\0", b"")


def _be_composer(compose: Callable[[Child], int], child: Child) -> None:
    """Never returns: the caller's frames belong to the launcher."""
    status = 1
    try:
        status = compose(child)
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
        os.write(1, (("\r\n\x1b[J" if was_killed else "") + _RESTORE).encode())


def _write(fd: int, arguments: Sequence[str]) -> None:
    os.write(fd, records.dump(list(arguments)))


def _read(fd: int) -> list[str]:
    data = os.read(fd, 65536)
    os.close(fd)
    return [str(argument) for argument in records.load(data)] if data else []
