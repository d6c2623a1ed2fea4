"""Headlines: a call by its arguments, and an image, in a line for people."""

import json
from collections.abc import Callable
from typing import Any

from cass import amounts
from cass.records import Attachment, ToolCall
from cass.visible import safe, safe_line
from cass.web import url


def headline(call: ToolCall) -> str:
    """What `call` is about: its path, command or pattern. Safe; one line, but for a command with several."""
    if call.arguments_raw is not None:
        return f"arguments that are not JSON: {safe_line(str(call.arguments_raw))}"
    layout = _LAYOUTS.get(call.name, _pairs)
    try:
        return layout(call.arguments)
    except (AttributeError, KeyError, TypeError):  # not the shape that the tool asks for
        return _pairs(call.arguments)


def pictured(image: Attachment) -> str:
    """What stands for an image where only text can: ``[image picture.png 640×480 32.1 kB]``. Safe; one line."""
    return f"[image {safe_line(image.name)} {image.width}×{image.height} {amounts.size(image.bytes)}]"


def _pairs(arguments: dict[str, Any]) -> str:
    return safe_line(" ".join(f"{k}={v if isinstance(v, str) else as_json(v)}" for k, v in arguments.items()))


def as_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON for people. Not safe yet."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return "… nested too deeply to be shown"


def _read(arguments: dict[str, Any]) -> str:
    if "files" not in arguments:
        span = [f"{key} {arguments[key]}" for key in ("offset", "limit") if arguments.get(key) is not None]
        return safe_line(" ".join([str(arguments["path"]), *span]))
    files = [file if isinstance(file, dict) else {"path": file} for file in arguments["files"]]
    return safe_line(", ".join(f"{file['path']} {file.get('lines') or ''}".rstrip() for file in files))


def _grep(arguments: dict[str, Any]) -> str:
    query = f"/{arguments['query']}/" if arguments.get("regex") else as_json(arguments["query"])
    paths = arguments.get("paths") or ["."]
    return safe_line(f"{query} in {', '.join([paths] if isinstance(paths, str) else paths)}")


def _write(arguments: dict[str, Any]) -> str:
    return f"{safe_line(arguments['path'])} ({amounts.many(len(arguments['content'].splitlines()), 'line')})"


def _edit(arguments: dict[str, Any]) -> str:
    return f"{safe_line(arguments['path'])} ({amounts.many(len(arguments['edits']), 'edit')})"


def _fetch(arguments: dict[str, Any]) -> str:
    offset = arguments.get("offset")
    return safe_line(" ".join([url.shown(arguments["url"]), *([f"from {offset}"] if offset else [])]))


def _agent(arguments: dict[str, Any]) -> str:
    tools = arguments.get("tools")
    more = [str(arguments.get("mode") or ""), f"in {arguments['cwd']}" if arguments.get("cwd") else ""]
    more += [f"with {', '.join(map(str, tools))}"] if isinstance(tools, list) else []
    said = safe_line(", ".join(filter(None, more)))
    return safe(arguments["prompt"]).strip("\n") + (f" ({said})" if said else "")


_LAYOUTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "ls": lambda arguments: safe_line(str(arguments.get("path") or ".")),
    "read": _read,
    "grep": _grep,
    "write": _write,
    "edit": _edit,
    "shell": lambda arguments: safe(arguments["command"]).strip("\n"),
    "fetch": _fetch,
    "agent": _agent,
}
