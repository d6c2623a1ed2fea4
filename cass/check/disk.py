"""What is on the disk: the home of cass, its files, and what the file system below it can do."""

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path

from cass import catalogue, inbox, presence, project, trust, written
from cass.amounts import size
from cass.check.finding import Finding, error, ok, warning
from cass.errors import CassError
from cass.home import Home

LITTLE, TOO_LITTLE = 500 << 20, 20 << 20
"""Bytes free: a long tool output is kept with up to 64 MiB; below the second a chat may not be written."""
REMOTE = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs ceph fuse.sshfs fuse.glusterfs lustre fuse.s3fs virtiofs".split())
NAMED = 3
"""Chats that are named of many."""


def look(home: Home, cwd: Path) -> Iterator[Finding]:
    yield from _home(home)
    yield from _configuration(home)
    yield from _project(home, cwd)
    yield _space(home)
    yield from _file_system(home)
    yield from _chats(home)


def _home(home: Home) -> Iterator[Finding]:
    try:
        status = home.root.stat()
    except FileNotFoundError:
        yield ok("home", f"{home.root} is not there yet; the first chat makes it")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield error("home", f"{home.root} is not a directory", "set CASS_HOME to one, or move it away")
    elif status.st_uid != os.geteuid():
        yield error("home", f"{home.root} belongs to another user", "set CASS_HOME to a directory of your own")
    elif not os.access(home.root, os.R_OK | os.W_OK | os.X_OK):
        yield error("home", f"{home.root} cannot be written", f"chmod u+rwx {home.root}")
    elif status.st_mode & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        yield warning("home", f"{home.root} is open to others ({mode})", f"chmod 700 {home.root}")
    else:
        yield ok("home", f"{home.root}, yours alone")
    yield from _open_files(home)


def _open_files(home: Home) -> Iterator[Finding]:
    files = (home.config, home.providers, home.models, home.trust, home.history, home.instructions, home.mcp)
    for path in files:
        with contextlib.suppress(OSError):
            if path.stat().st_mode & 0o077:
                found = error if path in (home.providers, home.mcp) else warning  # keys may stand in it
                yield found("home", f"{path} is open to others", f"chmod 600 {path}")


def _configuration(home: Home) -> Iterator[Finding]:
    for path, (problem, notices) in written.review(home).items():
        if problem:
            yield error("config", problem, f"correct {path}, or take the key out")
        elif notices:
            yield from (warning("config", notice, _meant(notice)) for notice in notices)
        elif path.exists():
            yield ok("config", str(path))
    try:
        trust.directories(home)
    except CassError as e:
        yield error("config", str(e), f"correct {home.trust}, or remove it and trust again")


def _meant(notice: str) -> str:
    """What may be meant, where `notice` ends with an unknown key."""
    near = get_close_matches(notice.rpartition('unknown key "')[2].removesuffix('"'), written.KEYS, 1)
    return f'did you mean "{near[0]}"?' if near else "a spelling mistake?"


def _project(home: Home, cwd: Path) -> Iterator[Finding]:
    found = project.load(cwd, home)
    for notice in found.notices:
        yield warning("project", notice)
    if not found.notices and (directories := trust.every(cwd, home)):
        narrower = f"it asks {len(found.ask)} and denies {len(found.deny)} more"
        yield ok("project", f"{', '.join(map(str, directories))}: as you trusted it; {narrower}")


def _space(home: Home) -> Finding:
    free = shutil.disk_usage(_there(home.root)).free
    text = f"{size(free)} free for {home.root}"
    if free < TOO_LITTLE:
        return error("disk", text, "make room: a chat that cannot be written stops")
    return warning("disk", text, "make room soon") if free < LITTLE else ok("disk", text)


def _there(path: Path) -> Path:
    return next(above for above in (path, *path.parents) if above.exists())


def _file_system(home: Home) -> Iterator[Finding]:
    kind = file_system(os.path.realpath(_there(home.root)))
    if kind in REMOTE:
        text = f"{home.root} is on {kind}: what another machine writes is seen late, and its workers are not found"
        yield warning("files", text, "set CASS_HOME to a directory on a disk of this machine")
    place = home.root if home.root.is_dir() else Path(tempfile.gettempdir())
    try:
        failed = dict(_trials(place))
    except OSError as e:
        yield error("files", f"nothing can be made in {place}: {e.strerror}")
        return
    for name, problem in failed.items():
        yield error("files", f"no {name} can be used in {home.root}: {problem}", "set CASS_HOME to another file system")
    if not failed:
        yield ok("files", f"locks, pipes and sockets work{f' ({kind})' if kind else ''}")


def file_system(path: str, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of file system that the resolved `path` is on; "" where there is no telling."""
    try:
        lines = [line.split() for line in mounts.read_text("utf-8", "surrogateescape").splitlines()]
    except OSError:
        return ""
    at = [(line[1].replace("\\040", " "), line[2]) for line in lines if len(line) > 2]
    above = [(len(top), kind) for top, kind in at if path == top or path.startswith(top.rstrip("/") + "/")]
    return max(above, default=(0, ""))[1]


def _trials(place: Path) -> Iterator[tuple[str, str]]:
    """Names of what does not work in `place`, and why."""
    trials: dict[str, Callable[[], None]] = {"pipes": _pipe, "locks": _lock, "sockets": _socket}
    before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    directory = tempfile.mkdtemp(prefix=".check-", dir=place)
    try:
        os.chdir(directory)  # the path of a socket may be short only
        for name, trial in trials.items():
            try:
                trial()
            except OSError as e:
                yield name, e.strerror or str(e)
    finally:
        os.fchdir(before)
        os.close(before)
        shutil.rmtree(directory, ignore_errors=True)


def _pipe() -> None:
    os.mkfifo("pipe", 0o600)


def _lock() -> None:
    with open("lock", "wb") as one, open("lock", "rb") as other:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise OSError(0, "a lock keeps nobody out")


def _socket() -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")


def _chats(home: Home) -> Iterator[Finding]:
    chats = set(catalogue.ids(home))
    running = [chat for chat in chats if presence.is_running(home.files(chat))]
    yield ok("chats", f"{len(chats):,}, of which {len(running)} have a worker")
    waiting = [chat for chat in chats - set(running) if any(True for _ in inbox.waiting(home.files(chat)))]
    if waiting:
        text = f"messages wait in {_names(waiting)}, where no worker runs"
        yield warning("chats", text, f"cass --resume {waiting[0]}")
    stale = sorted(path.name for path in _directories(home.root / "run") if path.name not in chats)
    if stale:
        text = f"{home.root}/run holds what is left of chats that are gone: {_names(stale)}"
        yield warning("chats", text, f"rm -r {home.root}/run/{stale[0]}")


def _directories(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir()]
    except FileNotFoundError:
        return []


def _names(chats: list[str]) -> str:
    return ", ".join(chats[:NAMED]) + (f" and {len(chats) - NAMED} more" if chats[NAMED:] else "")
