"""Rows: text of our own, and text that must be seen whole, as rows of a screen. Pure."""

from unicodedata import combining, east_asian_width

from cass.pattern import pattern

_HANGS = pattern(r" *(\S+ )*\S+ {2,}(?=\S)| *")
"""What a row goes on below: the second of two columns, else what the line is indented by."""


def cells(text: str) -> int:
    """Columns that `text` takes."""
    return sum(_cells(character) for character in text)


def wrap(line: str, columns: int) -> list[str]:
    """`line` in rows of at most `columns` cells, broken anywhere: every character of it stands in one of them."""
    if len(line) * 2 <= columns:
        return [line]
    rows, row, used = [], "", 0
    for character in line:
        taken = _cells(character)
        if used + taken > columns and row:
            rows.append(row)
            row, used = "", 0
        row += character
        used += taken
    return [*rows, row]


def fold(text: str, columns: int) -> str:
    """Lines of at most `columns` cells, broken between words and kept in their column.

    A longer word, such as a path that is to be copied, stays whole.
    """
    return "\n".join(row for line in text.split("\n") for row in _folded(line, max(columns, 1)))


def parted(text: str, columns: int, most: int) -> tuple[list[str], str]:
    """One line as `most` rows or fewer, broken between words where it can be, and what they have no room for."""
    found = [row for line in fold(text, columns).split("\n") for row in wrap(line, max(columns, 1))]
    if len(found) <= most:
        return found, ""
    *shown, last = found[:most]
    last = wrap(last, max(columns - 1, 1))[0]
    at = 0
    for row in (*shown, last):
        at = text.index(row.strip(), at) + len(row.strip())
    return [*shown, f"{last}…"], text[at:].lstrip()


def _folded(line: str, columns: int) -> list[str]:
    if cells(line) <= columns:
        return [line]
    found = _HANGS.match(line)
    hangs = cells(found[0]) if found else 0
    if hangs * 2 > columns:
        hangs = len(line) - len(line.lstrip(" "))
        hangs = hangs if hangs * 2 <= columns else 0
    words = line[hangs:].split(" ")
    rows, row = [], line[:hangs] + words[0]
    for word in words[1:]:
        if cells(row) + 1 + cells(word) > columns:
            rows.append(row.rstrip())
            row = " " * hangs + word
        else:
            row += " " + word
    return [*rows, row.rstrip()]


def _cells(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 0 if combining(character) else 1
