"""What extends cass here: prompts, skills, hooks, MCP servers and own tools, and what is wrong with some of them."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from cass import skills, templates, written
from cass.amounts import many
from cass.check.finding import Finding, ok, warning
from cass.config import Settings
from cass.environment import for_tools
from cass.errors import ConfigError
from cass.home import Home
from cass.hooks import Hook
from cass.mcp import servers
from cass.mcp.link import Link
from cass.pattern import pattern
from cass.rules import Rules
from cass.toolbox import Toolbox
from cass.visible import safe_line

_PLAIN = pattern(r"~?[\w./+@-]+", re.ASCII)
"""What bash takes as it is."""


def look(home: Home, cwd: Path, settings: Settings | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """No server is started; own tools are asked what they are, as each chat does. `settings`: None where wrong."""
    yield from _texts(home, cwd)
    yield from (_hook(hook, cwd) for hook in (settings.hooks if settings else ()))
    yield from _servers(home, cwd, environ)
    yield from _tools(home, settings.rules if settings else Rules(), environ)


def _texts(home: Home, cwd: Path) -> Iterator[Finding]:
    try:
        prompts, found = templates.every(home, cwd), skills.every(home, cwd)
        left = [
            *(("prompts", *one) for one in templates.unused(home, cwd)),
            *(("skills", *one) for one in skills.unused(home, cwd)),
        ]
    except ConfigError:
        return  # trust.json, which is a finding of its own
    if prompts:
        yield ok("prompts", ", ".join(f"/{name}" for name in prompts))
    if found:
        yield ok("skills", ", ".join(found))
    for about, path, why in left:
        yield warning(about, safe_line(f"{path} is not used: {why}"))


def _hook(hook: Hook, cwd: Path) -> Finding:
    tools = f" ({', '.join(hook.tools)})" if hook.tools else ""
    text = safe_line(f"{hook.event}{tools}: {hook.run}")
    path = _program(hook.run, cwd)
    if path is None or os.access(path, os.X_OK):
        return ok("hooks", text)
    if not path.exists():
        return warning("hooks", f"{text}: there is no {safe_line(str(path))}, so it does nothing")
    return warning("hooks", f"{text}: it is not executable, so it does nothing", f"chmod +x {safe_line(str(path))}")


def _program(line: str, cwd: Path) -> Path | None:
    """The file that a line for bash begins with, where it is plainly one."""
    first = line.split()[0]
    if "/" not in first or not _PLAIN.fullmatch(first):
        return None
    return cwd / os.path.expanduser(first)


def _servers(home: Home, cwd: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    link = Link(servers.load(home, cwd, environ), home, root=cwd, environ=dict)
    for standing in link.servers.values():
        server = standing.server
        text = safe_line(f"{server.name}: {server.address}, {many(len(standing.tools), 'tool')} known")
        if server.command and not shutil.which(server.command[0], path=environ.get("PATH")):
            yield warning("mcp", f"{text}: there is no such program", f"install it, or: cass mcp remove {server.name}")
        else:
            yield ok("mcp", text)
    yield from (warning("mcp", safe_line(notice)) for notice in link.notices)


def _tools(home: Home, rules: Rules, environ: Mapping[str, str]) -> Iterator[Finding]:
    given = for_tools(environ, keys=written.secret_names(home), in_use=None, passed=())
    toolbox, wrong = Toolbox().joined(home.root / "tools", given)
    yield from (ok("tools", f"{name}: {effect}") for name, effect in toolbox.brought.items())
    yield from (warning("tools", safe_line(text)) for text in wrong)
    yield from (warning("rules", safe_line(text)) for text in toolbox.strangers(rules))
