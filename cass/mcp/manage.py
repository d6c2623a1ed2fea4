"""Managing: the person's own list of MCP servers, tried, shown and changed."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cass import jsonl, presence, written
from cass.environment import for_tools
from cass.errors import CassError, UsageError
from cass.home import Files, Home
from cass.mcp import servers
from cass.mcp.link import Link, Standing
from cass.mcp.servers import Found, Server, Wrong
from cass.visible import safe_line

NONE = "no MCP servers; add one with: cass mcp add NAME COMMAND ..."


def shown(home: Home, root: Path, files: Files | None = None) -> str:
    """The servers for the workspace `root`, a few lines each; `files`: how they are in the worker of that chat."""
    found = servers.load(home, root, os.environ)
    link = Link(found, home, root=root, environ=dict)
    state = _in_worker(files, [one.server for one in link.servers.values()]) if files else {}
    lines = [line for one in link.servers.values() for line in _lines(one, state.get(one.server.name, {}))]
    lines += link.notices
    return "\n".join(map(safe_line, lines)) or NONE


def as_json(home: Home, root: Path) -> tuple[str, tuple[str, ...]]:
    """The same as a list of ``{"name", "address", "tools"}``, and what is not used or odd, and why."""
    link = Link(servers.load(home, root, os.environ), home, root=root, environ=dict)
    found = [(one.server, list(one.tools)) for one in link.servers.values()]
    return jsonl.dump(
        [{"name": s.name, "address": s.address, "tools": tools} for s, tools in found]
    ).decode(), link.notices


def entry(
    command: tuple[str, ...], url: str | None, headers: tuple[str, ...], environ: tuple[str, ...]
) -> dict[str, Any]:
    """What was said on a command line, as it stands in the file. Raises UsageError."""
    if command[:1] != ("--",) and command and command[0].startswith("-"):
        raise UsageError(f"{command[0]} stands before NAME, as every option; what stands behind it is the program's")
    command = command[command[:1] == ("--",) :]
    if command and command[0].startswith(("http://", "https://")):
        raise UsageError(f"a server over HTTP is named by --url, before NAME: cass mcp add --url {command[0]} NAME")
    if bool(command) == bool(url):
        raise UsageError("a server is a COMMAND with its arguments, or --url URL")
    if (headers and not url) or (environ and url):
        raise UsageError("--header goes with --url, --env with a COMMAND")
    if url:
        return {"type": "http", "url": url, **({"headers": _table("--header", headers)} if headers else {})}
    more = {"env": _table("--env", environ)} if environ else {}
    return {"command": command[0], "args": list(command[1:]), **more}


def _table(option: str, pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, is_pair, value = pair.partition("=")
        if not is_pair or not name:
            raise UsageError(f"{option} takes NAME=VALUE")
        found[name] = value
    return found


def add(home: Home, name: str, entry: dict[str, Any], *, tries: bool, environ: Mapping[str, str] = os.environ) -> str:
    """Write a server down, once it has listed its tools; return what it offers. Raises CassError."""
    if name in servers.own(home):
        raise UsageError(f"there is a server {safe_line(name)} already; first: cass mcp remove {safe_line(name)}")
    server = _server(name, entry, environ)
    try:
        text = asyncio.run(_tried(home, server, environ)) if tries else f"{safe_line(name)}: not tried"
    except CassError as e:
        raise CassError(f"{e}; nothing was written down, --no-test does so untried") from e
    servers.keep(home, name, entry)
    return text


def remove(home: Home, name: str) -> None:
    """Take a server of the person's out. Raises UsageError."""
    if name not in servers.own(home):
        raise UsageError(f"{home.mcp} names no server {safe_line(name)}")
    servers.keep(home, name, None)


def test(home: Home, root: Path, name: str | None, say: Callable[[str], None]) -> None:
    """Start each server, or one, and say what it offers. Raises CassError where one does not answer."""
    found = servers.load(home, root, os.environ)
    chosen = [server for server in found.servers if name in (None, server.name)]
    if name is not None and not chosen:
        raise UsageError("; ".join([f"no server {safe_line(name)} is configured here", *found.notices]))
    if not chosen and not found.notices:
        say(NONE)
    errors = []
    for server in chosen:
        try:
            say(asyncio.run(_tried(home, server, os.environ)))
        except CassError as e:
            errors.append(str(e))
    if errors or (found.notices and name is None):
        raise CassError("; ".join([*errors, *(found.notices if name is None else ())]))


def _server(name: str, entry: dict[str, Any], environ: Mapping[str, str]) -> Server:
    try:
        return servers.server(name, entry, environ)
    except Wrong as e:
        raise UsageError(str(e)) from None


async def _tried(home: Home, server: Server, environ: Mapping[str, str]) -> str:
    """What a server offers, after a start. Raises CassError."""
    given = for_tools(environ, keys=written.secret_names(home), in_use=None, passed=())
    link = Link(Found((server,)), home, root=Path.cwd(), environ=lambda: given)
    if link.problem:
        raise CassError(link.problem)
    standing = link.servers[server.name]
    try:
        await link.start([server.name])
        await link.settled()
        if standing.state != "ready":
            raise CassError(f"{safe_line(server.name)}: {safe_line(standing.why)}")
    finally:
        await link.close()
    return "\n".join(map(safe_line, _lines(standing, {"state": "works"})))


def _lines(standing: Standing, state: Mapping[str, Any]) -> list[str]:
    word, why = state.get("state", standing.state), state.get("why", "")
    head = f"{standing.server.name}: {word}, {len(standing.tools)} tools, {standing.server.address}"
    return [head, *([f"  {why}"] if why else []), *(f"  {name}" for name in standing.tools)]


def _in_worker(files: Files, found: Sequence[Server]) -> dict[str, Any]:
    """How these servers are in the worker of a chat, by name; empty where none runs."""
    if not presence.is_running(files):
        return {}
    state = _state(files)
    why = f"this chat's worker knows none that is reached so; end it with: cass stop {files.chat_id}, and write on"
    later = {"state": "not in this chat yet", "why": why}
    known = {name: said for name, said in state.items() if isinstance(said, dict)}
    is_there = {server.name: known.get(server.name, {}).get("key") == server.key for server in found}
    return {name: known[name] if there else later for name, there in is_there.items()}


def _state(files: Files) -> dict[str, Any]:
    """What the worker wrote of its servers; empty where it has none."""
    try:
        value = jsonl.load(files.mcp.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
