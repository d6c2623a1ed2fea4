"""The tool shell: one command of bash, neither login nor interactive, without terminal and input."""

import codecs
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from cass.access import Action
from cass.errors import ToolError
from cass.home import create_private, make_private
from cass.names import quoted
from cass.tools.arguments import Given
from cass.tools.cell import Cell
from cass.tools.child import Child
from cass.tools.paths import Place
from cass.tools.tool import Arguments, Outcome, Tool

DEFAULT_MS = 120_000
LIMIT_MS = 600_000
KEPT_BYTES = 1 << 20
"""Kept in the result; of more, the first and the last half."""
NEWS = "made or changed meanwhile, and run or trusted by other programs"
_CONFIG_FAILED = "could not write config file"
CONFIG = "; .git/config is read-only there, because it says what git runs: leave that to the user"
NAMED = 5
"""Files that are named of those."""
FILE_BYTES = 64 << 20
"""Kept in the file of long output."""
TRIES = 8
"""A socket that is to be hidden may be gone before the sandbox is made, which fails then: it is made anew, as nothing
was run."""


def action(arguments: Arguments, place: Place) -> Action:
    return Action("shell", command=_parse(arguments)[0])


def _parse(arguments: Arguments) -> tuple[str, float]:
    """The command, and its limit in seconds."""
    given = Given("shell", arguments, ("command", "timeout_ms"))
    command = given.text("command")
    if not command.strip() or "\0" in command:
        raise given.error('"command" must be a command for bash')
    return command, given.integer("timeout_ms", DEFAULT_MS, 1, LIMIT_MS) / 1000


async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    command, limit_s = _parse(arguments)
    async with aclosing(execute(command, place, limit_s)) as pieces:
        async for piece in pieces:
            yield piece


async def execute(command: str, place: Place, limit_s: float) -> AsyncGenerator[str | Outcome, None]:
    """Run a command of bash: its output as it comes, then what came of it. Raises ToolError."""
    for left in reversed(range(TRIES)):
        async with aclosing(_tried(command, place, limit_s, is_last=not left)) as pieces:
            async for piece in pieces:
                yield piece
                if isinstance(piece, Outcome):
                    return


async def _tried(command: str, place: Place, limit_s: float, *, is_last: bool) -> AsyncGenerator[str | Outcome, None]:
    """The same, but for no outcome where the sandbox could not be made, and nothing was run."""
    output = Output(place.out / place.call_id)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    cell = await Cell.make(place) if place.sandboxed else None
    child = await Child.start(("bash", "-c", command), place, cell)
    try:
        async with aclosing(child.output(limit_s)) as pieces:
            async for piece in pieces:
                output.add(piece)
                if (text := decoder.decode(piece)) and (cell is None or cell.has_begun):
                    yield text
    finally:
        output.close()
        await child.close()
    problem = f"timed out after {limit_s:g} s" if child.timed_out else _problem(child.status)
    if cell and not cell.has_begun and not child.timed_out:
        if is_last:
            raise ToolError(f"the sandbox could not be made, and the command was not run: {output.text()}")
        return
    news = _listed(await cell.news()) if cell else ""
    text = output.text() + _remark(child, cell) + (f"\n[{NEWS}: {news}]" if news else "")
    notice = f"{NEWS}: {news}; look at them before you go on" if news else None
    if problem:
        held = f"\n[{cell.words}{CONFIG if _CONFIG_FAILED in text else ''}]" if cell else ""
        yield Outcome(f"Error: {problem}\n{text}".rstrip("\n") + held, ok=False, notice=notice)
    else:
        yield Outcome(text or "(no output)", notice=notice)


def _listed(names: list[str]) -> str:
    """Names of files, of many the first."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(quoted, names[:NAMED])) + more


def _problem(status: int) -> str | None:
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"killed by {name}"
    return f"exit status {status}" if status else None


def _remark(child: Child, cell: Cell | None) -> str:
    if not child.left_running:
        return ""
    if cell:
        return "\n[processes of this command still ran; in the sandbox they end with it]"
    return "\n[processes of this command still run in the background; what they print now is not read]"


# ---- the output -----------------------------------------------------------------------------------------------------


class Output:
    """All that a command wrote, of which a bounded part is kept: in memory its two ends, in a file its beginning."""

    def __init__(self, path: Path) -> None:
        """`path`: made, private, once the output is longer than what is kept; under another name if there is one."""
        self.size = 0
        self._path = path
        self._head = bytearray()
        self._tail = bytearray()
        self._file: int | None = None
        self._filed = 0
        self._file_error = ""

    def add(self, piece: bytes) -> None:
        half = KEPT_BYTES // 2
        self.size += len(piece)
        if self.size > KEPT_BYTES and not self._filed and not self._file_error:
            self._open()
        self._write(piece)
        if (room := half - len(self._head)) > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if self.size > KEPT_BYTES and len(self._tail) > 2 * half:  # not at each piece: cutting copies
            del self._tail[:-half]

    def text(self) -> str:
        """The output; of a long one its ends, with a line between them that says what is missing and where it is."""
        if self.size <= KEPT_BYTES:
            return bytes(self._head + self._tail).decode("utf-8", "replace").rstrip("\n")
        tail = bytes(self._tail[-(KEPT_BYTES // 2) :])
        left_out = self.size - len(self._head) - len(tail)
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))  # leaves out half a character
        tail = tail[next((i for i in range(4) if tail[i] & 0xC0 != 0x80), 0) :]
        note = f"[{left_out:,} of {self.size:,} bytes left out here; {self._where()}]"
        return f"{head}\n{note}\n{tail.decode('utf-8', 'replace')}".rstrip("\n")

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _where(self) -> str:
        if self._file_error:
            return f"they could not be kept: {self._file_error}"
        if self._filed < self.size:
            return f"the first {self._filed:,} bytes are kept in {self._path}, for the person"
        return f"all of it is kept in {self._path}, for the person"

    def _open(self) -> None:
        try:
            make_private(self._path.parent)
            self._path, self._file = _create(self._path)
        except OSError as e:
            self._file_error = e.strerror or str(e)
            return
        self._write(bytes(self._head + self._tail))

    def _write(self, piece: bytes) -> None:
        if self._file is None or self._filed >= FILE_BYTES:
            return
        view = memoryview(piece)[: FILE_BYTES - self._filed]
        try:
            while view:
                written = os.write(self._file, view)
                self._filed += written
                view = view[written:]
        except OSError as e:
            self._file_error = e.strerror or str(e)
            self.close()


def _create(path: Path) -> tuple[Path, int]:
    """Make a private file at `path`, or where one stands at ``path-2`` and so on; return where, and its descriptor.

    Ids of calls repeat, some providers begin anew with each answer, and what an earlier result promised stays.
    """
    free, number = path, 1
    while True:
        try:
            return free, create_private(free, os.O_EXCL)
        except FileExistsError:
            number += 1
            free = path.with_name(f"{path.name}-{number}")


TOOL = Tool(
    "shell",
    "Run a bash command in the workspace, without terminal or input. Returns stdout and stderr merged.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_ms": {"type": "integer", "description": "default 120000, at most 600000"},
        },
        "required": ["command"],
    },
    action,
    run,
)
