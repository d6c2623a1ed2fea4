"""Following a file of records: the whole lines that were appended since last time.

Nothing is watched here: `read` costs a stat when nothing happened, and the caller decides when to look.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from cass.records import BadRecord, Notice, Record, decode

CHUNK = 1 << 20


class Tail:
    """A place in one file. A file that is missing, or was replaced by a new one, is no error."""

    def __init__(self, path: Path, start: int = 0) -> None:
        """`start` is the byte of the first line to read; -1 for the end of the file as it is now."""
        self.path = path
        self._fd: int | None = None
        self._inode = (0, 0)
        self._rest = b""
        self._line = 0 if start == 0 else None
        self.offset = start
        """The next byte to read from the file."""
        if self._open() and start < 0:
            assert self._fd is not None
            self.offset = os.fstat(self._fd).st_size
        self.offset = max(self.offset, 0)

    @classmethod
    def last(cls, path: Path, size: int = CHUNK) -> "Tail":
        """From the first whole line among the last `size` bytes; where no line ends there, from the one they are in."""
        tail = cls(path)
        if tail._fd is not None and (length := os.fstat(tail._fd).st_size) > size:
            found = os.pread(tail._fd, size, length - size).find(b"\n")
            tail.offset = length - size + found + 1 if found >= 0 else _begin_of_line(tail._fd, length - size)
            tail._line = None if tail.offset else 0
        return tail

    def read(self) -> list[Record]:
        """Records appended since the last call; a damaged line becomes a warning that names its place."""
        return [record for lines in self._pieces() for record in self._records(lines)]

    def lines(self) -> list[bytes]:
        """Whole lines appended since the last call, without their ends."""
        return [line for lines in self._pieces() for line in lines]

    def _pieces(self) -> Iterator[list[bytes]]:
        """New lines, those of each file together: the lines of another file are counted from 1."""
        if self._fd is not None:
            yield self._read_on()
        if self._was_replaced():
            if self._fd is not None:
                yield self._read_on()  # what the old file got between our read and its replacement
            self.close()
            if self._open():
                self.offset, self._rest, self._line = 0, b"", 0
                yield self._read_on()

    def _records(self, lines: list[bytes]) -> Iterator[Record]:
        for line in lines:
            self._count()
            if line.strip():
                yield self._decode(line)

    @property
    def inode(self) -> int:
        """Of the file that is followed; 0 while there is none."""
        return self._inode[1]

    @property
    def place(self) -> int:
        """The byte after the last whole line."""
        return self.offset - len(self._rest)

    @property
    def rest(self) -> bytes:
        """The last line, as long as it has no end: nobody can say yet whether it is whole."""
        return self._rest

    def decode_rest(self) -> Record:
        """The last line as if it had ended: a writer that died may have lost nothing but the newline."""
        self._count()
        return self._decode(self._rest)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> bool:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        found = os.fstat(self._fd)
        self._inode = (found.st_dev, found.st_ino)
        return True

    def _was_replaced(self) -> bool:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return self._fd is None or (found.st_dev, found.st_ino) != self._inode

    def _read_on(self) -> list[bytes]:
        assert self._fd is not None
        pieces = [self._rest]
        while chunk := os.pread(self._fd, CHUNK, self.offset):
            self.offset += len(chunk)
            pieces.append(chunk)
        if len(pieces) == 1:
            return []
        *lines, self._rest = b"".join(pieces).split(b"\n")
        return lines

    def _count(self) -> None:
        if self._line is not None:
            self._line += 1

    def _decode(self, line: bytes) -> Record:
        try:
            return decode(line)
        except BadRecord as e:
            place = f"line {self._line}" if self._line is not None else f"a line before byte {self.offset}"
            return Notice(level="warning", text=f"{self.path}: {place} is damaged and was skipped: {e}")


def _begin_of_line(fd: int, place: int) -> int:
    """The byte where the line begins that holds the byte at `place`."""
    while place > 0:
        start = max(place - CHUNK, 0)
        found = os.pread(fd, place - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0
