"""Paths: where a call works, what each path of it reaches, and opening that cannot be led elsewhere.

A path is resolved once, by `reach`, which the decision sees; the same `Place` keeps that answer for the run, and
`cass.walk.descend` opens it component by component without following links. Whoever swaps a directory for a link in
between gets an error, never another file.
"""

import difflib
import errno
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cass.access import Reach
from cass.errors import ToolError
from cass.names import quoted, unquoted
from cass.walk import descend, kind

NAMES_SEARCHED = 5_000
"""Names of a directory that are compared to a missing one: more would be felt."""

_GUARDED_DIRECTORIES = frozenset((".git", ".cass", ".vscode", ".idea", ".zed", ".devcontainer", ".husky"))
_GUARDED_FILES = frozenset((".mcp.json", ".envrc", ".gitmodules"))
# Below these are environments and memory, those of the worker with its keys among them.
_PROCESS = re.compile(r"/proc/\d+(/|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one call works."""

    root: Path
    """The workspace, absolute and resolved."""
    home: Path
    """The home of cass: closed to tools, but for reading its ``docs``."""
    out: Path
    """Directory for output too long for a result; made when it is needed."""
    call_id: str
    chat_id: str
    seen: dict[str, str]
    """What the model knows of files: absolute path to SHA-256."""
    environ: dict[str, str]
    """For children; without API keys."""
    decided: dict[tuple[str, bool], Reach] = field(default_factory=dict)
    """What `reach` answered in this call."""


def reach(text: str, place: Place, write: bool = False) -> Reach:
    """What the path `text` touches: relative to the workspace, ``~`` expanded, every link and ``..`` resolved.

    The answer is the same for the whole call, whatever happens on the disk meanwhile. Raises ToolError for a path that
    changes while it is resolved.
    """
    key = (text, write)
    if key not in place.decided:
        place.decided[key] = _reach(text, place, write)
    return place.decided[key]


def _reach(text: str, place: Place, write: bool) -> Reach:
    try:
        path = os.path.realpath(os.path.join(place.root, os.path.expanduser(unquoted(text))))
    except OSError as e:  # a link that was there for `lstat` is gone for `readlink`
        raise ToolError(f"{text} changed while it was looked at; try again") from e
    home = os.path.realpath(place.home)
    own = _is_below(path, home) or _has_ancestor(path, home)
    readable = not write and _is_below(path, os.path.join(home, "docs"))
    return Reach(
        path=path,
        write=write,
        inside=_is_below(path, str(place.root)),
        guarded=_is_guarded(path),
        private=(own and not readable) or _PROCESS.match(path) is not None,
    )


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _has_ancestor(path: str, top: str) -> bool:
    """Whether `top` is `path` or above it under any other name: another case of letters, a bind mount."""
    try:
        wanted = os.stat(top)
    except OSError:
        return False
    while True:
        try:
            if os.path.samestat(os.stat(path), wanted):
                return True
        except OSError:
            pass  # not there (yet), or not to be looked at: the directory above it is compared
        if path == "/":
            return False
        path = os.path.dirname(path)


def _is_guarded(path: str) -> bool:
    # Letters are compared without case: on some disks `.GIT` is `.git`.
    parts = path.lower().split("/")
    return parts[-1] in _GUARDED_FILES or not _GUARDED_DIRECTORIES.isdisjoint(parts)


def named(path: str, place: Place) -> str:
    """An absolute path as it is called in the workspace: relative if it is inside."""
    root = str(place.root)
    if path == root:
        return "."
    return path.removeprefix(root.rstrip("/") + "/") if _is_below(path, root) else path


def shown(path: str, place: Place) -> str:
    """The same as results and errors write it."""
    return quoted(named(path, place))


# ---- opening --------------------------------------------------------------------------------------------------------


def open_file(path: str, place: Place) -> int:
    """Open a regular file for reading; return its descriptor. `path` is resolved. Raises ToolError, never blocks."""
    try:
        fd = descend(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as e:
        raise failure("read", path, place, e) from e
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    what = shown(path, place)
    raise ToolError(f"{what} is a directory; use ls" if stat.S_ISDIR(mode) else f"{what} is {not_a_file(mode)}")


def not_a_file(mode: int) -> str:
    return f"not a regular file ({kind(mode)})"


def read_all(fd: int, size: int) -> bytes:
    """All bytes of a regular file, about `size` of them."""
    with open(fd, "rb", buffering=0, closefd=False) as file:
        parts = [file.read(size + 1) or b""]
        while parts[-1]:
            parts.append(file.read(1 << 20) or b"")
    return b"".join(parts)


def failure(verb: str, path: str, place: Place, error: OSError) -> ToolError:
    """Why `verb` could not be done to `path`, and what to do."""
    what = shown(path, place)
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{what} does not exist{_instead(path, place)}")
        case errno.ENOTDIR | errno.ELOOP:
            return ToolError(f"cannot {verb} {what}: a part of the path is a file or became a link; look with ls")
        case errno.ENXIO | errno.EOPNOTSUPP:
            return ToolError(f"{what} is not a regular file (socket)")
        case errno.ENOSPC | errno.EDQUOT:
            why = "the disk is full" if error.errno == errno.ENOSPC else "the disk quota is used up"
            return ToolError(f"cannot {verb} {what}: {why}; nothing was changed")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"cannot {verb} {what}: permission denied")
        case errno.EROFS:
            return ToolError(f"cannot {verb} {what}: the file system is read-only")
    return ToolError(f"cannot {verb} {what}: {os.strerror(error.errno) if error.errno else error}")


def _instead(path: str, place: Place) -> str:
    """Names close to the missing part of `path`, as the end of a sentence."""
    above, name = os.path.split(path)
    while above != "/" and not os.path.isdir(above):
        above, name = os.path.split(above)
    try:
        with os.scandir(above) as entries:
            names = [entry.name for _, entry in zip(range(NAMES_SEARCHED), entries, strict=False)]
    except OSError:
        return ""
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], 3, 0.6)
    found = [n for n in names if n.lower() in close]
    if found:
        return "; there is " + ", ".join(shown(os.path.join(above, n), place) for n in sorted(found)[:3])
    return f"; {shown(above, place)} has no {quoted(name)}" if above != os.path.dirname(path) else ""
