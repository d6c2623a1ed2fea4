"""Completion: what may stand for the word before the cursor. Commands at the start of a message, paths after ``@``."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cass.access import Mode
from cass.commands import SLASH
from cass.visible import safe_line

MOST = 200
"""Offered at once; nobody reads further, and a directory may hold 50,000 names."""

_PATH = re.compile(r"(?:^|\s)@(\S*)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    typed: int
    """So many characters before the cursor it replaces."""
    help: str = ""


def candidates(before: str, cwd: str) -> list[Candidate]:
    """What fits `before`, the text left of the cursor; paths are relative to `cwd`."""
    word, space, argument = before.partition(" ")
    if before.startswith("/") and not space:
        return [Candidate(c.name, len(word), c.help) for c in SLASH if c.name.startswith(word)]
    if word == "/mode" and space:
        return [Candidate(mode, len(argument)) for mode in Mode if mode.startswith(argument)]
    if found := _PATH.search(before):
        return [Candidate(path, len(found[1])) for path in _paths(found[1], cwd)]
    return []


def _paths(typed: str, cwd: str) -> list[str]:
    """Names in the directory that `typed` is in, directories first; hidden ones only when the dot is typed."""
    directory, _, start = typed.rpartition("/")
    place = os.path.join(cwd, os.path.expanduser(directory + "/") if directory or typed.startswith("/") else "")
    prefix = typed[: len(typed) - len(start)]
    return [prefix + name for name in sorted(_names(place, start), key=lambda n: (not n.endswith("/"), n))[:MOST]]


def _names(place: str, start: str) -> Iterator[str]:
    wanted = start.lower()
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") and not start.startswith(".")
                if entry.name.lower().startswith(wanted) and not hidden and safe_line(entry.name) == entry.name:
                    yield entry.name + "/" if entry.is_dir() else entry.name
    except OSError:
        return  # no such directory: there is nothing to complete
