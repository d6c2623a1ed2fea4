"""A table as lines: in columns, or where they have no room, each row as a list of its cells.

name   what it is          name: cass
────────────────────       what it is: an agent
cass   an agent
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from cass.viewer.wrapping import BOLD, DIM, NARROWEST, indent, wrap

GAP = 3
LEAST = 16
"""Columns that the longest word of a column may claim; a longer one is broken."""


class Form(NamedTuple):
    """How the rows of one table are laid out: a table that goes on keeps it."""

    screen: int
    """Columns of the screen that it was made for."""
    columns: tuple[int, ...]
    """Width of each; none where each row is a list of its cells."""


def fitting(rows: Sequence[Sequence[Text]], width: int) -> Form:
    """The form for a table with these rows, the head among them."""
    columns = list(zip(*rows, strict=True))
    natural = [max(cell.cell_len for cell in column) or 1 for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.plain.split()), default=1) for column in columns]
    made = [min(whole, word, LEAST) for whole, word in zip(natural, words, strict=True)]
    left = width - GAP * (len(made) - 1) - sum(made)
    if left < 0:
        return Form(width, ())
    while left > 0 and (wanting := [i for i in range(len(made)) if made[i] < natural[i]]):
        made[min(wanting, key=made.__getitem__)] += 1  # the narrowest first
        left -= 1
    return Form(width, tuple(made))


def widened(form: Form) -> Form:
    """The same with all room that is left for the last column, should what is still to come be longer."""
    *first, _ = form.columns or (0,)
    last = form.screen - sum(first) - GAP * len(first)
    return Form(form.screen, (*first, last)) if form.columns else form


def head(cells: Sequence[Text], aligned: Sequence[str], form: Form) -> list[Text]:
    """The lines above the rows; none where each row names its cells."""
    if not form.columns:
        return []
    made = row([], [_bold(cell) for cell in cells], aligned, form)
    return [*made, Text("─" * (sum(form.columns) + GAP * (len(form.columns) - 1)), DIM)]


def row(names: Sequence[Text], cells: Sequence[Text], aligned: Sequence[str], form: Form) -> list[Text]:
    """One row. `names` are the cells of the head; `aligned` says ``left``, ``center`` or ``right`` of each column."""
    if not form.columns:
        pairs = zip(names, cells, strict=True)
        return [line for name, cell in pairs if cell for line in _named(name, cell, max(form.screen, NARROWEST))]
    parts = [wrap(cell, width) for cell, width in zip(cells, form.columns, strict=True)]
    made: list[Text] = []
    for number in range(max(map(len, parts))):
        line = Text()
        for i, part in enumerate(parts):
            text = part[number] if number < len(part) else Text()
            room = form.columns[i] - text.cell_len
            before = {"right": room, "center": room // 2}.get(aligned[i], 0)
            line.append(" " * (GAP * bool(i) + before)).append_text(text).append(" " * (room - before))
        line.rstrip()
        made.append(line)
    return made


def _named(name: Text, cell: Text, width: int) -> list[Text]:
    text = _bold(name).append(": ") if name else Text()
    return indent(wrap(text.append_text(cell), width - 2), Text("  "), first=Text())


def _bold(text: Text) -> Text:
    text = text.copy()
    text.stylize_before(BOLD)
    return text
