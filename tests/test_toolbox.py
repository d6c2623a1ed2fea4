"""Which tools a session offers: those of its mode, and of them only the wanted ones."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from cass import flags, tools
from cass.access import Action, Mode
from cass.errors import ToolError, UsageError
from cass.mcp.names import may_name, name
from cass.toolbox import Toolbox
from cass.tools.host import HostTool
from cass.tools.tool import Outcome, Tool

NOTHING = {"type": "object"}
FOREIGN = ("mcp__time__now", "mcp__time__zones", "mcp__files__get")


async def nothing(_: Any) -> str:
    return ""


async def no_pieces(*_: Any) -> AsyncGenerator[str | Outcome, None]:
    yield ""


def box(*servers_tools: str) -> Toolbox:
    """All built-in tools, `ticket` of the host, and those of MCP servers."""
    made = Toolbox([HostTool(name="ticket", description="x", parameters=NOTHING, run=nothing, effect="reads")])
    made.settle({name: foreign(name) for name in servers_tools})
    return made


def foreign(name: str) -> Tool:
    return Tool(name, "x", NOTHING, lambda *_: Action("x"), no_pieces)


@pytest.mark.parametrize(
    ("wanted", "mode", "offered"),
    [
        ((), Mode.FULL_ACCESS, set()),
        (("read",), Mode.FULL_ACCESS, {"read"}),
        (("read", "shell"), Mode.READ_ONLY, {"read"}),
        (("ticket", "edit"), Mode.WORKSPACE_EDIT, {"ticket", "edit"}),
        (("mcp__time__*",), Mode.FULL_ACCESS, {"mcp__time__now", "mcp__time__zones"}),
        (("mcp__time__now", "ls"), Mode.FULL_ACCESS, {"mcp__time__now", "ls"}),
        (("mcp__*",), Mode.FULL_ACCESS, set(FOREIGN)),
        (("mcp__*",), Mode.READ_ONLY, set()),
    ],
)
def test_only_wanted_tools_are_offered_and_no_mode_gives_more(wanted, mode, offered):
    made = box(*FOREIGN)
    made.narrow(wanted, ["time", "files"])
    assert made.names(mode) == offered
    assert {schema["name"] for schema in made.schemas(mode)} == offered
    for left_out in {*tools.NAMES, "ticket", *FOREIGN} - set(made.names(Mode.FULL_ACCESS)):
        with pytest.raises(ToolError, match=f"{left_out} is unavailable in this chat"):
            made.find(left_out)


def test_tools_of_a_server_that_are_told_later_are_narrowed_too():
    made = box()
    made.narrow(("mcp__time__now",), ["time"])
    assert made.names(Mode.FULL_ACCESS) == set()
    made.settle({name: foreign(name) for name in FOREIGN})
    assert made.names(Mode.FULL_ACCESS) == {"mcp__time__now"}


@pytest.mark.parametrize(
    "wanted", ["raed", "*", "re*", "shell(git *)", "READ", "mcp__tiem__now", "mcp__", "mcp__x*", "mcp__time__?", ""]
)
def test_a_name_of_no_tool_is_an_error_that_names_those_there_are(wanted):
    with pytest.raises(UsageError, match=r"ls, read, grep, write, edit, shell.*ticket.*, mcp__SERVER__TOOL") as found:
        box().narrow(("read", wanted), ["time"])
    assert repr(wanted) in str(found.value)


@pytest.mark.parametrize(("server", "tool"), [("time", "now"), ("my server", "a.b"), ("a__b_", "_x"), ("x" * 60, "y")])
def test_whatever_a_server_and_its_tool_are_called_a_pattern_names_them(server, tool):
    called = name(server, tool)
    for pattern in (called, called[:-1] + "*", called[: called.rindex("__") + 2] + "*", "mcp__*"):
        assert may_name(pattern, server)
    assert not may_name(called, "another")


@pytest.mark.parametrize(("given", "said"), [((), [""]), (("ls", "mcp__a__*"), ["ls,mcp__a__*"])])
def test_a_worker_is_told_them_as_the_person_said_them(given, said):
    assert flags.flags({"tools": given}) == ["--tools", *said]
    assert flags.flags({"tools": None}) == []
