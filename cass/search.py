"""The search: lines that match a query, in files and below directories, written as ``path:12:line``.

A program of its own, which is told what to do in one argument and writes as it finds: ending it ends the search at
once, whatever a regular expression is lost in. Therefore it imports little (no dataclasses, no typing).
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
import sys
from itertools import islice

from cass.ignore import Patterns
from cass.names import quoted
from cass.query import BadQuery, Query
from cass.walk import Walk, descend, identity, kind

TYPE_CHECKING = False  # `typing` itself takes 4 ms, and the search starts in 10
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Denied = Callable[[str], object] | None

OUTPUT_BYTES = 60_000
"""All lines together: under what a result may have, and already more than a model should read of a search."""
LINE_CHARACTERS = 300
"""Shown of a line, around its match."""
READ_BYTES = 1 << 20
"""Of 50,000 source files all but a few are shorter: one read takes each whole."""
BLOCK_BYTES = 4 << 20
"""Larger files are searched in blocks of so much; context lines do not reach over their borders."""
SNIFF_BYTES = 8_192
"""A NUL in so many first bytes makes a file binary, as for git."""
DENIED = "denied by a rule"
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Enough(Exception):
    """A limit is reached, and there is more; what was found is written."""


class Search:
    """One search: its limits, its counts, and where its lines go."""

    def __init__(self, query: Query, context: int, most: int, show: str = "lines") -> None:
        """`show`: what is written, "lines", or of files with matches "files" or "counts"; `most` of it."""
        self.query = query
        self.searched = 0
        """Files."""
        self.matched = 0
        """Files with matches."""
        self.matches = 0
        """Lines."""
        self.notes: list[str] = []
        """What else the reader must know."""
        self._binary = 0
        self._context = context
        self._most = most
        self._show = show
        self._room = OUTPUT_BYTES

    def file(self, fd: int, name: str) -> None:
        """Search an open regular file called `name`, which is not yet quoted. Raises Enough."""
        self.searched += 1
        try:
            data = os.read(fd, READ_BYTES)
            if len(data) == READ_BYTES or data.startswith(_BOMS) or self.query.may_match(data):
                self._look_closer(data, fd, quoted(name))
        except OSError as e:
            self.notes.append(f"{quoted(name)}: {e.strerror}")

    def _look_closer(self, data: bytes, fd: int, name: str) -> None:
        before = self.matches
        try:
            if data.startswith(_BOMS) and not data.startswith(_UTF32):
                self._utf16(data + _read(fd, BLOCK_BYTES - READ_BYTES), fd, name)
            elif data.find(b"\0", 0, SNIFF_BYTES) >= 0:
                self._binary += 1
            elif len(data) < READ_BYTES:
                self._block(data, name, 0)
            else:
                self._large(data + _read(fd, BLOCK_BYTES - READ_BYTES), fd, name)
        finally:
            self.matched += self.matches > before
        if self._show != "lines" and self.matches > before:
            if self.matched > self._most:
                self.matched -= 1
                raise Enough(f"{_count(self._most, 'file')}, the limit")
            self._write(name if self._show == "files" else f"{name}:{self.matches - before}")

    def _utf16(self, data: bytes, fd: int, name: str) -> None:
        text = data.decode(_UTF16[data[:2]], "replace").removeprefix("\ufeff")
        self._block(text.encode("utf-8", "replace"), name, 0)
        if _read(fd, 1):
            self.notes.append(f"{name}: only its first {len(data):,} bytes were searched (UTF-16)")

    def _large(self, start: bytes, fd: int, name: str) -> None:
        """Search a file in blocks of whole lines; a line beyond a block is cut."""
        number, data, more, before = 0, start, start, self.matches
        while data and not (self._show == "files" and self.matches > before):
            end = (data.rfind(b"\n") + 1 if more else 0) or len(data)
            if self.query.may_match(block := data[:end]):
                self._block(block, name, number)
            number += data.count(b"\n", 0, end)
            more = _read(fd, BLOCK_BYTES)
            data = data[end:] + more

    def _block(self, data: bytes, name: str, first: int) -> None:
        """Search whole lines, the first of which is number `first` (from 0)."""
        if self._show != "lines":
            found = self.query.lines(data)
            self.matches += sum(1 for _ in (found if self._show == "counts" else islice(found, 1)))
            return
        lines: list[bytes] = []
        written = owed = -1  # the last line written, and the last that is still to follow a match
        for number, text, match in self.query.lines(data):
            if self._context:
                lines = lines or data.split(b"\n")
                written = self._lines(name, lines, first, written + 1, min(owed + 1, number))
            if self.matches == self._most:
                raise Enough(f"{self._most:,} matches, the limit")
            if self._context:
                lead = max(written + 1, number - self._context)
                if self.matches and (lead > written + 1 or written < 0):
                    self._write("--")
                self._lines(name, lines, first, lead, number)
            self._write(f"{name}:{first + number + 1}:{cut(text, match.start(), match.end())}")
            self.matches += 1
            written, owed = number, number + self._context
        self._lines(name, lines, first, written + 1, owed + 1)

    def _lines(self, name: str, lines: list[bytes], first: int, begin: int, end: int) -> int:
        """Write context, the lines from `begin` to before `end`; return the number of the last one."""
        last = len(lines) - (lines[-1:] == [b""])  # what `split` leaves behind the last line end is no line
        end = min(end, last)
        for number in range(begin, end):
            text = lines[number].decode("utf-8", "replace").removesuffix("\r")
            self._write(f"{name}-{first + number + 1}-{cut(text, 0, 0)}")
        return max(begin, end) - 1

    def _write(self, line: str) -> None:
        data = line.encode("utf-8", "replace") + b"\n"
        self._room -= len(data)
        if self._room < 0:
            raise Enough(f"{OUTPUT_BYTES:,} bytes, the limit")
        sys.stdout.buffer.write(data)

    def summary(self, stopped: str) -> str:
        """The last line of the output. `stopped`: the limit that ended the search early, if one did."""
        if self.matches:
            what = f"{_count(self.matches, 'match', 'es')} in " if self._show != "files" else ""
            text = f"{what}{_count(self.matched, 'file')}"
        else:
            text = f"No matches in {_count(self.searched, 'file')}"
        if stopped:
            text += f"; stopped at {stopped}: narrow the query or the paths"
        if self._binary and not self.matches:
            self.notes.insert(0, f"{_count(self._binary, 'binary file')} skipped")
        text = "; ".join([text, *self.notes])
        return f"[{text}]" if self.matches else text


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{plural if number != 1 else ''}"


def cut(line: str, start: int, end: int) -> str:
    """`line`, or the part of a long one around its match from `start` to `end`, with what is left out counted."""
    if len(line) <= LINE_CHARACTERS:
        return line
    around = max(0, LINE_CHARACTERS - (end - start)) // 2
    begin = max(0, min(start - around, len(line) - LINE_CHARACTERS))
    stop = begin + LINE_CHARACTERS
    before = f"[{begin:,} characters] " if begin else ""
    after = f" [{len(line) - stop:,} more characters]" if stop < len(line) else ""
    return f"{before}{line[begin:stop]}{after}"


def _read(fd: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(fd, min(most, READ_BYTES))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


# ---- the program ----------------------------------------------------------------------------------------------------


def search(asked: dict[str, Any]) -> str:
    """Write the matches, return the summary. Raises BadQuery.

    `asked`: query, regex, case_sensitive, context and most as for `Query` and `Search`; paths, each a resolved one and
    what it is called; closed, directories that are never entered; denied, a regular expression for absolute paths that
    are left out, with all below them, or nothing; root, the workspace; include and exclude, each lines of an ignore
    file, which say what is searched below a directory; show as for `Search`.
    """
    closed = {found for directory in asked["closed"] if (found := identity(directory))}
    denied = re.compile(asked["denied"]).match if asked["denied"] else None
    query = Query(asked["query"], asked["regex"], asked["case_sensitive"])
    at_work = Search(query, asked["context"], asked["most"], asked["show"])
    stopped = ""
    try:
        for path, name in asked["paths"]:
            if denied and denied(path):
                at_work.notes.append(f"{quoted(name)}: {DENIED}")
            else:
                base = asked["root"] if path == asked["root"] or path.startswith(asked["root"] + "/") else path
                globs = [
                    Patterns(asked[which].encode(), len(os.fsencode(base)) + 1) for which in ("include", "exclude")
                ]
                _path(at_work, path, name, closed, denied, globs)
    except Enough as e:
        stopped = str(e)
    return at_work.summary(stopped)


def _path(
    at_work: Search, path: str, name: str, closed: set[tuple[int, int]], denied: Denied, globs: list[Patterns]
) -> None:
    try:
        fd = descend(path, FILE)
    except OSError as e:
        why = "not a regular file (socket)" if e.errno == errno.ENXIO else e.strerror
        at_work.notes.append(f"{quoted(name)}: {why}")
        return
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            at_work.file(fd, name)
    finally:
        os.close(fd)
    if stat.S_ISDIR(mode):
        walk = Walk(path, closed, denied, (globs[1],) if globs[1] else ())
        _directory(at_work, walk, path, "" if name == "." else name.rstrip("/") + "/", globs[0])
    elif not stat.S_ISREG(mode):
        at_work.notes.append(f"{quoted(name)}: not a regular file ({kind(mode)})")


def _directory(at_work: Search, walk: Walk, path: str, prefix: str, include: Patterns) -> None:
    try:
        for folder, below, names in walk:
            for name in _included(names, os.path.join(path, below), include) if include else names:
                try:
                    fd = os.open(name, FILE, dir_fd=folder)
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
        if walk.denied:
            at_work.notes.append(f"{walk.denied:,} {DENIED}, or where credentials are kept")
        if walk.unreadable:
            at_work.notes.append(f"{walk.unreadable:,} not readable")


def _included(names: list[str], folder: str, include: Patterns) -> list[str]:
    """Those of `names` in a folder that `include` means, by themselves or with a directory that they are in."""
    if include.means_below(os.fsencode(folder)):
        return names
    above = os.fsencode(folder.rstrip("/")) + b"/"
    return [name for name in names if include.verdict(above, os.fsencode(name), False)]


def main() -> None:
    """The last argument is what is asked, in JSON. Exit status 2: the query is bad, and the output says why."""
    try:
        summary = search(json.loads(sys.argv[-1]))
        sys.stdout.buffer.write(summary.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except BadQuery as e:
        sys.stdout.write(str(e))
        sys.exit(2)
    except BrokenPipeError:
        os._exit(1)  # nobody reads any more; the usual way out would flush once more, and complain
