"""The keyboard: what each key of the table in `commands` does. One method a row, named by its `does`."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.search import SearchDirection, start_search

from cass.access import Mode
from cass.composer import keys, mentions
from cass.composer.asking import Asking
from cass.composer.attention import Attention
from cass.composer.branching import Branching
from cass.composer.choice import Choice
from cass.composer.console import Console
from cass.composer.errands import Errands
from cass.composer.pastes import Pastes
from cass.composer.seat import Seat
from cass.composer.transcript import Transcript
from cass.errors import CassError
from cass.visible import safe_line

AGAIN_WITHIN_S = 1.5
AGAIN = "Ctrl-C again to leave"
GO_BACK = "Esc again to go back to an earlier point"
"""What these say holds as long as it stands on the screen: any other key takes it away."""
PASTE_TAIL_S = 0.05
"""An Enter so soon after a paste belongs to it: the text held the code that ends a paste."""

OFFERED_S = 0.03
"""Between two looks at what completion offers."""
OFFERS = 100
"""Looks, until Tab is given up."""


class Composing(Protocol):
    """What the keys act on."""

    seat: Seat
    console: Console
    transcript: Transcript
    asking: Asking
    attention: Attention
    branching: Branching
    choice: Choice
    errands: Errands
    pastes: Pastes
    draft: str
    """The whole text."""

    def cwd(self) -> str: ...
    def do(self, work: Coroutine[Any, Any, None]) -> None: ...
    def hint(self, text: str, seconds: float = ...) -> None: ...
    def is_hinted(self, text: str) -> bool: ...
    def submit(self, *, steer: bool = False) -> None: ...
    def interrupt(self) -> None: ...
    def put_back(self, texts: list[str]) -> bool: ...
    def read_back(self) -> None: ...
    def leave(self, *switch_to: str) -> None: ...


class Keyboard:
    def __init__(self, composer: Composing) -> None:
        self._composer = composer
        self._is_reported = False
        self._pasted_at = 0.0

    def bindings(self) -> KeyBindings:
        console, asking = self._composer.console, self._composer.asking
        return keys.bind(
            self, is_asking=asking.takes_answers, is_long=asking.is_long, in_reason=lambda: console.in_reason
        )

    @property
    def _draft(self) -> Buffer:
        return self._composer.console.draft

    def paste(self, event: KeyPressEvent) -> None:
        text = keys.pasted(event.data)
        is_draft = event.current_buffer is self._draft
        if is_draft and not text:  # what terminals make of an image on the clipboard
            self.paste_image(event)
            return
        if is_draft and (images := mentions.pasted(text, self._composer.cwd())):
            self._insert_word(images)
            return
        event.current_buffer.insert_text(self._composer.pastes.hold(text) if is_draft else text.replace("\n", " "))
        self._pasted_at = time.monotonic()

    def _insert_word(self, word: str) -> None:
        """Insert what must stand apart from what is before and behind it."""
        before = self._draft.document.char_before_cursor
        self._draft.insert_text(f"{' ' if before.strip() else ''}{word} ")

    def paste_image(self, event: KeyPressEvent) -> None:
        async def take() -> None:
            try:
                self._insert_word(await mentions.from_clipboard(self._composer.seat.files.home))
            except CassError as e:
                self._composer.hint(safe_line(str(e)))

        self._composer.do(take())

    def focus_in(self, event: KeyPressEvent) -> None:
        self._composer.attention.is_focused = self._is_reported = True

    def focus_out(self, event: KeyPressEvent) -> None:
        self._composer.attention.is_focused, self._is_reported = False, True

    def takes_report(self) -> bool:
        """Whether what came last was a word of the terminal's own, and no key. Asked once for each."""
        was_reported, self._is_reported = self._is_reported, False
        return was_reported

    def enter(self, event: KeyPressEvent) -> None:
        if self._composer.console.in_reason:
            self._composer.asking.give_reason()
        elif keys.more_follows(event) or time.monotonic() - self._pasted_at < PASTE_TAIL_S:
            self._draft.insert_text("\n")
        else:
            self._composer.submit()

    def steer(self, event: KeyPressEvent) -> None:
        self._composer.submit(steer=True)

    def newline(self, event: KeyPressEvent) -> None:
        self._draft.insert_text("\n")

    def next_mode(self, event: KeyPressEvent) -> None:
        self._composer.choice.mode(Mode(self._composer.seat.standing.mode or Mode.READ_ONLY).next)

    def tool_output(self, event: KeyPressEvent) -> None:
        self._pass_on("C-o")

    def reasoning(self, event: KeyPressEvent) -> None:
        self._pass_on("C-t")

    def next_effort(self, event: KeyPressEvent) -> None:
        self._composer.choice.next_effort()

    def _pass_on(self, key: str) -> None:
        if not self._composer.transcript.press(key):
            self._composer.hint("no viewer takes this key here")

    def escape(self, event: KeyPressEvent) -> None:
        if self._draft.complete_state:
            self._draft.cancel_completion()
        elif self._composer.asking.go_back():
            return
        elif self._composer.seat.is_busy:
            self._composer.interrupt()
        elif self._composer.is_hinted(GO_BACK):
            self.go_back(event)
        else:
            self._composer.hint(GO_BACK, AGAIN_WITHIN_S)

    def go_back(self, event: KeyPressEvent) -> None:
        self._composer.hint("")  # an Esc that leaves the menu is the first of none
        self._composer.branching.branch()

    def clear_or_leave(self, event: KeyPressEvent) -> None:
        if self._composer.asking.go_back():
            return
        if self._composer.seat.is_busy:
            self._composer.interrupt()
        elif self._composer.is_hinted(AGAIN):
            self._composer.leave()
        else:
            self._draft.reset()
            self._composer.hint(AGAIN, AGAIN_WITHIN_S)

    def leave_if_empty(self, event: KeyPressEvent) -> None:
        if self._draft.text:
            self._draft.delete()
        else:
            self._composer.leave()

    def search(self, event: KeyPressEvent) -> None:
        start_search(direction=SearchDirection.BACKWARD)

    def up(self, event: KeyPressEvent) -> None:
        seat = self._composer.seat
        if self._draft.text or not self._composer.put_back(seat.take_back(mine=False, newest=True)):
            self._draft.auto_up(count=event.arg)

    def complete(self, event: KeyPressEvent) -> None:
        state = self._draft.complete_state
        if state and state.completions:
            self._draft.complete_next()
        else:
            self._draft.start_completion(insert_common_part=True)
            event.app.create_background_task(self._complete_the_only_one())

    async def _complete_the_only_one(self) -> None:
        """Insert what is offered alone, where the offer was being made already when Tab came.

        prompt_toolkit makes one at a time: the second, which would have inserted it, was never begun.
        """
        text, before = self._draft.text, 0
        for _ in range(OFFERS):
            await asyncio.sleep(OFFERED_S)
            state = self._draft.complete_state
            if self._draft.text != text or (state and state.complete_index is not None):
                return
            count = len(state.completions) if state else 0
            if count and count == before:  # it does not grow any more
                if count == 1:
                    self._draft.complete_next()
                return
            before = count

    def edit(self, event: KeyPressEvent) -> None:
        async def edit() -> None:
            self._composer.draft = await self._composer.errands.edit(self._composer.draft)

        self._composer.do(edit())

    def suspend(self, event: KeyPressEvent) -> None:
        self._composer.do(self._composer.errands.suspend())

    def page_up(self, event: KeyPressEvent) -> None:
        self._page("up")

    def page_down(self, event: KeyPressEvent) -> None:
        self._page("down")

    def _page(self, direction: str) -> None:
        if not self._composer.transcript.page(direction):
            self._composer.read_back()

    # ---- while there is a question

    def approve(self, event: KeyPressEvent) -> None:
        self._composer.asking.answer("y")

    def deny(self, event: KeyPressEvent) -> None:
        self._composer.asking.answer("n")

    def always(self, event: KeyPressEvent) -> None:
        self._composer.asking.answer("a")

    def question_up(self, event: KeyPressEvent) -> None:
        self._composer.asking.scroll(-1)

    def question_down(self, event: KeyPressEvent) -> None:
        self._composer.asking.scroll(1)
