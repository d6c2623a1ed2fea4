"""The query of a search: which lines of a text match it.

Lines are matched one by one, so a match never spans two. To be fast, the text is first searched for bytes that every
match must hold, and only lines with them are decoded and matched; without such bytes it is searched at once with a
pattern that cannot see beyond a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TYPE_CHECKING = False  # `typing` itself takes 4 ms, and the search starts in 10
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NEEDS = 4
"""Kinds of bytes that are looked for before a line is matched."""
Span = tuple[int, int]
"""Where a line begins and ends, without its line end."""


class BadQuery(ValueError):
    """The query cannot be searched for: why."""


class Query:
    """What is looked for in each line."""

    def __init__(self, text: str, regex: bool = False, case_sensitive: bool = False) -> None:
        """Raises BadQuery."""
        pattern = text if regex else re.escape(text)
        flags = re.NOFLAG if case_sensitive else re.IGNORECASE
        try:
            compiled = re.compile(pattern, flags)
        except (re.error, RecursionError, OverflowError) as e:
            raise BadQuery(f"{e} (Python's syntax; without regex the query is taken literally)") from e
        parsed = _parse(pattern, flags)
        self._search = compiled.search
        self._folds = bool(compiled.flags & re.IGNORECASE)
        self._needs = _needs(parsed, self._folds)
        self._literals = self._needs[0] if self._needs else []
        self._one = self._literals[0] if len(self._literals) == 1 else b""
        self._any = re.compile(b"|".join(map(re.escape, self._literals))).search if self._literals else None
        is_of_one_line = _is_of_one_line(parsed)
        self._whole = re.compile(pattern, flags | re.MULTILINE).search if is_of_one_line else None
        self._raw = _of_bytes(pattern, flags) if is_of_one_line else None
        self._is_fast = self._raw is not None and not self._folds and _begins_with_letters(parsed)
        if any(b"\n" in literal for need in self._needs for literal in need):
            raise BadQuery("it holds a line break, but lines are matched one by one")

    def may_match(self, data: bytes) -> bool:
        """Whether `data` holds what every match must hold."""
        haystack = data.lower() if self._folds and self._needs else data
        if self._one and haystack.find(self._one) < 0:
            return False
        # Where the whole pattern is as fast as one more literal, it is tried at once.
        needs = self._needs[bool(self._one) :] if not self._is_fast else ()
        return all(any(literal in haystack for literal in need) for need in needs)

    def lines(self, data: bytes) -> Iterator[tuple[int, str, re.Match[str]]]:
        """Yield number (from 0), text and first match of each line that matches."""
        number = counted = 0
        for start, end in self._candidates(data):
            text = data[start:end].decode("utf-8", "replace").removesuffix("\r")
            if match := self._search(text):
                number += data.count(b"\n", counted, start)
                counted = start
                yield number, text, match

    def _candidates(self, data: bytes) -> Iterable[Span]:
        """Lines that may match, in order."""
        haystack = data.lower() if self._folds and self._literals else data
        # A single byte is on too many lines to be worth a look at each.
        # A CR may end a line, and the pattern for many lines does not know that.
        if self._whole and (self._is_fast or min(map(len, self._literals), default=0) < 2) and b"\r" not in data:
            if self._raw and data.isascii():
                return self._matching_bytes(self._raw, data)
            if not self._is_fast:
                return self._matching(data)
        return self._with_literals(haystack) if self._literals else _all_lines(data)

    def _with_literals(self, haystack: bytes) -> Iterator[Span]:
        start, one, others = 0, self._one, self._needs[1:]
        while True:
            if one:
                at = haystack.find(one, start)
            else:
                found = self._any(haystack, start) if self._any else None
                at = found.start() if found else -1
            if at < 0:
                return
            end = haystack.find(b"\n", at)
            end = len(haystack) if end < 0 else end
            begin = haystack.rfind(b"\n", start, at) + 1 or start
            if not others or all(any(haystack.find(one, begin, end) >= 0 for one in need) for need in others):
                yield begin, end
            start = end + 1

    def _matching_bytes(self, search: Callable[[bytes, int], re.Match[bytes] | None], data: bytes) -> Iterator[Span]:
        start = 0
        while start < len(data) and (found := search(data, start)):
            begin = data.rfind(b"\n", start, found.start()) + 1 or start
            if begin == len(data):
                return  # behind the last line end is no line
            end = data.find(b"\n", found.start())
            end = len(data) if end < 0 else end
            yield begin, end
            start = end + 1

    def _matching(self, data: bytes) -> Iterator[Span]:
        # Escaped, so that characters can be counted back into bytes.
        text = data.decode("utf-8", "surrogateescape")
        start = at = 0
        while start < len(text) and self._whole and (found := self._whole(text, start)):
            begin = text.rfind("\n", start, found.start()) + 1 or start
            if begin == len(text):
                return  # behind the last line end is no line
            end = text.find("\n", found.start())
            end = len(text) if end < 0 else end
            at += len(text[start:begin].encode("utf-8", "surrogateescape"))
            stop = at + len(text[begin:end].encode("utf-8", "surrogateescape"))
            yield at, stop
            start, at = end + 1, stop + 1


def _all_lines(data: bytes) -> Iterator[Span]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, end
        start = end + 1


# ---- what a pattern is made of --------------------------------------------------------------------------------------


def _parse(pattern: str, flags: int) -> Any:
    """The pattern as Python's own parser sees it: a sequence of operations with their values.

    The parser is not public. Where it is not as expected the answer is None, and every line is matched: slow but right.
    """
    try:
        return re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
    except (AttributeError, re.error):
        return None


def _needs(parsed: Any, folds: bool) -> list[list[bytes]]:
    """Sets of bytes, the most telling first: every match holds one of each. In small letters if the query `folds`."""
    choices = _choices(parsed, folds) if parsed is not None else []
    needs = [sorted({literal.encode("utf-8", "surrogatepass") for literal in choice}) for choice in choices]
    return [*needs[:1], *(need for need in needs[1:NEEDS] if min(map(len, need)) > 1)]


def _most_telling(items: Any, folds: bool) -> list[str] | None:
    return next(iter(_choices(items, folds)), None)


def _choices(items: Any, folds: bool) -> list[list[str]]:
    """All sets of strings of which a sequence of operations must match one, first that whose shortest is longest."""
    choices: list[list[str]] = []
    run = ""
    for operation, value in [*items, ("", None)]:
        name = str(operation)
        if name == "LITERAL" and (value < 128 or not folds):  # bytes.lower knows ASCII only
            run += chr(value).lower() if folds else chr(value)
            continue
        if run:
            choices.append([run])
            run = ""
        if inner := _inside(name, value, folds):
            choices.append(inner)
    return sorted(choices, key=lambda choice: (-min(map(len, choice)), len(choice)))


def _inside(name: str, value: Any, folds: bool) -> list[str] | None:
    """The most telling strings inside one operation."""
    if name == "SUBPATTERN" and not value[1] and not value[2]:  # with flags of its own it may fold
        return _most_telling(value[3], folds)
    if name.endswith("_REPEAT") and value[0] > 0:
        return _most_telling(value[2], folds)
    if name == "BRANCH":
        branches = [_most_telling(branch, folds) for branch in value[1]]
        return [s for branch in branches for s in branch or ()] if None not in branches else None
    return None


_SAFE = frozenset(("LITERAL", "ANY", "AT_BEGINNING", "AT_END", "AT_BOUNDARY", "AT_NON_BOUNDARY"))
_SAFE_CATEGORIES = frozenset(("CATEGORY_WORD", "CATEGORY_DIGIT"))
_BREAKS = frozenset((10, 13))


def _of_bytes(pattern: str, flags: int) -> Callable[[bytes, int], re.Match[bytes] | None] | None:
    """A search that finds at least what the pattern does, in text of ASCII; None where there is no such thing.

    Without the anchor before it, what a pattern begins with is something to search for.
    """
    try:
        return re.compile(pattern.removeprefix("^").encode("ascii"), flags | re.MULTILINE).search
    except (ValueError, re.error):
        return None


def _begins_with_letters(parsed: Any) -> bool:
    """Whether at least two certain characters come first, which `re` looks for as fast as `bytes.find` does."""
    names = [str(operation) for operation, _ in parsed][:3]
    return names[names[:1] == ["AT"] :][:2] == ["LITERAL", "LITERAL"]


def _is_of_one_line(parsed: Any) -> bool:
    """Whether a pattern can match no line break and look at nothing beyond one, so that many lines can be searched."""
    return parsed is not None and not parsed.state.flags & (re.DOTALL | re.MULTILINE) and _stays_in_line(parsed)


def _stays_in_line(items: Any) -> bool:
    return all(_is_safe(str(operation), value) for operation, value in items)


def _is_safe(name: str, value: Any) -> bool:
    match name:
        case "LITERAL":
            return value not in _BREAKS
        case "RANGE":
            return not any(value[0] <= code <= value[1] for code in _BREAKS)
        case "AT":
            return str(value) in _SAFE
        case "IN":
            return all(_is_safe_member(str(operation), member) for operation, member in value)
        case "SUBPATTERN":
            return not value[1] and _stays_in_line(value[3])
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _stays_in_line(value[2])
        case "BRANCH":
            return all(_stays_in_line(branch) for branch in value[1])
    return name in _SAFE


def _is_safe_member(name: str, value: Any) -> bool:
    if name == "CATEGORY":
        return str(value) in _SAFE_CATEGORIES
    return name in ("LITERAL", "RANGE") and _is_safe(name, value)
