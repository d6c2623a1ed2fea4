"""Surfaces: where lines are shown. A terminal of our own, frames for whoever owns the terminal, or a plain stream.

Frames are one JSON object a line: ``{"print": lines, "at": word}`` for finished lines, each with its newline, and how
far the screen is with them, for ``--after``; or ``{"live": lines}`` for what stands below them until the next such
frame, ``""`` for nothing.
"""

import contextlib
import errno
import os
import re
import termios
from collections.abc import Sequence
from typing import Protocol

from rich.cells import cell_len

from cass import jsonl
from cass.errors import CassError

STDIN, STDOUT, STDERR = 0, 1, 2
UNKNOWN = 80
"""Columns where nobody says; a terminal of unknown size says 0."""
FRAMES_HEIGHT = 16
"""Lines of a live area in a terminal that somebody else owns."""


class Surface(Protocol):
    def show(self, finished: Sequence[str], live: Sequence[str], at: str = "") -> None:
        """Add finished lines, and have `live` below them until the next call. `at` is how far the screen is then."""

    def size(self) -> tuple[int, int]:
        """Columns, 0 where only others know them, and how many lines of `live` have room."""

    def resume(self) -> None:
        """Go on after the program was suspended."""

    def close(self) -> None:
        """Leave nothing but the finished lines."""


class Stream:
    """A pipe, a file, or a terminal that cannot take a line back: finished lines only."""

    def show(self, finished: Sequence[str], live: Sequence[str], at: str = "") -> None:
        if finished:
            write("".join(f"{line}\n" for line in finished).encode("utf-8", "replace"))

    def size(self) -> tuple[int, int]:
        return (columns() if os.isatty(STDOUT) else 0), 0  # nothing live: it could not be taken back

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass


class Frames:
    def __init__(self) -> None:
        self._live = ""

    def show(self, finished: Sequence[str], live: Sequence[str], at: str = "") -> None:
        # In one frame: what was live and is finished now must not stand twice on the screen, nor nowhere.
        frame = {"print": "".join(f"{line}\n" for line in finished), "at": at} if finished else {}
        below = "\n".join(live)
        if below != self._live:
            self._live = below
            frame["live"] = below
        if frame:
            write(jsonl.dump(frame) + b"\n")

    def size(self) -> tuple[int, int]:
        return 0, FRAMES_HEIGHT

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass


class Terminal:
    """Finished lines go into the scrollback; what is live is drawn anew at the bottom, in one write a time."""

    _TOGETHER = "\x1b[?2026h", "\x1b[?2026l"
    """Show all that is between at once, where the terminal knows how.
    Source: https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036"""
    _STYLE = re.compile(r"\x1b\[[0-9;]*m")

    def __init__(self) -> None:
        self._live: list[str] = []
        self._modes = termios.tcgetattr(STDIN) if os.isatty(STDIN) else None
        self._listen()

    def show(self, finished: Sequence[str], live: Sequence[str], at: str = "") -> None:
        if finished or list(live) != self._live:
            begin, end = self._TOGETHER
            above = "".join(f"{line}\n" for line in finished)
            kept = 0 if finished else self._kept(live)
            text = begin + self._erase(self._live[kept:]) + above + "\n".join(live[kept:]) + end
            self._live = list(live)
            write(text.encode("utf-8", "replace"))

    def size(self) -> tuple[int, int]:
        size = os.get_terminal_size(STDOUT)
        return columns(), max(size.lines - 1, 1)

    def resume(self) -> None:
        self._live = []  # the shell wrote below it meanwhile
        self._listen()

    def close(self) -> None:
        with contextlib.suppress(OSError, CassError, termios.error):  # a terminal that is gone needs no restoring
            if self._modes is not None:
                termios.tcsetattr(STDIN, termios.TCSADRAIN, self._modes)
            self.show((), ())

    def _listen(self) -> None:
        """Take keys one by one and unseen; also Ctrl-O and Ctrl-T, which some systems keep for themselves."""
        if self._modes is not None:
            modes = termios.tcgetattr(STDIN)
            modes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
            termios.tcsetattr(STDIN, termios.TCSADRAIN, modes)

    def _kept(self, live: Sequence[str]) -> int:
        """How many of the live lines stay as they are, not all of either side.

        Mostly only the last line changes. To leave the others alone is also what keeps them whole while tmux, which
        tells of a new size a quarter of a second late, has already wrapped them anew.
        """
        most = max(min(len(live), len(self._live)) - 1, 0)
        return next((i for i in range(most) if live[i] != self._live[i]), most)

    def _erase(self, lines: Sequence[str]) -> str:
        """Back to where the last live lines began. A terminal that was made narrower has wrapped them meanwhile."""
        if not lines:
            return ""
        rows = sum(max(1, -(-cell_len(self._STYLE.sub("", line)) // columns())) for line in lines)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"


def columns() -> int:
    """Of the terminal we write on, or else of the one around: a pager's reader has one, too."""
    for fd in (STDOUT, STDERR, STDIN):
        with contextlib.suppress(OSError):
            return os.get_terminal_size(fd).columns or UNKNOWN
    return UNKNOWN


def write(data: bytes) -> None:
    """All of `data` to standard output. Raises BrokenPipeError where its reader, or the terminal, is gone."""
    while data:
        try:
            data = data[os.write(STDOUT, data) :]
        except OSError as e:
            if e.errno in (errno.EPIPE, errno.EIO):
                raise BrokenPipeError(*e.args) from e
            raise CassError(f"cannot write to standard output: {e.strerror}") from e
