"""The transcript beside a composer: where the viewer runs, if it is the composer's affair.

Inline   a child, whose frames the console prints    Paned   a pane of its own    Transcript   the person's affair
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Protocol

from cass import itself
from cass.composer.frames import Viewer
from cass.composer.panes import COMPOSER_ROWS, Pane
from cass.errors import CassError
from cass.home import Files, create_private
from cass.visible import safe_line

PRINT_EVERY_S = 0.02
"""Each printing erases and redraws the input, about 1 ms: so often it costs little and the eye sees no step."""
RESTARTS = 3
SHRINK_AFTER_S = 1.0
ALL_ROWS = 1_000
"""As many as there can be."""


class Screen(Protocol):
    """What a transcript uses of the composer's screen."""

    def print(self, text: str) -> None: ...
    def redraw(self) -> None: ...
    @property
    def columns(self) -> int: ...
    @property
    def rows(self) -> int: ...


class Transcript:
    """One that is shown somewhere else."""

    live = ""
    """The block that still grows, in ANSI, where it is ours to show."""
    is_above = False
    """Whether it has most of the room, and the composer's own terminal little."""

    async def show(self) -> None:
        """Show it until it is closed. Raises CassError when it cannot be shown."""

    def press(self, key: str) -> bool:
        """Pass a key on, ``C-o`` or ``C-t``; False where nobody takes it."""
        return False

    def seen(self, id: str) -> None:
        """The message `id`, not sent yet, is on the screen: it need not be shown here."""

    def page(self, direction: str) -> bool:
        """Scroll half a page ``up`` or ``down`` where it is; False where a page of the composer's own is to do that."""
        return True

    def resize(self) -> None:
        """The terminal may have another width now."""

    def pane(self) -> str | None:
        """Id of the pane of tmux that it has for itself, if it has one."""
        return None

    def fit(self, rows: int, *, may_shrink: bool) -> None:
        """The composer needs so many rows; where it shares them with the transcript it may get them."""

    async def close(self) -> None:
        """Leave nothing behind."""


class Inline(Transcript):
    def __init__(self, files: Files, screen: Screen, warn: Callable[[str], None]) -> None:
        self._files = files
        self._screen = screen
        self._warn = warn
        self._viewer: Viewer | None = None
        self._columns = 0
        self._seen: list[str] = []

    async def show(self) -> None:
        at = ""
        for _ in range(RESTARTS + 1):
            self._viewer = await Viewer.start(self._files, *(["--after", at] if at else []))
            self._columns = self._screen.columns
            self._viewer.send({"width": self._columns, "seen": self._seen})
            while (frames := await self._viewer.read()) is not None:
                self.live = self.live if frames.live is None else frames.live
                at = frames.at or at
                if frames.printed:
                    self._screen.print(frames.printed)
                self._screen.redraw()
                await asyncio.sleep(PRINT_EVERY_S)
            self.live = ""
            words = safe_line(await self._viewer.last_words())
            self._warn(f"the viewer ended ({words}); it is started again")
        self._warn(f"the viewer ended once more ({words}); cass-view shows this chat in another terminal")

    def press(self, key: str) -> bool:
        if self._viewer:
            self._viewer.send({"key": key})
        return self._viewer is not None

    def seen(self, id: str) -> None:
        self._seen.append(id)
        if self._viewer:
            self._viewer.send({"seen": [id]})

    def page(self, direction: str) -> bool:
        return direction != "up"

    def resize(self) -> None:
        if self._viewer and self._columns != self._screen.columns:
            self._columns = self._screen.columns
            self._viewer.send({"width": self._columns})

    async def close(self) -> None:
        if self._viewer:
            await self._viewer.close()


class Paned(Transcript):
    is_above = True

    def __init__(self, files: Files, screen: Screen, say: Callable[[str], None]) -> None:
        self._known = files.home.root / ".panes"
        self._screen = screen
        self._say = say
        self._command = itself.argv("cass-view", files.chat_id, "--follow", "--no-hint", "--notify", "off")
        self._pane: Pane | None = None
        self._rows = COMPOSER_ROWS
        self._height = screen.rows
        """Of the composer's pane, when it was fitted."""
        self._fits_since: float | None = None
        """When fewer rows became enough."""
        self._fitting: asyncio.Future[None] | None = None

    async def show(self) -> None:
        self._pane = await asyncio.to_thread(Pane.open, self._command, os.environ)
        if not self._known.exists():
            self._say("the chat is in the pane above; cass --layout inline keeps it in this one")
            os.close(create_private(self._known))

    def press(self, key: str) -> bool:
        return self._is_open() and self._pane is not None and self._pane.press(key)

    def page(self, direction: str) -> bool:
        if self._is_open() and self._pane is not None:
            self._pane.scroll(direction)
        return True

    def pane(self) -> str | None:
        return self._pane.id if self._pane is not None and self._pane.is_open() else None

    def fit(self, rows: int, *, may_shrink: bool) -> None:
        """More rows at once, fewer only after a while: what comes and goes moves nothing."""
        rows, now = max(rows, COMPOSER_ROWS), time.monotonic()
        if rows >= self._rows or not may_shrink:
            self._fits_since = None
        elif self._fits_since is None:
            self._fits_since = now
        is_due = rows > self._rows or (self._fits_since is not None and now - self._fits_since > SHRINK_AFTER_S)
        is_sized = (
            self._height != self._screen.rows
        )  # by us, by the person, or with the window, of which each has a share
        if self._pane and (is_due or is_sized) and (self._fitting is None or self._fitting.done()):
            self._height = self._screen.rows
            self._rows, self._fits_since = (rows, None) if is_due else (self._rows, self._fits_since)
            self._fitting = asyncio.get_running_loop().run_in_executor(None, self._pane.fit, self._rows)

    async def close(self) -> None:
        if self._fitting is not None:
            await self._fitting
        if self._pane:
            self._pane.close()

    def _is_open(self) -> bool:
        """Open the pane again where the person has closed it."""
        if self._pane is None or not self._pane.is_open():
            try:
                self._pane = Pane.open(self._command, os.environ)
            except CassError:
                return False
        return True
