"""Markdown that is still being written: split into pieces that are final, so that each is laid out and printed once.

A top-level block is final as soon as another one starts after it; some are when they close by themselves. Only the
last, open block is parsed again as lines come, and a fence of code is not parsed at all: its lines are final at once.
Source of the rules: https://spec.commonmark.org/0.31.2/#phase-1-block-structure
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from cass.pattern import pattern
from cass.visible import safe


def parser(renderer: type[RendererHTML] = RendererHTML, **options: Any) -> MarkdownIt:
    """A parser for what models write.

    What a reader would lose is text here: HTML, entities, and definitions of links, which leave nothing on a screen.
    """
    made = MarkdownIt("commonmark", {"html": False, **options}, renderer_cls=renderer)
    return made.enable(["table", "strikethrough"]).disable(["html_block", "html_inline", "entity", "reference"])


PARSER = parser()


@dataclass(frozen=True, slots=True)
class Prose:
    """Source of whole top-level blocks, every line with its newline."""

    source: str
    continues: bool = False
    """More items of the list, or rows of the table, that the piece before ended with."""
    head: int = 0
    """So many lines of the source were given before: the head of that table."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence of code opens. Its lines follow, each a `Code`."""

    info: str
    """What stands behind the marker, such as a language."""


@dataclass(frozen=True, slots=True)
class Code:
    """One line inside a fence, without its newline and the fence's own indent."""

    line: str


Piece = Prose | Fence | Code


class _Marker(NamedTuple):
    """How an open fence began, which tells how it ends."""

    mark: str
    indent: int

    def closed_by(self, line: str) -> bool:
        found = _FENCE.fullmatch(line.rstrip())
        return found is not None and found[2][0] == self.mark[0] and len(found[2]) >= len(self.mark)

    def inside(self, line: str) -> str:
        """`line` without as much white space as stood before the fence; a tab reaches to the next fourth column."""
        column = taken = 0
        while column < self.indent and line[taken] in " \t":
            column += 1 if line[taken] == " " else 4 - column % 4
            taken += 1
        return " " * (column - self.indent) + line[taken:]


_FENCE = pattern(r"( {0,3})(`{3,}|~{3,})")
_MAY_START = pattern(r"\s*$| {0,3}(#|`{3}|~{3}|>|[-=*+_|]|\d+[.)])|.*\|")
_CLOSED_AT_ONCE = frozenset({"heading_open", "hr"})
_CLOSED_BY_BLANK = frozenset({"paragraph_open", "table_open", "blockquote_open"})


_HEAD = 2
"""Lines of a table's head: the names, and the line below them."""


class Splitter:
    """Takes text as it comes, gives pieces as they become final. `rest` is what is not final yet.

    A list or table with more than `long` open lines is given by items or rows. Text is made `safe` on its way in.
    """

    def __init__(self, long: int = 20) -> None:
        self._long = long
        self._line = ""
        """The last line, still without its newline."""
        self._open: list[str] = []
        """Lines of the open blocks, with newlines."""
        self._kind = ""
        """Token type of the last open block."""
        self._parsed = 0
        """How many of the open lines the last parse saw."""
        self._fence: _Marker | None = None
        self._continues = False
        self._head = 0
        """So many of the open lines were given: the head of a table that goes on."""

    def feed(self, text: str) -> list[Piece]:
        """The pieces that became final with `text`, a part of the source of any length."""
        if "\n" not in text:
            self._line += text
            return []
        *whole, self._line = (self._line + text).split("\n")
        return [piece for line in whole for piece in self._take(safe(line + "\n"))]

    def finish(self) -> list[Piece]:
        """The pieces left when the text ends here."""
        line, self._line = self._line, ""
        pieces = self._take(safe(line) + "\n") if line else []
        if self._open:
            pieces += self._cut(len(self._open))
        self._fence = None
        return pieces

    def rest(self, lines: int, characters: int) -> str:
        """Safe source of the open block, the unfinished line included; at most the last so many of either."""
        return ("".join(self._open[self._head :][-lines:]) + safe(self._line[-characters:]))[-characters:]

    @property
    def in_fence(self) -> bool:
        """Whether the rest is a line of code."""
        return self._fence is not None

    def _take(self, line: str) -> list[Piece]:
        if self._fence is not None:
            if self._fence.closed_by(line):
                self._fence = None
                return []
            return [Code(self._fence.inside(line)[:-1])]
        if not self._open and line.isspace():
            return []
        self._open.append(line)
        return self._parse() if self._must_parse(line) else []

    def _must_parse(self, line: str) -> bool:
        """Whether `line` may end something. A parse left out is only late, never wrong.

        Blocks that grow by lines which look like a start (lists, quotes, tables) are parsed each time they have grown
        by a tenth, so that the whole costs time in proportion to its length.
        """
        if self._kind == "paragraph_open" and self._parsed and not _MAY_START.match(line):
            return False
        return len(self._open) - self._parsed > self._parsed // 10

    def _parse(self) -> list[Piece]:
        tokens = PARSER.parse("".join(self._open))
        tops = _tops(tokens)
        self._parsed = len(self._open)
        if not tops:
            return []
        pieces = self._cut(_start(tops[-1]))
        last = tops[-1]
        self._kind = last.type
        if last.type == "fence" and (marker := _FENCE.match(self._open[0])):
            return pieces + self._open_fence(_Marker(marker[2], len(marker[1])), last.info)
        if last.type in _CLOSED_AT_ONCE or (last.type in _CLOSED_BY_BLANK and self._open[-1].isspace()):
            return pieces + self._cut(len(self._open))
        if last.type in ("bullet_list_open", "ordered_list_open") and len(self._open) > self._long:
            return pieces + self._cut_list(tokens[tokens.index(last) :])
        if last.type == "table_open" and (self._head or len(self._open) > self._long):
            return pieces + self._cut_rows()
        return pieces

    def _cut(self, line: int) -> list[Piece]:
        """Give the open lines before `line`; what stays is yet to be parsed as if it came now."""
        given, self._open = self._open[:line], self._open[line:]
        if not line:
            return []
        self._kind, self._parsed = "", 0
        continues, self._continues = self._continues, False
        head, self._head = self._head, 0
        if "".join(given[head:]).isspace() or len(given) == head:
            return []
        return [Prose("".join(given), continues, head)]

    def _open_fence(self, marker: _Marker, info: str) -> list[Piece]:
        lines, self._open = self._open[1:], []
        self._kind, self._parsed = "", 0
        self._fence = marker
        return [Fence(info.strip()), *(piece for line in lines for piece in self._take(line))]

    def _cut_list(self, tokens: list[Token]) -> list[Piece]:
        """Give all items of the open list but the last. Its tokens are the first of these."""
        items = [token for token in tokens if token.type == "list_item_open" and token.level == 1]
        first, last = items[0], items[-1]
        # An ordered list that does not count by itself ("1. 1. 1.") would begin again at each cut.
        if len(items) == 1 or (first.info and int(last.info) != int(first.info) + len(items) - 1):
            return []
        pieces = self._cut(_start(last) - _start(tokens[0]))
        self._continues = True
        return pieces

    def _cut_rows(self) -> list[Piece]:
        """Give all rows of the open table; its head stays, for rows that follow are none without it."""
        head = self._open[:_HEAD]
        pieces = self._cut(len(self._open))
        self._open, self._kind, self._parsed = head, "table_open", _HEAD
        self._continues, self._head = True, _HEAD
        return pieces


def split(text: str) -> list[Piece]:
    """All pieces of a text that is complete."""
    splitter = Splitter()
    return splitter.feed(text) + splitter.finish()


def _tops(tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.level == 0 and token.map is not None and token.nesting >= 0]


def _start(token: Token) -> int:
    return token.map[0] if token.map else 0
