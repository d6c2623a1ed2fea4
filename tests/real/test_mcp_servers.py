"""MCP servers of other projects as a chat uses them: over stdio, and over HTTP."""

import json
import socket
import subprocess
from contextlib import contextmanager

import pytest
from sessions import asynchronous, of, take
from stage import wait_for

from cass.records import ToolOutput, ToolResult

pytest.importorskip("mcp")
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]

DONE = {"text": "ok"}


def calls(*named):
    return [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in named] + [DONE]


async def answers(opened, home, entries, *named):
    """All that came of calls, in a chat with these servers."""
    home.make()
    home.mcp.write_text(json.dumps({"mcpServers": entries}))
    async with opened(*calls(*named), mode="full-access") as session:
        await session.mcp.settled()
        states = {name: (one.state, one.why) for name, one in session.mcp.servers.items()}
        assert states == dict.fromkeys(entries, ("ready", ""))
        return await take(session)


def git(workspace, *arguments):
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *name, *arguments], cwd=workspace, check=True, capture_output=True)


@asynchronous
async def test_servers_from_pypi_tell_the_time_and_read_a_repository(opened, home, workspace, mcp_pypi):
    git(workspace, "init")
    git(workspace, "add", ".")
    git(workspace, "commit", "-m", "the first lamp")
    found = await answers(
        opened,
        home,
        mcp_pypi,
        ("mcp__time__convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ("mcp__time__convert_time", {"source_timezone": "Mars/Base", "time": "12:00", "target_timezone": "UTC"}),
        ("mcp__git__git_log", {"repo_path": str(workspace)}),
        ("mcp__git__git_status", {"repo_path": "/nonexistent"}),
    )
    time, wrong, log, nowhere = of(found, ToolResult)
    assert "21:00" in time.content
    assert "the first lamp" in log.content
    assert [result.ok for result in (time, wrong, log, nowhere)] == [True, False, True, False]


EVERYTHING = [
    ("mcp__everything__echo", {"message": "hello"}),
    ("mcp__everything__get-tiny-image", {}),
    ("mcp__everything__get-structured-content", {"location": "Chicago"}),
    ("mcp__everything__trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    ("mcp__everything__get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
]


def is_everything(found):
    echo, image, structured, long, resource = of(found, ToolResult)
    assert echo.content == "Echo: hello"
    assert "[image, image/png, " in image.content
    assert structured.content.count("temperature") == 1  # said as text and as structured content
    assert "completed" in long.content
    assert "[resource demo://" in resource.content
    assert [piece.text for piece in of(found, ToolOutput)] == ["1 of 2\n", "2 of 2\n"]


@asynchronous
async def test_servers_from_npm_show_all_kinds_of_content_and_keep_to_a_directory(opened, home, workspace, mcp_npm):
    filesystem = mcp_npm["filesystem"]
    entries = mcp_npm | {"filesystem": filesystem | {"args": [*filesystem["args"], str(workspace)], "deny": ["write*"]}}
    found = await answers(
        opened,
        home,
        entries,
        *EVERYTHING,
        ("mcp__filesystem__read_text_file", {"path": str(workspace / "notes.txt")}),
        ("mcp__filesystem__read_text_file", {"path": "/etc/passwd"}),
        ("mcp__filesystem__write_file", {"path": str(workspace / "a"), "content": "b"}),
    )
    results = of(found, ToolResult)
    is_everything([record for record in found if record not in results[5:]])
    inside, outside, denied = results[5:]
    assert inside.content == "nothing here\n"
    assert "outside allowed directories" in outside.content
    assert denied.content == "Error: unknown tool 'mcp__filesystem__write_file'"


@contextmanager
def over_http(entry, log):
    """The URL of a server that listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [entry["command"], *entry["args"], "streamableHttp"]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env={"PORT": str(port)}) as process:
        try:
            wait_for(lambda: b"listening" in log.read_bytes(), what=lambda: log.read_text())
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@asynchronous
async def test_a_server_is_reached_over_http(opened, home, workspace, mcp_npm, tmp_path):
    with over_http(mcp_npm["everything"], tmp_path / "log") as url:
        is_everything(await answers(opened, home, {"everything": {"type": "http", "url": url}}, *EVERYTHING))


@asynchronous
async def test_a_server_that_is_gone_from_its_address_is_an_error_result(opened, home, workspace, mcp_npm, tmp_path):
    home.make()
    with over_http(mcp_npm["everything"], tmp_path / "log") as url:
        home.mcp.write_text(json.dumps({"mcpServers": {"everything": {"url": url}}}))
        async with opened(*calls(EVERYTHING[0]), mode="full-access") as session:
            await session.mcp.settled()
            assert of(await take(session), ToolResult)[0].ok
    async with opened(*calls(EVERYTHING[0]), mode="full-access") as session:
        (result,) = of(found := await take(session), ToolResult)
    assert result.content.startswith("Error: the MCP server everything cannot be asked: ")
    assert found[-1].outcome == "done"
