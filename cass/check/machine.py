"""What the machine has: versions, the programs that cass uses, the terminal, and what a logout does."""

import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cass import __version__
from cass.check.finding import Finding, error, ok, warning
from cass.tools import sandbox

PACKAGES = ("click", "httpx", "orjson", "prompt_toolkit", "rich", "watchfiles")
TMUX = (3, 3)
"""The first version that everything is tried with."""
SLOW_ESCAPE_MS = 100
PATIENCE_S = 5.0


def look(environ: Mapping[str, str]) -> Iterator[Finding]:
    yield from _versions()
    yield _sandbox()
    yield from _programs(environ)
    yield from _tmux(environ)
    yield from _terminal(environ)
    yield _logout(environ)


def _versions() -> Iterator[Finding]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            yield error("versions", f"the package {package} is missing", "install cassady again")
    yield ok("versions", f"cass {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    yield ok("versions", ", ".join(found))


def _sandbox() -> Finding:
    works, text = sandbox.describe()
    if works:
        return ok("sandbox", text)
    return warning("sandbox", text, "until then each command is asked about, and can do anything that you can")


def _programs(environ: Mapping[str, str]) -> Iterator[Finding]:
    path = environ.get("PATH")
    if shutil.which("bash", path=path):
        yield ok("bash", _said("bash", "-c", "echo $BASH_VERSION"))
    else:
        yield error("bash", "bash is not there: the tool shell needs it", "install bash")
    if shutil.which("git", path=path):
        yield ok("git", _said("git", "--version").removeprefix("git version "))
    else:
        yield warning("git", "git is not there; a model will look for it", "install git")
    named = environ.get("VISUAL") or environ.get("EDITOR") or ""
    program = (_words(named) or [""])[0]
    if program and shutil.which(program, path=path):
        yield ok("editor", named)
    elif named:
        yield warning("editor", f"{named} is not there: Ctrl-G cannot open it", "set VISUAL or EDITOR to another one")
    else:
        other = next((name for name in ("editor", "nano", "vi", "emacs") if shutil.which(name, path=path)), None)
        found = ok if other else warning
        yield found("editor", f"{other or 'none'}, as neither VISUAL nor EDITOR is set")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _said(*command: str) -> str:
    """The first line that a command prints; "" where it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, text=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.splitlines() or [""])[0] if done.returncode == 0 else ""


def _tmux(environ: Mapping[str, str]) -> Iterator[Finding]:
    version = _said("tmux", "-V").removeprefix("tmux ")
    if not version:
        yield ok("tmux", "not there: a chat has one terminal, which is all it needs")
        return
    if is_old(version):
        yield warning("tmux", f"{version}: panes are tried from 3.3 on", "cass --layout inline")
    else:
        yield ok("tmux", f"{version}, {_inside(environ)}")
    escape = _said("tmux", "show-options", "-gv", "escape-time") if environ.get("TMUX") else ""
    if escape.isdecimal() and int(escape) > SLOW_ESCAPE_MS:
        text = f"tmux holds Esc back for {escape} ms"
        yield warning("tmux", text, "set -sg escape-time 20, in ~/.tmux.conf")


def _inside(environ: Mapping[str, str]) -> str:
    if not environ.get("TMUX"):
        return "and this is outside of it: one terminal"
    if environ.get("TMUX_PANE"):
        return "and this is a pane of it: two panes"
    return "and this is a popup of it: one terminal"


def is_old(version: str) -> bool:
    """Whether a version of tmux, as ``3.2a`` or ``next-3.4``, is older than what is tried."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < TMUX


def _terminal(environ: Mapping[str, str]) -> Iterator[Finding]:
    term = environ.get("TERM", "")
    if not sys.stdout.isatty():
        yield ok("terminal", "no terminal, but a pipe or a file")
    else:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        text = f"{term or 'TERM is not set'}, {columns} x {rows}, {colours(environ)}"
        if term in ("", "dumb", "unknown"):
            yield warning("terminal", text, "set TERM to what your terminal is, such as xterm-256color")
        elif columns < 40 or rows < 10:
            yield warning("terminal", text, "make it larger: 40 x 10 at least")
        else:
            yield ok("terminal", text)
    named = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    if re.search(r"utf-?8", named, re.IGNORECASE) or sys.platform == "darwin":
        yield ok("locale", named or "UTF-8")
    else:
        yield warning("locale", f"{named or 'none is set'}: programs may not write UTF-8", "export LANG=C.UTF-8")


def colours(environ: Mapping[str, str]) -> str:
    """What is said of colours, in words."""
    if environ.get("NO_COLOR"):
        return "no colours (NO_COLOR)"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in environ.get("TERM", "") else "16 colours"


# ---- logout ---------------------------------------------------------------------------------------------------------

LOGIND = ("/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf")


def _logout(environ: Mapping[str, str]) -> Finding:
    if not os.path.isdir("/run/systemd/seats"):
        return ok("logout", "workers go on after it")
    directories = ("/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d")
    pieces = [path for name in directories for path in sorted(Path(name).glob("*.conf"))]
    files = [*map(Path, LOGIND), *pieces]
    user = environ.get("USER") or environ.get("LOGNAME") or ""
    if is_killed(_texts(files), user):
        advice = f"loginctl enable-linger {user}, and start with: systemd-run --user --scope cass"
        return warning("logout", "systemd ends your workers when you log out (KillUserProcesses)", advice.strip())
    return ok("logout", "workers go on after it")


def _texts(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        try:
            yield path.read_text("utf-8", "replace")
        except OSError:
            continue


def is_killed(texts: Iterable[str], user: str) -> bool:
    """Whether `user`'s processes end with the last session, as ``logind.conf`` says; later texts win.

    Source: https://www.freedesktop.org/software/systemd/man/latest/logind.conf.html
    """
    said = {"KillUserProcesses": "no", "KillOnlyUsers": "", "KillExcludeUsers": "root"}
    for text in texts:
        for name, value in re.findall(r"^[ \t]*(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", text, re.MULTILINE):
            if name in said:
                said[name] = value
    only = said["KillOnlyUsers"].split()
    is_on = said["KillUserProcesses"].lower() in ("yes", "true", "1", "on")
    return is_on and user not in said["KillExcludeUsers"].split() and (not only or user in only)
