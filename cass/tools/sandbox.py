"""The sandbox: bubblewrap, whether it works on this machine, and what it is told for one command.

A command sees the whole file system read-only, and may write to the workspace and to a ``/tmp`` of its chat's own. It
has processes, shared memory, network and devices of its own; what cass keeps, credentials and sockets are hidden; in
the workspace the files that other programs run or trust are read-only. Source: https://github.com/containers/bubblewrap
"""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import cass
from cass.access import Mode
from cass.errors import ToolError
from cass.home import make_private
from cass.names import quoted
from cass.tools import guards, hidden
from cass.tools.guards import NO_GUARDS, Guards
from cass.tools.hidden import is_below
from cass.tools.paths import Place
from cass.walk import identity

PLACES = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin", "/run/wrappers/bin")
"""Where bwrap may be. PATH is not asked: a project may have put its own directory into it."""

SEPARATE = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # As root bubblewrap would keep every capability. A session of its own: no terminal to type into.
    *("--cap-drop", "ALL", "--new-session", "--die-with-parent"),
)
PROBE_S = 10.0

KEPT_IN_RUN = (
    *("current-system", "booted-system", "opengl-driver", "opengl-driver-32", "wrappers", "media"),
    *("systemd/resolve", "resolvconf", "NetworkManager/resolv.conf", "NetworkManager/no-stub-resolv.conf", "connman"),
)
"""Of ``/run``, which is hidden else: programs of NixOS, media, name servers."""

UNSET = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "XDG_RUNTIME_DIR", "TMUX", "TMUX_PANE"),
    *("TMUX_TMPDIR", "STY", "DOCKER_HOST", "CONTAINER_HOST", "NVIM", "NVIM_LISTEN_ADDRESS", "KITTY_LISTEN_ON"),
    *("VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "WEZTERM_UNIX_SOCKET", "PULSE_SERVER", "EMACS_SOCKET_NAME"),
)
"""Variables that name a socket that is hidden: without them programs do without."""

EMPTY = str(Path(cass.__file__).with_name("py.typed"))
"""An empty file, to stand where one is hidden."""


# ---- whether it works -----------------------------------------------------------------------------------------------


@functools.cache
def problem() -> str | None:
    """Why no command can be sandboxed here; None where one was, just now or earlier in this process."""
    if sys.platform != "linux":
        return f"there is none for {sys.platform}: bubblewrap needs Linux"
    if program() is None:
        return f"bubblewrap is not installed (no bwrap in {', '.join(PLACES[:3])}): install the package bubblewrap"
    command = [program() or "", *SEPARATE, "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    try:
        done = subprocess.run(
            [*command, "--tmpfs", "/tmp", "--", "sh", "-c", ":"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
        )
    except (OSError, subprocess.SubprocessError) as e:
        return f"bubblewrap does not run: {e}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap does not work here: {said[0] if said else f'status {done.returncode}'}{_hint()}"


@functools.cache
def program() -> str | None:
    """The path of bwrap."""
    return next((path for place in PLACES if os.access(path := f"{place}/bwrap", os.X_OK)), None)


def describe() -> tuple[bool, str]:
    """Whether commands can be sandboxed here, and a line for people that says how or why not."""
    if said := problem():
        return False, said
    return True, f"bubblewrap ({program()}): a command writes to the workspace and its own /tmp only, without network"


def holds(mode: Mode, choice: bool | None) -> bool:
    """Whether a command in `mode` is sandboxed. `choice`: what the person said; None: as the mode has it."""
    wanted = mode is Mode.WORKSPACE_EDIT if choice is None else choice
    return wanted and problem() is None


def words(place: Place) -> str:
    """What holds in it, for the model and for the person."""
    others = "".join(f"{quoted(path)}, " for path in place.writable)
    return f"sandboxed: writes only to {others}the workspace and /tmp, {'has the' if place.net else 'no'} network"


def _hint() -> str:
    """What forbids it, as far as the system says so."""
    forbidding = (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are forbidden to users"),
        ("/proc/sys/user/max_user_namespaces", "0", "user namespaces are forbidden"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor wants a profile for bwrap"),
    )
    for path, value, words in forbidding:
        if _read(path).strip() == value:
            return f" ({words}: {path} is {value})"
    inside = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
    return " (this is inside a container, which must allow user namespaces)" if inside else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


# ---- what it is told ------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """What one command is to see. Every path is absolute, resolved, and there."""

    workspace: str
    tmp: str
    """The directory that it finds as ``/tmp``."""
    closed: frozenset[str] = frozenset()
    """Hidden whatever else is said, with all below: where cass keeps its own."""
    directories: frozenset[str] = frozenset()
    """Hidden, but for a workspace in one of them."""
    files: frozenset[str] = frozenset()
    guards: Guards = NO_GUARDS
    """Of the workspace."""
    kept: frozenset[str] = frozenset()
    """Shown in a hidden place."""
    writable: tuple[str, ...] = ()
    """Directories of the person's choice elsewhere."""
    repository: str | None = None
    """Of the workspace, where that lies elsewhere: writable as well."""
    shown: frozenset[str] = frozenset()
    """Seen, read-only, in one of `closed`."""
    net: bool = False
    unset: tuple[str, ...] = UNSET


def arguments(view: View) -> list[str]:
    """What bubblewrap is told; pure. A mount is made after the one that it lies in, whatever either is for.

    What is hidden comes last where it can: should somebody swap a path of the workspace for a link meanwhile, the link
    does not uncover it.
    """
    operations = {"/dev": "dev", "/proc": "proc", "/run": "private", "/tmp": "tmp"}
    operations |= dict.fromkeys(view.writable, "write") | ({view.repository: "write"} if view.repository else {})
    operations |= dict.fromkeys((*view.kept, *view.shown), "keep")
    operations |= dict.fromkeys(view.guards.fixed, "write") | dict.fromkeys(view.guards.files, "read")
    operations |= dict.fromkeys(view.files, "file") | dict.fromkeys(view.directories, "hide")
    operations |= {view.workspace: "write"} | dict.fromkeys(view.closed, "hide")
    found, last = ["--ro-bind", "/", "/"], []
    nested = list(_nested(operations, view))
    hiding = [(path, how) for path, how in nested if how in ("hide", "file") or path in view.shown]
    late = [(path, how) for path, how in hiding if not is_below(view.workspace, path)]
    for path, operation in [one for one in nested if one not in late] + late:
        found += _spelled(path, operation, view)
        if operation in ("hide", "private"):
            last += ["--remount-ro", path]  # not before all that lies in it has its place
    # Root needs no capability to write to /proc/sys, and with the pattern of core dumps to run programs out here.
    last += ["--remount-ro", "/proc"]
    separate = SEPARATE if view.net else (*SEPARATE, "--unshare-net")
    unset = [word for name in view.unset for word in ("--unsetenv", name)]
    return [*separate, *found, *last, *unset, "--setenv", "TMPDIR", "/tmp", "--chdir", view.workspace]


def _spelled(path: str, operation: str, view: View) -> list[str]:
    match operation:
        case "write":
            return ["--bind", path, path]
        case "read" | "keep":
            return ["--ro-bind", path, path]
        case "file":
            return ["--ro-bind", EMPTY, path]
        case "tmp":
            return ["--bind", view.tmp, path]
        case "dev" | "proc":
            return [f"--{operation}", path]
        case "place":
            return ["--dir", path]
        case _:
            return ["--tmpfs", path]


_COVERED = frozenset({"hide", "private", "tmp", "dev", "proc", "file"})
"""Operations after which nothing is seen of what is there else."""


def _nested(operations: dict[str, str], view: View) -> Iterator[tuple[str, str]]:
    """Those that make a difference, each after the ones above it. What lies in a hidden place stays hidden with it."""
    above: list[tuple[str, str]] = []
    for path in sorted(operations, key=lambda path: path.split("/")):
        operation = operations[path]
        while above and not is_below(path, above[-1][0]):
            above.pop()
        if path == "/":
            operation = "write"  # the workspace
        elif any(is_below(path, home) and path != home for home in view.closed):
            if path not in (view.workspace, *view.shown):
                continue
            operation = "place" if path == view.workspace else operation  # there must be something to stand in
        elif above and above[-1][1] in _COVERED and operation != "keep" and path != view.workspace:
            continue
        above.append((path, operation))
        yield path, operation


# ---- for one command ------------------------------------------------------------------------------------------------


def look(place: Place, environ: Mapping[str, str] = os.environ) -> View:
    """What a command in `place` is to see, by what is on the disk now. Raises ToolError."""
    workspace = str(place.root)
    if os.path.realpath(workspace) != workspace:
        raise ToolError("the workspace became a link, or lies behind one now; nothing was run")
    if place.ground not in (None, identity(workspace)):
        raise ToolError("another directory stands at the workspace since this was decided; nothing was run")
    tmp = str(place.out.with_name("tmp"))
    try:
        for home in place.homes:
            if is_below(home, workspace):
                make_private(Path(home))  # what is not there cannot be hidden, and a command could make it
        make_private(Path(tmp))
        mounts = hidden.mounts(Path("/proc/self/mountinfo").read_bytes())
    except OSError as e:
        raise ToolError(f"the sandbox could not be prepared: {e.filename}: {e.strerror}") from e
    closed = frozenset(_with_aliases({path for path in place.homes if os.path.isdir(path)}, mounts))
    concealed = hidden.credentials(environ) | hidden.bound_sockets()
    if workspace == "/tmp":
        concealed |= {str(path) for pattern in hidden.IN_TMP for path in Path("/tmp").glob(pattern)}
    repository = guards.repository(workspace)
    everything = _with_aliases(concealed - {workspace}, mounts)
    directories = {path for path in everything if os.path.isdir(path)}
    return View(
        workspace=workspace,
        tmp=tmp,
        closed=closed,
        directories=frozenset(directories),
        files=frozenset(everything - directories),
        guards=guards.find(workspace, repository),
        writable=tuple(_writable(place, environ)),
        repository=repository,
        kept=frozenset(path for name in KEPT_IN_RUN if os.path.exists(path := f"/run/{name}")),
        shown=frozenset(path for path in place.shown if os.path.isdir(path) and os.path.realpath(path) == path),
        net=place.net,
    )


def _writable(place: Place, environ: Mapping[str, str]) -> Iterator[str]:
    """The directories that the person has made writable, as far as they are there. Raises ToolError."""
    homes = {os.path.realpath(home) for home in hidden.homes(environ)}
    for text in place.writable:
        home = os.path.realpath(os.path.expanduser("~"))
        path = os.path.normpath(home + text[1:] if text.startswith("~/") else text)
        # A command that can write to one of them could make a link of another, to anywhere.
        if os.path.realpath(path) != path or any(is_below(home, path) for home in homes):
            why = "holds your home" if os.path.realpath(path) == path else "is a link, or lies behind one"
            raise ToolError(f'"sandbox_write" of config.json: {quoted(text)} {why}; nothing was run')
        if os.path.isdir(path):
            yield path


def _with_aliases(paths: set[str], mounts: tuple[hidden.Mount, ...]) -> set[str]:
    """`paths`, and wherever else the same can be seen."""
    return paths | {name for path in paths for name in hidden.aliases(path, mounts) if os.path.exists(name)}
