"""Hunks: the lines of a unified diff without names of files, each with the number that it has in its file, or had."""

from collections.abc import Iterator
from typing import NamedTuple

from cass.pattern import pattern

_HEAD = pattern(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
GAP, REMARK = "@@", "\\"
"""Marks of what is no line of the file: between two hunks something is left out; a remark of whoever made the diff."""


class Line(NamedTuple):
    mark: str
    """``+``, ``-``, a space, ``GAP`` or ``REMARK``; "" for an empty line of the diff."""
    number: str
    """In the file as it was for ``-``, else as it is; "" for what is no line of it."""
    text: str


def lines(diff: str) -> Iterator[Line]:
    """All lines of `diff` in order."""
    old = new = 0
    for index, line in enumerate(diff.removesuffix("\n").split("\n")):
        mark, text = line[:1], line[1:]
        if found := _HEAD.match(line):
            start, length, new_start, new_length = map(int, found.groups())
            old, new = start + (not length), new_start + (not new_length)
            if index:
                yield Line(GAP, "", "")
        elif mark == REMARK:
            yield Line(REMARK, "", text)
        else:
            yield Line(mark, str(old if mark == "-" else new), text)
            old += mark != "+"
            new += mark != "-"


def sides(diff: str) -> Iterator[tuple[str, str]]:
    """The old text and the new of each hunk."""
    old: list[str] = []
    new: list[str] = []
    for mark, _, text in [*lines(diff), Line(GAP, "", "")]:
        if mark == GAP:
            yield "".join(old), "".join(new)
            old, new = [], []
        elif mark != REMARK:
            old += [f"{text}\n"] * (mark != "+")
            new += [f"{text}\n"] * (mark != "-")
