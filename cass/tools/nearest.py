"""The nearest places: where a text that was not found in a file may have been meant, and what differs there.

The longest line of the text is looked for, first as it is but for what is easily got wrong (white space, kinds of
quotes and dashes, case), in the whole file; then among the first lines for one like it.
"""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from cass.tools import strides
from cass.tools.strides import Bytes

PLACES = 3
PLACES_COMPARED = 20
NEAR_LINES = 5_000
"""Lines of the file among which one like the text is looked for."""
NEAR_BYTES = 500
"""Of such a line, and characters of the text; what is longer is hardly copied by hand."""
NEAR_PAIRS = 10_000_000
"""Pairs of characters that difflib is to look at: about 0.1 s of most texts, 0.6 s of the worst."""
LINES_COMPARED = 500
"""Of a text, at each place."""
LINE_BYTES = 1 << 16
"""Seen of a line of the file."""
SHOWN = 200

_QUOTES = "'\"`´‘’‚“”„«»"
_DASHES = "-‐‑–—−"
_ALIKE = [(_QUOTES, "'"), (_DASHES, "-")]
_SPACE = rb"(?:[ \t\r]|\xc2\xa0)*"
Place = tuple[int, list[str]]
"""A line of the file, from 0, and what stands there and in the lines after it."""


def nearest(data: Bytes, old: bytes) -> str:
    """Up to three places most like `old`: line, text and difference of the first line that differs there.

    An advice where there are none. To be appended to a sentence.
    """
    wanted = old.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")[:LINES_COMPARED]
    key = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()))
    telling = wanted[key].strip()[:NEAR_BYTES]
    if not telling:
        return "; read the file again"
    if b"\n" in old and b"\r" in data and re.sub(rb"\r?\n", b"\r", old) in data:
        return "; the lines of this file end in CR alone: edit within one line, or rewrite it"
    starts = list(islice(_alike(data, telling), PLACES_COMPARED))
    if len(starts) < PLACES:
        starts += [at for at in _close(data, telling) if at not in starts]
    found = [_place(data, at, key, len(wanted)) for at in starts]
    found.sort(key=lambda place: -_likeness(place[1], wanted))
    places = "".join(f"\n  {_shown(place, wanted)}" for place in found[:PLACES])
    return f"; nearest lines:{places}" if places else "; read the file again"


# ---- looking for places ---------------------------------------------------------------------------------------------


def _alike(data: Bytes, line: str) -> Iterator[int]:
    """Where in `data` a line begins that holds `line`, but for what is easily got wrong."""
    tokens = [_token(token) for token in re.findall(r"\w+|[^\w\s]", line)]
    pattern = re.compile(_SPACE.join(tokens), re.IGNORECASE)
    last = -1
    for match in strides.matches(pattern, 4 * NEAR_BYTES, data) if tokens else ():
        at = _line_start(data, match.start())
        if at != last:
            yield at
        last = at


def _token(token: str) -> bytes:
    for alike, _ in _ALIKE:
        if token in alike:
            return b"(?:" + b"|".join(re.escape(one.encode()) for one in alike) + b")"
    return re.escape(token.encode("utf-8", "replace"))


def _close(data: Bytes, line: str) -> Iterator[int]:
    """Where among the first lines of `data` those begin that are most like `line`."""
    near = dict(_near_lines(data))
    for text in difflib.get_close_matches(line, _comparable(near.values(), line), PLACES, 0.6):
        yield from islice((at for at, other in near.items() if other == text), PLACES)


def _near_lines(data: Bytes) -> Iterator[tuple[int, str]]:
    at = 0
    for _ in range(NEAR_LINES):
        end = data.find(b"\n", at, at + LINE_BYTES)
        if end < 0 and at + LINE_BYTES < len(data):
            return
        end = end if end >= 0 else len(data)
        if end - at <= NEAR_BYTES:
            yield at, data[at:end].decode("utf-8", "replace").strip()
        at = end + 1


def _comparable(lines: Iterable[str], wanted: str) -> Iterator[str]:
    """Each different line once, as long as it is quickly compared."""
    pairs = 0
    for line in dict.fromkeys(lines):
        pairs += len(line) * len(wanted)
        if pairs > NEAR_PAIRS:
            return
        yield line


def _line_start(data: Bytes, at: int) -> int:
    low = max(0, at - LINE_BYTES)
    return max(data.rfind(b"\n", low, at) + 1, low)


def _place(data: Bytes, at: int, before: int, count: int) -> Place:
    """The `count` lines that begin `before` lines above the one that begins at `at`; fewer where there are no more."""
    start, number = at, strides.count(data[:at], b"\n")
    for _ in range(before):
        if start == 0:
            break
        start, number = _line_start(data, start - 1), number - 1
    lines = bytes(data[start : start + LINE_BYTES * 4]).decode("utf-8", "replace").split("\n")[:count]
    return number, [line.removesuffix("\r") for line in lines]


# ---- what differs ---------------------------------------------------------------------------------------------------


def _likeness(lines: list[str], wanted: list[str]) -> int:
    return sum(1 for line, other in zip(lines, wanted, strict=False) if line.strip() == other.strip())


def _shown(place: Place, wanted: list[str]) -> str:
    number, lines = place
    for index, line in enumerate(lines):
        difference = _difference(line, wanted[index], index == 0, index == len(wanted) - 1)
        if difference is not None:
            return f"line {number + index + 1}: {line[:SHOWN]}{difference}"
    end = "the file ends after it" if len(lines) < len(wanted) else "line ends differ"
    return f"line {number + len(lines)}: {lines[-1][:SHOWN]}  ({end})"


def _difference(line: str, wanted: str, is_first: bool, is_last: bool) -> str | None:
    """What differs between a line of the file and the same of the text, as a remark; None if nothing does.

    The first line of a text may be the end of a line, the last one its beginning.
    """

    def is_found(plain: Callable[[str], str]) -> bool:
        ours, theirs = plain(line), plain(wanted)
        return (
            ours == theirs
            or (is_first and ours.endswith(theirs))
            or (is_last and ours.startswith(theirs))
            or (is_first and is_last and theirs in ours)
        )

    if is_found(str):
        return None
    if line.strip() == wanted.strip():
        if line.rstrip() == wanted.rstrip():
            return "  (white space at its end differs)"
        return f"  (indentation: {_indent(line)}, old_text has {_indent(wanted)})"
    for differs, plain in _PLAINER:
        if is_found(plain):
            return f"  ({differs})"
    return "  (white space, quotes, dashes or case differ)" if is_found(_plainest) else ""


def _indent(line: str) -> str:
    spaces = line[: len(line) - len(line.lstrip())]
    if not spaces:
        return "none"
    kinds = {" ": "space", "\t": "tab"}
    if len(set(spaces)) == 1 and spaces[0] in kinds:
        return f"{len(spaces)} {kinds[spaces[0]]}{'s' if len(spaces) > 1 else ''}"
    return "tabs and spaces mixed"


def _plain_marks(text: str) -> str:
    for alike, plain in _ALIKE:
        text = text.translate(dict.fromkeys(map(ord, alike), plain))
    return text


_PLAINER: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("white space differs", lambda text: re.sub(r"\s+", "", text)),
    ("quotes or dashes differ", _plain_marks),
    ("case differs", str.lower),
    ("the Unicode form differs", lambda text: unicodedata.normalize("NFKC", text)),
)


def _plainest(text: str) -> str:
    for _, plain in _PLAINER:
        text = plain(text)
    return text
