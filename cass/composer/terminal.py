"""The terminal that the composer writes to, as prompt_toolkit wants it."""

import os
import re
import select
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from cass import color
from cass.pattern import pattern


class Terminal:
    """Standard output where what is written while it is held leaves in one piece."""

    encoding = "utf-8"

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pieces: list[str] = []
        self._is_held = False
        self.is_gone = False
        """The other end hung up."""

    def write(self, text: str) -> int:
        self._pieces.append(text)
        return len(text)

    def flush(self) -> None:
        if self._is_held:
            return
        data = memoryview("".join(self._pieces).encode("utf-8", "replace"))
        self._pieces.clear()
        while data and not self.is_gone:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # whoever shares the terminal may have made it so for all
                select.select([], [self._fd], [])
            except OSError:
                self.is_gone = True

    @contextmanager
    def held(self) -> Iterator[None]:
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)


class _Output(Vt100_Output):
    def erase_down(self) -> None:
        """Erase from the cursor's row on, in two steps.

        tmux takes "erase everything" at the first cell for a screen that is cleared, and moves all of it into the
        history (`scroll-on-clear`): what was the prompt would stand there as a ghost.
        """
        self.write_raw("\x1b7\x1b[K\x1b[B\r\x1b[J\x1b8")


def output(terminal: Terminal) -> Output:
    """Without asking where the cursor is: the answer would come between the keys, and on some terminals never."""

    def size() -> Size:
        found = shutil.get_terminal_size() if not terminal.isatty() else os.get_terminal_size(terminal.fileno())
        return Size(rows=found.lines or 24, columns=found.columns or 80)

    _, has_colors = color.wanted(os.environ, is_terminal=True)
    depth = None if has_colors else ColorDepth.DEPTH_1_BIT
    term = os.environ.get("TERM")
    return _Output(cast(TextIO, terminal), size, term=term, default_color_depth=depth, enable_cpr=False)


_COMMAND = pattern("\x1b[]P^_].*?(?:\x1b\\\\|\a)", re.DOTALL)


def without_commands(ansi: str) -> str:
    """`ansi` without links, marks and the like, which would be shown as text where it is drawn and not printed.

    OSC, DCS, PM and APC of ECMA-48, 8.3, to their end.
    """
    return _COMMAND.sub("", ansi) if "\x1b]" in ansi or "\x1bP" in ansi else ansi
