"""Wrapping: lines broken to a width. A line is a rich `Text` without a newline."""

import io
from collections.abc import Sequence
from functools import cache

from rich.cells import chop_cells
from rich.console import Console
from rich.style import Style
from rich.text import Text

NARROWEST = 8
"""Columns left to a block, however deep it is nested and however narrow the screen."""
TAB = 8
"""As on a terminal: what tools print is aligned for it."""

DIM = Style(dim=True)
BOLD = Style(bold=True)


@cache
def console() -> Console:
    """What rich asks for measures and themes; nothing is ever printed on it."""
    return Console(file=io.StringIO(), color_system=None, width=80, height=24, _environ={})


def wrap(text: Text, width: int) -> list[Text]:
    """`text` broken between words; what is longer than a line is broken anywhere."""
    text.expand_tabs(TAB)
    wrapped = list(text.wrap(console(), max(width, 1), overflow="fold")) or [Text()]
    for line in wrapped:
        line.rstrip()
    return wrapped


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


def untabbed(line: str) -> str:
    """One line with spaces for its tabs, in the columns that its characters take."""
    if "\t" not in line:
        return line
    text = Text(line)
    text.expand_tabs(TAB)
    return text.plain
