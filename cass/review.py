"""Review: the person looks at the configuration that a project brings, and trusts it or does not."""

import os
import sys
import termios
from hashlib import sha256
from pathlib import Path

from cass import decisions, project, trust
from cass.errors import Blocked, CassError
from cass.home import Home
from cass.program import err, out
from cass.trust import Standing
from cass.visible import safe_line

SHOWN = (project.CONFIG, ".mcp.json")
"""Files that are shown whole: what they say may act."""
TEXTS = ".md"
"""What a model is told by them is shown too."""
LINES = 200
"""Of each that is shown; a longer one is to be read elsewhere first."""


def give(cwd: Path, home: Home) -> None:
    """Show what the project around `cwd` brings, and ask whether it is to be trusted.

    Raises CassError where there is nothing, Blocked without a terminal or for a tool.
    """
    found = trust.every(cwd, home)[::-1]
    directory = next((one for one in found if trust.standing(one, home).news), found[0] if found else None)
    if directory is None:
        raise CassError(f"{cwd}: nothing here configures cass: neither {' nor '.join(trust.NAMES)}")
    standing = trust.standing(directory, home)
    if not standing.news:
        err(f"{directory} is trusted as it is; to take that back: cass trust --remove {directory}")
        return
    out("\n".join(shown(standing)))
    _check_person()
    termios.tcflush(0, termios.TCIFLUSH)  # what was typed before the question stood there is no answer to it
    try:
        said = input("trust these files, as they are now? [y/N] ")
    except EOFError:
        said = ""
    if said.strip().lower() not in ("y", "yes"):
        err("nothing was trusted")
        return
    trust.give(standing, home)
    err(f"trusted: {directory}; workers that run already keep what they have")


def take(directory: Path, home: Home) -> None:
    if not trust.take(directory, home):
        raise CassError(f"{directory} was not trusted; those that are: cass trust --list")
    err(f"no longer trusted: {directory}")


def listed(home: Home) -> str:
    """The trusted directories, a line each, with what became of them."""
    return "\n".join(f"{directory}  {_state(directory, home)}" for directory in trust.directories(home))


def _state(directory: Path, home: Home) -> str:
    standing = trust.standing(directory, home)
    if not standing.files:
        return "nothing there any more"
    if standing.news:
        return f"changed since: {', '.join(standing.news)}"
    return f"as trusted: {', '.join(standing.files)}"


def shown(standing: Standing) -> list[str]:
    """Lines that say what would be trusted, and what cass would make of it; no text in them can pass for ours."""
    lines = [f"{standing.root} wants to configure cass:"]
    for name, digest in standing.files.items():
        known = standing.trusted.get(name)
        what = "new" if known is None else "as trusted" if known == digest else "changed"
        lines.append(f"{safe_line(name)} ({what})")
        if (name in SHOWN or name.endswith(TEXTS)) and what != "as trusted":
            lines += _content(standing.root / name, digest)
        if name == project.CONFIG:
            lines += _effect(standing.root / name)
    return lines


def _content(path: Path, digest: str) -> list[str]:
    content = path.read_bytes()
    if sha256(content).hexdigest() != digest:
        raise CassError(f"{path} changed just now; look again")
    lines = content.decode("utf-8", "replace").splitlines()
    if len(lines) > LINES and path.suffix == TEXTS:
        lines = [*lines[:LINES], f"… {len(lines) - LINES} more lines: read them with your editor"]
    elif len(lines) > LINES:
        raise CassError(f"{path} has {len(lines)} lines; read it with your editor, and shorten it to {LINES}")
    return [f"│ {safe_line(line)}" for line in lines]


def _effect(path: Path) -> list[str]:
    found = project.parse(path.read_bytes(), path)
    narrower = [*(f"asks: {rule}" for rule in found.ask), *(f"denies: {rule}" for rule in found.deny)]
    if found.confirm_destructive:
        narrower.append("asks before destructive commands")
    return [*(f"  {safe_line(text)}" for text in narrower), *(f"  {safe_line(text)}" for text in found.notices)]


def _check_person() -> None:
    """Raise Blocked unless a person sits in front of this."""
    if decisions.worker_above() is not None or decisions.TOOL_MARK in os.environ:
        raise Blocked("a tool must not trust for the person")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Blocked("only you can trust a project, on a terminal; nothing was trusted")
