"""A subcommand of cass about this chat, run as a child: what it loads is not loaded here."""

import os
from collections.abc import Awaitable, Callable

from cass import itself
from cass.composer import helper
from cass.errors import CassError
from cass.home import Files
from cass.visible import safe, safe_line


async def run(files: Files, *words: str, cwd: str | None = None) -> bytes:
    """What ``cass WORDS`` prints, in the home of `files`. Raises CassError, where it fails and prints nothing."""
    program = itself.argv("cass", *words)
    environ = os.environ | {"CASS_HOME": str(files.home.root)}
    found = await helper.told(program, environ=environ, cwd=cwd or None)
    if found.status and not found.out:
        raise CassError(safe(found.err.decode("utf-8", "replace").strip().removeprefix("cass: ")))
    return found.out


async def hinting(work: Awaitable[None], hint: Callable[[str], None]) -> None:
    """Do `work`; what goes wrong in it is a hint for the person."""
    try:
        await work
    except CassError as e:
        hint(safe_line(str(e)))
