"""The tool write, and the replacement of a file's content that edit shares.

The new content is written beside the file and renamed over it, so that the file holds the old bytes or the new ones and
never half. Mode, owner and extended attributes are kept; a file that is new gets what the umask leaves.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import AsyncGenerator

from cass.access import Action
from cass.amounts import many
from cass.errors import ToolError
from cass.snapshots import State
from cass.tools.arguments import Given
from cass.tools.aside import Stop, aside
from cass.tools.diff import unified
from cass.tools.paths import Place, failure, not_a_file, open_file, reach, read_all, shown
from cass.tools.strides import Bytes
from cass.tools.tool import Arguments, Outcome, Tool
from cass.walk import DIRECTORY, descend

OPEN_TO_ALL = 0o666
"""Before the umask."""
BLOCK_BYTES = 8 << 20
"""Written between two looks at whether to stop."""


def action(arguments: Arguments, place: Place) -> Action:
    return Action("write", (reach(_parse(arguments)[0], place, write=True),))


def _parse(arguments: Arguments) -> tuple[str, bytes]:
    given = Given("write", arguments, ("path", "content"))
    path = given.path("path")
    if path.endswith("/"):
        raise given.error('"path" must name a file, not a directory')
    try:
        return path, given.text("content").encode()
    except UnicodeEncodeError as e:
        raise given.error(f'"content" holds half a character at {e.start}') from e


def propose(arguments: Arguments, place: Place) -> str | None:
    path, content = _parse(arguments)
    old = look(path, place)
    return None if old is None else unified(old, content, whole=True)


def look(path: str, place: Place) -> bytes | None:
    """What a file holds that the person is asked about, empty where there is none; None where it cannot be read."""
    try:
        path = reach(path, place, write=True).path
        content = _current(path, place)[1]
    except ToolError:
        place.asked[path] = ""
        return None
    place.asked[path] = digest(content) if content is not None else ""
    return content or b""


def check_asked(path: str, content: Bytes | None, place: Place) -> None:
    """Raise ToolError where a file holds something else than when the person was asked: they saw another change."""
    if path in place.asked and place.asked[path] != ("" if content is None else digest(content)):
        raise ToolError(f"{shown(path, place)} changed after the user was asked; nothing was written, call again")


def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    return aside(lambda stop: _outcome(arguments, place, stop), changes=True)


def _outcome(arguments: Arguments, place: Place, stop: Stop) -> Outcome:
    path, content = _parse(arguments)
    path = reach(path, place, write=True).path
    status, old = _current(path, place)
    check_asked(path, old, place)
    if old is not None and path in place.seen and digest(old) != place.seen[path]:
        raise ToolError(f"{shown(path, place)} changed since it was read in this chat; read it again, then write")
    if old == content:
        text = f"{shown(path, place)} already has exactly this content ({len(content):,} bytes)"
    else:
        note = replace(path, content, place, status, stop)
        what = "new file" if old is None else f"replaced {len(old):,} bytes"
        text = f"Wrote {len(content):,} bytes to {shown(path, place)} ({what}){note}"
    return Outcome(text, seen={path: digest(content)}, diff=unified(old or b"", content))


def _current(path: str, place: Place) -> tuple[os.stat_result | None, bytes | None]:
    """What the file is and holds; None if there is none."""
    if not os.path.lexists(path):
        return None, None
    fd = open_file(path, place)
    try:
        status = os.fstat(fd)
        return status, read_all(fd, status.st_size)
    finally:
        os.close(fd)


def digest(content: Bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---- replacing ------------------------------------------------------------------------------------------------------


def replace(
    path: str,
    content: Bytes,
    place: Place,
    expected: os.stat_result | None,
    stop: Stop | None = None,
    mode: int | None = None,
) -> str:
    """Give the file at a resolved `path` this content, making it and its directories if need be.

    `expected`: what the file was when its content was looked at, None for no file; what has become another meanwhile is
    left alone. `mode` are its permission bits, else they stay. Returns what is to be said besides, or nothing. Raises
    ToolError and Stopped; then nothing was changed.
    """
    made: list[str] = []
    try:
        folder = _open_directory(os.path.dirname(path), made)
        try:
            return _replace(path, folder, content, place, expected, stop or Stop(), mode)
        finally:
            os.close(folder)
    except BaseException as e:
        for directory in reversed(made):
            _remove_directory(directory)
        if isinstance(e, OSError):
            raise failure("write", path, place, e) from e
        raise


def _open_directory(path: str, made: list[str]) -> int:
    """Open the directory `path`; what has to be made for it is added to `made`."""
    try:
        return descend(path, DIRECTORY)
    except FileNotFoundError:
        parent = _open_directory(os.path.dirname(path), made)
        try:
            name = os.path.basename(path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                made.append(path)
            return os.open(name, DIRECTORY, dir_fd=parent)
        finally:
            os.close(parent)


def _remove_directory(path: str) -> None:
    with contextlib.suppress(OSError):  # somebody else has put something there
        parent = descend(os.path.dirname(path), DIRECTORY)
        try:
            os.rmdir(os.path.basename(path), dir_fd=parent)
        finally:
            os.close(parent)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check(old: os.stat_result | None, expected: os.stat_result | None, path: str, place: Place) -> None:
    if old and not stat.S_ISREG(old.st_mode):
        raise ToolError(f"{shown(path, place)} is {not_a_file(old.st_mode)}")
    if old and not os.access(path, os.W_OK):
        # A rename would do it all the same, against what its owner said.
        raise ToolError(f"cannot write {shown(path, place)}: it is write-protected")
    if (old and _version(old)) != (expected and _version(expected)):
        raise ToolError(f"{shown(path, place)} changed meanwhile; read it again")


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _replace(
    path: str,
    folder: int,
    content: Bytes,
    place: Place,
    expected: os.stat_result | None,
    stop: Stop,
    mode: int | None,
) -> str:
    name = os.path.basename(path)
    old = _status(name, folder)
    _check(old, expected, path, place)
    temporary = f".cass-{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # Never wider than the file it stands for, at no moment.
    fd = os.open(temporary, flags, 0o600 if old else OPEN_TO_ALL, dir_fd=folder)
    try:
        try:
            _write_all(fd, content, stop)
            note = _keep(fd, name, folder, old) if old else ""
            if mode is not None:
                os.fchmod(fd, mode)
            note += place.keep(path, folder, State(digest(content), stat.S_IMODE(os.fstat(fd).st_mode), len(content)))
            os.fsync(fd)  # else a crash of the machine may leave an empty file under the name
        finally:
            os.close(fd)
        _check(_status(name, folder), expected, path, place)  # all that took a while
        stop.check()
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return note


def _write_all(fd: int, content: Bytes, stop: Stop) -> None:
    view = memoryview(content)
    while view:
        stop.check()
        view = view[os.write(fd, view[:BLOCK_BYTES]) :]


def _keep(fd: int, name: str, folder: int, old: os.stat_result) -> str:
    """Give the new file at `fd` the owner, attributes and mode of the old one; return what cannot be kept."""
    note = ""
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            note = "; its owner could not be kept"
    _copy_attributes(fd, name, folder)
    # As write(2) does: what runs with somebody's rights is not to be what a model wrote.
    os.fchmod(fd, stat.S_IMODE(old.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
    if old.st_nlink > 1:
        # In place, content would also appear under names that nobody decided about.
        note += f"; the old content stays under {many(old.st_nlink - 1, 'other name')} (hard links)"
    return note


def _copy_attributes(fd: int, name: str, folder: int) -> None:
    """Copy extended attributes (access lists are some), where the system has them; what it refuses stays behind."""
    if not hasattr(os, "listxattr"):
        return
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        for attribute in set(os.listxattr(source)) - {"security.capability"}:  # see the mode above
            with contextlib.suppress(OSError):
                os.setxattr(fd, attribute, os.getxattr(source, attribute))
    except OSError:
        return  # a file system without them
    finally:
        os.close(source)


TOOL = Tool(
    "write",
    "Create or overwrite a file with exactly this content.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
    action,
    run,
    propose=propose,
)
