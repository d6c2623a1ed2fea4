"""Server-sent events: the bytes of a stream, taken apart.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event."""

    data: bytes
    """Lines joined by ``\\n``; never empty."""
    name: bytes = b""
    """The ``event`` field; empty where there was none."""


class Decoder:
    """Events of a stream whose bytes come in any pieces: cut inside a character, or between CR and LF."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """Pieces of the line that has no end yet; joined once, so that many small pieces cost no more than one."""
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if not self._begun:
            chunk = self._start(chunk)
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            self._line.append(chunk)
            return []
        if self._line:
            lines[0] = b"".join([*self._line, lines[0]])
        rest = lines.pop()
        self._line = [rest] if rest else []
        return self._events(lines)

    def _start(self, chunk: bytes) -> bytes:
        """The beginning of a stream, once it is long enough to show that no byte order mark stands there."""
        begin = b"".join([*self._line, chunk])
        self._line = []
        if len(begin) < len(_BOM) and _BOM.startswith(begin):
            self._line = [begin] if begin else []
            return b""
        self._begun = True
        return begin.removeprefix(_BOM)

    def end(self) -> list[Event]:
        """The event that the end of the stream completes: the last one may lack its empty line, or its line end."""
        lines = [b"".join(self._line), b""]
        self._line = []
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[Event]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if any(self._data):
                    events.append(Event(b"\n".join(self._data), self._name))
                self._data, self._name = [], b""
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ")
        return events
