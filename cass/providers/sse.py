"""Server-sent events: the bytes of a stream, taken apart.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from typing import NamedTuple

from cass.errors import ProviderError

EVENT_BYTES = 8 << 20
"""Of one event, or of a line: a hundred times the longest answer that comes as one, and little for a worker to hold."""
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
        self._line = bytearray()
        """The line that has no end yet."""
        self._data: list[bytes] = []
        self._size = 0
        """Bytes of `_data` and of `_stray`."""
        self._name = b""
        self._stray: list[bytes] = []
        """Lines of a JSON value that stands outside any field."""
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes. Raises ProviderError for one that is too long to be held."""
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
            self._line += chunk
            self._check(len(self._line))
            return []
        if self._line:
            lines[0] = bytes(self._line) + lines[0]
        self._line = bytearray(lines.pop())
        return self._events(lines)

    def _start(self, chunk: bytes) -> bytes:
        """The beginning of a stream, once it is long enough to show that no byte order mark stands there."""
        begin = bytes(self._line) + chunk
        self._line.clear()
        if len(begin) < len(_BOM) and _BOM.startswith(begin):
            self._line += begin
            return b""
        self._begun = True
        return begin.removeprefix(_BOM)

    def end(self) -> list[Event]:
        """The event that the end of the stream completes: the last one may lack its empty line, or its line end."""
        lines = [bytes(self._line), b""]
        self._line.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[Event]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
                self._check(self._size)
            elif not line:
                if self._stray:
                    events.append(Event(b"\n".join(self._stray)))
                if any(self._data):
                    events.append(Event(b"\n".join(self._data), self._name))
                if self._data or self._name or self._stray:
                    self._data, self._size, self._name, self._stray = [], 0, b"", []
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ")
            elif self._stray or line.startswith((b"{", b"[")):
                # No event at all, but what some servers send where an answer fails in its middle.
                self._stray.append(line)
                self._size += len(line)
                self._check(self._size)
        return events

    def _check(self, size: int) -> None:
        if size > EVENT_BYTES:
            raise ProviderError(f"the server sent more than {EVENT_BYTES >> 20} MiB without the end of an event")
