"""The diff: what a tool changed in a text file, for people.

    @@ -12,4 +12,4 @@     hunks of the unified format, without the two lines that would name the file

Lines that both sides have exactly once are found first and kept in place (patience); only what lies between them is
compared line by line, so that the time grows with the size of the file whatever it holds.
Source: https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html
"""

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CONTEXT = 3
"""Lines shown before and after each change."""
KEPT = 64 << 10
"""Characters of a diff."""
SIZE_LIMIT = 4 << 20
"""Bytes of a file that is compared: about half a second."""
COMPARED = 400
"""Lines without anything unique among them that are compared with each other; of more, all are new."""


class Span(NamedTuple):
    """Lines `start` to `end` of the old text, counted from 0, stand where `new_start` to `new_end` do in the new."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified(old: bytes | bytearray, new: bytes | bytearray, *, whole: bool = False) -> str | None:
    """What turns `old` into `new`; None where they are equal, no text, or too large to compare.

    `whole`: None also where not all of it would be kept.
    """
    if len(old) + len(new) > SIZE_LIMIT or old == new or b"\0" in old or b"\0" in new:
        return None
    before, after = _lines(old), _lines(new)
    lines = [line for hunk in _hunks(list(_changes(before, after))) for line in _shown(hunk, before, after)]
    kept, room = 0, KEPT
    while kept < len(lines) and len(lines[kept]) <= room:
        room -= len(lines[kept])
        kept += 1
    if kept < len(lines) and whole:
        return None
    if kept < len(lines):
        marks = Counter(line[0] for line in lines[kept:])
        said = f"{len(lines) - kept:,} more lines of this diff were not kept (+{marks['+']} -{marks['-']})"
        lines[kept:] = [f"\\ {said}\n"]
    return "".join(lines) or None


def _lines(content: bytes | bytearray) -> list[str]:
    lines = content.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


# ---- comparing ------------------------------------------------------------------------------------------------------


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Span]:
    """The spans that differ, in order and apart."""
    waiting = [Span(0, len(old), 0, len(new))]
    while waiting:
        span = _trimmed(waiting.pop(), old, new)
        if span.start == span.end or span.new_start == span.new_end:
            if span.start != span.end or span.new_start != span.new_end:
                yield span
        elif anchors := _anchors(span, old, new):
            waiting += reversed(list(_between(span, anchors)))
        elif max(span.end - span.start, span.new_end - span.new_start) <= COMPARED:
            yield from _compared(span, old, new)
        else:
            yield span


def _trimmed(span: Span, old: Sequence[str], new: Sequence[str]) -> Span:
    """Without the equal lines at its two ends."""
    start, end, new_start, new_end = span
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return Span(start, end, new_start, new_end)


def _anchors(span: Span, old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Where both sides have a line that neither repeats: the longest row of them that is in order on both."""
    ours, theirs = Counter(old[span.start : span.end]), Counter(new[span.new_start : span.new_end])
    places = {new[i]: i for i in range(span.new_start, span.new_end) if theirs[new[i]] == 1}
    pairs = [(i, places[old[i]]) for i in range(span.start, span.end) if ours[old[i]] == 1 and old[i] in places]
    return _rising(pairs)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of `pairs`, which rise in the first number, that rises in the second as well."""
    ends: list[int] = []
    chain: list[int] = []
    """Index of the pair that ends the best part of each length."""
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(chain[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        chain[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    at = chain[-1] if chain else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(span: Span, anchors: Sequence[tuple[int, int]]) -> Iterator[Span]:
    start, new_start = span.start, span.new_start
    for i, j in anchors:
        yield Span(start, i, new_start, j)
        start, new_start = i + 1, j + 1
    yield Span(start, span.end, new_start, span.new_end)


def _compared(span: Span, old: Sequence[str], new: Sequence[str]) -> Iterator[Span]:
    matcher = difflib.SequenceMatcher(None, old[span.start : span.end], new[span.new_start : span.new_end], False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            yield Span(span.start + i, span.start + j, span.new_start + k, span.new_start + m)


# ---- writing --------------------------------------------------------------------------------------------------------


def _hunks(changes: Sequence[Span]) -> list[list[Span]]:
    """Changes whose context would touch stand together."""
    hunks: list[list[Span]] = []
    for change in changes:
        if hunks and change.start - hunks[-1][-1].end <= 2 * CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _shown(hunk: Sequence[Span], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    start = max(hunk[0].start - CONTEXT, 0)
    end = min(hunk[-1].end + CONTEXT, len(old))
    shift, new_shift = hunk[0].new_start - hunk[0].start, hunk[-1].new_end - hunk[-1].end
    yield f"@@ -{_range(start, end)} +{_range(start + shift, end + new_shift)} @@\n"
    for change in hunk:
        yield from _marked(" ", old[start : change.start])
        yield from _marked("-", old[change.start : change.end])
        yield from _marked("+", new[change.new_start : change.new_end])
        start = change.end
    yield from _marked(" ", old[start:end])


def _range(start: int, end: int) -> str:
    """Lines counted from 1; an empty range names the line before it."""
    return f"{start if start == end else start + 1},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
