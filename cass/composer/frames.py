"""The viewer as a child of the composer: frames from it, width and keys to it, one JSON object a line each way.

{"print": ANSI, "at": WORD}  finished lines, for ever    {"live": ANSI}  what grows, in place of what was live before;
both in one where what grew is finished now
{"width": COLUMNS}    {"key": "C-o"}    {"seen": [ID]}
"""

import asyncio
import contextlib
from typing import Any, NamedTuple

from cass import itself, jsonl
from cass.home import Files

PIECE = 1 << 16
"""Bytes taken at once: what a terminal draws well within the time between two keys."""


class Frames(NamedTuple):
    """Some frames, put together."""

    printed: str = ""
    live: str | None = None
    """None: as it was."""
    at: str = ""
    """How far the screen is with what was printed: a word for the viewer that is started next."""


class Viewer:
    """One run of ``cass-view --frames``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._rest = b""

    @classmethod
    async def start(cls, files: Files, *flags: str) -> "Viewer":
        command = itself.argv("cass-view", files.chat_id, "--frames", *flags)
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, limit=PIECE))

    async def read(self) -> Frames | None:
        """What came since the last call, at least one frame; None at the viewer's end."""
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(PIECE):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if lines:
                return joined(lines)
        return None

    def send(self, message: dict[str, Any]) -> None:
        """Tell the viewer something; a viewer that is gone does not hear it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, RuntimeError):
            self._process.stdin.write(jsonl.dump(message) + b"\n")

    async def last_words(self) -> str:
        """How it ended, and the last line of its standard error, once it has."""
        assert self._process.stderr is not None
        said = (await self._process.stderr.read()).decode("utf-8", "replace").strip().rpartition("\n")[2]
        status = await self._process.wait()
        ended = f"status {status}" if status >= 0 else f"by signal {-status}"
        return ended + (f": {said}" if said else "")

    async def close(self) -> None:
        """End it. It ends by itself when its input does; the signal is for one that is stuck."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()


def joined(lines: list[bytes]) -> Frames:
    """Several frames as one. What is no frame is left out: the viewer's traceback goes to its standard error."""
    printed: list[str] = []
    live, at = None, ""
    for line in lines:
        with contextlib.suppress(ValueError):
            frame = jsonl.load(line)
            if isinstance(frame, dict):
                printed.append(str(frame.get("print", "")))
                live = frame.get("live", live)
                at = frame.get("at") or at
    return Frames("".join(printed), live, at)
