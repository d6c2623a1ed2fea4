"""Guards: what in a workspace other programs run or trust, as it is on the disk now.

Before a command the sandbox makes it read-only. What was not there, or is a link, it cannot hold; so the same is looked
at again after the command, and what is new or another by then is said.
"""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cass.pattern import pattern
from cass.tools.hidden import is_below
from cass.tools.paths import is_guarded

DIRECTORIES = 100
"""Nearest first, that are looked through before and after each command: more would be felt."""
LEVELS = 3
HEAVY = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", "site-packages", "vendor"})
_BARE = frozenset({"HEAD", "objects", "refs"})
"""What makes a directory a repository, whatever it is called."""
_WORKTREE = pattern(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)
_TEXT_BYTES = 1 << 16

Mark = tuple[int, ...]
SETTLED_NS = 3_000_000_000
"""What changed longer ago than this will not change again with the same time, however coarse a disk's clock is."""
KNOWN = 1000
"""Directories that are remembered."""


class Guards(NamedTuple):
    """Those of one workspace at one moment; every path is absolute."""

    files: frozenset[str]
    """Files and directories that are to be read-only, resolved."""
    fixed: frozenset[str]
    """Directories that must not be moved away: repositories, and whatever lies above one of `files`."""
    marks: Mapping[str, Mark]
    """Path to what tells whether the same stands there later."""


NO_GUARDS = Guards(frozenset(), frozenset(), {})


def find(workspace: str, repository: str | None = None) -> Guards:
    """The guards near the top of a workspace, which is resolved, and of its `repository` elsewhere."""
    marks = dict(_found(workspace)) | dict(_of_git(repository) if repository else ())
    tops = (workspace, repository or workspace)
    real = {os.path.realpath(path) for path in marks if not _is_repository(path)} - set(tops)
    files = {path for path in real if any(is_below(path, top) for top in tops) and os.path.exists(path)}
    held = files | {path for path in marks if _is_repository(path)}
    return Guards(frozenset(files), frozenset(_above(held, workspace) - files), marks)


def repository(workspace: str) -> str | None:
    """Where the repository of a workspace lies that is a linked worktree or a submodule; None for every other.

    Only if it names the workspace as well: what the workspace says of itself, a command may have written. Source:
    https://git-scm.com/docs/gitrepository-layout
    """
    named = _line(f"{workspace}/.git")
    if not named.startswith("gitdir: "):
        return None
    own = os.path.realpath(os.path.join(workspace, named.removeprefix("gitdir: ")))
    above = os.path.dirname(own)
    found = None
    if os.path.basename(above) == "worktrees":
        if os.path.join(own, _line(f"{own}/gitdir")) == f"{workspace}/.git":
            found = os.path.dirname(above)
    elif (tree := _WORKTREE.search(_text(f"{own}/config"))) and os.path.realpath(f"{own}/{tree[1]}") == workspace:
        found = own
    # In the workspace it is writable as it is, and by whoever wants to be believed.
    return None if found is None or is_below(own, workspace) or is_below(workspace, found) else found


def news(before: Guards, workspace: str, repository: str | None = None) -> list[str]:
    """What is new or another than `before`, the topmost path of each, relative to the workspace, sorted."""
    now = find(workspace, repository).marks
    other = sorted(path for path, mark in now.items() if before.marks.get(path) != mark)
    topmost = [path for path in other if not any(is_below(path, one) and path != one for one in other)]
    return [os.path.relpath(path, workspace) for path in topmost]


def _found(workspace: str) -> Iterator[tuple[str, Mark]]:
    queue, seen = [(workspace, 0)], 0
    while queue and seen < DIRECTORIES:
        (directory, level), seen = queue.pop(0), seen + 1
        held = _holding(directory, workspace)
        if held.is_bare:
            yield from _of_git(directory)
        for path in held.repositories:
            yield path, _mark(path)[:2]  # what is in it changes with every commit
            yield from _of_git(path)
        for path in held.guarded:
            yield path, _mark(path)
        if level < LEVELS:
            queue += [(path, level + 1) for path in held.directories]


class _Holding(NamedTuple):
    """What a directory holds, by what it means here."""

    is_bare: bool
    """Whether it is a repository itself."""
    repositories: tuple[str, ...]
    guarded: tuple[str, ...]
    directories: tuple[str, ...]
    """To be looked into."""


_known: dict[tuple[str, str], tuple[Mark, _Holding]] = {}


def _holding(directory: str, workspace: str) -> _Holding:
    """What `directory` holds; while its time of change stays, the names in it do, and it is not read again."""
    mark = _mark(directory)
    before, holding = _known.get((directory, workspace), ((), None))
    if holding is None or mark != before:
        holding = _sorted_out(directory, workspace)
        if mark and time.time_ns() - mark[-1] > SETTLED_NS:
            if len(_known) >= KNOWN:
                _known.clear()
            _known[directory, workspace] = mark, holding
    return holding


def _sorted_out(directory: str, workspace: str) -> _Holding:
    entries = _entries(directory)
    repositories, guarded, directories = [], [], []
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if is_directory and entry.name.lower() == ".git":
            repositories.append(entry.path)
        elif is_guarded(entry.path.removeprefix(workspace)):
            guarded.append(entry.path)
        elif is_directory and entry.name not in HEAVY:
            directories.append(entry.path)
    is_bare = {entry.name for entry in entries} >= _BARE
    return _Holding(is_bare, tuple(repositories), tuple(guarded), tuple(directories))


def _of_git(directory: str) -> Iterator[tuple[str, Mark]]:
    """What in a repository says which programs git runs: its own, and that of submodules and worktrees."""
    for top in (directory, *_below(f"{directory}/modules"), *_below(f"{directory}/worktrees")):
        for name in ("hooks", "config", "config.worktree", "commondir", "gitdir"):
            path = f"{top}/{name}"
            if os.path.lexists(path):
                yield path, _mark(path)


def _is_repository(path: str) -> bool:
    return path.lower().endswith("/.git") and os.path.isdir(path) and not os.path.islink(path)


def _mark(path: str) -> Mark:
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _above(paths: set[str], workspace: str) -> set[str]:
    """`paths`, and the directories between them and the workspace."""
    found = set()
    for path in paths:
        while path != workspace and is_below(path, workspace):
            found.add(path)
            path = os.path.dirname(path)
    return found


def _line(path: str) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: str) -> str:
    """The beginning of a regular file; empty where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(fd, _TEXT_BYTES)) if stat.S_ISREG(os.fstat(fd).st_mode) else ""
    finally:
        os.close(fd)


def _below(directory: str) -> list[str]:
    return [entry.path for entry in _entries(directory) if entry.is_dir(follow_symlinks=False)]


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
