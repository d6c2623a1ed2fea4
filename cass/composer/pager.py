"""The pager: the transcript as a scrolling page in place of the input. It keeps its place while output comes."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import cast

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output

from cass.commands import At
from cass.composer import keys
from cass.composer.footer import cut
from cass.composer.frames import Viewer
from cass.composer.question import Fragments
from cass.composer.terminal import without_commands
from cass.home import Files

MESSAGES = 500
"""Shown at most; more is for ``cass-view``, which writes into a pager of the person's own."""
LOADED_S = 0.2
"""The chat is there as it was when nothing came for so long,"""
LOADING_S = 1.0
"""or when this has passed: in a stream there is no pause."""


class Pager:
    """Lines, and the place where the screen is among them."""

    def __init__(self, size: Callable[[], tuple[int, int]], note: Callable[[], str] = lambda: "") -> None:
        """`size` tells columns and rows of the terminal; `note` what the person must hear meanwhile."""
        self._size = size
        self._note = note
        self._viewer: Viewer | None = None
        self.lines: list[str] = []
        """In ANSI, each whole by itself."""
        self.top = 0
        self._is_pressed = False
        self.is_loaded = False
        """Until then the page stands one screen above the end, wherever that is."""

    def add(self, printed: str) -> None:
        if self._is_pressed:  # the last turn again: it begins here
            self.top = len(self.lines)
            self._is_pressed = False
        self.lines += without_commands(printed).split("\n")[:-1]
        if not self.is_loaded:
            self.top = max(len(self.lines) - 2 * self._rows, 0)

    def move(self, by: int) -> None:
        if not self.lines:
            return
        self.is_loaded = True
        self.top = min(max(self.top + by, 0), max(len(self.lines) - self._rows, 0))

    def page(self) -> AnyFormattedText:
        return ANSI("\n".join(self.lines[self.top : self.top + self._rows]))

    def status(self) -> Fragments:
        below = max(len(self.lines) - self.top - self._rows, 0)
        last = min(self.top + self._rows, len(self.lines))
        place = f"lines {self.top + 1}-{last} of {len(self.lines)}" if self.lines else "…"
        words = f"{place} · {below} below · q, Esc or End: back"
        note = self._note()
        columns, _ = self._size()
        return [("reverse", cut(f"{note} · {words}" if note else words, columns - 1))]

    @property
    def _rows(self) -> int:
        return max(self._size()[1] - 1, 1)

    async def follow(self, files: Files, changed: Callable[[], None]) -> None:
        """Fill the page from a viewer of its own, and go on with what comes, for ever."""
        self._viewer = await Viewer.start(files, "-n", str(MESSAGES))
        try:
            self._viewer.send({"width": self._size()[0]})
            loaded_by = asyncio.get_running_loop().time() + LOADING_S
            while True:
                frames = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if self.is_loaded or not self.lines else LOADED_S):
                        frames = await self._viewer.read()
                        if frames is None:
                            return
                if frames and frames.printed:
                    self.add(frames.printed)
                self.is_loaded = self.is_loaded or frames is None or asyncio.get_running_loop().time() > loaded_by
                changed()
        finally:
            await self._viewer.close()

    # ---- keys, named as in the table of `commands`

    def up(self, event: KeyPressEvent) -> None:
        self.move(-1)

    def down(self, event: KeyPressEvent) -> None:
        self.move(1)

    def page_up(self, event: KeyPressEvent) -> None:
        self.move(1 - self._rows)

    def page_down(self, event: KeyPressEvent) -> None:
        self.move(self._rows - 1)

    def top_of_all(self, event: KeyPressEvent) -> None:
        self.move(-len(self.lines))

    def tool_output(self, event: KeyPressEvent) -> None:
        self._press("C-o")

    def reasoning(self, event: KeyPressEvent) -> None:
        self._press("C-t")

    def _press(self, key: str) -> None:
        if self._viewer:
            self._is_pressed = self.is_loaded = True
            self._viewer.send({"key": key})

    def leave(self, event: KeyPressEvent) -> None:
        event.app.exit(result=None)


async def read(files: Files, *, input: Input, output: Output, note: Callable[[], str]) -> None:
    """Show the page until the person goes back."""

    def size() -> tuple[int, int]:
        found = output.get_size()
        return found.columns, found.rows

    pager = Pager(size, note)
    shown = Window(FormattedTextControl(pager.page))
    status = Window(FormattedTextControl(lambda: cast(AnyFormattedText, pager.status()), show_cursor=False), height=1)
    app: Application[None] = Application(
        Layout(HSplit([shown, status]), focused_element=status),
        key_bindings=keys.bind_at(pager, At.TRANSCRIPT),
        input=input,
        output=output,
        full_screen=True,
        refresh_interval=1.0,  # the note
        include_default_pygments_style=False,
    )
    app.ttimeoutlen, app.timeoutlen = keys.ESC_S, keys.SECOND_KEY_S
    following = asyncio.ensure_future(pager.follow(files, app.invalidate))
    try:
        await app.run_async(handle_sigint=False, set_exception_handler=False)
    except EOFError:  # the other end of the terminal is closed
        pass
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
