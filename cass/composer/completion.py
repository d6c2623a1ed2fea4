"""Completion: what may stand for the word before the cursor. Commands and their arguments, and paths after ``@``."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cass.access import Mode
from cass.commands import SLASH, Command, find
from cass.composer.paths import MOST
from cass.pattern import pattern
from cass.visible import safe_line

EFFORTS = ("low", "medium", "high", "off")
"""What `/effort` offers and Alt-T goes through."""

_PATH = pattern(r'(?:^|\s)@("[^"\n]*|[^\s"]*)$')
"""Of one with a blank in it all stands in quotes."""
_ELSEWHERE = pattern(r"[/~]|\.\.(/|$)")
"""How a path begins that is not below the workspace."""

Matching = Callable[[str, str], Sequence[str] | None]
"""Paths below a directory that a word may be the beginning of, as `Paths.matching` gives them; None: not known yet."""


class Candidate(NamedTuple):
    text: str
    typed: int
    """So many characters before the cursor it replaces."""
    help: str = ""
    shown: str = ""
    """In the menu, in the place of `text`."""


def candidates(
    before: str,
    cwd: str,
    matching: Matching,
    own: Callable[[], Iterable[Command]] = lambda: (),
    providers: Callable[[], Sequence[str]] = lambda: (),
) -> list[Candidate]:
    """What fits `before`, the text left of the cursor; paths are relative to `cwd`. `own`: commands of the person's;
    `providers`: ids of those that can be set up."""
    word, space, argument = before.partition(" ")
    if before.startswith("/") and not space:
        offered = [*SLASH, *own()]
        return [Candidate(c.name, len(word), c.help, c.usage) for c in offered if c.name.startswith(word)]
    if space and (command := find(word)) and " " not in argument:
        values = providers() if command.name in _OF_PROVIDERS else _ARGUMENTS.get(command.name, ())
        return [Candidate(value, len(argument)) for value in values if argument in value]
    if found := _PATH.search(before):
        typed = found[1].removeprefix('"')
        known = None if _ELSEWHERE.match(typed) else matching(cwd, typed)
        paths = _listed(typed, cwd) if known is None else known
        return [Candidate(_word(path), len(found[1]), shown=path) for path in paths]
    return []


def _word(path: str) -> str:
    """How a path is written behind ``@``; the quotes of a directory stay open, for what is typed next."""
    if len(path.split()) < 2 or '"' in path:
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


_OF_PROVIDERS = ("/login", "/logout")
_ARGUMENTS: dict[str, Sequence[str]] = {"/mode": tuple(Mode), "/effort": EFFORTS}


def is_begun(before: str) -> bool:
    """Whether `before` ends in something to complete while it is typed."""
    return before.startswith("/") or _PATH.search(before[-1000:]) is not None


def _listed(typed: str, cwd: str) -> list[str]:
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
