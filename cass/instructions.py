"""Instructions: what the person and the project tell the model, in files."""

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from cass.home import Home

LIMIT = 32 * 1024
"""Bytes of all files together."""
MOST = 1 << 20
"""Bytes that are read of one file."""


class Instructions(NamedTuple):
    """What the person and the project tell the model."""

    global_text: str
    """``global.md``, stripped."""
    text: str
    """The project's files, each under its path, outermost first."""
    files: list[dict[str, str]]
    """``{"path", "sha256"}`` of each project file, of the first `MOST` bytes."""
    notices: tuple[str, ...]


def instructions(home: Home, cwd: Path) -> Instructions:
    """``global.md``, then ``AGENTS.md`` (``CLAUDE.md`` where there is none) from the git root down to `cwd`.

    32 KiB in all: where they do not fit, the files nearest to `cwd` are kept.
    """
    notices: list[str] = []
    room = LIMIT
    global_text, room = _cut(_bytes(home.instructions, notices), room, home.instructions, notices)
    parts: list[str] = []
    files: list[dict[str, str]] = []
    root = _git_root(cwd)
    for path in reversed(_project_files(root, cwd)):
        if not path.resolve().is_relative_to(root.resolve()):
            notices.append(f"{path}: leads out of the project; left out")
            continue
        whole = _bytes(path, notices)
        text, room = _cut(whole, room, path, notices)
        files.insert(0, {"path": str(path), "sha256": sha256(whole).hexdigest()})
        if text:
            parts.insert(0, f"{path}:\n\n{text}")
    return Instructions(global_text, "\n\n".join(parts), files, tuple(notices))


def _git_root(cwd: Path) -> Path:
    return next((directory for directory in (cwd, *cwd.parents) if (directory / ".git").exists()), cwd)


def _project_files(root: Path, cwd: Path) -> list[Path]:
    """At most one of each directory, outermost first."""
    inside = [directory for directory in (cwd, *cwd.parents) if directory.is_relative_to(root)]
    found = [[directory / name for name in ("AGENTS.md", "CLAUDE.md")] for directory in reversed(inside)]
    return [next(path for path in paths if path.is_file()) for paths in found if any(p.is_file() for p in paths)]


def _bytes(path: Path, notices: list[str]) -> bytes:
    """The bytes of a regular file, of a huge one the first; empty where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as e:
        notices.append(f"{path}: {e.strerror}; left out")
        return b""
    try:
        return os.read(fd, MOST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def _cut(whole: bytes, room: int, path: Path, notices: list[str]) -> tuple[str, int]:
    """The text that fits into `room` bytes, and the room that is left."""
    if len(whole) > room:
        notices.append(f"{path}: only {room} of its {len(whole)} bytes fit into the {LIMIT} for instructions")
    kept = whole[:room]
    return kept.decode("utf-8-sig", "ignore" if len(whole) > room else "replace").strip(), room - len(kept)
