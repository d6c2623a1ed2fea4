"""Blobs: contents kept by their hash, each once, for whoever needs them to be as they were.

What changed files held (`snapshots`), and the images of messages (`attachments`).
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator

from cass.home import Home, create_private, make_private


@contextlib.contextmanager
def _locked(home: Home, how: int) -> Iterator[None]:
    make_private(home.edits)
    fd = os.open(home.edits, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def shared(home: Home) -> Iterator[None]:
    """Hold all blobs, and what says who needs them, while some are added."""
    with _locked(home, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold them so that nobody adds any meanwhile."""
    with _locked(home, fcntl.LOCK_EX):
        yield


def store(home: Home, sha256: str, content: bytes) -> None:
    """Keep a content for good: it is on the disk, whole and under its name, when this returns. Raises OSError."""
    path = home.blobs / sha256
    with contextlib.suppress(FileNotFoundError):
        os.utime(path)  # as new: whoever wants it has not said so yet, and it must not be taken for waste
        return
    make_private(home.blobs)
    new = home.blobs / f".{os.urandom(6).hex()}"
    try:
        fd = create_private(new, os.O_EXCL)
        try:
            write_all(fd, content)
            os.fsync(fd)
        finally:
            os.close(fd)
        new.rename(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    directory = os.open(home.blobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def content(home: Home, sha256: str) -> bytes | None:
    """The content that was kept; None where it was not, or is not what it was any more."""
    try:
        found = read(home.blobs / sha256)
    except OSError:
        return None
    return found if hashlib.sha256(found).hexdigest() == sha256 else None


def read(path: str | os.PathLike[str], limit: int = -1) -> bytes:
    """The bytes of a regular file, `limit` of them at most. Raises OSError, for anything else too: nothing blocks."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return file.read(limit)
