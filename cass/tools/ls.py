"""The tool ls: the names in one directory."""

import os
import stat
from collections.abc import AsyncGenerator

from cass.access import Action
from cass.errors import ToolError
from cass.names import quoted
from cass.tools.arguments import Given
from cass.tools.aside import Stop, aside
from cass.tools.paths import Place, failure, reach, shown
from cass.tools.tool import Arguments, Outcome, Tool
from cass.walk import DIRECTORY, descend, kind

ENTRY_LIMIT = 1_000
"""Entries shown. About 30 kB: a directory with more is one to grep or to name files in."""


def action(arguments: Arguments, place: Place) -> Action:
    return Action("ls", (reach(_path(arguments), place),))


def _path(arguments: Arguments) -> str:
    return Given("ls", arguments, ("path",)).path("path", ".")


def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    def work(_: Stop) -> Outcome:
        return Outcome(_listing(reach(_path(arguments), place).path, place))

    return aside(work)


def _listing(path: str, place: Place) -> str:
    """One entry a line, sorted: ``name/`` for directories, ``name -> target`` for links, else name, tab, what it is."""
    try:
        fd = descend(path, DIRECTORY)
    except NotADirectoryError as e:
        raise _not_a_directory(path, place, e) from e
    except OSError as e:
        raise failure("list", path, place, e) from e
    try:
        names = sorted(os.listdir(fd))
        lines = [_entry(name, fd) for name in names[:ENTRY_LIMIT]]
    finally:
        os.close(fd)
    if not names:
        return f"{shown(path, place)} is empty"
    if len(names) > ENTRY_LIMIT:
        lines.append(f"[{len(names) - ENTRY_LIMIT:,} of {len(names):,} entries not shown; grep, or name files to read]")
    return "\n".join(lines)


def _entry(name: str, fd: int) -> str:
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{quoted(name)} -> {quoted(os.readlink(name, dir_fd=fd))}"
    except OSError as e:
        return f"{quoted(name)}\t{e.strerror}"
    if stat.S_ISDIR(status.st_mode):
        return f"{quoted(name)}/"
    return f"{quoted(name)}\t{f'{status.st_size:,}' if stat.S_ISREG(status.st_mode) else kind(status.st_mode)}"


def _not_a_directory(path: str, place: Place, error: OSError) -> ToolError:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return failure("list", path, place, error)
    advice = "; use read" if stat.S_ISREG(mode) else ""
    return ToolError(f"{shown(path, place)} is a {kind(mode)}, not a directory{advice}")


TOOL = Tool(
    "ls",
    "List a directory: dirs end in /, files show bytes.",
    {"type": "object", "properties": {"path": {"type": "string"}}},
    action,
    run,
)
