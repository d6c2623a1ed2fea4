"""Names: what a tool of a server is called in a request, and what a model is told of it.

Each API takes other names; ``[a-zA-Z0-9_-]``, 64 at most, is taken by all. The name of a tool depends on that tool and
its server alone: not on what else there is, nor on what was started first.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from cass import jsonl
from cass.mcp.servers import Server
from cass.rules import MCP
from cass.visible import safe, safe_line

PREFIX = MCP
LONGEST = 64
DESCRIPTION_CHARS = 1024
"""What OpenAI takes, the strictest of all."""
SCHEMA_BYTES = 16_384
"""Every byte of a schema is sent with every request."""
TOOLS = 128
"""Of one server; OpenAI takes no more in a request."""


def name(server: str, tool: str) -> str:
    """The name of a tool. Where it cannot be made of both as they are, a hash of them tells it from others."""
    plain = f"{PREFIX}{server}__{tool}"
    is_plain = re.fullmatch(r"[a-zA-Z0-9_-]+", plain) is not None and len(plain) <= LONGEST
    # Else ``a__b`` and ``c`` would be called as ``a`` and ``b__c`` are.
    is_certain = "__" not in server and not server.endswith("_") and not tool.startswith("_")
    if is_plain and is_certain and server and tool:
        return plain
    digest = sha256(jsonl.dump({"server": server, "tool": tool})).hexdigest()[:8]
    return f"{PREFIX}{_fit(server)[:20]}__{_fit(tool)[:29]}_{digest}"


def _fit(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9-]+", "_", text).strip("_") or "x"


def may_name(pattern: str, server: str) -> bool:
    """Whether some tool of `server` may be called as `pattern` says, which may hold ``*``."""
    said, star, _ = pattern.partition("*")
    begins = (f"{PREFIX}{server}__", f"{PREFIX}{_fit(server)[:20]}__")
    is_near = any(said.startswith(begin) or (star and begin.startswith(said)) for begin in begins)
    return is_near and re.fullmatch(r"[a-zA-Z0-9_*-]+", pattern) is not None


def offered(server: Server, listed: Iterable[Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What a server lists and its entry lets through: name to ``{"tool", "description", "parameters"}``, sorted.

    Beside it what was left out and why, a line each.
    """
    found: dict[str, dict[str, Any]] = {}
    left: list[str] = []
    for item in listed:
        tool = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(tool, str) or not tool:
            left.append("a tool without a name is left out")
        elif server.offers(tool):
            called = name(server.name, tool)
            if called in found:
                left.append(f"a second tool called {safe_line(tool)[:80]} is left out")
            elif len(found) == TOOLS:
                left.append(f"more than {TOOLS} tools: {safe_line(tool)[:80]} and the rest are left out")
                break
            else:
                found[called] = {"tool": tool, **_told(item)}
    return dict(sorted(found.items())), left


def _told(item: Mapping[str, Any]) -> dict[str, Any]:
    text = item.get("description") or item.get("title") or ""
    description = safe(text if isinstance(text, str) else "").strip()
    schema = item.get("schema")
    parameters = {key: value for key, value in schema.items() if key != "$schema"} if isinstance(schema, dict) else {}
    if parameters.get("type") != "object":
        parameters = {"type": "object"}
    if len(jsonl.dump(parameters)) > SCHEMA_BYTES:
        parameters = {"type": "object"}
        description = "Its schema is too large to be shown. " + description
    if len(description) > DESCRIPTION_CHARS:
        description = description[: DESCRIPTION_CHARS - 1] + "…"
    return {"description": description, "parameters": parameters}
