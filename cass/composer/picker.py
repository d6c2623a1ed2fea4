"""The picker: a list to choose from, filtered by what is typed, on the terminal of whoever asks."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import cast

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output import Output

from cass.commands import At
from cass.composer import keys, terminal
from cass.composer.footer import cut
from cass.composer.keys import ESC_S, SECOND_KEY_S
from cass.composer.question import Fragments
from cass.visible import safe_line

KEYS = (" · type to filter · Enter takes it · Esc none", " · type to filter · Enter · Esc", "")
"""Behind the title, as much of it as has room."""
ROWS_AROUND = 3
"""Title, filter, and a row that stays free, so that a full list scrolls nothing away."""


class Picker:
    def __init__(self, title: str, choices: Sequence[str], size: Callable[[], tuple[int, int]], at: int = 0) -> None:
        """`choices` are a line each; `size` tells columns and rows of the terminal; `at` is where the mark begins."""
        self._title = title
        self._choices = [safe_line(choice) for choice in choices]
        self._size = size
        self.filter = ""
        self._at = at

    @property
    def matching(self) -> list[int]:
        """The choices that hold every word of the filter, in their order."""
        words = self.filter.lower().split()
        return [n for n, choice in enumerate(self._choices) if all(word in choice.lower() for word in words)]

    @property
    def chosen(self) -> int | None:
        """Index of the choice that the mark is at; None where none matches."""
        matching = self.matching
        return matching[min(self._at, len(matching) - 1)] if matching else None

    def type(self, text: str) -> None:
        self.filter += "".join(character for character in text if character.isprintable())
        self._at = 0

    def move(self, by: int) -> None:
        last = max(len(self.matching) - 1, 0)
        self._at = min(max(min(self._at, last) + by, 0), last)

    def fragments(self) -> Fragments:
        columns, _ = self._size()
        matching, chosen = self.matching, self.chosen
        place = matching.index(chosen) if chosen is not None else 0
        first = max(min(place - self._page // 2, len(matching) - self._page), 0)
        found = f"{len(matching)} of {len(self._choices)}" if self.filter else str(len(self._choices))
        forms = [f"{self._title} · {found}{keys}" for keys in KEYS]
        help = next((form for form in forms if len(form) < columns), cut(forms[-1], columns - 1))
        text: Fragments = [("bold", help), ("", "\n❯ "), ("class:key", self.filter), ("", "\n")]
        for index in matching[first : first + self._page]:
            line = cut(self._choices[index], columns - 3)
            text.append(("reverse", f"> {line}\n") if index == chosen else ("", f"  {line}\n"))
        return text or [("class:dim", "nothing fits")]

    @property
    def _page(self) -> int:
        return max(self._size()[1] - ROWS_AROUND, 1)

    # ---- keys, named as in the table of `commands`

    def up(self, event: KeyPressEvent) -> None:
        self.move(-1)

    def down(self, event: KeyPressEvent) -> None:
        self.move(1)

    def page_up(self, event: KeyPressEvent) -> None:
        self.move(-self._page)

    def page_down(self, event: KeyPressEvent) -> None:
        self.move(self._page)

    def rub_out(self, event: KeyPressEvent) -> None:
        self.filter = self.filter[:-1]
        self._at = 0

    def clear(self, event: KeyPressEvent) -> None:
        self.filter = ""
        self._at = 0

    def take(self, event: KeyPressEvent) -> None:
        if self.chosen is not None:
            event.app.exit(result=self.chosen)

    def leave(self, event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    def filter_by(self, event: KeyPressEvent) -> None:
        if len(event.key_sequence[0].key) == 1 or event.key_sequence[0].key is Keys.BracketedPaste:
            self.type(event.data)


async def pick(
    title: str, choices: Sequence[str], *, input: Input | None = None, output: Output | None = None, at: int = 0
) -> int | None:
    """Have the person choose; return the index, None for none. Leaves nothing on the screen."""

    def size() -> tuple[int, int]:
        found = app.output.get_size()
        return found.columns, found.rows

    picker = Picker(title, choices, size, at)
    bindings = keys.bind_at(picker, At.PICKER)
    for any_text in (Keys.Any, Keys.BracketedPaste):
        bindings.add(any_text)(picker.filter_by)
    shown = FormattedTextControl(lambda: cast(AnyFormattedText, picker.fragments()), show_cursor=False)
    app: Application[int | None] = Application(
        Layout(Window(shown, dont_extend_height=True)),
        key_bindings=bindings,
        input=input,
        output=output,
        erase_when_done=True,
        include_default_pygments_style=False,
    )
    app.ttimeoutlen, app.timeoutlen = ESC_S, SECOND_KEY_S
    try:
        return await app.run_async(handle_sigint=False, set_exception_handler=False)
    except EOFError:  # the other end of the terminal is closed
        return None


def run(title: str, choices: Sequence[str], early: bytes = b"") -> int | None:
    """`pick` for a program that has nothing else on its terminal. `early` are keys that were typed before."""
    keys.learn_sequences()
    typed = Vt100Input(sys.stdin)
    keys.feed(typed, early)
    return asyncio.run(pick(title, choices, input=typed, output=terminal.output(terminal.Terminal(1))))
