"""Ignore files: what git, and `.ignore` files, leave out of a directory.

Read as git reads them: `.gitignore` at every level, `.git/info/exclude`, the global excludes; `.ignore` is above all of
those. The heavy directories are the weakest pattern of all: ``!vendor`` in an ignore file opens one.
https://git-scm.com/docs/gitignore; the details of matching after git's wildmatch.c and dir.c. Patterns and names are
bytes, as they are to git.
"""

import os
import re
import stat

HEAVY = (
    *("node_modules", "bower_components", "vendor", "target", "__pycache__", "site-packages"),
    *(".venv", ".tox", ".nox", ".eggs", "*.egg-info", ".gradle", ".next", ".nuxt", ".terraform"),
    *(".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".hg", ".svn", ".jj"),
)
"""Directories that hold what was installed, built or cached; entered only when named or when an ignore file says so."""
IGNORE_FILE_BYTES = 1 << 20
"""An ignore file beyond this is no ignore file."""


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
        self._names_only = [all(by_name for _, by_name, _ in kind_runs) for kind_runs in self._runs]
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
Chain = tuple[Patterns, ...]
"""Patterns of several files, strongest first."""


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


def above(top: str) -> tuple[Chain, Chain]:
    """Patterns that hold at `top` because of what lies above it in the same repository: of `.ignore`, and of git."""
    folder, inside = top, []
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == "/":
            return (), repository(None)
        folder = os.path.dirname(folder)
        inside.append(folder)
    ours: Chain = ()
    gits = repository(folder)
    for at in reversed(inside):
        base = len(os.fsencode(at.rstrip("/"))) + 1
        if patterns := Patterns(read(os.path.join(at, ".ignore")), base):
            ours = (patterns, *ours)
        if patterns := Patterns(read(os.path.join(at, ".gitignore")), base):
            gits = (patterns, *gits)
    return ours, gits


def repository(root: str | None) -> Chain:
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


_EXCLUDES_FILE = re.compile(
    rb'^[ \t]*\[core\][^\[]*?^[ \t]*excludesfile[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.I | re.M
)


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
