"""Running a hook: a line of bash with JSON on its standard input, and what it says."""

import tempfile
from contextlib import aclosing
from typing import NamedTuple

from cass.tools.child import Child
from cass.tools.paths import Place

KEPT_BYTES = 8_192
"""Of what it writes; the rest is read and forgotten."""


class Said(NamedTuple):
    status: int
    """As `Child.status`."""
    timed_out: bool
    text: str
    """What it wrote, to standard output and standard error, in order."""


async def told(command: str, given: bytes, place: Place, limit_s: float) -> Said:
    """Run `command` in the workspace, with the environment of tools and outside of the sandbox. Raises ToolError."""
    kept = b""
    with tempfile.TemporaryFile() as file:  # not a pipe: one that nobody reads is full at some time
        file.write(given)
        file.seek(0)
        child = await Child.start(("bash", "-c", command), place, stdin=file.fileno())
    try:
        async with aclosing(child.output(limit_s)) as pieces:
            async for piece in pieces:
                kept += piece[: KEPT_BYTES - len(kept)]
    finally:
        await child.close()
    return Said(child.status, child.timed_out, kept.decode("utf-8", "replace").strip())
