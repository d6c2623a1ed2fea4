"""Server-sent events: the bytes of a stream, taken apart.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
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
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        if not others:
            return []
        lines = [b"".join(self._line), *others[:-1]]
        self._line = [others[-1]]
        return [event for line in lines if (event := self._take(line)) is not None]

    def end(self) -> list[Event]:
        """The event that the end of the stream completes: the last one may lack its empty line, or its line end."""
        lines = [b"".join(self._line), b""]
        self._line = []
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> Event | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> Event | None:
        data, name = b"\n".join(self._data), self._name
        self._data, self._name = [], b""
        return Event(data, name) if data else None
