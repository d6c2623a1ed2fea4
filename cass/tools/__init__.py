"""The table of tools, in the order a model is told of them. Each is imported when it is first looked up."""

import importlib
from collections.abc import Iterable
from typing import Any

from cass.errors import ToolError
from cass.tools.tool import Outcome, Tool

__all__ = ["NAMES", "Outcome", "Tool", "find", "schema", "schemas"]

NAMES = ("ls", "read", "grep", "write", "edit", "shell")


def find(name: str) -> Tool:
    """The tool of that name; raises ToolError."""
    if name not in NAMES:
        raise ToolError(f"unknown tool '{name}'")
    tool: Tool = importlib.import_module(f"cass.tools.{name}").TOOL
    return tool


def schemas(names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """``{"name", "description", "parameters"}`` of each tool in `names`, in the order of `NAMES`."""
    wanted = frozenset(names)
    return tuple(schema(find(name)) for name in NAMES if name in wanted)


def schema(tool: Tool) -> dict[str, Any]:
    """What a model is told of a tool."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
