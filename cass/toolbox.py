"""The toolbox of a session: the tools of cass, and those that a host program brought."""

from collections.abc import Iterable
from typing import Any

from cass import access, tools
from cass.access import Effect, Mode
from cass.errors import UsageError
from cass.tools import Tool
from cass.tools.host import HostTool, as_tool


class Toolbox:
    def __init__(self, brought: Iterable[HostTool] = ()) -> None:
        """Raises UsageError where two tools have one name."""
        self._brought: dict[str, tuple[Effect, Tool]] = {}
        for host in brought:
            if host.name in self._brought or host.name in tools.NAMES:
                raise UsageError(f"there is a tool {host.name} already")
            self._brought[host.name] = Effect(host.effect), as_tool(host)

    def names(self, mode: Mode) -> frozenset[str]:
        """Names of the tools that a mode offers."""
        brought = (name for name, (effect, _) in self._brought.items() if access.offers(mode, effect))
        return access.tools(mode).union(brought)

    def find(self, name: str) -> Tool:
        """The tool of that name; raises ToolError."""
        return self._brought[name][1] if name in self._brought else tools.find(name)

    def schemas(self, mode: Mode) -> tuple[dict[str, Any], ...]:
        """``{"name", "description", "parameters"}`` of each tool that a mode offers, always in the same order."""
        offered = self.names(mode)
        brought = [tool for name, (_, tool) in self._brought.items() if name in offered]
        return (*tools.schemas(offered), *map(tools.schema, brought))
