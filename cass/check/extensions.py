"""What extends cass here: the person's hooks, MCP servers and own tools, and what is wrong with some of them."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from cass import written
from cass.amounts import many
from cass.check.finding import Finding, ok, warning
from cass.config import Settings
from cass.environment import for_tools
from cass.home import Home
from cass.hooks import Hook
from cass.mcp import servers
from cass.mcp.link import Link
from cass.rules import Rules
from cass.toolbox import Toolbox
from cass.visible import safe_line


def look(home: Home, cwd: Path, settings: Settings | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """No server is started; own tools are asked what they are, as each chat does. `settings`: None where wrong."""
    yield from (ok("hooks", _hook(hook)) for hook in (settings.hooks if settings else ()))
    yield from _servers(home, cwd, environ)
    yield from _tools(home, settings.rules if settings else Rules(), environ)


def _hook(hook: Hook) -> str:
    tools = f" ({', '.join(hook.tools)})" if hook.tools else ""
    return safe_line(f"{hook.event}{tools}: {hook.run}")


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
