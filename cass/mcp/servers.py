"""The servers: which MCP servers the person, and a project that they trust, has named, and how each is reached.

``mcpServers`` of ``~/.cass/mcp.json`` and of ``.mcp.json``, in the form that other programs read as well:
https://modelcontextprotocol.io/docs/develop/connect-local-servers
"""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cass import jsonl, trust, written
from cass.environment import names_a_secret
from cass.errors import CassError, ConfigError
from cass.home import Home
from cass.pattern import pattern
from cass.visible import safe_line

PROJECT = ".mcp.json"
KEY = "mcpServers"
STARTUP_S = 10.0
CALL_S = 60.0
_KEYS = frozenset(
    {"type", "command", "args", "env", "cwd", "url", "headers", "allow", "deny", "disabled"}
    | {"startup_timeout_s", "call_timeout_s"}
)
_VARIABLE = pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Wrong(Exception):
    """What an entry says wrongly, in words."""


class Server(NamedTuple):
    """One server, with its variables filled in. Its values may be secrets: they are never shown."""

    name: str
    command: tuple[str, ...] = ()
    """Program and arguments; empty where `url` is given."""
    env: Mapping[str, str] = {}
    """Besides what every tool is given."""
    cwd: str | None = None
    """None: the workspace."""
    url: str | None = None
    headers: Mapping[str, str] = {}
    allow: tuple[str, ...] | None = None
    """Patterns of the tools that are offered; None: all."""
    deny: tuple[str, ...] = ()
    startup_s: float = STARTUP_S
    call_s: float = CALL_S

    def offers(self, tool: str) -> bool:
        """Whether the lists of the entry let a tool of this name through."""
        if any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.deny):
            return False
        return self.allow is None or any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.allow)

    @property
    def key(self) -> str:
        """The same for a server that is reached in the same way, and for no other."""
        how = [self.command, self.env, self.cwd, self.url, self.headers]
        return sha256(jsonl.dump({"how": how})).hexdigest()[:32]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody is to see of it: headers, word by word, and variables that hold a secret."""
        named = (value for name, value in self.env.items() if names_a_secret(name))
        return (*named, *(word for value in self.headers.values() for word in value.split()))

    @property
    def address(self) -> str:
        """How it is reached, for people: the program, or the host of the URL, whose path may be a secret."""
        parts = urlsplit(self.url or "")
        host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        return self.command[0] if not self.url else host if parts.path in ("", "/") else f"{host}/…"


class Found(NamedTuple):
    servers: tuple[Server, ...] = ()
    notices: tuple[str, ...] = ()
    """What is not used, and why."""


def load(home: Home, root: Path, environ: Mapping[str, str]) -> Found:
    """The servers for the workspace `root`: the person's first, then the project's, the nearest first. Never raises for
    the files."""
    servers: dict[str, Server] = {}
    origin: dict[str, Path] = {}
    notices: list[str] = []
    for path, content in _files(home, root, notices):
        try:
            entries = entries_of(content, path)
        except ConfigError as e:
            notices.append(str(e))
            continue
        for name, entry in entries.items():
            where = f'{path}: "{KEY}": {safe_line(name)!r}'
            if name in origin:
                notices.append(f"{where} is not used: {origin[name]} names a server so too")
                continue
            origin[name] = path
            try:
                if not (isinstance(entry, dict) and entry.get("disabled") is True):
                    servers[name] = server(name, entry, environ)
                    notices += [f"{where}: unknown key {safe_line(key)!r}" for key in entry if key not in _KEYS]
            except Wrong as e:
                notices.append(f"{where} is not used: {e}")
    return Found(tuple(servers.values()), tuple(notices))


def _files(home: Home, root: Path, notices: list[str]) -> Iterator[tuple[Path, bytes]]:
    try:
        yield home.mcp, home.mcp.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as e:
        notices.append(f"{home.mcp}: {e.strerror}")
    for directory in reversed(trust.every(root, home)):
        try:
            content = trust.read(directory, PROJECT, home)
        except CassError as e:
            notices.append(str(e))
            return
        if content is not None:
            yield directory / PROJECT, content


def entries_of(content: bytes, path: Path) -> dict[str, Any]:
    """The entries of a file, by name. Raises ConfigError."""
    try:
        value = jsonl.load(content)
    except ValueError as e:
        raise ConfigError(f"{path}: expected JSON: {e}; no server of it is used") from None
    found = value.get(KEY, None if value else {}) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise ConfigError(f'{path}: expected {{"{KEY}": {{NAME: {{"command": …}}}}}}; no server of it is used')
    return found


def server(name: str, entry: Any, environ: Mapping[str, str]) -> Server:
    """What an entry means. Raises Wrong."""
    if not isinstance(entry, dict):
        raise Wrong("expected an object")
    if not name.strip() or len(name) > 200:
        raise Wrong("expected a name of 1 to 200 characters")
    given = _Entry(entry, environ)
    command, url = given.text("command"), given.text("url")
    if (command is None) == (url is None):
        raise Wrong('expected either "command" or "url"')
    if entry.get("type") == "sse":
        raise Wrong('"type": "sse" is spoken no more: expected "http", the streamable kind')
    if url is not None and not url.startswith(("http://", "https://")):
        raise Wrong('"url": expected one that begins with http:// or https://')
    return Server(
        name=name,
        command=(os.path.expanduser(command), *(given.texts("args") or ())) if command else (),
        env=given.table("env"),
        cwd=given.text("cwd"),
        url=url,
        headers=given.table("headers"),
        allow=given.texts("allow"),
        deny=given.texts("deny") or (),
        startup_s=given.seconds("startup_timeout_s", STARTUP_S),
        call_s=given.seconds("call_timeout_s", CALL_S),
    )


class _Entry(NamedTuple):
    """One entry, key by key; each raises Wrong."""

    given: dict[str, Any]
    environ: Mapping[str, str]

    def text(self, key: str) -> str | None:
        value = self.given.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value or "\0" in value:
            raise Wrong(f'"{key}": expected a text')
        return self._filled(key, value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.given.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
            raise Wrong(f'"{key}": expected a list of texts')
        return tuple(self._filled(key, item) for item in value)

    def table(self, key: str) -> dict[str, str]:
        value = self.given.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) and "\0" not in v for v in value.values()):
            raise Wrong(f'"{key}": expected an object of texts')
        return {name: self._filled(key, text) for name, text in value.items()}

    def seconds(self, key: str, default: float) -> float:
        value = self.given.get(key, default)
        if type(value) not in (int, float) or not 0 < value <= 3600:
            raise Wrong(f'"{key}": expected seconds, above 0 and up to 3600')
        return float(value)

    def _filled(self, key: str, text: str) -> str:
        """`text` with ``${VAR}`` and ``${VAR:-default}`` filled in."""

        def value(found: re.Match[str]) -> str:
            known = self.environ.get(found[1]) or found[2]
            if known is None:
                raise Wrong(f'"{key}": the variable {found[1]} is not set')
            return known

        return _VARIABLE.sub(value, text)


# ---- the person's own file ------------------------------------------------------------------------------------------


def own(home: Home) -> dict[str, Any]:
    """The entries of the person's file, as they are written there. Raises ConfigError."""
    try:
        return entries_of(home.mcp.read_bytes(), home.mcp)
    except FileNotFoundError:
        return {}


def keep(home: Home, name: str, entry: dict[str, Any] | None) -> None:
    """Write one entry of the person's file, or take it out. What else stands there stays. Raises ConfigError."""
    entries = own(home)
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry
    written.change(home.mcp, {KEY: entries})
