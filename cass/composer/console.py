"""The console: the input area with all that stands around it, drawn by prompt_toolkit; finished lines go above it.

It owns the terminal. What it shows is asked of a `Shown` each time it draws; it knows no chat.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Protocol, cast

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from cass.commands import Command
from cass.composer import completion, terminal
from cass.composer.folded import Folded
from cass.composer.keys import ASK, ASK_NO_MORE, ESC_S, SECOND_KEY_S, learn_sequences
from cass.composer.paths import Paths
from cass.composer.question import Fragments

STYLE = Style.from_dict(
    {
        "dim": "ansibrightblack",
        "read-only": "ansigreen",
        "workspace-edit": "ansiyellow",
        "full-access": "ansired bold",
        "busy": "ansicyan",
        "ask": "ansiyellow bold",
        "subject": "bold",
        "added": "ansigreen",
        "removed": "ansired",
        "key": "bold",
        "paste": "ansicyan",
        "waiting": "ansibrightblack italic",
        "warning": "ansiyellow",
        "error": "ansired",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit ansibrightblack",
        "completion-menu.meta.completion.current": "noinherit ansibrightblack",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit",
    }
)


ROWS_BELOW_DRAFT = 1
"""The status line; what is said below it has rows of its own."""
ROWS_FOR_HELP, ROWS_FOR_HELP_AND_QUESTION = 6, 12
"""In a lower terminal there is no room for the help line; nor for it beside a question, whose answers matter more."""
ROWS_AROUND_DRAFT = 3
LINES_COUNTED = 100
"""Of a draft, to see how high it is: no screen shows more."""
ROWS_BELOW_LIVE = 8
"""Of what grows: a menu, status, help; one that stays above it."""


class Shown(Protocol):
    """What a console shows, as it is now."""

    def live(self) -> str:
        """The block that still grows, in ANSI; "" for none."""

    def waiting(self) -> Fragments: ...
    def noticed(self) -> Fragments: ...
    def question(self) -> Fragments: ...
    def status(self, width: int) -> Fragments: ...
    def help(self, width: int, room: bool) -> Fragments: ...
    def mode(self) -> str: ...
    def cwd(self) -> str: ...
    def providers(self) -> list[str]: ...
    def own_commands(self) -> list[Command]:
        """Those that the person wrote."""


class Console:
    """One input area on one terminal."""

    def __init__(
        self,
        shown: Shown,
        history: History,
        folded: Callable[[str], str | None],
        *,
        vi: bool = False,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """`folded` gives what is drawn for a character of the draft, None for itself; `vi`: its keys, not Emacs's."""
        learn_sequences()
        self._shown = shown
        self._above: list[str] = []
        self._is_away = False
        self.terminal = terminal.Terminal(1)
        self.output = output or terminal.output(self.terminal)
        self.draft = Buffer(
            history=history,
            multiline=True,
            completer=ThreadedCompleter(_Completer(shown)),  # a workspace may be large
            complete_while_typing=Condition(lambda: completion.is_begun(self.draft.document.text_before_cursor)),
        )
        self.reason = Buffer(multiline=False)
        self._search = SearchToolbar(ignore_case=True, backward_search_prompt="in the history: ")
        self._draft_control = BufferControl(
            self.draft, [Folded(folded)], search_buffer_control=self._search.control, preview_search=True
        )
        prefix = _prefix(lambda: "because ❯ ", lambda: "class:ask")  # the draft stands below, with its own
        self._reason_window = Window(BufferControl(self.reason), height=1, get_line_prefix=prefix)
        self.app: Application[int] = _Application(
            Layout(self._rows(), focused_element=self._draft_control),
            style=STYLE,
            input=input or Vt100Input(sys.stdin),
            output=self.output,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            erase_when_done=True,
            include_default_pygments_style=False,
        )
        self.drawn = asyncio.Event()
        """Set once the prompt stands on the screen."""
        self.app.after_render += lambda _: self.drawn.set()
        self.app.ttimeoutlen, self.app.timeoutlen = ESC_S, SECOND_KEY_S

    async def run(self) -> int:
        """Show it until somebody calls `leave`; return what that said."""
        self.output.write_raw(ASK)
        try:
            return await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:  # the other end of the terminal is closed
            return 128 + signal.SIGHUP
        finally:
            self.output.write_raw(ASK_NO_MORE)
            self.output.flush()

    def leave(self, status: int) -> None:
        if self.app.future and not self.app.future.done():
            self.app.exit(result=status)

    # ---- drawing ----

    @property
    def size(self) -> Size:
        return self.output.get_size()

    @property
    def columns(self) -> int:
        return self.size.columns

    @property
    def rows(self) -> int:
        return self.size.rows

    def redraw(self) -> None:
        self.app.invalidate()

    def print(self, text: str) -> None:
        """Put whole lines of ANSI text above the input, for ever. Erased, printed and drawn again in one write."""
        self._above.append(text if text.endswith("\n") else text + "\n")
        if self._is_away:
            return
        with self.terminal.held(), set_app(self.app):
            is_drawn = self.app.renderer.last_rendered_screen is not None
            if is_drawn:
                self.app.renderer.erase()
            self._write_above()
            if is_drawn:
                self.app.render_counter += 1  # what its controls were asked for the last time holds no more
                self.app.renderer.render(self.app, self.app.layout)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Leave the terminal to somebody else, as it was; what is printed meanwhile comes afterwards."""
        self._is_away = True
        try:
            with set_app(self.app):
                async with in_terminal():
                    self.output.write_raw(ASK_NO_MORE)
                    self.output.flush()
                    yield
                    self.output.write_raw(ASK)
                    self._write_above()
        finally:
            self._is_away = False

    @asynccontextmanager
    async def handed_over(self) -> AsyncIterator[None]:
        """As `aside`, for an application of our own: our last read may wait so long for the rest of a code, and would
        take the Esc that is meant for the other."""
        await asyncio.sleep(ESC_S)
        try:
            async with self.aside():
                yield
        finally:  # what was typed behind the key that left the other is meant for us
            self.app.key_processor.feed_multiple(get_typeahead(self.app.input))
            self.app.key_processor.process_keys()

    def _write_above(self) -> None:
        self.output.write_raw("".join(self._above).replace("\n", "\r\n"))
        self._above.clear()

    # ---- layout ----

    def focus_reason(self, is_asked: bool) -> None:
        """Whether the keyboard writes a reason, with the draft kept below, or the draft."""
        if is_asked:
            self.reason.reset()
        self.app.layout.focus(self._reason_window if is_asked else self._draft_control)

    @property
    def in_reason(self) -> bool:
        return self.app.layout.current_buffer is self.reason

    def _rows(self) -> HSplit:
        shown = self._shown
        prompt = _prefix(lambda: "❮ " if vi_navigation_mode() else "❯ ", lambda: f"class:{shown.mode() or 'dim'} bold")
        draft = Window(
            self._draft_control,
            height=lambda: Dimension(min=1, max=max(self.size.rows - ROWS_AROUND_DRAFT, 1)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prompt,
        )
        return HSplit(
            [
                _when(shown.live, Window(FormattedTextControl(self._live), dont_extend_height=True)),
                Window(height=lambda: Dimension.exact(1 if self.size.rows >= 12 else 0)),
                _when(shown.waiting, _lines(shown.waiting)),
                _when(shown.question, _lines(shown.question)),
                ConditionalContainer(self._reason_window, Condition(lambda: self.in_reason)),
                _when(shown.noticed, _lines(shown.noticed)),
                draft,
                self._search,
                CompletionsMenu(max_height=8),
                Window(FormattedTextControl(lambda: cast(AnyFormattedText, shown.status(self.size.columns))), height=1),
                Window(
                    FormattedTextControl(lambda: cast(AnyFormattedText, shown.help(self.size.columns, self._has_room))),
                    height=lambda: Dimension.exact(self._help_rows),
                ),
            ]
        )

    def wanted_rows(self) -> int:
        """Rows that would show all there is, but for the menu of what completes, which comes and goes."""
        columns = max(self.columns - 2, 1)
        draft = sum(max(-(-get_cwidth(line) // columns), 1) for line in self.draft.document.lines[:LINES_COUNTED])
        shown = self._shown
        above = sum(_height(lines, self.columns) for lines in (shown.waiting(), shown.question(), shown.noticed()))
        return draft + above + self.in_reason + ROWS_BELOW_DRAFT + max(self._help_rows, 1)

    @property
    def _has_room(self) -> bool:
        return self.size.rows >= (ROWS_FOR_HELP_AND_QUESTION if self._shown.question() else ROWS_FOR_HELP)

    @property
    def _help_rows(self) -> int:
        return _height(self._shown.help(self.size.columns, True), self.columns) if self._has_room else 0

    def _live(self) -> AnyFormattedText:
        """The end of what grows: the rest of it is printed when it is finished."""
        below = sum(_height(lines, self.columns) for lines in (self._shown.waiting(), self._shown.noticed()))
        rows = max(self.size.rows - ROWS_BELOW_LIVE - below - self.draft.document.line_count, 1)
        return ANSI(terminal.without_commands("\n".join(self._shown.live().rstrip("\n").split("\n")[-rows:])))


class _Application(Application[int]):
    def _on_resize(self) -> None:
        """Draw anew; but what another program has on the terminal now is not ours to erase."""
        if not self._running_in_terminal:
            super()._on_resize()


class _Completer(Completer):
    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._paths = Paths()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        for found in completion.candidates(
            document.text_before_cursor,
            self._shown.cwd(),
            self._paths.matching,
            self._shown.own_commands,
            self._shown.providers,
        ):
            yield Completion(found.text, -found.typed, display=found.shown or None, display_meta=found.help)


def _height(lines: Fragments, columns: int) -> int:
    """Rows that lines take where they are wrapped."""
    text = "".join(text for _, text in lines)
    return sum(max(-(-get_cwidth(line) // columns), 1) for line in text.split("\n")) if text else 0


def _when(content: Callable[[], object], window: Window) -> ConditionalContainer:
    """`window` where there is anything in it."""
    return ConditionalContainer(window, Condition(lambda: bool(content())))


def _lines(content: Callable[[], Fragments]) -> Window:
    control = FormattedTextControl(lambda: cast(AnyFormattedText, content()))
    return Window(control, wrap_lines=True, dont_extend_height=True)


def _prefix(first: Callable[[], str], style: Callable[[], str]) -> Callable[[int, int], AnyFormattedText]:
    """What stands before each row of an input: `first` once, then as much space."""
    return lambda line, wrap: [(style(), first() if line == 0 and wrap == 0 else " " * len(first()))]
