"""Prose: Markdown as styled lines of a width.

A line is a rich `Text` without a newline. Source may say anything: all of it appears, and none of it controls a screen.
Colours are the sixteen of the terminal's own theme, so that they are readable on light and dark.
"""

from collections.abc import Iterable

from markdown_it.tree import SyntaxTreeNode
from rich.style import Style
from rich.text import Text

from cass.markdown import PARSER
from cass.viewer import table
from cass.viewer.code import highlight
from cass.viewer.table import Form
from cass.viewer.wrapping import BOLD, DIM, NARROWEST, fold, indent, wrap
from cass.visible import safe

_HEADINGS = {"h1": Style(bold=True, underline=True), "h2": BOLD}
_INLINE = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True), "code_inline": Style(color="cyan")}
_URL = Style(color="blue", underline=True)


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


def form(source: str, width: int) -> Form:
    """How the table that ends `source` is laid out, so that more rows of it can be laid out alike."""
    names, rows, aligned = _cells(_last(source))
    form = table.fitting([names, *rows], width)
    return table.widened(form) if aligned[-1] == "left" else form


def more_rows(source: str, form: Form) -> list[Text]:
    """The rows of a table, without its head, which was given before."""
    names, rows, aligned = _cells(_last(source))
    return _rows(names, rows, aligned, form, is_first=False)


def _last(source: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(PARSER.parse(source)).children[-1]


def _table(node: SyntaxTreeNode, width: int) -> list[Text]:
    names, rows, aligned = _cells(node)
    form = table.fitting([names, *rows], width)
    if not rows:  # yet: what a row would be is all there is
        return wrap(Text(" | ", BOLD).join(names), width)
    return table.head(names, aligned, form) + _rows(names, rows, aligned, form, is_first=True)


def _rows(names: list[Text], rows: list[list[Text]], aligned: list[str], form: Form, is_first: bool) -> list[Text]:
    made: list[Text] = []
    for number, row in enumerate(rows):
        lines = table.row(names, row, aligned, form)
        if lines and not form.columns and not (is_first and number == 0):  # a list of cells stands apart
            made.append(Text())
        made += lines
    return made


def _cells(node: SyntaxTreeNode) -> tuple[list[Text], list[list[Text]], list[str]]:
    """Of a table: the cells of its head, those of its rows, and how each column is aligned."""
    head, *body = node.children
    styles = [str(cell.attrs.get("style", "")) for cell in head.children[0].children]
    aligned = ["right" if "right" in style else "center" if "center" in style else "left" for style in styles]
    rows = [[_inline(cell) for cell in row.children] for part in body for row in part.children]
    return [_inline(cell) for cell in head.children[0].children], rows, aligned


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
