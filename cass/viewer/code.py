"""Code as coloured lines: a piece that is whole, or line by line as it comes.

Colours are the sixteen of the terminal's own theme, so that they are readable on light and dark.
"""

from functools import cache

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.style import Style
from rich.text import Text

from cass.viewer.wrapping import untabbed
from cass.visible import safe

PLAIN_CODE = 50_000
"""Longer code is shown without colours: a lexer may need a second for it."""
LONG_LINE = 2_000
"""The same for one line of it, such as a minified file."""

_STYLES: dict[_TokenType, Style] = {
    Token.Comment: Style(color="bright_black"),
    Token.Keyword: Style(color="magenta"),
    Token.Literal.String: Style(color="green"),
    Token.Literal.Number: Style(color="cyan"),
    Token.Name.Function: Style(color="blue"),
    Token.Name.Class: Style(color="blue"),
    Token.Name.Tag: Style(color="blue"),
    Token.Name.Builtin: Style(color="cyan"),
    Token.Name.Decorator: Style(color="yellow"),
    Token.Operator.Word: Style(color="magenta"),
    Token.Generic.Deleted: Style(color="red"),
    Token.Generic.Inserted: Style(color="green"),
    Token.Generic.Subheading: Style(color="cyan"),
    Token.Generic.Heading: Style(bold=True),
}

_ENDS = {
    '"""': '"""',
    "'''": "'''",
    "/*": "*/",
    "<!--": "-->",
    "{-": "-}",
    "(*": "*)",
    "--[[": "]]",
    "[[": "]]",
    "<#": "#>",
    "`": "`",
    '"': '"',
    "'": "'",
}
"""What may begin a string or comment of several lines somewhere, and what ends that. Longer ones first."""


def highlight(code: str, info: str) -> list[Text]:
    """Lines of `code`, coloured where `info`, the text behind a fence's marker, begins with a known language."""
    code = "\n".join(map(untabbed, safe(code).split("\n")))
    lexer = _lexer(_language(info))
    if lexer is None or len(code) > PLAIN_CODE or any(len(line) > LONG_LINE for line in code.split("\n")):
        return [Text(line) for line in code.removesuffix("\n").split("\n")]
    text = Text()
    for kind, value in lexer.get_tokens(code):
        text.append(value, _style_of(kind))
    return list(text.split("\n", allow_blank=False)) or [Text()]


class Listing:
    """Code that comes line by line. A string or comment that goes on over lines keeps its colour.

    A lexer is given one line at a time: with what opened the string or comment it is in, if it is in one. That costs
    the same for every line, however long the listing gets.
    """

    def __init__(self, info: str) -> None:
        self._lexer = _lexer(_language(info))
        self._open = ""
        """What the next line is inside of: the beginning of a string or comment, or nothing."""

    def line(self, line: str) -> Text:
        """The next line, without its newline."""
        made, self._open = self._coloured(line)
        return made

    def peek(self, line: str) -> Text:
        """A line that is not whole yet, as it would be the next one."""
        return self._coloured(line)[0]

    def _coloured(self, line: str) -> tuple[Text, str]:
        """A line, and what is open behind it."""
        line = untabbed(safe(line))
        if self._lexer is None or len(line) > LONG_LINE:
            return Text(line), self._open
        text = f"{self._open}\n{line}" if self._open else line
        opened = _left_open(self._lexer, text)
        made = Text()
        for kind, value in self._lexer.get_tokens(f"{text}\n{_ENDS[opened]}" if opened else text):
            made.append(value, _style_of(kind))
        return made[len(text) - len(line) : len(text)], opened


def _left_open(lexer: Lexer, text: str) -> str:
    """What begins the string or comment that is still open behind `text`.

    Not every lexer has a state that could be kept: many find a comment by one expression from end to end. So each end
    is tried: it is the right one if a word before it is quoted and a number behind it is not.
    """
    for begin, end in _ENDS.items():
        may_be_open = text.count(begin) % 2 if begin == end else text.rfind(begin) > text.rfind(end)
        if may_be_open and _is_closed_by(lexer, text, end):
            return begin
    return ""


def _is_closed_by(lexer: Lexer, text: str, end: str) -> bool:
    """Whether a string or comment goes on behind `text`, and `end` ends it."""
    inside, outside = len(text) + 1, len(text) + len(f"\nx{end}\n")
    found = dict.fromkeys((inside, outside), False)
    for start, kind, value in lexer.get_tokens_unprocessed(f"{text}\nx{end}\n0\n"):
        for place in found:
            if start <= place < start + len(value):
                found[place] = kind in Token.Comment or kind in Token.Literal.String
    return found[inside] and not found[outside]


def _language(info: str) -> str:
    return info.strip(" {.").partition(" ")[0].rstrip("}").lower()


@cache
def _lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False) if name else None
    except ClassNotFound:
        return None


@cache
def _style_of(kind: _TokenType) -> Style:
    while kind not in _STYLES and kind.parent is not None:
        kind = kind.parent
    return _STYLES.get(kind, Style())
