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
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cass.access import Action, Decision, Deny, Mode, Reach
from cass.errors import ToolError
from cass.home import Home
from cass.names import quoted, unquoted
from cass.pattern import pattern
from cass.snapshots import Keep, keep_nothing
from cass.walk import DEPTH_LIMIT, descend, identity, kind

NAMES_SEARCHED = 5_000
"""Names of a directory that are compared to a missing one: more would be felt."""

PATH_BYTES = 4_095
"""PATH_MAX of Linux without its NUL; to resolve more takes time that grows with its square."""
LINKS = 40
"""On the way of a path, as for Linux."""

GUARDED = (
    # git, its hooks, and what runs for a repository elsewhere
    *(".git", ".gitmodules", ".husky", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".overcommit.yml"),
    *(".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", ".forgejo", ".gitea", ".woodpecker"),
    *(".woodpecker.yml", ".drone.yml", ".travis.yml", ".buildkite", "azure-pipelines.yml", "Jenkinsfile"),
    # tasks, launch configurations and settings of editors
    *(".vscode", "*.code-workspace", ".idea", ".run", ".fleet", ".zed", ".theia", ".devcontainer"),
    *("*.sublime-project", ".dir-locals.el", ".dir-locals-2.el"),
    *(".helix", ".lazy.lua", ".nvim", ".vim", ".kateproject", ".kakrc"),
    *(".exrc", ".vimrc", ".lvimrc", ".nvimrc", ".nvim.lua"),
    # shells and debuggers, which read these where they start
    *("mise.toml", ".mise.toml", ".mise", ".autoenv", ".autoenv.zsh", ".inputrc", ".tmux.conf"),
    *(".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".gdbinit", ".lldbinit"),
    # agents like this one
    *(
        ".cass",
        ".agents",
        ".claude",
        ".codex",
        ".cursor",
        ".gemini",
        ".mcp.json",
        ".windsurf",
        ".continue",
        ".opencode",
    ),
    *(
        ".roo",
        "opencode.json",
        "opencode.jsonc",
        ".crush.json",
        "crush.json",
        ".kiro",
        ".qwen",
        ".aider.conf.yml",
        ".amazonq",
    ),
)
"""Files, and directories with all below them, that make other programs run something. A star is any part of a name."""

OF_GIT = frozenset({"config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees"})
"""What in a repository says which programs git runs. By its ``HEAD`` a directory is one, whatever its name."""

# Letters are compared without case: on some disks `.GIT` is `.git`.
_GUARDED = pattern(f"/(?:{'|'.join(map(re.escape, GUARDED))})(?:/|$)".replace(r"\*", "[^/]*"), re.IGNORECASE)
# The disk of a Mac does not see these characters in a name; for it `.g\u200cit` is `.git`.
_UNSEEN = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
# Below these are environments and memory, those of the worker with its keys among them.
_PROCESS = pattern(r"/proc/\d+(/|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one call works."""

    root: Path
    """The workspace, absolute and resolved."""
    home: Path
    """The home of cass: closed to tools, but for reading its ``docs`` and `shelves`."""
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
    ground: tuple[int, int] | None = None
    """Device and inode of the workspace when the call was decided about; None: it may be another directory by now."""
    asked: dict[str, str] = field(default_factory=dict)
    """What files held when the person was asked about this call: absolute path to SHA-256, "" for none to be read."""
    sandboxed: bool = False
    """Whether a command of this call runs in the sandbox."""
    net: bool = False
    """Whether it has the network there."""
    writable: tuple[str, ...] = ()
    """Directories elsewhere that it may write to there, as the person named them."""
    denied: tuple[str, ...] = ()
    """Patterns as of `fnmatch`, of absolute resolved paths: grep leaves out what matches one, and all below it."""
    kept: Callable[[], tuple[str, ...]] = tuple
    """Where credentials are kept in the workspace, resolved: as if they were outside of it. Looked up when needed."""
    shelves: tuple[str, ...] = ()
    """Can be read wherever they lie, as if they were in the workspace: directories with all below them, and files,
    absolute and resolved."""
    mode: Mode = Mode.READ_ONLY
    """That the call runs in."""
    asks: bool = False
    """Whether the person can be asked meanwhile."""
    shown: tuple[str, ...] = ()
    """Directories that a command in the sandbox sees although cass keeps them, absolute and resolved."""
    private_hosts: tuple[str, ...] = ()
    """Hosts and networks that are not on the internet and may be fetched from, as of `cass.web.hosts`."""
    decide: Callable[[Action], Decision] = lambda _: Deny("nobody is there to decide")
    """What would be decided now about something else that the call comes to do."""
    keep: Keep = keep_nothing
    """Called before a file is changed."""

    @property
    def homes(self) -> tuple[str, ...]:
        """Where cass keeps its own, resolved: here, and where it does without ``CASS_HOME``, which holds keys too."""
        return tuple(os.path.realpath(home) for home in (self.home, Home.find({}).root))


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
    path = os.path.join(place.root, os.path.expanduser(unquoted(text)))
    _check_length(path, text)
    path = _resolved(path, text)
    _check_length(path, text)  # links may have made it longer
    homes = place.homes
    own = any(_is_below(path, home) for home in homes) or _has_ancestor(path, homes)
    secret = any(_is_below(path, top) for top in place.kept())
    shelved = not write and any(_is_below(path, shelf) for shelf in place.shelves)
    readable = shelved or (not write and any(_is_below(path, os.path.join(home, "docs")) for home in homes))
    return Reach(
        path=path,
        write=write,
        inside=shelved or (_is_below(path, str(place.root)) and not secret),
        secret=secret,
        guarded=is_guarded(path) or (write and _is_of_repository(path, str(place.root))),
        private=(own and not readable) or _PROCESS.match(path) is not None,
    )


def is_guarded(path: str) -> bool:
    """Whether an absolute path, or one below the workspace with a slash before it, is one of `GUARDED` or in one."""
    return _GUARDED.search(path.translate(_UNSEEN)) is not None


def _is_of_repository(path: str, root: str) -> bool:
    """Whether `path` makes a directory of the workspace `root` a repository, or says what git runs for one."""
    parts = path.removeprefix(root.rstrip("/") + "/").split("/")
    if parts[-1] == "HEAD" or (sys.platform == "darwin" and parts[-1].upper() == "HEAD"):
        return True
    tops = ("/".join((root, *parts[:at])) for at, part in enumerate(parts) if part.lower() in OF_GIT)
    return any(os.path.lexists(f"{top}/HEAD") for top in tops)


def _check_length(path: str, text: str) -> None:
    size, levels = len(os.fsencode(path)), path.count("/")
    if size > PATH_BYTES:
        raise ToolError(f"the path {quoted(text[:60])}... is too long: {size:,} bytes of {PATH_BYTES:,}")
    if levels > DEPTH_LIMIT:
        raise ToolError(f"the path {quoted(text[:60])}... is too deep: {levels:,} levels of {DEPTH_LIMIT}")


def _resolved(path: str, text: str) -> str:
    """The absolute `path`, given as `text`, without links and ``..``, whether there is anything or not.

    As `os.path.realpath`, which knows no limit of links: they may come from anybody, and lead from one to the next.
    Raises ToolError.
    """
    at, rest, links = "", path.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        try:
            target = os.readlink(f"{at}/{part}")
        except OSError:  # no link, or nothing at all
            at = f"{at}/{part}"
            continue
        links += 1
        if links > LINKS:
            raise ToolError(f"the path {quoted(text)} leads through more than {LINKS} links")
        at = "" if target.startswith("/") else at
        rest += target.split("/")[::-1]
    return at or "/"


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _has_ancestor(path: str, tops: tuple[str, ...]) -> bool:
    """Whether one of `tops` is `path` or above it under any other name: another case of letters, a bind mount."""
    wanted = {found for top in tops if (found := identity(top))}
    while wanted:
        if identity(path) in wanted:  # not there (yet), or not to be looked at: the directory above it is compared
            return True
        if path == "/":
            break
        path = os.path.dirname(path)
    return False


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
        while part := file.read(1 << 20) or b"":
            parts.append(part)
    return b"".join(parts)  # one part is not copied


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
