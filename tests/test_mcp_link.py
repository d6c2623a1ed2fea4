"""MCP servers in a chat: what they do well, and what they do to it when they do not."""

import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sessions import asynchronous, of, take
from stage import ROOT, end_worker, facts, run, script, wait_for

from cass import Mode, presence
from cass.mcp import manage
from cass.records import ApprovalRequest, Notice, ToolOutput, ToolResult, User
from cass.rules import Rules

pytest.importorskip("mcp")
SERVER = str(ROOT / "tests" / "hostile_mcp.py")
DONE = {"text": "ok"}
FULL = {"mode": "full-access"}


def entry(way="", **more):
    return {"command": sys.executable, "args": [SERVER, way], **more}


def named(home, **entries):
    home.make()
    home.mcp.write_text(json.dumps({"mcpServers": entries}))


def calls(tool, server="s", **arguments):
    return {"tool_calls": [{"name": f"mcp__{server}__{tool}", "arguments": arguments}]}


@asynccontextmanager
async def settled(opened, *steps, **options):
    async with opened(*steps, **options) as session:
        await session.mcp.settled()
        yield session


async def results(session, **how):
    return of(await take(session, **how), ToolResult)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- what works -----------------------------------------------------------------------------------------------------


@asynchronous
async def test_the_model_calls_a_tool_and_sees_its_progress(opened, home):
    named(home, s=entry())
    async with settled(opened, calls("slow", text="hi"), DONE, **FULL) as session:
        found = await take(session)
        (user,) = of(session.records, User)
    assert "mcp__s__slow" in user.note
    assert [piece.text for piece in of(found, ToolOutput)] == [f"step ({step} of 3)\n" for step in (1, 2, 3)]
    assert of(found, ToolResult)[0].content == "you said hi"


@asynchronous
async def test_tools_are_known_from_the_last_time_and_the_server_is_started_by_a_call(opened, home):
    named(home, s=entry())
    async with settled(opened) as session:
        first = session.mcp.tools()
    async with opened(calls("echo", text="again"), DONE, **FULL) as session:
        assert list(session.mcp.tools()) == list(first) == sorted(first)
        assert session.mcp.servers["s"].state == "not started"
        assert [result.content for result in await results(session)] == ["you said again"]


@asynchronous
async def test_tools_that_come_later_come_with_the_next_turn(opened, home):
    named(home, s=entry())
    steps = [calls("more"), calls("late", text="hi"), DONE, calls("late", text="hi"), DONE]
    async with settled(opened, *steps, **FULL) as session:
        news = []
        session.tell = lambda record: news.append(record.text) if isinstance(record, Notice) else None
        more, early = await results(session)
        while not session.mcp.tools().get("mcp__s__late"):
            session.mcp._news.clear()
            await session.mcp._news.wait()
        (late,) = await results(session)
    assert (more.ok, early.content) == (True, "Error: unknown tool 'mcp__s__late'")
    assert late.content == "you said hi"
    assert "mcp: s: 12 tools from the next message on" in news


@asynchronous
async def test_a_server_that_is_named_or_changed_while_a_worker_runs_is_said_to_be_none_of_its(opened, home, workspace):
    named(home, s=entry(), t=entry())
    async with settled(opened, DONE) as session:
        files = session.files
        named(home, s=entry(), t=entry("noise"), late=entry())
        heads = [line for line in manage.shown(home, workspace, files).splitlines() if not line.startswith("  mcp__")]
    assert [head.partition(",")[0] for head in heads] == [
        "s: ready",
        *(
            "t: not in this chat yet",
            f"  this chat's worker knows none that is reached so; end it with: cass stop {files.chat_id}",
        ),
        *(
            "late: not in this chat yet",
            f"  this chat's worker knows none that is reached so; end it with: cass stop {files.chat_id}",
        ),
    ]
    assert "not in this chat" not in manage.shown(home, workspace, files)  # no worker runs any more


@asynchronous
async def test_a_worker_without_servers_has_none_that_are_named_later(opened, home, workspace):
    async with opened(DONE) as session:
        named(home, s=entry())
        assert manage.shown(home, workspace, session.files).startswith("s: not in this chat yet")


@asynchronous
async def test_lists_of_the_entry_choose_which_tools_are_offered(opened, home):
    named(home, s=entry(allow=["e*"], deny=["environ"]))
    async with settled(opened) as session:
        assert list(session.mcp.tools()) == ["mcp__s__echo"]


@asynchronous
async def test_a_server_runs_in_the_workspace_and_gets_no_key_that_its_entry_does_not_name(
    opened, home, workspace, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-you")
    monkeypatch.setenv("OTHER_TOKEN", "for-you")
    named(home, s=entry(env={"GIVEN": "${OTHER_TOKEN}"}))
    async with settled(opened, calls("environ"), DONE, **FULL) as session:
        (result,) = await results(session)
    given = json.loads(result.content)
    assert (given["cwd"], given["GIVEN"]) == (str(workspace), "for-you")
    assert not {"OPENAI_API_KEY", "OTHER_TOKEN"} & given.keys()


# ---- who decides ----------------------------------------------------------------------------------------------------


RULES = [
    (Rules(), ["mcp__s__echo is unavailable in read-only mode"] * 2),
    (Rules(allow=("mcp__s__echo",)), ["you said a", "you said b"]),
    (Rules(allow=("mcp__s__*",)), ["you said a", "you said b"]),
    (Rules(allow=('mcp__s__echo(*"a"*)',)), ["you said a", "runs mcp__s__echo only where a rule of the user allows"]),
    (Rules(allow=("mcp__*",), deny=("mcp__s__echo(*a*)",)), ["the rule mcp__s__echo(*a*) denies it", "you said b"]),
    (Rules(allow=("mcp__t__*", "read")), ["mcp__s__echo is unavailable in read-only mode"] * 2),
]


@asynchronous
async def test_in_read_only_mode_only_what_a_rule_of_the_person_allows_runs(opened, home):
    named(home, s=entry())
    steps = [calls("echo", text="a"), calls("echo", text="b"), DONE] * len(RULES)
    async with settled(opened, *steps) as session:
        for rules, contents in RULES:
            session.desk.rules = rules
            found = await results(session)
            assert all(content in result.content for result, content in zip(found, contents, strict=True)), found
            offered = session.desk.toolbox.names(Mode.READ_ONLY, rules)
            assert ("mcp__s__echo" in offered) == ("unavailable" not in contents[0])


@asynchronous
async def test_in_workspace_edit_mode_a_call_is_asked_until_it_is_always_allowed(opened, home):
    named(home, s=entry())
    asked = []

    def allow(turn, record):
        if isinstance(record, ApprovalRequest):
            asked.append((record.name, record.rule))
            turn.approve(record.request_id, always=True)

    steps = [calls("echo", text="a"), calls("echo", text="b"), DONE]
    async with settled(opened, *steps, mode="workspace-edit") as session:
        assert all(result.ok for result in await results(session, on=allow))
    assert asked == [("mcp__s__echo", "mcp__s__echo")]


# ---- what servers do to a chat --------------------------------------------------------------------------------------


@asynchronous
async def test_noise_is_skipped_and_noted_in_the_log(opened, home):
    named(home, s=entry("noise"))
    async with settled(opened, calls("echo", text="hi"), DONE, **FULL) as session:
        (result,) = await results(session)
        log = session.files.mcp_log.read_text()
    assert result.content == "you said hi"
    assert "s: no message: My MCP server v1" in log


@asynchronous
async def test_a_call_ends_with_an_error_whatever_the_server_does(opened, home):
    named(home, s=entry(call_timeout_s=0.5))
    tools = ["die", "echo", "hang", "glue", "fail", "large"]
    async with settled(opened, *(calls(tool, text="hi") for tool in tools), DONE, **FULL) as session:
        found = await take(session)
    died, after, hung, glued, failed, large = of(found, ToolResult)
    assert "the MCP server s ended during the call; it ended with status -9" in died.content
    assert "it said: I cannot go on" in died.content
    assert after.content == "you said hi"
    assert 'did not answer within 0.5 s ("call_timeout_s" of its entry)' in hung.content
    assert "it wrote other text in front of an answer" in glued.content
    assert failed.content == "Error: there is no such thing"
    assert (large.ok, 1 << 20 < len(large.content) < 1_100_000) == (True, True)
    assert found[-1].outcome == "done"


@asynchronous
async def test_servers_that_do_not_start_are_named_and_the_chat_goes_on(opened, home):
    silent = entry("silent", startup_timeout_s=0.5)
    named(home, gone={"command": "/nonexistent"}, exits=entry("exit"), silent=silent, good=entry())
    async with opened(DONE, DONE) as session:
        assert (await take(session))[-1].outcome == "done"  # before any of them could have said anything
        news = []
        session.tell = lambda record: news.append(record.text) if isinstance(record, Notice) else None
        await session.mcp.settled()
        assert (await take(session))[-1].outcome == "done"
    assert sorted(news) == [
        "mcp: exits: it ended with status 1; it said: no licence found",
        "mcp: gone: there is no /nonexistent",
        "mcp: good: 11 tools from the next message on",
        'mcp: silent: it was not ready within 0.5 s ("startup_timeout_s" of its entry)',
    ]


@asynchronous
async def test_hostile_names_and_descriptions_reach_nobody_as_they_are(opened, home):
    named(home, **{"my\x1b[2Jserver": entry("names")})
    async with settled(opened) as session:
        told = session.mcp.tools()
    assert len(told) == 7
    assert "\x1b" not in json.dumps([[name, tool.description] for name, tool in told.items()], ensure_ascii=False)


@asynchronous
async def test_a_cancelled_turn_cancels_the_call_and_the_server_stays(opened, home):
    named(home, s=entry())
    steps = [calls("slow"), calls("echo", text="hi"), DONE]

    def stop(turn, record):
        if isinstance(record, ToolOutput):
            turn.interrupt()

    async with settled(opened, *steps, **FULL) as session:
        found = await take(session, on=stop)
        assert found[-1].outcome == "cancelled"
        assert [result.content for result in await results(session)] == ["you said hi"]


@asynchronous
async def test_when_the_host_of_the_servers_is_killed_the_call_fails_and_the_next_one_starts_it_again(opened, home):
    named(home, s=entry())

    def kill(turn, record):
        if isinstance(record, ToolOutput):
            session.mcp._process.kill()

    steps = [calls("slow", text="hi"), calls("echo", text="hi"), DONE]
    async with settled(opened, *steps, **FULL) as session:
        killed, after = await results(session, on=kill)
    assert killed.content == "Error: the host of the MCP servers ended; the next call starts it again"
    assert after.content == "you said hi"


@asynchronous
async def test_a_closed_session_leaves_no_server_behind(opened, home):
    named(home, s=entry())
    async with settled(opened, calls("environ"), DONE, **FULL) as session:
        (result,) = await results(session)
        pid = json.loads(result.content)["pid"]
        assert is_alive(pid)
    assert not is_alive(pid)


def test_a_killed_worker_takes_its_servers_with_it(home, files, monkeypatch):
    named(home, s=entry())
    script(home, calls("environ"), DONE)
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    monkeypatch.setenv("CASS_MODE", "full-access")
    assert run("cass", "mcp", "test").returncode == 0
    done = run("cass-send", "--wait", files.chat_id, "go")
    assert done.returncode == 0, done.stderr
    pid = json.loads(facts(files, ToolResult)[-1].content)["pid"]
    assert is_alive(pid)
    os.kill(presence.holder(files)["pid"], signal.SIGKILL)
    wait_for(lambda: not is_alive(pid), 10, "the server outlived the worker")
    end_worker(files)


# ---- programs -------------------------------------------------------------------------------------------------------


def test_cass_mcp_adds_shows_tests_and_removes_a_server_whose_tools_p_can_use_at_once(home, workspace):
    done = run("cass", "mcp", "add", "--env", "A=b", "s", "--", sys.executable, SERVER)
    assert done.returncode == 0, done.stderr
    assert "s: works, 11 tools" in done.stdout
    assert json.loads(home.mcp.read_text())["mcpServers"]["s"]["env"] == {"A": "b"}
    assert "mcp__s__echo" in run("cass", "mcp", "list").stdout
    assert json.loads(run("cass", "mcp", "list", "--json").stdout)[0]["name"] == "s"
    script(home, calls("echo", text="hi"), DONE)
    done = run("cass", "-p", "--provider", "scripted", "--full-access", "--output-format", "stream-json", "go")
    assert "you said hi" in done.stdout, done.stderr
    assert "s: works" in run("cass", "mcp", "test").stdout
    assert "there is a server s already" in run("cass", "mcp", "add", "s", "cat").stderr
    assert run("cass", "mcp", "remove", "s").returncode == 0
    assert "no MCP servers" in run("cass", "mcp", "list").stdout


def test_p_says_which_server_does_not_start(home, workspace):
    named(home, s=entry("exit"))
    script(home, DONE)
    done = run("cass", "-p", "--provider", "scripted", "go")
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert "mcp: s: it ended with status 1; it said: no licence found" in done.stderr


def test_p_waits_for_the_tools_of_a_server_that_never_ran(home, workspace):
    named(home, s=entry())
    script(home, calls("echo", text="hi"), DONE)
    done = run("cass", "-p", "--provider", "scripted", "--full-access", "--output-format", "stream-json", "go")
    assert "you said hi" in done.stdout, done.stderr
