"""The nearest lines: where a text that was not found in a file may have been meant, and what differs there."""

import difflib
import re
from collections.abc import Iterable, Iterator

NEAR_LINES = 5_000
"""Lines that are compared to a text that was not found."""
NEAR_BYTES = 500
"""Of such a line, and characters of the text; what is longer is hardly copied by hand."""
NEAR_PAIRS = 10_000_000
"""Pairs of characters that difflib is to look at: about 0.1 s of most texts, 0.6 s of the worst."""


def nearest(data: bytes, old: bytes) -> str:
    """Up to three lines most like the first line of `old`, each with what differs; an empty text if none is like it."""
    wanted = next((line.strip() for line in old.decode().splitlines() if line.strip()), "")
    near = dict(_near_lines(data)) if 0 < len(wanted) <= NEAR_BYTES else {}
    plain = _plain(wanted)
    alike = [n for n, line in near.items() if _plain(line) == plain]
    if len(alike) < 3:
        close = difflib.get_close_matches(wanted, _comparable(near.values(), wanted), 3, 0.6)
        alike += [n for text in close for n, line in near.items() if line.strip() == text and n not in alike]
    if not alike:
        return "; read the file again"
    places = "".join(f"\n  line {n + 1}: {near[n][:200]}{_difference(near[n], wanted)}" for n in alike[:3])
    return f"; nearest lines:{places}"


def _near_lines(data: bytes) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(data.split(b"\n", NEAR_LINES)[:NEAR_LINES]):
        if len(line) <= NEAR_BYTES:
            yield number, line.decode("utf-8", "replace").rstrip("\r")


def _comparable(lines: Iterable[str], wanted: str) -> Iterator[str]:
    """Each different line once, as long as it is quickly compared."""
    pairs = 0
    for line in dict.fromkeys(line.strip() for line in lines):
        pairs += len(line) * len(wanted)
        if pairs > NEAR_PAIRS:
            return
        yield line


def _plain(line: str) -> str:
    """A line without what is easily got wrong: white space, kind of quotes, case."""
    return re.sub(r"\s+", "", line).translate(str.maketrans("‘’“”`", "''\"\"'")).replace('"', "'").lower()


def _difference(line: str, wanted: str) -> str:
    if line.strip() == wanted:
        return "  (this line is as in old_text; indentation or the lines after it differ)"
    if "".join(line.split()) == "".join(wanted.split()):
        return "  (white space differs)"
    return "  (quotes or case differ)" if _plain(line) == _plain(wanted) else ""
