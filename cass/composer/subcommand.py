"""A subcommand of cass about this chat, run as a child: what it loads is not loaded here."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from cass.errors import CassError
from cass.home import Files
from cass.visible import safe, safe_line


async def run(files: Files, name: str, *arguments: str, cwd: str | None = None) -> bytes:
    """What ``cass NAME CHAT ARGUMENTS`` prints. Raises CassError, in its words, where it fails and prints nothing."""
    program = [sys.executable, "-I", "-m", "cass.cli", "cass", name, files.chat_id, *arguments]
    environ = os.environ | {"CASS_HOME": str(files.home.root)}
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *program, stdin=null, stdout=pipe, stderr=pipe, env=environ, cwd=cwd or None
    )
    said, why = await process.communicate()
    if process.returncode and not said:
        raise CassError(safe(why.decode("utf-8", "replace").strip().removeprefix("cass: ")))
    return said


async def hinting(work: Awaitable[None], hint: Callable[[str], None]) -> None:
    """Do `work`; what goes wrong in it is a hint for the person."""
    try:
        await work
    except CassError as e:
        hint(safe_line(str(e)))
