"""Lines: what an editor writes, as messages. What is none is answered with an error, and the next line is read.

The package's own reading ends at the first line that is JSON and no message, and at one that is too long.
Source: https://www.jsonrpc.org/specification
"""

import asyncio
from typing import Any

from cass import jsonl

LONGEST = 64 << 20
"""Bytes of a line: images go along in one."""
NO_JSON, NO_MESSAGE = -32700, -32600


class Lines:
    """A transport of the package: one message a line, over two streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """`reader` has the limit `LONGEST`."""
        self._reader, self._writer = reader, writer
        self._sending = asyncio.Lock()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while line := await self._line():
            if not line.strip():
                continue
            found = message(line)
            if isinstance(found, dict):
                return found
            await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": found, "message": _WORDS[found]}})
        return None

    async def send(self, message: dict[str, Any]) -> None:
        async with self._sending:
            self._writer.write(jsonl.dump(message) + b"\n")
            await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()

    async def _line(self) -> bytes:
        """A line; of one that is too long something that is no message; empty at the end."""
        is_whole = True
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
                return line if is_whole else b"?"
            except asyncio.IncompleteReadError as e:
                return e.partial if is_whole else b""
            except asyncio.LimitOverrunError as e:
                await self._reader.readexactly(max(e.consumed, 1))
                is_whole = False


_WORDS = {NO_JSON: "a line that is no JSON, or too long", NO_MESSAGE: "a line that is no message"}


def message(line: bytes) -> dict[str, Any] | int:
    """What a line says: a request, a notification or an answer; else the code of what is wrong with it. Pure."""
    try:
        value = jsonl.load(line)
    except ValueError:
        return NO_JSON
    if not isinstance(value, dict) or not isinstance(value.get("id"), (str, int, type(None))):
        return NO_MESSAGE
    if "method" in value:
        is_good = isinstance(value["method"], str) and isinstance(value.get("params"), (dict, type(None)))
    else:
        is_good = "id" in value and isinstance(value.get("error"), (dict, type(None)))
    return value if is_good else NO_MESSAGE
