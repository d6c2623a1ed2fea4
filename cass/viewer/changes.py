"""Changes to a file as lines: a unified diff with the number that each line has, or had.

8  context
9 -what was there
9 +what is there now
  ⋮
"""

import re
from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from cass import hunks
from cass.pattern import pattern
from cass.viewer import wrapping
from cass.viewer.look import BAD, DIM, GOOD, SHORT_LINES, Look, cut, folded
from cass.visible import safe

_REST = pattern(r"^\\ .* \(\+(\d+) -(\d+)\)\n?\Z", re.MULTILINE)
"""The last line of a diff that was cut: how many lines came and went below it. No line of a file begins like this."""
_STYLES = {"-": BAD, "+": GOOD}


def lines(diff: str, look: Look, taken: int) -> list[Text]:
    """A unified diff laid out with room for `taken` columns before it; in the short view its beginning."""
    rows = list(_rows(safe(diff)))
    shown, said = cut([line for _, line in rows], SHORT_LINES, look.short_characters, look)
    room = max((len(number) for number, _ in rows[: len(shown)]), default=0)
    made: list[Text] = []
    for (number, _), line in zip(rows, shown, strict=False):
        text = Text(line, _STYLES.get(line[:1], DIM)) if number else Text(line, DIM)
        parts = folded(text, look, taken + room + 2)
        made += wrapping.indent(parts, Text(" " * (room + 2)), first=Text(f"{number:>{room}} ", DIM))
    return [*made, Text(said, DIM)] if said else made


def counts(diff: str) -> str:
    """How many lines came and went: ``+3 -1``, those included of which a long diff only tells the number."""
    marks = Counter(line[:1] for line in diff.split("\n"))
    rest = _REST.search(diff)
    came, went = map(int, rest.groups()) if rest else (0, 0)
    return f"+{marks['+'] + came:,} -{marks['-'] + went:,}"


def _rows(diff: str) -> Iterator[tuple[str, str]]:
    """Number and text of each line; between two hunks one that says that something is left out."""
    for mark, number, text in hunks.lines(diff):
        if mark == hunks.GAP:
            yield "", "⋮"
        elif mark == hunks.REMARK:
            yield "", text
        else:  # tabs in the columns that they have in the file
            yield number, mark + wrapping.untabbed(text)
