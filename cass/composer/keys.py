"""Keys: what comes from the terminal, and which method of the composer each key calls, by the table in `commands`."""

import select
from collections.abc import Callable
from typing import Any

from prompt_toolkit.filters import Condition, emacs_mode, is_searching, vi_navigation_mode
from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from cass.announce import FOCUS_REPORTS, NO_FOCUS_REPORTS
from cass.commands import At, keys_at

ASK = "\x1b[>4;1m" + FOCUS_REPORTS
"""xterm's modifyOtherKeys, level 1: keys that had no code of their own get one. Others, and tmux by default, ignore it.
Source: https://invisible-island.net/xterm/modified-keys.html
And whether the terminal is looked at."""
ASK_NO_MORE = "\x1b[>4m" + NO_FOCUS_REPORTS
FOCUS_IN, FOCUS_OUT = Keys.ControlF23, Keys.ControlF24
"""Keys that no keyboard has, for what prompt_toolkit has no name for."""

ESC_S = 0.02
"""How long a lone Esc waits for the rest of a code: one read of a terminal."""
SECOND_KEY_S = 0.05
"""How long it waits for the second key of Alt-Enter."""


def learn_sequences() -> None:
    """Teach prompt_toolkit the codes of keys with modifiers, in xterm's form and in that of CSI u.

    Enter with any modifier is a newline (its Alt-Enter), Shift-Tab stays itself, and Shift with Space or Backspace is
    what it is without.
    """
    plain: dict[int, Keys | str | tuple[Keys | str, ...]] = {
        13: (Keys.Escape, Keys.ControlM),
        32: " ",
        127: Keys.ControlH,
    }
    known: dict[str, Any] = ANSI_SEQUENCES
    for code, key in plain.items():
        for modifier in range(2, 9):
            known[f"\x1b[{code};{modifier}u"] = known[f"\x1b[27;{modifier};{code}~"] = key
    known["\x1b[9;2u"] = known["\x1b[27;2;9~"] = Keys.BackTab
    known["\x1b[13u"] = Keys.ControlM
    known["\x1b[27u"] = Keys.Escape
    known["\x1b[I"], known["\x1b[O"] = FOCUS_IN, FOCUS_OUT


def bind(
    keyboard: Any, *, is_asking: Callable[[], bool], is_long: Callable[[], bool], in_reason: Callable[[], bool]
) -> KeyBindings:
    """Bindings that call ``keyboard.<does>(event)`` for each row of the table, and ``keyboard.paste(event)``.

    While `is_asking` letters can be answers, while `is_long` there is a question to scroll; while `in_reason` only
    Enter, Esc and Ctrl-C are ours.
    """
    bindings = KeyBindings()
    for key in keys_at(At.DRAFT):
        usable = ~is_searching
        if key.does not in ("enter", "escape", "clear_or_leave"):
            usable = usable & ~Condition(in_reason)
        if key.does == "escape":  # in vi mode it first goes to where it can interrupt
            usable = usable & (vi_navigation_mode | emacs_mode)
        for press in key.presses:
            bindings.add(*press, filter=usable)(getattr(keyboard, key.does))
    for key in keys_at(At.QUESTION):
        usable = ~is_searching & Condition(is_asking if len(key.name) == 1 else is_long)
        for press in key.presses:
            bindings.add(*press, filter=usable, eager=True)(getattr(keyboard, key.does))
    bindings.add(Keys.BracketedPaste)(keyboard.paste)
    bindings.add(FOCUS_IN)(keyboard.focus_in)
    bindings.add(FOCUS_OUT)(keyboard.focus_out)
    return bindings


def bind_at(keyboard: Any, at: At) -> KeyBindings:
    """Bindings for another place of the table."""
    bindings = KeyBindings()
    for key in keys_at(at):
        for press in key.presses:
            bindings.add(*press)(getattr(keyboard, key.does))
    return bindings


def feed(input: Input, early: bytes) -> None:
    """Let `input` have what was typed before there was a composer."""
    if early and isinstance(input, Vt100Input):
        input.vt100_parser.feed(early.decode("utf-8", "ignore"))
        store_typeahead(input, input.flush_keys())


def more_follows(event: KeyPressEvent) -> bool:
    """Whether more keys are there already: a person's Enter comes alone, that of a paste does not.

    What else the terminal says, such as that it is looked at no more, may well come with it.
    """
    queue = event.app.key_processor.input_queue
    try:
        if select.select([event.app.input.fileno()], [], [], 0)[0]:
            event.app.key_processor.feed_multiple(event.app.input.read_keys())
    except (OSError, NotImplementedError):
        pass  # an input without a file has given all it has
    return any(press.key not in (FOCUS_IN, FOCUS_OUT) for press in queue)


def pasted(data: str) -> str:
    """A paste as text: one kind of line end, tabs kept, and no end of a paste inside it."""
    return data.replace("\r\n", "\n").replace("\r", "\n").replace("\x1b[200~", "").replace("\x1b[201~", "")
