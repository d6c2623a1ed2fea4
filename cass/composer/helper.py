"""A helper: another program that works unseen for the composer, and is ended where nobody waits for it any more."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Told(NamedTuple):
    status: int
    out: bytes
    err: bytes


async def told(
    command: Sequence[str], given: bytes = b"", *, environ: Mapping[str, str] | None = None, cwd: str | None = None
) -> Told:
    """Run a program with `given` on its standard input; return what came of it. Raises OSError where it is missing."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ, cwd=cwd)
    try:
        out, err = await process.communicate(given)
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # its pipes are closed now, not when the loop is gone
        raise
    return Told(process.returncode or 0, out, err)
