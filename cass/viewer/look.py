"""The look of a screen: how wide, how much, which escape sequences; and lines made to fit it.

The only escape sequences that are ever written for a chat are made in `ansi`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text

from cass import color as colors
from cass.amounts import many
from cass.pattern import pattern
from cass.viewer import wrapping

SHORT_LINES = 12
SHORT_CHARACTERS = 2_000
"""Of a result, or of arguments, in the short view."""
HEAD_LINES = 4
"""Of these, so many are the first ones where the last ones matter more."""
SPINNER = "·∙•∙"
SPIN_S = 0.25
"""A step of it: slow enough to be calm, and to cost next to nothing."""

DIM = wrapping.DIM
BOLD = wrapping.BOLD
GOOD = Style(color="green")
BAD = Style(color="red")
WARN = Style(color="yellow")
MARK = Style(color="cyan", bold=True)


class Look(NamedTuple):
    """How one screen shows everything; never stored."""

    width: int = 80
    escapes: bool = True
    """Whether escape sequences may be written at all."""
    color: bool = True
    """Whether they may be colours."""
    full: bool = False
    """Tool calls and results whole."""
    reasoning: bool = False
    plain: bool = False
    """Markdown as its source, nothing wrapped."""
    short_characters: int = SHORT_CHARACTERS
    links: bool = False
    """Whether links may be ones to click."""
    marks: bool = False
    """Whether turns are marked for the terminal."""
    user: str = ""
    """Name of whoever reads."""
    is_framed: bool = False
    """Within a composer, which says itself what the worker does and what it asks."""


def look_for(environ: Mapping[str, str], is_terminal: bool, color: str = "auto") -> Look:
    """The look for an output, from ``--color`` (``auto``, ``always`` or ``never``) and what the environment says."""
    escapes, is_coloured = colors.wanted(environ, is_terminal, color)
    return Look(escapes=escapes, color=is_coloured, links=escapes and is_terminal and knows_links(environ))


_LINKING_TERMS = pattern("xterm-kitty|xterm-ghostty|alacritty|foot|wezterm|contour|rio")
_LINKING_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "mintty", "rio", "zed"})
_LINKING_NAMES = frozenset({"WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"})
_LINKING_VTE = 5000
_LINKING_TMUX = 3, 4


def knows_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal has links to click (OSC 8), as far as its variables tell; in tmux they are those of tmux.

    Source: https://github.com/Alhadis/OSC8-Adoption
    """
    program = environ.get("TERM_PROGRAM", "")
    if "TMUX" in environ or program == "tmux":
        version = re.match(r"(\d+)\.(\d+)", environ.get("TERM_PROGRAM_VERSION", ""))
        return program == "tmux" and version is not None and (int(version[1]), int(version[2])) >= _LINKING_TMUX
    vte = environ.get("VTE_VERSION", "")
    return (
        program in _LINKING_PROGRAMS
        or not _LINKING_NAMES.isdisjoint(environ)
        or (vte.isdecimal() and int(vte) >= _LINKING_VTE)
        or _LINKING_TERMS.match(environ.get("TERM", "")) is not None
    )


class Marked(Text):
    """A line with marks for the terminal around it."""

    __slots__ = ("after", "before")

    def __init__(self, line: Text, before: str = "", after: str = "") -> None:
        super().__init__(line.plain, line.style, spans=line.spans)
        self.before = before
        self.after = after


def ansi(lines: Iterable[Text], look: Look) -> list[str]:
    """Each line as what is written for it, without a newline."""
    return [_ansi(line, look) for line in lines]


def _ansi(line: Text, look: Look) -> str:
    if not look.escapes:
        return line.plain
    if isinstance(line, Marked):
        return f"{line.before}{_styled(line, look)}{line.after}"
    return _styled(line, look)


def _styled(line: Text, look: Look) -> str:
    console = wrapping.console()
    base = console.get_style(line.style)
    made = ""
    for text, style, _ in line.render(console, end=""):
        style = style or base  # rich gives none to a line that is all of one style
        if style.link and not look.links:
            style = style.update_link(None)
        made += (style if look.color else style.without_color).render(text, color_system=ColorSystem.STANDARD)
    return made


# ---- lines that fit -------------------------------------------------------------------------------------------------


def wrapped(text: Text, look: Look, taken: int = 0) -> list[Text]:
    """Lines broken between words, with room for `taken` columns before them."""
    return list(text.split("\n")) if look.plain else wrapping.wrap(text, max(look.width - taken, wrapping.NARROWEST))


def folded(text: Text, look: Look, taken: int) -> list[Text]:
    """One line broken anywhere, with room for `taken` columns before its parts."""
    return [text] if look.plain else wrapping.fold(text, max(look.width - taken, wrapping.NARROWEST))


def cut(body: Sequence[str], most: int, characters: int, look: Look) -> tuple[list[str], str]:
    """The first `most` lines of `body` and of these the first so many characters, and what to say of the rest."""
    if look.full:
        return list(body), ""
    shown: list[str] = []
    for line in body[:most]:
        if characters <= 0:
            break
        shown.append(line[:characters])
        characters -= len(line) + 1
    if len(shown) < len(body):
        return shown, more(len(body) - len(shown), "line")
    missing = len(body[-1]) - len(shown[-1]) if shown else 0
    return shown, more(missing, "character") if missing else ""


def ends(body: Sequence[str], look: Look) -> list[Text]:
    """The first few and the last lines of `body`, and between them what to say of the rest."""
    room = look.short_characters
    if look.full or (len(body) <= SHORT_LINES and sum(map(len, body)) <= room):
        return [Text(line) for line in body]
    head = _fitting(body[:HEAD_LINES], room // 3)
    tail = _fitting(body[: len(head) - 1 : -1] if head else body[::-1], room - sum(map(len, head)))
    tail = tail[: SHORT_LINES - len(head)][::-1]
    hidden = len(body) - len(head) - len(tail)
    if tail:
        return [*map(Text, head), Text(more(hidden, "line"), DIM), *map(Text, tail)]
    last = body[-1]  # too long by itself
    said = [Text(more(hidden - 1, "line"), DIM)] if hidden > 1 else []
    return [*map(Text, head), *said, Text(more(len(last) - room, "character"), DIM), Text(last[-room:])]


def _fitting(body: Iterable[str], characters: int) -> list[str]:
    """The first lines of `body` that have whole room within so many characters."""
    fitting: list[str] = []
    for line in body:
        characters -= len(line)
        if characters < 0:
            break
        fitting.append(line)
    return fitting


def spinner(at: float) -> str:
    """What moves while something runs: a dot that swells and fades."""
    return SPINNER[int(at / SPIN_S) % len(SPINNER)]


def more(number: int, noun: str) -> str:
    return f"… {many(number, f'more {noun}')} (Ctrl-O)"


def elapsed(since: str | None, at: float) -> str:
    """`` · 12 s`` since a record's time; nothing for the first second, or where the time cannot be read."""
    began = epoch(since)
    return "" if began is None or at - began < 1 else f" · {duration(int(at - began))}"


def epoch(time: str | None) -> float | None:
    """A record's time in epoch seconds; None where it cannot be read."""
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except (ValueError, OverflowError):
        return None


def duration(seconds: float) -> str:
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
