"""The table of tools, in the order a model is told of them. Each is imported when it is first looked up."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cass.access import Effect
from cass.errors import ToolError, UsageError
from cass.rules import AGENT, MCP
from cass.tools.paths import Place
from cass.tools.tool import Outcome, Tool

if TYPE_CHECKING:
    from cass.tools.hook import Said

__all__ = ["NAMES", "Outcome", "Tool", "call_hook", "check", "find", "own_tools", "schema", "schemas"]

NAMES = ("ls", "read", "grep", "write", "edit", "shell", "fetch")


def find(name: str) -> Tool:
    """The tool of that name; raises ToolError."""
    if name not in NAMES:
        raise ToolError(f"unknown tool '{name}'")
    tool: Tool = importlib.import_module(f"cass.tools.{name}").TOOL
    return tool


def check(names: Iterable[str], known: Iterable[str], foreign: Callable[[str], bool] = lambda _: True) -> None:
    """Raise UsageError for a name of none of the `known` tools. `foreign`: whether an MCP server may have it."""
    known = dict.fromkeys((*known, AGENT))
    for name in names:
        if not (foreign(name) if name.startswith(MCP) else name in known):
            there = ", ".join((*known, f"{MCP}SERVER__TOOL"))
            raise UsageError(f'--tools, or "tools" in the configuration: there is no tool {name!r}; there are {there}')


def own_tools(
    directory: Path, environ: Mapping[str, str], taken: Iterable[str] = ()
) -> tuple[list[tuple[Effect, Tool]], list[str]]:
    """The person's own tools in `directory`, and what is wrong with others; see `cass.tools.own`."""
    if not os.path.isdir(directory):
        return [], []
    from cass.tools.own import find

    return find(directory, environ, taken)


async def call_hook(command: str, given: bytes, place: Place, limit_s: float) -> "Said":
    """Run a hook; see `cass.tools.hook`."""
    from cass.tools.hook import told

    return await told(command, given, place, limit_s)


def schemas(names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """``{"name", "description", "parameters"}`` of each tool in `names`, in the order of `NAMES`."""
    wanted = frozenset(names)
    return tuple(schema(find(name)) for name in NAMES if name in wanted)


def schema(tool: Tool) -> dict[str, Any]:
    """What a model is told of a tool."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
