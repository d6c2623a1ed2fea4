"""The tool read: lines of files, numbered.

A file costs what is asked of it: up to `WHOLE_BYTES` it is read to its end, which counts its lines and takes its hash;
beyond that, reading stops behind the last line asked for.
"""

import codecs
import hashlib
import os
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from cass.access import Action
from cass.errors import ToolError
from cass.pattern import pattern
from cass.tools.arguments import Given
from cass.tools.aside import Stop, aside
from cass.tools.paths import Place, open_file, reach, shown
from cass.tools.tool import Arguments, Outcome, Tool

LINES = 2_000
"""Lines of a file where no range is given."""
LINE_CHARACTERS = 2_000
"""Shown of one line: a longer one is data or minified code, where grep finds the part that matters."""
CHARACTERS = 90_000
"""All files of a call together: under the 100,000 that a result may have, so that nothing is cut out of its middle."""
WHOLE_BYTES = 64 << 20
"""Read to the end, hashed and counted, in about 0.1 s."""
HASHED_BYTES = 512 << 20
"""More than that is never edited; the hash takes longer than reading."""
LINE_BYTES = 4 * LINE_CHARACTERS
"""Held of a line, however long: so many characters fit in."""
LEAST_ROOM = 1_000
"""Characters left in a result below which another file is not begun."""
RANGE_CHARACTERS = 60
"""Of ``lines``: more is no range, and takes the pattern or `int` too far."""
BLOCK_BYTES = 1 << 20
DECLARED_BYTES = 1_024
"""Where XML, HTML, Python and editors look for the name of an encoding."""
SNIFF_BYTES = 8_192
"""A NUL in so many first bytes makes a file binary, as for git."""

_RANGE = pattern(r"\s*(?:lines?\s*)?(\d*)\s*(-|\.\.|:|,)?\s*(\d*)\s*", re.IGNORECASE)
_SHAPE = 'a list of {"path","lines"?}, lines like "35-60", "35-" or "-60"'
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_DECLARED = pattern(rb"(?:coding|charset)[ \t]*[:=][ \t]*[\"']?([A-Za-z][\w.-]{1,29})")
_UTF16 = {codecs.BOM_UTF16_LE: "UTF-16-LE", codecs.BOM_UTF16_BE: "UTF-16-BE"}

Wanted = tuple[str, int, int | None]
"""A path as given, the first line (from 1), and the last one; None: `LINES` of them."""
END = 1 << 62
"""A last line that no file has: up to the end."""


def action(arguments: Arguments, place: Place) -> Action:
    return Action("read", tuple(reach(path, place) for path, _, _ in _wanted(arguments)))


def _wanted(arguments: Arguments) -> list[Wanted]:
    given = Given("read", arguments, ("files", "path", "lines", "offset", "limit"))
    if "files" in given:
        return [_one(item, given) for item in given.items("files", _SHAPE)]
    if "path" not in given:
        raise given.error(f'"files" must be {_SHAPE}')
    return [_one(dict(arguments), given)]


def _one(item: Any, given: Given) -> Wanted:
    if isinstance(item, str):
        item = {"path": item}
    if not isinstance(item, dict):
        raise given.error(f'"files" must be {_SHAPE}')
    one = Given("read", item, ("path", "lines", "offset", "limit"))
    path = one.path("path")
    if item.get("lines") not in (None, ""):
        return path, *_range(item["lines"], given)
    first = one.integer("offset", 1, 1, END)
    return path, first, first - 1 + one.integer("limit", LINES, 1, END) if "limit" in one else None


def _range(lines: object, given: Given) -> tuple[int, int | None]:
    """``35-60``, ``35-``, ``-60`` or ``35``: from 1, both ends included."""
    ends = lines if isinstance(lines, list) and len(lines) == 2 else [lines]
    text = "-".join(str(end) if isinstance(end, (int, str)) else "?" for end in ends)
    found = _RANGE.fullmatch(text) if len(text) <= RANGE_CHARACTERS else None
    if not found or not (found[1] or found[3]):
        raise given.error('"lines" must be like "35-60", "35-" or "-60"')
    first = max(1, int(found[1] or 1))
    if not found[2]:
        return first, first
    last = int(found[3]) if found[3] else None
    if last is not None and last < first:
        raise given.error(f'"lines": {last} comes before {first}')
    return first, last


def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    return aside(lambda stop: _outcome(arguments, place, stop))


def _outcome(arguments: Arguments, place: Place, stop: Stop) -> Outcome:
    wanted, seen, left, failed = _wanted(arguments), {}, CHARACTERS, 0
    parts: list[str] = []
    for path, first, last in wanted:
        try:
            part, digest = _file(reach(path, place).path, first, last, left, place, stop)
            if digest:
                seen[reach(path, place).path] = digest
        except ToolError as e:
            if len(wanted) == 1:
                raise
            part, failed = f"{path}: Error: {e}", failed + 1
        parts.append(part)
        left -= len(part)
    if failed == len(wanted):
        raise ToolError("\n".join(part.replace(": Error: ", ": ", 1) for part in parts))
    return Outcome("\n\n".join(parts), seen=seen)


def _file(path: str, first: int, last: int | None, left: int, place: Place, stop: Stop) -> tuple[str, str | None]:
    """The part of a result about one file, and the hash of the whole file if it was read whole."""
    if left < LEAST_ROOM:
        return f"{shown(path, place)}: not read, the result is full; read it in another call", None
    fd = open_file(path, place)
    try:
        text = Text(fd, shown(path, place), stop)
        lines, cut = _numbered(text, first, last if last is not None else first - 1 + LINES, left)
    except OSError as e:
        raise ToolError(f"cannot read {shown(path, place)}: {e.strerror}") from e
    finally:
        os.close(fd)
    if first > text.count and first > 1:
        raise ToolError(f"{text.name} has {text.count:,} lines; line {first:,} was asked for")
    end = first - 1 + len(lines)
    notes = [f"{text.name} (lines {first}-{end} of {text.total}" + "".join(f"; {note}" for note in text.notes) + ")"]
    if not lines:
        notes = [f"{text.name} (empty)"]
    elif cut or (last is None and text.goes_on(end)):
        lines.append(f'[cut after line {end}; go on with lines "{end + 1}-", or grep for what you need]')
    return "\n".join(notes + lines), text.digest


def _numbered(text: "Text", first: int, last: int, left: int) -> tuple[list[str], bool]:
    """The lines from `first` to `last`, as ``cat -n`` numbers them, and whether they had to end early."""
    lines: list[str] = []
    for number, raw, dropped in text.lines(first, last):
        line = text.shown(number, raw, dropped)
        left -= len(line) + 8
        if left < 0 and lines:
            text.stop()
            return lines, True
        lines.append(f"{number:6}\t{line}")
    return lines, text.is_left


class Text:
    """The text of an open file: its encoding, and its lines one after the other."""

    def __init__(self, fd: int, name: str, stop: Stop) -> None:
        """Raises ToolError for a binary file. `stop` is looked at before each block."""
        self.name = name
        self.count = 0
        """Lines met so far."""
        self.digest: str | None = None
        """Hash of the whole file, once it was read to its end."""
        self.notes: list[str] = []
        """What a reader must know: another encoding, other line ends."""
        self.is_left = False
        """Whether reading ended within a line that seems to have no end."""
        self._fd = fd
        self._stop = stop
        self._size = os.fstat(fd).st_size
        self._read = 0
        self._hash = hashlib.sha256()
        self._at_end = False
        self._stopped = False
        self._start = self._block()
        self._utf16 = None if self._start.startswith(_UTF32) else _UTF16.get(self._start[:2])
        if self._utf16:
            self.notes.append(self._utf16)
        elif b"\0" in self._start[:SNIFF_BYTES]:
            raise ToolError(f"{name} is a binary file ({self._size:,} bytes{_likeness(self._start[:SNIFF_BYTES])})")
        elif self._start.startswith(codecs.BOM_UTF8):
            self.notes.append("UTF-8 with a byte order mark")

    @property
    def total(self) -> str:
        return f"{self.count:,}" if self._at_end else "more"

    def goes_on(self, line: int) -> bool:
        return not self._at_end or self.count > line

    def stop(self) -> None:
        """No more lines are wanted; what is left is only counted."""
        self._stopped = True

    def lines(self, first: int, last: int) -> Iterator[tuple[int, bytes, int]]:
        """Yield lines `first` to `last`: number, bytes without the end (`LINE_BYTES` at most), how many were dropped.

        Then reads on to the end of a file that is not too large.
        """
        line, dropped, is_ended = b"", 0, True
        for block in self._blocks():
            is_ended = block.endswith(b"\n")
            ends = block.count(b"\n")
            is_past = self._stopped or self.count >= last
            if is_past and max(self._size, self._read) > WHOLE_BYTES:  # files of /proc have no size, or no end
                return
            if is_past or self.count + ends + 1 < first:
                self.count += ends
                continue
            for number, piece in enumerate(block.split(b"\n")):
                if number:  # a line end stands before it
                    self.count += 1
                    if first <= self.count <= last and not self._stopped:
                        yield self.count, line, dropped
                    line, dropped = b"", 0
                room = LINE_BYTES - len(line)
                line += piece[:room]
                dropped += max(0, len(piece) - room)
            if dropped > WHOLE_BYTES:
                self.is_left = True
                self.count += 1
                yield self.count, line, dropped
                return
        if not is_ended:
            self.count += 1
            if first <= self.count <= last and not self._stopped:
                yield self.count, line, dropped

    def shown(self, number: int, line: bytes, dropped: int) -> str:
        """A line as text; of a long one the beginning, and how much is left out."""
        if line.endswith(b"\r"):
            line = line[:-1]
            self._note("CRLF line ends")
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        text = self._decode(line, whole=not dropped)
        if len(text) <= LINE_CHARACTERS and not dropped:
            return text
        left_out = dropped + len(line) - len(text[:LINE_CHARACTERS].encode())
        more = f"more than {left_out:,}" if self.is_left else f"{left_out:,}"
        return f"{text[:LINE_CHARACTERS]} [{more} more bytes in this line; grep shows parts]"

    def _decode(self, line: bytes, whole: bool) -> str:
        try:
            # A cut line may end within a character, which is no fault of the file.
            return codecs.getincrementaldecoder("utf-8")().decode(line, whole)
        except UnicodeDecodeError:
            self._note(rf"not UTF-8{self._declared()}, other bytes shown as \xNN")
            return line.decode("utf-8", "backslashreplace")

    def _declared(self) -> str:
        found = _DECLARED.search(self._start, 0, DECLARED_BYTES)
        name = found[1].decode() if found else ""
        return f" but {name}, as it says" if name and name.lower() not in ("utf-8", "utf8") else ""

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _blocks(self) -> Iterator[bytes]:
        """The file in UTF-8, in pieces."""
        if self._utf16:
            decoder = codecs.getincrementaldecoder(self._utf16)("replace")
            yield from (decoder.decode(block).removeprefix("\ufeff").encode() for block in self._raw())
        else:
            yield from self._raw()

    def _raw(self) -> Iterator[bytes]:
        block = self._start
        while block:
            yield block
            block = self._block()
        self._at_end = True
        if self._read <= HASHED_BYTES:
            self.digest = self._hash.hexdigest()

    def _block(self) -> bytes:
        self._stop.check()
        block = os.read(self._fd, BLOCK_BYTES)
        self._read += len(block)
        if self._read <= HASHED_BYTES:
            self._hash.update(block)
        return block


def _likeness(start: bytes) -> str:
    """What a binary file that is text in another encoding looks like, as the end of a sentence."""
    if start.startswith(_UTF32):
        return ", UTF-32 text"
    zeros = [start[at::2].count(0) for at in (0, 1)]
    is_text = 2 * max(zeros) > 0.7 * len(start) and not min(zeros)
    return ", which looks like UTF-16 text without a byte order mark" if is_text else ""


TOOL = Tool(
    "read",
    "Read files with line numbers, 2000 lines each unless lines is given. Batch files in one call.",
    {
        "type": "object",
        "properties": {
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "lines": {"type": "string", "description": "35-60, 35-, -60"},
                    },
                    "required": ["path"],
                },
            }
        },
        "required": ["files"],
    },
    action,
    run,
)
