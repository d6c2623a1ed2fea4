"""Wrapping: lines broken to a width. A line is a rich `Text` without a newline."""

import io
import itertools
from collections.abc import Sequence
from functools import cache

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from cass.pattern import pattern

NARROWEST = 8
"""Columns left to a block, however deep it is nested and however narrow the screen."""
TAB = 8
"""As on a terminal: what tools print is aligned for it."""
NAME_COLUMNS = 40
"""A longer name pushes its own size to the right, and no other."""

DIM = Style(dim=True)
BOLD = Style(bold=True)


@cache
def console() -> Console:
    """What rich asks for measures and themes; nothing is ever printed on it."""
    return Console(file=io.StringIO(), color_system=None, width=80, height=24, _environ={})


_IDEOGRAPH = r"[\u2e80-\u2fff\u3041-\u30fa\u30fd-\u30ff\u3105-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
_SPACELESS = pattern(_IDEOGRAPH)
_UNIT = pattern(
    rf"[(\[{{（［｛「『【《〈〔“‘]*{_IDEOGRAPH}[)\]}},.;:!?%）］｝」』】》〉〕”’、。，．：；？！…ー々]*\s*"
    rf"|(?:(?!{_IDEOGRAPH})\S)+\s*|\s+"
)
"""What is not broken: a word, or a character of a script that is written without spaces, with the punctuation that may
not be parted from it. Korean is written with spaces."""


def wrap(text: Text, width: int) -> list[Text]:
    """`text` broken between words; what is longer than a line is broken anywhere."""
    text.expand_tabs(TAB)
    if not text.plain.isascii() and _SPACELESS.search(text.plain):
        wrapped = [part for line in text.split(allow_blank=True) for part in _divided(line, max(width, 2))]
    else:
        wrapped = list(text.wrap(console(), max(width, 1), overflow="fold")) or [Text()]
    for line in wrapped:
        line.rstrip()
    return wrapped


def _divided(line: Text, width: int) -> list[Text]:
    breaks, used = [], 0
    for unit in _UNIT.finditer(line.plain):
        taken = cell_len(unit[0].rstrip())
        if used and used + taken > width:
            breaks.append(unit.start())
            used = 0
        if taken > width:
            parts = chop_cells(unit[0].rstrip(), width)
            breaks += list(itertools.accumulate(map(len, parts[:-1]), initial=unit.start()))[1:]
            used = cell_len(parts[-1]) + cell_len(unit[0]) - taken
        else:
            used += cell_len(unit[0])
    return list(line.divide(breaks))


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


def abreast(lines: Sequence[str]) -> list[str]:
    """Lines of a name, a tab and a size with the sizes below each other; others, and what is very wide, as they are."""
    cells = [line.partition("\t") for line in lines]
    named = max((cell_len(name) for name, tab, _ in cells if tab and cell_len(name) <= NAME_COLUMNS), default=0)
    sized = max((len(size) for _, tab, size in cells if tab), default=0)
    return [
        f"{set_cell_size(name, max(named, cell_len(name)))}  {size:>{sized}}" if tab else name
        for name, tab, size in cells
    ]
