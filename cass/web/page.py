"""Page: what an HTML document says, as Markdown. Pure; it takes as long, and as much memory, as the document makes it.

Scripts, styles and what stands around the content of every page (navigation, forms, hidden parts) are left out; tables
that hold data, code and links are kept, links made absolute.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from justhtml import Element, JustHTML, Node, NodeType, Text

from cass.pattern import pattern

_SILENT = frozenset(
    "script style noscript template svg math iframe object embed canvas audio video map nav footer dialog "
    "button input select textarea link meta".split()
)
_ROLES = frozenset("navigation banner contentinfo search dialog alertdialog menu menubar toolbar".split())
_FORMER = "section"
"""What a table for the layout is taken as, so that the one around it need not look into it."""
_BLOCKS = frozenset(("table ul ol dl pre blockquote p h1 h2 h3 h4 h5 h6 hr article " + _FORMER).split())
"""In the cells of a table they say that it is there for the layout; but for a single paragraph."""
_LANGUAGE = pattern(r"(?:lang(?:uage)?-|highlight-(?:source-)?|brush: ?)([\w+#.-]{1,20})")
_SHIELDED = {ord(character): 0xF0000 + ord(character) for character in "&<>_*[]\\"}
"""Characters that the library escapes, and private ones that stand for them meanwhile."""
_UNSHIELDED = {private: character for character, private in _SHIELDED.items()}
MAIN_CHARS = 200
"""A main part with less is no more than a frame that a script would fill."""


class Page(NamedTuple):
    title: str
    """One line; "" where there is none."""
    markdown: str


class _Written(Element):
    """What stands in the Markdown as it is: where the library would put the HTML of a table or an image."""

    __slots__ = ("_as",)

    def __init__(self, name: str, markdown: str) -> None:
        super().__init__(name, {}, None)
        self._as = markdown

    def to_html(self, *_: object, **__: object) -> str:
        return self._as


def read(html: str, url: str) -> Page:
    """What the document at `url` says."""
    root = JustHTML(html, sanitize=False).root
    found = root.query_one("title")
    title = " ".join(found.to_text().split()) if found else ""
    base = root.query_one("base[href]")
    _prune(root)
    top = _content(root)
    _resolve(top, (_absolute(base.attrs["href"] or "", url) if base and base.attrs else "") or url)
    _write(top)
    _shield(top)
    return Page(title, top.to_markdown().translate(_UNSHIELDED).strip())


def _elements(top: Node) -> Iterator[Element]:
    """`top` and every element below it, in their order. The tree may change below what was given out last."""
    waiting: list[Node] = [top]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Element):
            yield node
        waiting += [child for child in reversed(node.children or ()) if not isinstance(child, Text)]


def _prune(root: Node) -> None:
    for element in _elements(root):
        kept = [child for child in element.children if isinstance(child, Text) or not _is_silent(child)]
        if len(kept) < len(element.children):
            element.children[:] = kept


def _is_silent(node: Node) -> bool:
    if not isinstance(node, Element):
        return True
    attributes = node.attrs
    hidden = "hidden" in attributes or attributes.get("aria-hidden") == "true"
    unseen = re.search(r"display\s*:\s*none|visibility\s*:\s*hidden", attributes.get("style") or "")
    return node.name in _SILENT or attributes.get("role") in _ROLES or hidden or unseen is not None


def _content(root: Node) -> Node:
    """The part of the page that is its own, where it says which that is."""
    for selector in ("main", "[role=main]", "article"):
        found = root.query(selector)
        if len(found) == 1 and len(found[0].to_text()) >= MAIN_CHARS:
            return found[0]
    return root.query_one("body") or root


def _resolve(top: Node, base: str) -> None:
    """Make links absolute; what says nothing, or leads nowhere, is none."""
    spoken = _spoken(top)
    for link in _elements(top):
        if link.name == "a":
            target = _absolute(link.attrs.get("href") or "#", base)
            link.name, link.attrs["href"] = ("a", target) if target and id(link) in spoken else ("span", None)
            if not target and _is_mark(link):
                link.children.clear()


def _spoken(top: Node) -> set[int]:
    """Ids of the nodes with words in them. Each is looked at once, however deep they are."""
    found: set[int] = set()
    for element in _elements(top):
        is_image = element.name == "img" and bool(element.attrs.get("alt"))
        if is_image or any(isinstance(child, Text) and (child.data or "").strip() for child in element.children):
            node: Node | None = element
            while node is not None and id(node) not in found:
                found.add(id(node))
                node = node.parent
    return found


def _is_mark(link: Element) -> bool:
    """Whether it is the ``#`` or ``§`` beside a heading, which leads to the heading itself."""
    only = link.children[0] if len(link.children) == 1 else None
    text = (only.data or "").strip() if isinstance(only, Text) else ""
    return len(text) == 1 and not text.isalnum()


def _absolute(link: str, base: str) -> str:
    """Empty for what leads nowhere: a place in the page itself, a script."""
    try:
        target = urljoin(base, link.strip())
    except ValueError:
        return ""
    is_address = target.startswith(("http://", "https://", "mailto:"))
    return target if is_address and not link.strip().startswith("#") else ""


def _shield(top: Node) -> None:
    """Keep the text as it is: a model wants ``as_slice``, not the ``as\\_slice`` that a program would draw as that."""
    for element in _elements(top):
        for child in element.children:
            if isinstance(child, Text) and child.data:
                child.data = child.data.translate(_SHIELDED)


# ---- what the library leaves as HTML --------------------------------------------------------------------------------


def _write(top: Node) -> None:
    """Replace images, code and tables by what they are in Markdown, the inner ones first."""
    for element in reversed(list(_elements(top))):
        element.children[:] = [_written(child) for child in element.children]


def _written(child: NodeType) -> NodeType:
    match child:
        case Element(name="img"):
            return _Written("img", _image(child))
        case Element(name="pre"):
            return _Written("table", _code(child))
        case Element(name="table"):
            return _table(child)
        case Element(name="dt" | "dd"):
            child.name = "p"
    return child


def _image(element: Element) -> str:
    alt = " ".join((element.attrs.get("alt") or "").split())
    return f"[image: {alt}]" if alt else ""


def _code(element: Element) -> str:
    code = element.to_text(separator="", strip=False).strip("\n")
    language = _LANGUAGE.search(" ".join(_classes(element)))
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", code))])
    return f"{fence}{language[1] if language else ''}\n{code}\n{fence}"


def _classes(element: Element) -> Iterator[str]:
    """Of what stands in `element` first, of itself, and of the two around it."""
    inner = next((child for child in element.children if isinstance(child, Element)), None)
    around = element.parent
    for part in (inner, element, around, around and around.parent):
        if isinstance(part, Element):
            yield part.attrs.get("class") or ""


def _table(table: Element) -> Element:
    """As a grid; where it is there for the layout only, what stands in it, block by block."""
    groups = [table, *_children(table, "thead", "tbody", "tfoot")]
    rows = [row for group in groups for row in _children(group, "tr")]
    cells = [_children(row, "td", "th") for row in rows]
    if any(_is_layout(cell) for row in cells for cell in row):
        for part in (*groups[1:], *rows, *(cell for row in cells for cell in row)):
            part.name = "div"
        table.name = _FORMER
        return table
    captions = [" ".join(part.to_text().split()) for part in _children(table, "caption")]
    texts = [[_cell(cell) for cell in row] for row in cells if row]
    return _Written("table", "\n\n".join([*captions, _grid(texts)]).strip())


def _children(element: Element, *names: str) -> list[Element]:
    return [child for child in element.children if isinstance(child, Element) and child.name in names]


def _is_layout(cell: Element) -> bool:
    """Whether it holds what no cell of a grid can hold: any block but a single paragraph."""
    blocks = (part for part in _elements(cell) if part.name in _BLOCKS)
    first = next(blocks, None)
    return first is not None and (first.name != "p" or next(blocks, None) is not None)


def _cell(cell: Element) -> str:
    _shield(cell)
    return " ".join(cell.to_markdown().split()).replace("|", "\\|")


def _grid(rows: list[list[str]]) -> str:
    """A table of GitHub's Markdown; its first row is the head."""
    if not any(any(row) for row in rows):
        return ""
    head = rows[0] + [""] * (max(map(len, rows)) - len(rows[0]))
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows[1:])]
    return "\n".join([lines[0], "|" + " --- |" * len(head), *lines[1:]])
