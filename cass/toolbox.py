"""The toolbox of a session: the tools of cass, those that a host program brought, and those of MCP servers."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cass import access, rules, tools
from cass.access import Effect, Mode
from cass.errors import ToolError, UsageError
from cass.mcp.names import may_name
from cass.rules import AGENT, MCP, Rules
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
        self._foreign: dict[str, Tool] = {}
        self._wanted: tuple[str, ...] | None = None

    def joined(self, directory: Path, environ: Mapping[str, str]) -> tuple["Toolbox", list[str]]:
        """This one with the person's own tools of `directory` besides, and what is wrong with some of them."""
        made = Toolbox()
        made._brought.update(self._brought)
        own, wrong = tools.own_tools(directory, environ, (*made._brought, *tools.NAMES, AGENT))
        made._brought.update((tool.name, (effect, tool)) for effect, tool in own)
        return made, wrong

    @property
    def brought(self) -> dict[str, Effect]:
        """What each tool does at most that is neither of cass nor of an MCP server, by its name."""
        return {name: effect for name, (effect, _) in self._brought.items()}

    def narrow(self, wanted: tuple[str, ...], servers: Iterable[str]) -> None:
        """Offer only the tools of these names, whatever the mode. Raises UsageError for a name of none.

        What the tools of the MCP `servers` are called is known later: ``*`` may stand in their names.
        """
        names = (*tools.NAMES, *self._brought)
        tools.check(wanted, names, lambda name: any(may_name(name, server) for server in servers))
        self._wanted = wanted

    def add(self, effect: Effect, tool: Tool) -> None:
        """Offer one more, unless there is another of its name."""
        self._brought.setdefault(tool.name, (effect, tool))

    def strangers(self, given: Rules) -> list[str]:
        """What is wrong with each rule that speaks of no tool, in words."""
        return rules.strangers(given, (*tools.NAMES, AGENT, *(self._brought.keys() - {AGENT})))

    def settle(self, foreign: Mapping[str, Tool]) -> None:
        """Offer these tools of MCP servers, until it is said again. No other tool is called as one of them."""
        self._foreign = {name: tool for name, tool in foreign.items() if name not in self._brought}

    def names(self, mode: Mode, given: Rules = Rules()) -> frozenset[str]:
        """Names of the tools that a mode offers; in read-only mode fetch and those of MCP servers that an allow rule
        names."""
        outward = {*rules.FETCHES, *self._foreign}
        named = outward if mode is not Mode.READ_ONLY else {name for name in outward if rules.naming(given.allow, name)}
        brought = (name for name, (effect, _) in self._brought.items() if access.offers(mode, effect))
        return frozenset(filter(self._is_wanted, access.tools(mode).union(brought, named)))

    def _is_wanted(self, name: str) -> bool:
        return (
            self._wanted is None or name in self._wanted or (name.startswith(MCP) and rules.naming(self._wanted, name))
        )

    def find(self, name: str) -> Tool:
        """The tool of that name; raises ToolError."""
        if self._wanted is not None and not self._is_wanted(name):
            raise ToolError(f"{name} is unavailable in this chat; go on with {', '.join(self._wanted) or 'no tools'}")
        if name in self._brought:
            return self._brought[name][1]
        return self._foreign[name] if name in self._foreign else tools.find(name)

    def is_apart(self, name: str) -> bool:
        """Whether neighbouring calls of the tool of that name run side by side."""
        found = self._brought.get(name)
        return found is not None and found[1].is_apart

    def portable(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that another process has as well: no function of a host program."""
        hosted = {name for name, (_, tool) in self._brought.items() if not (tool.is_program or name == AGENT)}
        return tuple(name for name in names if name not in hosted)

    def schemas(self, mode: Mode, given: Rules = Rules()) -> tuple[dict[str, Any], ...]:
        """``{"name", "description", "parameters"}`` of each tool that a mode offers, always in the same order."""
        offered = self.names(mode, given)
        brought = [tool for name, (_, tool) in self._brought.items() if name in offered]
        foreign = [tool for name, tool in self._foreign.items() if name in offered]
        return (*tools.schemas(offered), *map(tools.schema, [*brought, *foreign]))
