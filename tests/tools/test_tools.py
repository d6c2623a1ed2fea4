"""The table of tools: names, schemas, and arguments that are checked before anything happens."""

import json
import os
import time

import pytest

from cass import tools
from cass.errors import ToolError


def nested(depth: int) -> list[object]:
    """A list in a list in a list: what a parser still takes, and `str` no longer does."""
    found: list[object] = []
    for _ in range(depth):
        found = [found]
    return found


DEEP = nested(20_000)
DIGITS = "9" * 5_000
"""More than `int` takes."""


def test_the_tools_stand_in_a_fixed_order():
    assert tools.NAMES == ("ls", "read", "grep", "write", "edit", "shell", "fetch")
    assert [schema["name"] for schema in tools.schemas(["shell", "ls"])] == ["ls", "shell"]


def test_an_unknown_tool_is_named():
    with pytest.raises(ToolError, match=r"^unknown tool 'bash'$"):
        tools.find("bash")


def test_all_schemas_together_stay_lean():
    functions = [{"type": "function", "function": schema} for schema in tools.schemas(tools.NAMES)]
    assert len(json.dumps(functions, separators=(",", ":"))) < 2_550


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("fetch", {}, '"url" is missing'),
        ("fetch", {"url": "docs.python.org"}, "must begin with http:// or https://"),
        ("fetch", {"url": "https://a/", "offset": "x"}, '"offset" must be an integer'),
        ("fetch", {"url": "https://a/", "method": "POST"}, 'takes url, offset; not "method"'),
        ("ls", {"path": 5}, '"path" must be a string, not a number (5)'),
        ("ls", {"path": ""}, '"path" must be a path'),
        ("ls", {"path": "a\0b"}, '"path" must be a path'),
        ("ls", {"path": "a\ud800"}, '"path" holds half a character at 1'),
        ("ls", {"dir": "."}, 'takes path; not "dir"'),
        ("read", {}, '"files" must be a list of {"path","lines"?}'),
        ("read", {"files": []}, '"files" must be a list'),
        ("read", {"files": [3]}, '"files" must be a list'),
        ("read", {"files": [{"lines": "1-2"}]}, '"path" is missing'),
        ("read", {"files": [{"path": "a", "lines": "x"}]}, '"lines" must be like "35-60"'),
        ("read", {"files": [{"path": "a", "lines": "9-3"}]}, "3 comes before 9"),
        ("read", {"path": "a", "offset": "x"}, '"offset" must be an integer'),
        ("grep", {}, '"query" is missing'),
        ("grep", {"query": ""}, '"query" is empty'),
        ("grep", {"query": "x", "regex": "perhaps"}, '"regex" must be true or false'),
        ("grep", {"query": "x", "paths": [1]}, '"paths" must be a path'),
        ("grep", {"query": "x", "show": "all"}, '"show" must be one of lines, files, counts, not a string (all)'),
        ("grep", {"query": "x", "include": "a{b{c}"}, "\"include\": 'a{b{c}' is no glob of an ignore file"),
        ("write", {"path": "a"}, '"content" is missing'),
        ("write", {"path": "a/", "content": ""}, "must name a file"),
        ("write", {"path": "a", "content": {"a": 1}}, '"content" must be a string, not an object'),
        ("write", {"path": "a", "content": "\ud800"}, "half a character"),
        ("edit", {"path": "a"}, '"edits" must be a list of {"old_text","new_text"'),
        ("edit", {"path": "a", "edits": ["x"]}, '"edits" must be a list'),
        ("edit", {"path": "a", "edits": [{"new_text": "x"}]}, 'edit 1: "old_text" is missing'),
        ("shell", {}, '"command" is missing'),
        ("shell", {"command": " "}, "must be a command"),
        ("shell", {"command": "ls", "cwd": "/"}, 'takes command, timeout_ms; not "cwd"'),
        ("shell", {"command": "ls", "timeout_ms": "soon"}, '"timeout_ms" must be an integer'),
        ("shell", {"command": "ls", "timeout_ms": DEEP}, '"timeout_ms" must be an integer, not a list'),
        ("shell", {"command": "ls", "timeout_ms": float("inf")}, "must be an integer, not a number (inf)"),
        ("grep", {"query": "x", "max_matches": "+-5"}, '"max_matches" must be an integer, not a string (+-5)'),
        ("grep", {"query": "x", "max_matches": DIGITS}, '"max_matches" must be an integer'),
        ("grep", {"query": "x", "regex": DEEP}, '"regex" must be true or false, not a list'),
        ("grep", {"query": "x", "paths": DEEP}, '"paths" must be a path'),
        ("grep", {"query": "x", "paths": ["a"] * 1_001}, '"paths" holds 1,001 items; at most 1,000 go into one call'),
        ("ls", {"path": DEEP}, '"path" must be a string, not a list'),
        ("ls", {"path": '"a\\000b"'}, '"path" must be a path, without a NUL'),
        ("ls", {"x" * 100: 1}, f'takes path; not "{"x" * 40}"'),
        ("read", {"files": ['"a\\000b"']}, '"path" must be a path, without a NUL'),
        ("read", {"files": [{"path": "a", "lines": f"{DIGITS}-"}]}, '"lines" must be like "35-60"'),
        ("read", {"files": [{"path": "a", "lines": DEEP}]}, '"lines" must be like "35-60"'),
        ("read", {"files": [{"path": "a", "lines": [1, DEEP]}]}, '"lines" must be like "35-60"'),
        ("read", {"files": [{"path": "a", "lines": " " * 100_000 + "x"}]}, '"lines" must be like "35-60"'),
        ("edit", {"path": "a", "edits": "[" * 100_000}, '"edits" must be a list'),
    ],
)
def test_wrong_arguments_are_explained_before_anything_runs(workspace, tool, arguments, message):
    with pytest.raises(ToolError) as failed:
        workspace.reaches(tool, **arguments)
    assert message in str(failed.value)
    assert str(failed.value).startswith(tool.split()[0])
    assert os.listdir(workspace.root) == []


@pytest.mark.parametrize("path", ["a/" * 500_000 + "b", "a" * 5_000, "a/" * 300 + "b", "[" * 100_000])
@pytest.mark.parametrize("tool", ["ls", "read", "grep", "write", "edit"])
def test_a_path_that_no_system_takes_is_refused_at_once_by_every_tool(workspace, tool, path):
    more = {"grep": {"query": "x"}, "write": {"content": ""}, "edit": {"old_text": "a", "new_text": "b"}}.get(tool, {})
    begun = time.monotonic()
    with pytest.raises(ToolError, match=r"^the path .* is too (long: [\d,]+ bytes|deep: [\d,]+ levels) of"):
        workspace.reaches(tool, **{"files" if tool == "read" else "path": path}, **more)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"files": "a.txt"}),
        ("read", {"files": {"path": "a.txt", "lines": ""}}),
        ("read", {"files": ["a.txt"]}),
        ("read", {"files": '[{"path": "a.txt"}]'}),
        ("read", {"path": "a.txt"}),
        ("read", {"path": "a.txt", "offset": "1", "limit": 1.0}),
        ("read", {"files": [{"path": "a.txt", "lines": [1, 2]}]}),
        ("read", {"files": [{"path": "a.txt", "lines": "lines 1..2"}]}),
        ("grep", {"query": "one", "paths": "a.txt", "regex": "true", "context_lines": "0", "max_matches": None}),
        ("grep", {"query": "one", "path": "a.txt"}),
        ("ls", {}),
    ],
)
def test_what_is_clearly_meant_is_taken(workspace, tool, arguments):
    (workspace.root / "a.txt").write_text("one\n")
    assert "a.txt" in workspace(tool, **arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "paths"),
    [
        ("read", {"files": ["a", {"path": "../OUT/b"}]}, ["W/a", "OUT/b"]),
        ("grep", {"query": "x", "paths": ["a", "b/.."]}, ["W/a", "W"]),
        ("grep", {"query": "x"}, ["W"]),
        ("write", {"path": "n/x", "content": ""}, ["W/n/x"]),
        ("edit", {"path": "a", "edits": [{"old_text": "a", "new_text": "b"}]}, ["W/a"]),
        ("shell", {"command": "cat a"}, []),
    ],
)
def test_an_action_names_all_paths_of_a_call(workspace, tool, arguments, paths):
    reaches = workspace.reaches(tool, **arguments)
    assert [os.path.relpath(reach.path, workspace.root.parent) for reach in reaches] == paths
    assert all(reach.write == (tool in ("write", "edit")) for reach in reaches)
