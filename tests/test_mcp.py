"""MCP servers as they are written down, their tools' names, and what results are as text."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import run

from cass import trust
from cass.mcp import names, servers, words
from cass.mcp.servers import Server, Wrong

TAKEN = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
"""By every API."""


def named(home, entries):
    home.make()
    home.mcp.write_text(json.dumps({"mcpServers": entries}))


# ---- the files ------------------------------------------------------------------------------------------------------


def test_variables_are_filled_in_and_a_missing_one_leaves_its_server_out(home, workspace):
    entry = {"command": "${BIN}/server", "args": ["${PORT:-80}"], "env": {"KEY": "${KEY}"}}
    named(home, {"a": entry, "b": {"command": "x", "args": ["${NOPE}"]}})
    found = servers.load(home, workspace, {"BIN": "/bin", "KEY": "secret"})
    assert [(server.command, server.env) for server in found.servers] == [(("/bin/server", "80"), {"KEY": "secret"})]
    assert found.notices == (f'{home.mcp}: "mcpServers": \'b\' is not used: "args": the variable NOPE is not set',)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ([], "expected an object"),
        ({}, 'expected either "command" or "url"'),
        ({"command": "a", "url": "http://b"}, 'expected either "command" or "url"'),
        ({"command": 5}, '"command": expected a text'),
        ({"command": "a", "args": "b"}, '"args": expected a list of texts'),
        ({"command": "a", "env": {"B": 1}}, '"env": expected an object of texts'),
        ({"command": "a", "call_timeout_s": 0}, '"call_timeout_s": expected seconds'),
        ({"url": "ftp://b"}, '"url": expected one that begins with http'),
        ({"type": "sse", "url": "http://b"}, "is spoken no more"),
    ],
)
def test_a_wrong_entry_says_what_is_expected(entry, why):
    with pytest.raises(Wrong, match=re.escape(why)):
        servers.server("a", entry, {})


@pytest.mark.parametrize("content", ["", "[]", "{", '{"mcpServers": []}', '{"servers": {"a": {"command": "b"}}}'])
def test_a_file_that_is_wrong_as_a_whole_is_a_notice(home, workspace, content):
    home.make()
    home.mcp.write_text(content)
    found = servers.load(home, workspace, {})
    assert found.servers == ()
    assert "no server of it is used" in found.notices[0]


def test_servers_of_a_project_are_used_only_as_they_were_trusted(home, workspace):
    path = workspace / ".mcp.json"
    path.write_text('{"mcpServers": {"mine": {"command": "theirs"}, "other": {"command": "b"}}}')
    named(home, {"mine": {"command": "a"}})
    assert [server.name for server in servers.load(home, workspace, {}).servers] == ["mine"]
    trust.give(trust.standing(workspace, home), home)
    found = servers.load(home, workspace, {})
    assert [(server.name, server.command) for server in found.servers] == [("mine", ("a",)), ("other", ("b",))]
    assert f"{home.mcp} names a server so too" in found.notices[0]
    path.write_text(path.read_text() + " ")
    assert [server.name for server in servers.load(home, workspace, {}).servers] == ["mine"]


def test_servers_of_the_top_of_the_repository_are_used_below_what_a_directory_between_configures(home, workspace):
    (workspace / ".git").mkdir()
    below = workspace / "below"
    for place, command in ((workspace, "far"), (below, "near")):
        place.mkdir(exist_ok=True)
        entries = {"same": {"command": command}, command: {"command": command}}
        (place / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
        trust.give(trust.standing(place, home), home)
    found = servers.load(home, below, {})
    assert [(one.name, one.command[0]) for one in found.servers] == [("same", "near"), ("near", "near"), ("far", "far")]
    assert "'same' is not used" in found.notices[0]
    (below / ".mcp.json").unlink()
    (below / ".cass" / "prompts").mkdir(parents=True)
    assert [one.name for one in servers.load(home, below, {}).servers] == ["same", "far"]


def test_one_that_the_person_switched_off_stays_off_whoever_names_it(home, workspace):
    (workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "theirs"}}}')
    trust.give(trust.standing(workspace, home), home)
    named(home, {"a": {"command": "mine", "disabled": True}})
    assert servers.load(home, workspace, {}).servers == ()


def test_a_key_that_means_nothing_here_is_said_and_the_server_is_used(home, workspace):
    named(home, {"a": {"command": "b", "type": "stdio", "denny": ["write_*"]}})
    found = servers.load(home, workspace, {})
    assert [server.name for server in found.servers] == ["a"]
    assert found.notices == (f"{home.mcp}: \"mcpServers\": 'a': unknown key 'denny'",)


def test_allow_and_deny_lists_choose_the_tools_of_a_server():
    server = Server("a", allow=("read_*", "list"), deny=("*_secret",))
    assert [tool for tool in ("read_file", "read_secret", "list", "write") if server.offers(tool)] == [
        *("read_file", "list")
    ]


# ---- names ----------------------------------------------------------------------------------------------------------

ODD = [
    "search",
    "read",
    "admin.tools.list",
    "admin/tools/list",
    "日本語",
    "日本誤",
    "x" * 70,
    "x" * 71,
    "shell",
    "_",
    "é",
]


def test_names_fit_every_api_are_unique_and_the_same_on_every_start():
    pairs = list(itertools.product(["my server", "my.server", "a", "a_", "a__b", "b"], [*ODD, "b__search"]))
    found = [names.name(*pair) for pair in pairs]
    assert all(map(TAKEN.match, found))
    assert len(set(found)) == len(pairs)
    assert found[::-1] == [names.name(*pair) for pair in pairs[::-1]]
    assert names.name("git", "git_log") == "mcp__git__git_log"


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique=True, max_size=20))
def test_no_two_tools_are_called_the_same(pairs):
    found = {names.name(*pair) for pair in pairs}
    assert len(found) == len(pairs)
    assert all(map(TAKEN.match, found))


def test_what_a_model_is_told_of_a_tool_is_bounded_and_visible():
    schema = {"$schema": "x", "type": "object", "properties": {"a" * 20_000: {}}}
    listed = [{"name": "a", "description": "\x1b[2J" + "d" * 9999, "schema": schema}, {"name": "a"}, {"name": ""}, 5]
    found, left = names.offered(Server("s"), listed)
    told = found["mcp__s__a"]
    assert (len(told["description"]), told["parameters"]) == (1024, {"type": "object"})
    assert "\x1b" not in told["description"]
    assert left == ["a second tool called a is left out", *["a tool without a name is left out"] * 2]


def test_more_tools_than_a_request_may_hold_are_left_out_and_said():
    found, left = names.offered(Server("s"), [{"name": f"t{number:03}"} for number in range(200)])
    assert len(found) == names.TOOLS
    assert left == ["more than 128 tools: t128 and the rest are left out"]


# ---- results --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        (
            {"content": [{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}]},
            "[image, image/png, 5 bytes: not shown to the model]",
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "c"}}]}, "[resource a:b]\nc"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "aGVsbG8="}}]},
            "[resource a:b, 5 bytes: not shown to the model]",
        ),
        ({"content": [{"type": "resource_link", "uri": "a:b", "name": "c"}]}, "[resource a:b: c]"),
        ({"content": [{"type": "hologram"}]}, "[content of an unknown kind: hologram]"),
        ({"content": [], "structuredContent": {"a": 1}}, '[structured content]\n{\n "a": 1\n}'),
        ({"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}}, '{"a":1}'),
        ({"content": [{"type": "text", "text": "a"}], "structuredContent": {"result": "a"}}, "a"),
        ({"content": []}, "[the server answered with nothing]"),
        ({}, "[the server answered with nothing]"),
    ],
)
def test_every_kind_of_content_is_text_for_the_model(result, text):
    assert words.text(result) == text


# ---- cass mcp -------------------------------------------------------------------------------------------------------


def test_a_file_that_is_a_link_stays_one_and_what_else_stands_in_it(home, workspace):
    home.make()
    kept = workspace / "kept.json"
    kept.write_text('{"other": 1, "mcpServers": {"a": {"command": "b"}}}')
    home.mcp.symlink_to(kept)
    servers.keep(home, "c", {"command": "d"})
    servers.keep(home, "a", None)
    assert home.mcp.is_symlink()
    assert json.loads(kept.read_text()) == {"other": 1, "mcpServers": {"c": {"command": "d"}}}


def test_a_list_for_programs_is_json_alone_and_what_is_wrong_is_said_beside_it(home, workspace):
    named(home, {"a": {"command": "b"}, "c": {}})
    done = run("cass", "mcp", "list", "--json")
    assert json.loads(done.stdout) == [{"name": "a", "address": "b", "tools": []}]
    assert "'c' is not used" in done.stderr


def test_what_cannot_be_a_server_is_refused_and_nothing_is_written(home, workspace):
    for said, why in [
        (["a"], "a server is a COMMAND"),
        (["--url", "http://127.0.0.1:9", "a", "cat"], "a server is a COMMAND"),
        (["--env", "A", "a", "cat"], "--env takes NAME=VALUE"),
        (["--header", "A=b", "a", "cat"], "--header goes with --url"),
        (["a", "--url", "http://127.0.0.1:9"], "--url stands before NAME"),
        (["a", "http://127.0.0.1:9"], "--url http://127.0.0.1:9 NAME"),
        (["a", "/nonexistent/server"], "a: there is no /nonexistent/server; nothing was written down"),
    ]:
        done = run("cass", "mcp", "add", *said)
        assert (done.returncode != 0, done.stdout, why in done.stderr) == (True, "", True), done.stderr
    assert not home.mcp.exists()
    assert "no MCP servers" in run("cass", "mcp", "test").stdout
