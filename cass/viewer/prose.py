"""Prose: Markdown and code as styled lines of a width.

A line is a rich `Text` without a newline. Source may say anything: all of it appears, and none of it controls a screen.
Colours are the sixteen of the terminal's own theme, so that they are readable on light and dark.
"""

import io
from collections.abc import Iterable, Sequence
from functools import cache

from markdown_it.tree import SyntaxTreeNode
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.box import SIMPLE_HEAD
from rich.cells import chop_cells
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from cass.markdown import PARSER
from cass.visible import safe

NARROWEST = 8
"""Columns left to a block, however deep it is nested and however narrow the screen."""
TAB = 8
"""As on a terminal: what tools print is aligned for it."""
PLAIN_CODE = 50_000
"""Longer code is shown without colours: a lexer may need a second for it."""
LONG_LINE = 2_000
"""The same for one line of it, such as a minified file."""

DIM = Style(dim=True)
BOLD = Style(bold=True)
_HEADINGS = {"h1": Style(bold=True, underline=True), "h2": BOLD}
_INLINE = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True), "code_inline": Style(color="cyan")}
_URL = Style(color="blue", underline=True)


@cache
def console() -> Console:
    """What rich asks for measures and themes; nothing is ever printed on it."""
    return Console(file=io.StringIO(), color_system=None, width=80, height=24, _environ={})


# ---- Markdown -------------------------------------------------------------------------------------------------------


def lines(source: str, width: int) -> list[Text]:
    """Markdown, laid out; one empty line between top-level blocks, none before or after."""
    return _stack(SyntaxTreeNode(PARSER.parse(source)).children, width)


def _stack(nodes: Iterable[SyntaxTreeNode], width: int) -> list[Text]:
    out: list[Text] = []
    inside_item = False
    for node in nodes:
        part = _block(node, max(width, NARROWEST))
        is_list = node.type.endswith("_list")
        inside_item = node.parent is not None and node.parent.type == "list_item"
        if out and part and not (is_list and inside_item):
            out.append(Text())
        out += part
    return out


def _block(node: SyntaxTreeNode, width: int) -> list[Text]:
    match node.type:
        case "heading":
            text = _inline(node)
            text.stylize_before(_HEADINGS.get(node.tag, BOLD))
            return wrap(text, width)
        case "bullet_list" | "ordered_list":
            return _list(node, width)
        case "blockquote":
            return indent(_stack(node.children, width - 2), Text("▏ ", DIM))
        case "fence" | "code_block":
            code = highlight(node.content, node.info if node.type == "fence" else "")
            return indent([part for line in code for part in fold(line, width - 2)], Text("  "))
        case "table":
            return _table(node, width)
        case "hr":
            return [Text("─" * min(width, 40), DIM)]
        case _:
            return wrap(_inline(node), width)


def _list(node: SyntaxTreeNode, width: int) -> list[Text]:
    number = int(node.attrs.get("start", 1))
    marks = [f"{number + i}. " if node.type == "ordered_list" else "• " for i in range(len(node.children))]
    room = max(len(mark) for mark in marks)
    out: list[Text] = []
    for mark, item in zip(marks, node.children, strict=True):
        body = _stack(item.children, width - room) or [Text()]
        out += indent(body, Text(" " * room), first=Text(mark.rjust(room), DIM))
    return out


def _table(node: SyntaxTreeNode, width: int) -> list[Text]:
    rows = [[_inline(cell) for cell in row.children] for part in node.children for row in part.children]
    if width < NARROWEST * len(rows[0]):  # too narrow for columns: a row is a paragraph
        return [line for row in rows for line in wrap(Text(" | ").join(row), width)]
    table = Table(box=SIMPLE_HEAD, border_style=DIM, header_style=BOLD, pad_edge=False, show_edge=False)
    for cell, head in zip(node.children[0].children[0].children, rows[0], strict=True):
        style = str(cell.attrs.get("style", ""))
        table.add_column(head, justify="right" if "right" in style else "center" if "center" in style else "left")
    for row in rows[1:]:
        table.add_row(*row)
    rendered = console().render_lines(table, console().options.update(width=width), pad=False)
    made = [Text.assemble(*[(part.text, part.style or "") for part in line]) for line in rendered]
    for line in made:
        line.rstrip()
    return made


def _inline(node: SyntaxTreeNode) -> Text:
    text = Text()
    for child in node.children:
        _append(text, child, Style())
    return text


def _append(text: Text, node: SyntaxTreeNode, style: Style) -> None:
    match node.type:
        case "text" | "code_inline":
            text.append(safe(node.content), style + _INLINE.get(node.type, Style()))
        case "softbreak":
            text.append(" ", style)
        case "hardbreak":
            text.append("\n", style)
        case "image":
            text.append(f"![{safe(node.content)}]({safe(str(node.attrs.get('src', '')))})", style + _URL)
        case "link":
            _append_link(text, node, style)
        case _:
            for child in node.children:
                _append(text, child, style + _INLINE.get(node.type, Style()))


def _append_link(text: Text, node: SyntaxTreeNode, style: Style) -> None:
    """A link's text, and where it leads unless that is what the text says: nothing is hidden behind a word."""
    before = len(text)
    href = str(node.attrs.get("href", ""))
    style += Style(link=_target(href))
    for child in node.children:
        _append(text, child, style + _URL)
    url = safe(href)
    if url.removeprefix("mailto:") != text.plain[before:]:
        text.append(f" ({url})", style + DIM)


def _target(url: str) -> str | None:
    """`url`, which Markdown has quoted, if a terminal may be given it: it shows something and starts nothing."""
    is_quoted = url.isascii() and url.isprintable() and " " not in url
    return url if is_quoted and url.lower().startswith(("http://", "https://", "mailto:")) else None


# ---- code -----------------------------------------------------------------------------------------------------------

_CODE: dict[_TokenType, Style] = {
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
    Token.Generic.Heading: BOLD,
}


def highlight(code: str, info: str) -> list[Text]:
    """Lines of `code`, coloured where `info`, the text behind a fence's marker, begins with a known language."""
    code = "\n".join(map(untabbed, safe(code).split("\n")))
    lexer = _lexer(info.strip(" {.").partition(" ")[0].rstrip("}").lower())
    if lexer is None or len(code) > PLAIN_CODE or any(len(line) > LONG_LINE for line in code.split("\n")):
        return [Text(line) for line in code.removesuffix("\n").split("\n")]
    text = Text()
    for kind, value in lexer.get_tokens(code):
        text.append(value, _style_of(kind))
    return list(text.split("\n", allow_blank=False)) or [Text()]


@cache
def _lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False) if name else None
    except ClassNotFound:
        return None


@cache
def _style_of(kind: _TokenType) -> Style:
    while kind not in _CODE and kind.parent is not None:
        kind = kind.parent
    return _CODE.get(kind, Style())


# ---- lines ----------------------------------------------------------------------------------------------------------


def wrap(text: Text, width: int) -> list[Text]:
    """`text` broken between words; what is longer than a line is broken anywhere."""
    text.expand_tabs(TAB)
    wrapped = list(text.wrap(console(), max(width, 1), overflow="fold")) or [Text()]
    for line in wrapped:
        line.rstrip()
    return wrapped


def untabbed(line: str) -> str:
    """One line with spaces for its tabs, in the columns that its characters take."""
    if "\t" not in line:
        return line
    text = Text(line)
    text.expand_tabs(TAB)
    return text.plain


def fold(line: Text, width: int) -> list[Text]:
    """One line broken anywhere, its spaces kept."""
    line.expand_tabs(TAB)
    if line.cell_len <= width:
        return [line]
    ends: list[int] = []
    for part in chop_cells(line.plain, max(width, 2)):
        ends.append((ends[-1] if ends else 0) + len(part))
    return list(line.divide(ends[:-1]))


def indent(body: Sequence[Text], by: Text, first: Text | None = None) -> list[Text]:
    """Put `by` in front of each line, or `first` in front of the first; no line ends in spaces for that."""
    made = [Text.assemble(first if first is not None and i == 0 else by, line) for i, line in enumerate(body)]
    for line in made:
        line.rstrip()
    return made
