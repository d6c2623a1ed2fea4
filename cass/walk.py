"""The walk: files below a directory that a person means, as git would list them, without following any link.

Ignore files are read as git reads them (`.gitignore` at every level, `.git/info/exclude`, the global excludes), and
`.ignore` above all of those. Heavy directories are the weakest pattern of all: ``!vendor`` in an ignore file opens one.
https://git-scm.com/docs/gitignore; details of matching after git's wildmatch.c and dir.c.

Only `os`, `re` and `stat` are imported: the search is a process of its own and starts in 10 ms.
"""

import os
import re
import stat
from collections.abc import Collection, Iterator

HEAVY = (
    *("node_modules", "bower_components", "vendor", "target", "__pycache__", "site-packages"),
    *(".venv", ".tox", ".nox", ".cache", "*_cache", ".eggs", "*.egg-info", ".gradle", ".next", ".nuxt", ".terraform"),
    *(".hg", ".svn", ".jj", ".idea"),
)
"""Directories that hold what was installed, built or cached; entered only when named or when an ignore file says so."""
DEPTH_LIMIT = 256
"""Each level holds a descriptor open, and soft limits start at 256 (macOS) and 1,024; no tree of a person is deeper."""
IGNORE_FILE_BYTES = 1 << 20
"""An ignore file beyond this is no ignore file."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory on the way needs to be searchable, not readable.
_ON_THE_WAY = getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | (DIRECTORY & ~os.O_RDONLY)


def descend(path: str, flags: int = DIRECTORY, mode: int = 0o666) -> int:
    """Open an absolute path from the root on, following no link, not even the last; return the descriptor.

    Raises OSError: ENOTDIR or ELOOP where a component is a link.
    """
    *above, name = [part for part in path.split("/") if part] or ["."]
    at = os.open("/", _ON_THE_WAY)
    try:
        for part in above:
            below = os.open(part, _ON_THE_WAY, dir_fd=at)
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


class Walk:
    """One walk below `top`, an absolute resolved path; iterate once, over folders in order of their names."""

    def __init__(self, top: str, closed: Collection[tuple[int, int]] = ()) -> None:
        """`closed`: device and inode of directories that are never entered. Raises OSError if `top` cannot be."""
        self.heavy: set[str] = set()
        """Names of heavy directories that were passed over."""
        self.unreadable = 0
        """Directories that could not be opened."""
        self._top = top
        self._closed = closed
        self._fd = descend(top)

    def __iter__(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield each folder's descriptor, its path below `top` (empty or ending in ``/``), and its files' names.

        The descriptor is open until the next step. Only regular files are named, sorted.
        """
        top = os.fsencode(self._top.rstrip("/")) + b"/"
        stack = [_Folder(self._fd, "", top, *_above(self._top))]
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
        folder.read_ignore_files(files, directories)
        folder.subfolders = sorted((n for n in directories if not self._is_ignored(folder, n, True)), reverse=True)
        return sorted(name for name in files if not self._is_ignored(folder, name, False))

    def _is_ignored(self, folder: "_Folder", name: str, is_directory: bool) -> bool:
        if name == ".git":
            return True
        raw = os.fsencode(name)
        for patterns in folder.patterns:
            verdict = patterns.verdict(folder.raw, raw, is_directory)
            if verdict is not None:
                if verdict and patterns is _HEAVY:
                    self.heavy.add(name)
                return verdict
        return False

    def _enter(self, folder: "_Folder", name: str) -> "_Folder | None":
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
        return _Folder(fd, f"{folder.path}{name}/", raw, folder.ours, folder.gits)


class _Folder:
    """A folder on the way: open, with the patterns that hold in it, strongest first."""

    __slots__ = ("fd", "gits", "ours", "path", "patterns", "raw", "subfolders")

    def __init__(self, fd: int, path: str, raw: bytes, ours: "_Chain", gits: "_Chain") -> None:
        self.fd = fd
        self.path = path
        """Below the top of the walk."""
        self.raw = raw
        """Absolute, ending in a slash."""
        self.ours, self.gits = ours, gits
        """Patterns of `.ignore` files, and those that git knows."""
        self.patterns: _Chain = ours + gits
        self.subfolders: list[str] | None = None
        """What is left to enter, last first; None before the folder is read."""

    def read_ignore_files(self, files: list[str], directories: list[str]) -> None:
        if ".git" in files or ".git" in directories:
            self.gits = _repository(os.fsdecode(self.raw))
        for name in (".gitignore", ".ignore"):
            if name in files and (patterns := Patterns(_read(name, self.fd), len(self.raw))):
                if name == ".ignore":
                    self.ours = (patterns, *self.ours)
                else:
                    self.gits = (patterns, *self.gits)
        self.patterns = self.ours + self.gits


# ---- patterns -------------------------------------------------------------------------------------------------------


class Patterns:
    """The patterns of one ignore file; the last that matches decides. False where the file holds none."""

    def __init__(self, text: bytes, base: int) -> None:
        """`base`: how many bytes of an absolute path stand before what its patterns with a slash speak of."""
        self._base = base
        rules = [rule for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n") if (rule := _rule(line))]
        # Neighbours of the same kind are one regular expression.
        runs: list[tuple[_Kind, list[bytes]]] = []
        for kind_of_rule, regex in rules:
            if runs and runs[-1][0] == kind_of_rule:
                runs[-1][1].append(regex)
            else:
                runs.append((kind_of_rule, [regex]))
        compiled = [(of, re.compile(b"|".join(regexes), re.DOTALL).fullmatch) for of, regexes in reversed(runs)]
        # For a file, and for a directory: (ignored, by name, match), last pattern first.
        self._runs = [
            [(ignored, by_name, match) for (ignored, by_name, dirs_only), match in compiled if is_dir or not dirs_only]
            for is_dir in (False, True)
        ]
        self._names_only = [all(by_name for _, by_name, _ in runs_) for runs_ in self._runs]
        self._known: tuple[dict[bytes, bool | None], dict[bytes, bool | None]] = ({}, {})

    def __bool__(self) -> bool:
        return bool(self._runs[True])

    def verdict(self, folder: bytes, name: bytes, is_directory: bool) -> bool | None:
        """Whether `name` in `folder` (absolute, ending in ``/``) is ignored; None: these patterns do not say."""
        if not self._names_only[is_directory]:
            return self._match((folder + name)[self._base :], name, is_directory)
        known = self._known[is_directory]
        if name not in known:
            known[name] = self._match(name, name, is_directory)
        return known[name]

    def _match(self, path: bytes, name: bytes, is_directory: bool) -> bool | None:
        for ignored, by_name, match in self._runs[is_directory]:
            if match(name if by_name else path):
                return ignored
        return None


_Kind = tuple[bool, bool, bool]  # ignored, matched against the name alone, for directories only
_Chain = tuple[Patterns, ...]


def _rule(line: bytes) -> tuple[_Kind, bytes] | None:
    """One line of an ignore file as its kind and a regular expression; None if it can match nothing."""
    if line.startswith(b"#"):
        return None
    pattern = _without_trailing_spaces(line.removesuffix(b"\r"))
    negated = pattern.startswith(b"!")
    pattern = pattern[negated:]
    dirs_only = pattern.endswith(b"/")
    pattern = pattern[: len(pattern) - dirs_only]
    by_name = b"/" not in pattern
    regex = _regex(pattern.removeprefix(b"/"), by_name)
    return ((not negated, by_name, dirs_only), regex) if pattern and regex is not None else None


def _without_trailing_spaces(line: bytes) -> bytes:
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _regex(pattern: bytes, by_name: bool) -> bytes | None:
    """`pattern` as a regular expression for a whole name or path; None if it is malformed and so matches nothing."""
    special = re.search(rb"[*?\[\\]", pattern)
    # git compares what stands before the first special byte by itself: stars right after it count as leading ones.
    begins = special.start() if special else len(pattern)
    out, i = [], 0
    while i < len(pattern):
        byte = pattern[i : i + 1]
        if byte == b"*":
            end = i + len(pattern[i:]) - len(pattern[i:].lstrip(b"*"))
            rest = pattern[end:]
            if by_name:
                out.append(b".*")
            elif end - i > 1 and (i == begins or pattern[i - 1 : i] == b"/") and rest[:1] == b"/":
                out.append(b"(?:.*/)?")
                end += 1
            elif end - i > 1 and (i == begins or pattern[i - 1 : i] == b"/") and (not rest or rest[:2] == b"\\/"):
                out.append(b".*")
            else:
                out.append(b"[^/]*")
            i = end
        elif byte == b"?":
            out.append(b"[^/]")
            i += 1
        elif byte == b"[":
            members, i = _bracket(pattern, i + 1)
            if not members:
                return None
            out.append(b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]")
        elif byte == b"\\":
            if i + 1 == len(pattern):
                return None
            out.append(re.escape(pattern[i + 1 : i + 2]))
            i += 2
        else:
            out.append(re.escape(byte))
            i += 1
    return b"".join(out)


_CLASSES = {
    b"alnum": rb"[0-9A-Za-z]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[!-~]",
    b"lower": rb"[a-z]",
    b"print": rb"[ -~]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t-\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}


def _bracket(pattern: bytes, i: int) -> tuple[set[int], int]:
    """The bytes that a bracket stands for, and where it ends; none at all for a malformed one. `i` is behind the ``[``."""
    negated = pattern[i : i + 1] in (b"!", b"^")
    i += negated
    members: set[int] = set()
    previous, first = -1, True
    while first or pattern[i : i + 1] != b"]":
        first = False
        if i >= len(pattern):
            return set(), i
        byte = pattern[i]
        found = re.compile(rb"\[:([^\]]*):\]").match(pattern, i)
        if byte == ord("-") and previous >= 0 and pattern[i + 1 : i + 2] not in (b"", b"]"):
            i += 1 + (pattern[i + 1 : i + 2] == b"\\")
            if i >= len(pattern):
                return set(), i
            members.update(range(previous, pattern[i] + 1))
            previous = -1
        elif found:
            if found[1] not in _CLASSES:
                return set(), i
            members.update(match[0] for match in re.findall(_CLASSES[found[1]], bytes(range(256))))
            i = found.end() - 1
            previous = -1
        else:
            i += byte == ord("\\")
            if i >= len(pattern):
                return set(), i
            previous = pattern[i]
            members.add(previous)
        i += 1
    return (set(range(256)) - members if negated else members) - {ord("/")}, i + 1


_HEAVY = Patterns(b"".join(name.encode() + b"/\n" for name in HEAVY), 0)


# ---- ignore files outside the walk ----------------------------------------------------------------------------------


def _above(top: str) -> tuple[_Chain, _Chain]:
    """Patterns that hold at `top` because of what lies above it in the same repository: of `.ignore`, and of git."""
    folder, inside = top, []
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == "/":
            return (), _repository(None)
        folder = os.path.dirname(folder)
        inside.append(folder)
    ours: _Chain = ()
    gits = _repository(folder)
    for at in reversed(inside):
        base = len(os.fsencode(at.rstrip("/"))) + 1
        if patterns := Patterns(_read(os.path.join(at, ".ignore")), base):
            ours = (patterns, *ours)
        if patterns := Patterns(_read(os.path.join(at, ".gitignore")), base):
            gits = (patterns, *gits)
    return ours, gits


def _repository(root: str | None) -> _Chain:
    """What git knows beside `.gitignore` files: the excludes of the repository at `root`, the global ones; heavy last."""
    directory = _git_directory(root) if root else None
    base = len(os.fsencode(root.rstrip("/"))) + 1 if root else 0
    texts = [_read(os.path.join(directory, "info", "exclude"), links=True)] if directory else []
    texts.append(_read(_global_excludes(directory), links=True))
    return (*(patterns for text in texts if (patterns := Patterns(text, base))), _HEAVY)


def _git_directory(root: str) -> str:
    """Where the repository at `root` keeps what its worktrees share; `.git` is a file in a worktree or submodule."""
    git = os.path.join(root, ".git")
    named = _read(git).removeprefix(b"gitdir:").strip()
    if not named:
        return git
    directory = os.path.join(root, os.fsdecode(named))
    common = _read(os.path.join(directory, "commondir")).strip()
    return os.path.join(directory, os.fsdecode(common)) if common else directory


_EXCLUDES_FILE = re.compile(rb'^[ \t]*\[core\][^\[]*?^[ \t]*excludesfile[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.I | re.M)


def _global_excludes(git_directory: str | None) -> str:
    """The file of excludes for every repository: ``core.excludesFile`` of git's configuration, or its default place."""
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    mine = [os.path.expanduser("~/.gitconfig"), os.path.join(settings, "git", "config")]
    mine = [os.environ["GIT_CONFIG_GLOBAL"]] if "GIT_CONFIG_GLOBAL" in os.environ else mine
    own = [os.path.join(git_directory, "config")] if git_directory else []
    for file in (*own, *mine, "/etc/gitconfig"):
        if found := _EXCLUDES_FILE.findall(_read(file, links=True)):
            return os.path.expanduser(os.fsdecode(found[-1]))
    return os.path.join(settings, "git", "ignore")


def _read(name: str, at: int | None = None, links: bool = False) -> bytes:
    """The start of a regular file; empty if there is none that can be read."""
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
        fd = os.open(name, flags, dir_fd=at)
    except OSError:
        return b""
    try:
        return os.read(fd, IGNORE_FILE_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
