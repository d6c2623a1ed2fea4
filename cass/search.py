"""The search: lines that match a query, in files and below directories, as ``path:12:line``.

A program of its own, which reads what to do as JSON on standard input and writes as it finds: ending it ends the search
at once, whatever a regular expression is lost in. Therefore it imports little (no dataclasses, no typing).

A file is first searched for bytes that every match must hold; only lines with them are decoded and matched. Lines are
matched one by one, so a match never spans two.
"""

import codecs
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator

from cass.walk import Walk, descend, kind

OUTPUT_BYTES = 60_000
"""All lines together: under what a result may have, and already more than a model should read of a search."""
LINE_CHARACTERS = 300
"""Shown of a line, around its match."""
READ_BYTES = 1 << 20
"""Of 50,000 source files all but a few are shorter: one read takes each whole."""
BLOCK_BYTES = 16 << 20
"""Larger files are searched in blocks of so much; context lines do not reach over their borders."""
SNIFF_BYTES = 8_192
"""A NUL in so many first bytes makes a file binary, as for git."""

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class BadQuery(ValueError):
    """The query cannot be searched for: why."""


# ---- the query ------------------------------------------------------------------------------------------------------


class Query:
    """What is looked for in one line."""

    def __init__(self, text: str, regex: bool = False, case_sensitive: bool = False) -> None:
        """Raises BadQuery."""
        pattern = text if regex else re.escape(text)
        flags = re.NOFLAG if case_sensitive else re.IGNORECASE
        try:
            self.search = re.compile(pattern, flags).search
        except (re.error, RecursionError, OverflowError) as e:
            raise BadQuery(f"{e} (Python's syntax; without regex the query is taken literally)") from e
        self._folds = not case_sensitive or bool(re.compile(pattern).flags & re.IGNORECASE)
        literals = _literals(pattern, flags, self._folds)
        if any(b"\n" in literal for literal in literals):
            raise BadQuery("it holds a line break, but lines are searched one by one")
        self._literals = literals
        self._find_any = re.compile(b"|".join(map(re.escape, literals))).search if len(literals) > 1 else None
        self._everywhere = None if literals else _across_lines(pattern, flags)

    def lines(self, data: bytes) -> Iterator[tuple[int, str, re.Match[str]]]:
        """Yield the number (from 0), the text and the first match of each line of `data` that matches."""
        if self._literals:
            haystack = data.lower() if self._folds else data
            return self._check(data, self._with_literals(haystack), b"\n")
        text = data.decode("utf-8", "replace")
        return self._check(text, self._found_everywhere(text) if self._everywhere else _all_lines(text), "\n")

    def _check(self, data: "bytes | str", spans: Iterator[tuple[int, int]], newline: "bytes | str"):  # type: ignore[no-untyped-def]
        number = at = 0
        for start, end in spans:
            line = data[start:end]
            text = (line.decode("utf-8", "replace") if isinstance(line, bytes) else line).removesuffix("\r")
            if match := self.search(text):
                number += data.count(newline, at, start)  # type: ignore[arg-type]
                at = start
                yield number, text, match

    def _with_literals(self, haystack: bytes) -> Iterator[tuple[int, int]]:
        """Where lines with one of the literals begin and end."""
        start, one = 0, self._literals[0]
        while True:
            if self._find_any:
                found = self._find_any(haystack, start)
                at = found.start() if found else -1
            else:
                at = haystack.find(one, start)
            if at < 0:
                return
            begin = haystack.rfind(b"\n", start, at)
            end = haystack.find(b"\n", at)
            end = len(haystack) if end < 0 else end
            yield (begin + 1 if begin >= 0 else start), end
            start = end + 1

    def _found_everywhere(self, text: str) -> Iterator[tuple[int, int]]:
        start = 0
        while start <= len(text) and (found := self._everywhere(text, start)):  # type: ignore[misc]
            begin = text.rfind("\n", start, found.start())
            end = text.find("\n", found.start())
            end = len(text) if end < 0 else end
            yield (begin + 1 if begin >= 0 else start), end
            start = end + 1


def _all_lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


# `re._parser` is not public. Where it is not as expected, every line is matched, which is slow and right.
def _parse(pattern: str, flags: int):  # type: ignore[no-untyped-def]
    try:
        return re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
    except (AttributeError, re.error):
        return None


def _literals(pattern: str, flags: int, folds: bool) -> list[bytes]:
    """Bytes of which every match holds at least one; lower-case if `folds`. Empty where there are none."""
    parsed = _parse(pattern, flags)
    best = _best(parsed, folds) if parsed is not None else None
    return sorted({literal.encode("utf-8", "surrogatepass") for literal in best}) if best else []


def _best(items, folds: bool) -> "list[str] | None":  # type: ignore[no-untyped-def]
    """The most telling set of strings, one of which a sequence of parsed items must match."""
    choices: list[list[str]] = []
    run = ""
    for op, value in [*items, (None, None)]:
        name = str(op)
        if name == "LITERAL" and (not folds or value < 128) and value != 0xFFFD:
            run += chr(value).lower() if folds else chr(value)
            continue
        if run:
            choices.append([run])
            run = ""
        inner = None
        if name == "SUBPATTERN" and not value[1] and not value[2]:
            inner = _best(value[3], folds)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0] > 0:
            inner = _best(value[2], folds)
        elif name == "ATOMIC_GROUP":
            inner = _best(value, folds)
        elif name == "BRANCH":
            branches = [_best(branch, folds) for branch in value[1]]
            if None not in branches:
                inner = [literal for branch in branches for literal in branch or ()]
        if inner:
            choices.append(inner)
    return max(choices, key=lambda choice: (min(map(len, choice)), -len(choice)), default=None)


_ONE_LINE = frozenset(("LITERAL", "ANY", "BRANCH", "SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "IN", "AT"))
_INSIDE_LINE = frozenset(("AT_BEGINNING", "AT_END", "AT_BOUNDARY", "AT_NON_BOUNDARY"))


def _across_lines(pattern: str, flags: int):  # type: ignore[no-untyped-def]
    """A search for many lines at once that finds what is found line by line; None where that is not sure."""
    parsed = _parse(pattern, flags)
    if parsed is None or parsed.state.flags & (re.DOTALL | re.MULTILINE) or not _stays_in_line(parsed):
        return None
    return re.compile(pattern, flags | re.MULTILINE).search


def _stays_in_line(items) -> bool:  # type: ignore[no-untyped-def]
    """Whether parsed items can match no line break and look at nothing beyond one."""
    for op, value in items:
        name = str(op)
        if (
            name not in _ONE_LINE
            or (name == "LITERAL" and value in (10, 13))
            or (name == "AT" and str(value) not in _INSIDE_LINE)
            or (name == "IN" and _holds_line_break(value))
            or (name == "SUBPATTERN" and not _stays_in_line(value[3]))
            or (name == "BRANCH" and not all(_stays_in_line(branch) for branch in value[1]))
            or (name.endswith("REPEAT") and not _stays_in_line(value[2]))
        ):
            return False
    return True


def _holds_line_break(members) -> bool:  # type: ignore[no-untyped-def]
    for op, value in members:
        name = str(op)
        if name == "NEGATE" or (name == "CATEGORY" and str(value) not in ("CATEGORY_WORD", "CATEGORY_DIGIT")):
            return True
        if (name == "LITERAL" and value in (10, 13)) or (name == "RANGE" and value[0] <= 13 and value[1] >= 10):
            return True
    return False


# ---- files ----------------------------------------------------------------------------------------------------------


class Enough(Exception):
    """A limit is reached; what was found is written."""


class Search:
    """One search, its limits and its counts."""

    def __init__(self, query: Query, context: int, most: int) -> None:
        self.query = query
        self.matches = 0
        self.files = 0
        """Files searched."""
        self.matched = 0
        """Files with matches."""
        self.binary = 0
        """Binary files with matches."""
        self.notes: list[str] = []
        self._context = context
        self._most = most
        self._room = OUTPUT_BYTES

    def file(self, fd: int, name: str) -> None:
        """Search an open regular file; `name` is what it is called in the output. Raises Enough."""
        self.files += 1
        data = os.read(fd, READ_BYTES)
        if data[:2] in _UTF16:
            # Rare, and of no use in pieces.
            data = (data + _rest(fd, BLOCK_BYTES)).decode(_UTF16[data[:2]], "replace").removeprefix("\ufeff").encode()
            self._block(data, name, 0)
        elif len(data) < READ_BYTES:
            self._block(data, name, 0)
        else:
            self._blocks(data + _rest(fd, BLOCK_BYTES - READ_BYTES), fd, name)

    def _blocks(self, data: bytes, fd: int, name: str) -> None:
        """Search a large file, cut at line ends; a line beyond a block is cut as well."""
        number, is_binary = 0, b"\0" in data[:SNIFF_BYTES]
        while data:
            end = data.rfind(b"\n") + 1 or len(data)
            if self._block(data[:end], name, number, is_binary) and is_binary:
                return
            number += data.count(b"\n", 0, end)
            rest = data[end:]
            more = _rest(fd, BLOCK_BYTES)
            data = rest + more if more else b""
            if not more and rest:
                self._block(rest, name, number, is_binary)

    def _block(self, data: bytes, name: str, first: int, is_binary: bool = False) -> bool:
        """Search whole lines, of which the first is number `first` (from 0); whether any matched."""
        lines: list[bytes] = []
        shown = last_hit = -1
        for number, text, match in self.query.lines(data):
            if is_binary or b"\0" in data[:SNIFF_BYTES]:
                self.binary += 1
                return True
            if shown < 0:
                self.matched += 1 if first == 0 or self.matched == 0 else 0
            if self._context:
                lines = lines or data.split(b"\n")
                shown = self._around(name, lines, first, shown, last_hit, number)
            self._write(f"{name}:{first + number + 1}:{cut(text, match.start(), match.end())}")
            shown = last_hit = number
            self.matches += 1
            if self.matches >= self._most:
                self._after(name, lines, first, last_hit, last_hit + self._context + 1)
                raise Enough(f"{self.matches} matches, the limit")
        if last_hit >= 0:
            self._after(name, lines, first, last_hit, last_hit + self._context + 1)
        return last_hit >= 0

    def _around(self, name: str, lines: list[bytes], first: int, shown: int, last_hit: int, number: int) -> int:
        """Write what follows the last hit and what leads to line `number`; return the last line written."""
        if last_hit >= 0:
            shown = self._after(name, lines, first, last_hit, min(number, last_hit + self._context + 1))
        begin = max(shown + 1, number - self._context, 0)
        if self.matches and begin > shown + 1:
            self._write("--")
        elif self.matches and last_hit < 0:
            self._write("--")
        return self._after(name, lines, first, begin - 1, number)

    def _after(self, name: str, lines: list[bytes], first: int, shown: int, end: int) -> int:
        """Write lines behind `shown` and before `end` as context; return the last one written."""
        for number in range(shown + 1, min(end, len(lines))):
            if number == len(lines) - 1 and not lines[number]:
                break  # what `split` leaves behind the last line end
            text = lines[number].decode("utf-8", "replace").removesuffix("\r")
            self._write(f"{name}-{first + number + 1}-{cut(text, 0, 0)}")
            shown = number
        return shown

    def _write(self, line: str) -> None:
        data = line.encode("utf-8", "surrogateescape") + b"\n"
        self._room -= len(data)
        if self._room < 0:
            raise Enough(f"{OUTPUT_BYTES:,} bytes, the limit")
        sys.stdout.buffer.write(data)

    def summary(self, stopped: str) -> str:
        """The last line of the output."""
        if not self.matches:
            text = f"No matches in {self.files:,} files"
        else:
            text = f"{self.matches} matches in {self.matched} files"
        if stopped:
            text = f"{text}; stopped at {stopped}: narrow the query or the paths"
        if self.binary:
            self.notes.append(f"{self.binary} binary files match, not shown")
        return "; ".join([text, *self.notes])


def cut(line: str, start: int, end: int) -> str:
    """`line`, or the part of a long one around its match from `start` to `end`, with what is left out counted."""
    if len(line) <= LINE_CHARACTERS:
        return line
    begin = max(0, min(start - (LINE_CHARACTERS - min(end - start, LINE_CHARACTERS)) // 2, len(line) - LINE_CHARACTERS))
    stop = begin + LINE_CHARACTERS
    before = f"[{begin:,} characters] " if begin else ""
    after = f" [{len(line) - stop:,} more characters]" if stop < len(line) else ""
    return f"{before}{line[begin:stop]}{after}"


def _rest(fd: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(fd, min(most, READ_BYTES))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


# ---- the program ----------------------------------------------------------------------------------------------------


def search(asked: "dict[str, object]") -> str:
    """Write the matches, return the summary. Raises BadQuery.

    `asked`: query, regex, case_sensitive, context, most; paths: ``[resolved, shown]`` each; closed: a directory that is
    never entered.
    """
    query = Query(str(asked["query"]), bool(asked["regex"]), bool(asked["case_sensitive"]))
    at_work = Search(query, int(str(asked["context"])), int(str(asked["most"])))
    stopped = ""
    try:
        for path, name in asked["paths"]:  # type: ignore[attr-defined]
            _path(at_work, path, name, str(asked["closed"]))
    except Enough as e:
        stopped = str(e)
    return at_work.summary(stopped)


def _path(at_work: Search, path: str, name: str, closed: str) -> None:
    try:
        fd = descend(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as e:
        at_work.notes.append(f"{name}: {'not a regular file (socket)' if e.errno == errno.ENXIO else e.strerror}")
        return
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            at_work.file(fd, name)
            return
    finally:
        os.close(fd)
    if stat.S_ISDIR(mode):
        _directory(at_work, path, "" if name == "." else name.rstrip("/") + "/", closed)
    else:
        at_work.notes.append(f"{name}: not a regular file ({kind(mode)})")


def _directory(at_work: Search, path: str, prefix: str, closed: str) -> None:
    try:
        home = os.stat(closed)
        walk = Walk(path, {(home.st_dev, home.st_ino)})
    except FileNotFoundError:
        walk = Walk(path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        for folder, below, names in walk:
            for name in names:
                try:
                    fd = os.open(name, flags, dir_fd=folder)
                except OSError:
                    walk.unreadable += 1
                    continue
                try:
                    at_work.file(fd, prefix + below + name)
                finally:
                    os.close(fd)
            sys.stdout.buffer.flush()
    finally:
        if walk.heavy:
            at_work.notes.append(f"not entered: {', '.join(sorted(walk.heavy)[:5])} (name one to search it)")
        if walk.unreadable:
            at_work.notes.append(f"{walk.unreadable} not readable")


def main() -> None:
    try:
        summary = search(json.load(sys.stdin.buffer))
    except BadQuery as e:
        sys.stderr.write(str(e))
        sys.exit(2)
    except BrokenPipeError:
        os._exit(1)  # nobody reads any more
    sys.stdout.buffer.write(f"[{summary}]\n".encode("utf-8", "replace"))
