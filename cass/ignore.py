"""Ignore files: what git, and `.ignore` files, leave out of a directory.

Read as git reads them: `.gitignore` at every level, `.git/info/exclude`, the global excludes; `.ignore` is above all of
those. The heavy directories are the weakest pattern of all: ``!vendor`` in an ignore file opens one.
https://git-scm.com/docs/gitignore; the details of matching after git's wildmatch.c and dir.c. Patterns and names are
bytes, as they are to git.
"""

import os
import re
import stat
from collections.abc import Callable
from functools import lru_cache

from cass.pattern import pattern

HEAVY = (
    *("node_modules", "bower_components", "vendor", "target", "__pycache__", "site-packages"),
    *(".venv", ".tox", ".nox", ".eggs", "*.egg-info", ".gradle", ".next", ".nuxt", ".terraform"),
    *(".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".hg", ".svn", ".jj"),
)
"""Directories that hold what was installed, built or cached; entered only when named or when an ignore file says so."""
IGNORE_FILE_BYTES = 1 << 20
"""An ignore file beyond this is no ignore file."""


class Patterns:
    """The patterns of one ignore file; the last that matches decides. False where the file holds none.

    Most names match nothing, and to find that must cost little: the expressions are compiled, and the path is looked
    at, only for a name that some pattern may mean.
    """

    def __init__(self, text: bytes, base: int) -> None:
        """`base`: how many bytes of an absolute path stand before what its patterns with a slash speak of."""
        self._base = base
        lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        self._rules = [rule for line in lines if (rule := _rule(line))]
        self._compiled: tuple[list[_Run], list[_Run]] | None = None
        hints = {hint for _, _, hint in self._rules}
        self._names = frozenset(text for kind, text in hints if kind == _NAME)
        self._ends = tuple(text for kind, text in hints if kind == _END)
        self._begins = tuple(text for kind, text in hints if kind == _BEGIN)
        others = [text for kind, text in hints if kind == _REGEX]
        self._others = re.compile(b"|".join(others), re.DOTALL).fullmatch if others else None

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def reaches_any(self) -> bool:
        return bool(self._begins)

    def reaches(self, folder: bytes) -> bool:
        """Whether there are patterns that may mean anything in `folder`, whatever its name."""
        below = folder[self._base :]
        return any(below.startswith(begin) or begin.startswith(below) for begin in self._begins)

    def may_mean(self, name: bytes) -> bool:
        """Whether any other pattern may mean something of that name."""
        return name in self._names or name.endswith(self._ends) or bool(self._others and self._others(name))

    def verdict(self, folder: bytes, name: bytes, is_directory: bool) -> bool | None:
        """Whether `name` in `folder` (absolute, ending in ``/``) is ignored; None: these patterns do not say."""
        path = (folder + name)[self._base :]
        self._compiled = self._compiled or self._compile()
        for ignored, by_name, match in self._compiled[is_directory]:
            if match(name if by_name else path):
                return ignored
        return None

    def means_below(self, folder: bytes) -> bool:
        """Whether these patterns mean `folder` (absolute) or a directory above it, and so all that is in it."""
        above = folder[: self._base]
        for part in folder[self._base :].split(b"/"):
            if part and self.verdict(above, part, True):
                return True
            above += part + b"/"
        return False

    def _compile(self) -> "tuple[list[_Run], list[_Run]]":
        """The runs for files, and for directories, the last pattern first."""
        # Neighbours of the same kind are one regular expression.
        runs: list[tuple[_Kind, list[bytes]]] = []
        for kind, regex, _ in self._rules:
            if runs and runs[-1][0] == kind:
                runs[-1][1].append(regex)
            else:
                runs.append((kind, [regex]))
        compiled = [(of, re.compile(b"|".join(regexes), re.DOTALL)) for of, regexes in reversed(runs)]
        return [_run(of, regex) for of, regex in compiled if not of[2]], [_run(of, regex) for of, regex in compiled]


def _run(kind: "_Kind", regex: re.Pattern[bytes]) -> "_Run":
    ignored, by_name, _ = kind
    return ignored, by_name, regex.fullmatch


class Chain:
    """The patterns of several files, strongest first, with what they have said of names so far."""

    def __init__(self, patterns: tuple[Patterns, ...]) -> None:
        self.patterns = patterns
        self._reaching = tuple(one for one in patterns if one.reaches_any)
        self.known: tuple[dict[str, int], dict[str, int]] = ({}, {})
        """Of files and of directories: verdicts that hold for a name in any folder that no pattern `reaches`."""

    def reaches(self, folder: bytes) -> bool:
        return bool(self._reaching) and any(patterns.reaches(folder) for patterns in self._reaching)

    def verdict(self, folder: bytes, name: str, is_directory: bool, reached: bool) -> int:
        """`MEANT`, `IGNORED` or `HEAVY_ONE`. `reached`: whether some pattern reaches the folder."""
        raw = os.fsencode(name)
        found = IGNORED if name == ".git" else MEANT
        depends = reached
        for patterns in self.patterns if name != ".git" else ():
            if not (reached or patterns.may_mean(raw)):
                continue
            depends = depends or patterns is not HEAVY_PATTERNS
            if (said := patterns.verdict(folder, raw, is_directory)) is not None:
                if said:
                    found = HEAVY_ONE if patterns is HEAVY_PATTERNS else IGNORED
                break
        if not depends:
            self.known[is_directory][name] = found
        return found


MEANT, IGNORED, HEAVY_ONE = range(3)

Group = tuple[Patterns, ...]
"""Patterns of several files of one sort, strongest first."""
_Kind = tuple[bool, bool, bool]  # ignored, matched against the name alone, for directories only
_Run = tuple[bool, bool, Callable[[bytes], object]]  # ignored, matched against the name alone, match
_NAME, _END, _REGEX, _BEGIN = range(4)
_Hint = tuple[int, bytes]  # what a name must be, end in or match; or how the path below the ignore file must begin
_WIDE = pattern(rb"[\[\\]|[^/]\*\*")
_SPECIAL = pattern(rb"[*?\[\\]")


@lru_cache(maxsize=4096)  # the same lines stand in the ignore files of many projects
def _rule(line: bytes) -> tuple[_Kind, bytes, _Hint] | None:
    """One line of an ignore file: its kind, a regular expression and a hint; None if it can match nothing."""
    if line.startswith(b"#"):
        return None
    pattern = _without_trailing_spaces(line.removesuffix(b"\r"))
    negated = pattern.startswith(b"!")
    pattern = pattern[negated:]
    dirs_only = pattern.endswith(b"/")
    pattern = pattern[: len(pattern) - dirs_only]
    by_name = b"/" not in pattern
    regex = _regex(pattern.removeprefix(b"/"), by_name)
    if not pattern or regex is None:
        return None
    return (not negated, by_name, dirs_only), regex, _hint(pattern.removeprefix(b"/"), by_name, regex)


def _hint(pattern: bytes, by_name: bool, regex: bytes) -> _Hint:
    """What must hold at least for whatever matches `pattern`."""
    last = pattern if by_name else pattern.rpartition(b"/")[2]
    special = _SPECIAL.search(last)
    # A slash within a bracket is no border, stars may swallow one, and a bare star tells nothing of the name.
    if not by_name and (_WIDE.search(pattern) or b"**" in last or last == b"*"):
        found = _SPECIAL.search(pattern)
        return _BEGIN, pattern[: found.start()] if found else pattern
    if not special:
        return _NAME, last
    if special.start() == 0 and last[:1] == b"*" and len(last) > 1 and not _SPECIAL.search(last, 1):
        return _END, last[1:]
    other = regex if by_name else _regex(last, True)
    return _REGEX, b"" if other is None else other


def _without_trailing_spaces(line: bytes) -> bytes:
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _regex(pattern: bytes, by_name: bool) -> bytes | None:
    """`pattern` as a regular expression for a whole name or path; None if it is malformed and so matches nothing."""
    special = _SPECIAL.search(pattern)
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
    """The bytes that the bracket opened before `i` stands for, and where it ends; no bytes for a malformed one."""
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


HEAVY_PATTERNS = Patterns(b"".join(name.encode() + b"/\n" for name in HEAVY), 0)


# ---- ignore files outside the walk ----------------------------------------------------------------------------------


def above(top: str) -> tuple[Group, Group]:
    """Patterns that hold at `top` because of what lies above it in the same repository: of `.ignore`, and of git."""
    folder, inside = top, []
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == "/":
            return (), repository(None)
        folder = os.path.dirname(folder)
        inside.append(folder)
    ours: Group = ()
    gits = repository(folder)
    for at in reversed(inside):
        base = len(os.fsencode(at.rstrip("/"))) + 1
        if patterns := Patterns(read(os.path.join(at, ".ignore")), base):
            ours = (patterns, *ours)
        if patterns := Patterns(read(os.path.join(at, ".gitignore")), base):
            gits = (patterns, *gits)
    return ours, gits


def repository(root: str | None) -> Group:
    """What git knows beside `.gitignore` files: excludes of the repository at `root`, global ones; the heavy last."""
    directory = _git_directory(root) if root else None
    base = len(os.fsencode(root.rstrip("/"))) + 1 if root else 0
    texts = [_info_exclude(directory)] if directory else []
    texts.append(read(_global_excludes(), links=True))
    return (*(patterns for text in texts if (patterns := Patterns(text, base))), HEAVY_PATTERNS)


def _git_directory(root: str) -> str:
    """Where the repository at `root` keeps what its worktrees share; `.git` is a file in a worktree or submodule."""
    git = os.path.join(root, ".git")
    named = read(git).removeprefix(b"gitdir:").strip()
    if not named:
        return git
    directory = os.path.join(root, os.fsdecode(named))
    common = read(os.path.join(directory, "commondir")).strip()
    return os.path.join(directory, os.fsdecode(common)) if common else directory


_EXCLUDES_FILE = pattern(rb'^[ \t]*\[core\][^\[]*?^[ \t]*excludesfile[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.I | re.M)


def _info_exclude(git_directory: str) -> bytes:
    # No link is followed: what a file elsewhere holds could be told from what is left out because of it.
    try:
        info = os.open(os.path.join(git_directory, "info"), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return read("exclude", info)
    finally:
        os.close(info)


def _global_excludes() -> str:
    """The file of excludes for every repository: ``core.excludesFile`` of git's configuration, or its default place.

    Of the configuration of the person and the system: a repository may come from anybody, and could name any file.
    """
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    mine = [os.path.expanduser("~/.gitconfig"), os.path.join(settings, "git", "config")]
    mine = [os.environ["GIT_CONFIG_GLOBAL"]] if "GIT_CONFIG_GLOBAL" in os.environ else mine
    for file in (*mine, "/etc/gitconfig"):
        if found := _EXCLUDES_FILE.findall(read(file, links=True)):
            return os.path.expanduser(os.fsdecode(found[-1]))
    return os.path.join(settings, "git", "ignore")


def read(name: str, at: int | None = None, links: bool = False) -> bytes:
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
