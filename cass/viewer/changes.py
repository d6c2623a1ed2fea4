"""Changes to a file as lines: a unified diff with the number that each line has, or had.

8  context
9 -what was there
9 +what is there now
  ⋮
"""

import re
from collections.abc import Iterator

from rich.text import Text

from cass.viewer import wrapping
from cass.viewer.look import BAD, DIM, GOOD, SHORT_LINES, Look, cut, folded
from cass.visible import safe

_HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
_STYLES = {"-": BAD, "+": GOOD}


def lines(diff: str, look: Look, taken: int) -> list[Text]:
    """A unified diff laid out with room for `taken` columns before it; in the short view its beginning."""
    rows = list(_rows(safe(diff)))
    room = max((len(number) for number, _ in rows), default=0)
    shown, said = cut([text for _, text in rows], SHORT_LINES, look.short_characters, look)
    made: list[Text] = []
    for (number, _), text in zip(rows, shown, strict=False):
        parts = folded(text, look, taken + room + 2)
        made += wrapping.indent(parts, Text(" " * (room + 2)), first=Text(f"{number:>{room}} ", DIM))
    return [*made, Text(said, DIM)] if said else made


def counts(diff: str) -> str:
    """How many lines came and went: ``+3 -1``."""
    marks = [line[:1] for line in diff.split("\n")]
    return f"+{marks.count('+'):,} -{marks.count('-'):,}"


def _rows(diff: str) -> Iterator[tuple[str, Text]]:
    """Number and text of each line; between two hunks one that says that something is left out."""
    old = new = 0
    for index, line in enumerate(diff.removesuffix("\n").split("\n")):
        mark = line[:1]
        if found := _HUNK.match(line):
            start, length, new_start, new_length = map(int, found.groups())
            old, new = start + (not length), new_start + (not new_length)
            if index:
                yield "", Text("⋮", DIM)
        elif mark == "\\":
            yield "", Text(line[1:], DIM)
        else:
            text = Text(line[1:])
            text.expand_tabs(wrapping.TAB)  # in the columns that they have in the file
            yield str(old if mark == "-" else new), Text(mark, _STYLES.get(mark, DIM)).append_text(text)
            old += mark != "+"
            new += mark != "-"
