"""Strides: bytes of any size searched and changed piece by piece.

One search through half a gigabyte is a second in which no other thread of the process runs: nobody can cancel, and the
worker seems dead. A stride takes a few milliseconds.
"""

import codecs
import re
from collections.abc import Iterator

STRIDE = 8 << 20

Bytes = bytes | bytearray


def find(data: Bytes, part: bytes, start: int = 0) -> int:
    """As ``data.find(part, start)``."""
    for at in range(start, len(data), STRIDE):
        if (found := data.find(part, at, at + STRIDE + len(part) - 1)) >= 0:
            return found
    return -1


def matches(pattern: re.Pattern[bytes], longest: int, data: Bytes) -> Iterator[re.Match[bytes]]:
    """As ``pattern.finditer(data)``, of a pattern that matches `longest` bytes at most, and never none."""
    at = 0
    while at < len(data):
        if found := pattern.search(data, at, at + STRIDE + longest):
            yield found
            at = found.end()
        else:
            at += STRIDE


def count(data: Bytes, part: bytes) -> int:
    """As ``data.count(part)``."""
    return sum(data.count(part, start, end) for start, end in _apart(data, part))


def replaced(data: Bytes, old: bytes, new: bytes) -> bytearray:
    """As ``data.replace(old, new)``."""
    out = bytearray()
    for start, end in _apart(data, old):
        out += data[start:end].replace(old, new)
    return out


def _apart(data: Bytes, part: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of `data` such that no `part` stands across a border, wherever one begins to count."""
    start = end = 0
    while start < len(data):
        end += STRIDE
        if end >= len(data) or data.find(part, max(0, end - len(part) + 1), end + len(part) - 1) < 0:
            yield start, min(end, len(data))
            start = end


def extend(out: bytearray, data: Bytes, start: int, end: int) -> None:
    """Append ``data[start:end]``."""
    for at in range(start, end, STRIDE):
        out += data[at : min(end, at + STRIDE)]


def recoded(data: Bytes, source: str, target: str) -> bytearray:
    """As ``data.decode(source).encode(target)``; raises UnicodeDecodeError."""
    decoder, out = codecs.getincrementaldecoder(source)(), bytearray()
    for at in range(0, len(data), STRIDE):
        out += decoder.decode(data[at : at + STRIDE], at + STRIDE >= len(data)).encode(target)
    return out
