"""The walk: the files below a directory that a person means, in order, without following any link.

Little is imported, because the search is a process of its own and starts in 10 ms.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator

from cass.ignore import HEAVY_ONE, MEANT, Chain, Group, Patterns, above, read, repository

DEPTH_LIMIT = 256
"""Each level holds a descriptor open, and soft limits start at 256 (macOS) and 1,024; no tree of a person is deeper."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory on the way needs to be searchable, not readable.
PASSED = getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | (DIRECTORY & ~os.O_RDONLY)


def descend(path: str, flags: int = DIRECTORY, mode: int = 0o666) -> int:
    """Open an absolute path from the root on, following no link, not even the last; return the descriptor.

    Raises OSError: ENOTDIR or ELOOP where a component is a link. The `openat2` of Linux does the same in one step and
    saves 30 us a file; calling it costs the start of a process more (ctypes, 8 ms), and it is missing in older kernels.
    """
    *above, name = [part for part in path.split("/") if part] or ["."]
    at = os.open("/", PASSED)
    try:
        for part in above:
            below = os.open(part, PASSED, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=at)
    finally:
        os.close(at)


def kind(mode: int) -> str:
    """What `st_mode` says a thing is, in one word or two."""
    kinds = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "directory",
        stat.S_IFLNK: "link",
        stat.S_IFIFO: "fifo",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "character device",
        stat.S_IFBLK: "block device",
    }
    return kinds.get(stat.S_IFMT(mode), "unknown kind")


def identity(path: str) -> tuple[int, int] | None:
    """Device and inode of what `path` leads to, by which it is known under any name; None if nothing is there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Walk:
    """One walk below `top`, an absolute resolved path; iterate once, over folders in order of their names."""

    def __init__(
        self,
        top: str,
        closed: Collection[tuple[int, int]] = (),
        denied: Callable[[str], object] | None = None,
        excluded: Group = (),
    ) -> None:
        """Raises OSError if `top` cannot be entered.

        `closed`: identities of directories that are never entered; with them, those of processes. `denied`: whether an
        absolute path, of a file or of a directory, is passed over. `excluded`: patterns above those of all ignore
        files.
        """
        self.heavy: set[str] = set()
        """Names of heavy directories that were passed over."""
        self.unreadable = 0
        """Directories that could not be opened."""
        self._top = top
        self.denied = 0
        """Files and directories that were passed over because they are denied."""
        self._closed = closed
        self._is_denied = denied
        self._excluded = excluded
        self._fd = descend(top)

    def __iter__(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield each folder's descriptor, its path below `top` (empty or ending in ``/``), and its files' names.

        The descriptor is open until the next step. Only regular files are named, sorted.
        """
        top = os.fsencode(self._top.rstrip("/")) + b"/"
        ours, gits = above(self._top)
        stack = [_Folder(self._fd, "", top, ours, gits, Chain(self._excluded + ours + gits))]
        try:
            while stack:
                folder = stack[-1]
                if folder.subfolders is None:
                    yield folder.fd, folder.path, self._scan(folder)
                elif folder.subfolders:
                    if (below := self._enter(folder, folder.subfolders.pop())) is not None:
                        if len(stack) < DEPTH_LIMIT:
                            stack.append(below)
                        else:
                            self.unreadable += 1
                            os.close(below.fd)
                else:
                    os.close(stack.pop().fd)
        finally:
            for folder in stack:
                os.close(folder.fd)

    def _scan(self, folder: "_Folder") -> list[str]:
        """The files of `folder`; what it holds to be entered later is kept in it."""
        files, directories = [], []
        try:
            with os.scandir(folder.fd) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        directories.append(entry.name)
        except OSError:
            self.unreadable += 1
        folder.read_ignore_files(files, directories, self._excluded)
        reached = folder.chain.reaches(folder.raw)
        files = self._meant(folder, files, False, reached)
        folder.subfolders = self._meant(folder, directories, True, reached)[::-1]
        return files

    def _meant(self, folder: "_Folder", names: list[str], are_directories: bool, reached: bool) -> list[str]:
        """Those of `names` that are neither ignored nor denied, sorted."""
        chain, raw = folder.chain, folder.raw
        known = chain.known[are_directories]
        meant = []
        for name in names:
            verdict = None if reached else known.get(name)
            if verdict is None:
                verdict = chain.verdict(raw, name, are_directories, reached)
            if verdict == MEANT:
                meant.append(name)
            elif verdict == HEAVY_ONE:
                self.heavy.add(name)
        meant.sort()
        if self._is_denied is None:
            return meant
        above = os.fsdecode(folder.raw)
        allowed = [name for name in meant if not self._is_denied(above + name)]
        self.denied += len(meant) - len(allowed)
        return allowed

    def _enter(self, folder: "_Folder", name: str) -> "_Folder | None":
        if self._closed and folder.raw == b"/proc/" and name.isdecimal():
            return None  # a process: what it was given is nobody's to search
        try:
            fd = os.open(name, DIRECTORY, dir_fd=folder.fd)
        except OSError:
            self.unreadable += 1
            return None
        if self._closed:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) in self._closed:
                os.close(fd)
                return None
        raw = folder.raw + os.fsencode(name) + b"/"
        return _Folder(fd, f"{folder.path}{name}/", raw, folder.ours, folder.gits, folder.chain)


class _Folder:
    """A folder on the way: open, with the patterns that hold in it, strongest first."""

    __slots__ = ("chain", "fd", "gits", "ours", "path", "raw", "subfolders")

    def __init__(self, fd: int, path: str, raw: bytes, ours: Group, gits: Group, chain: Chain) -> None:
        self.fd = fd
        self.path = path
        """Below the top of the walk."""
        self.raw = raw
        """Absolute, ending in a slash."""
        self.ours, self.gits = ours, gits
        """Patterns of `.ignore` files, and those that git knows."""
        self.chain = chain
        """Both."""
        self.subfolders: list[str] | None = None
        """What is left to enter, last first; None before the folder is read."""

    def read_ignore_files(self, files: list[str], directories: list[str], excluded: Group) -> None:
        ours, gits = self.ours, self.gits
        if ".git" in files or ".git" in directories:
            self.gits = repository(os.fsdecode(self.raw))
        for name in (".gitignore", ".ignore"):
            if name in files and (patterns := Patterns(read(name, self.fd), len(self.raw))):
                if name == ".ignore":
                    self.ours = (patterns, *self.ours)
                else:
                    self.gits = (patterns, *self.gits)
        if self.ours is not ours or self.gits is not gits:
            self.chain = Chain(excluded + self.ours + self.gits)
