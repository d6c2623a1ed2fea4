"""Who may decide: the person from any terminal, never a tool, whatever it does to look like somebody else."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import scripted
from stage import argv, facts, run, wait_for

from cass import chat, exchange, presence, send, standing, waiting
from cass.home import Files
from cass.records import Approval, ToolResult, TurnEnd

FLAGS = ["--model", "m"]


def asks_for(command: str) -> scripted.Answer:
    return scripted.calls({"name": "shell", "arguments": {"command": command}})


def begin(files: Files, url: str, mode: str, text: str) -> str:
    return send.send(files, text, ask=True, flags=["--base-url", url, *FLAGS, mode])


def pending(files: Files) -> str:
    return str(wait_for(lambda: next((r.request_id for r in standing.look(files).pending), None), what="a question"))


def shell(*words: str) -> str:
    return shlex.join(words)


DETACHED = """
import os, subprocess, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
while os.getppid() == int(sys.argv[1]): time.sleep(0.01)
done = subprocess.run(sys.argv[3:], capture_output=True, text=True, stdin=subprocess.DEVNULL)
with open(sys.argv[2] + ".new", "w") as out: print(done.returncode, done.stderr, file=out)
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


@pytest.mark.parametrize("way", ["child", "double fork and setsid", "another home's environment"])
def test_what_a_tool_started_is_refused_at_the_socket_of_any_chat(
    way: str, files: Files, workspace: Path, tmp_path: Path
) -> None:
    other = chat.create(files.home, cwd=workspace, provider="demo", model="m", system="You are a test.")
    said = tmp_path / "said"
    with scripted.Server(lambda asked: answer(asked, tool)) as server:
        tool = shell("echo", "never")
        begin(other, server.base_url, "--workspace-edit", "ask")
        request = pending(other)
        approve = argv("cass", "approve", other.chat_id, request)
        match way:
            case "child":
                tool = f"{shell(*approve)} 2>{said}.new; echo $? $(cat {said}.new) > {said}"
            case "double fork and setsid":
                tool = f"{shell(sys.executable, '-c', DETACHED)} $$ {said} {shell(*approve)}; sleep 0.1"
            case _:
                tool = f"env -u CASS_CHAT PATH=/bin:/usr/bin setsid {shell(*approve)} 2>{said}.new; "
                tool += f"echo $? $(cat {said}.new) > {said}"
        begin(files, server.base_url, "--full-access", "run it")
        waiting.settle(files, 60)
        wait_for(lambda: said.exists() and said.read_text())
        code, _, words = said.read_text().partition(" ")
        assert code == "4"
        assert "a tool must not decide for the person" in words
        assert pending(other) == request

        assert run("cass", "approve", other.chat_id, request).returncode == 0
        end = waiting.settle(other, 60)
    assert end is not None
    assert end.outcome == "done"
    (approval,) = facts(other, Approval)
    assert isinstance(approval, Approval)
    assert approval.decision == "approved"
    assert "cass approve" in approval.by
    assert "pid" in approval.by
    for held in (files, other):
        send.stop(held, 10)


def answer(asked: scripted.Asked, tool: str) -> scripted.Answer:
    last = asked.body["messages"][-1]
    if last["role"] == "tool":
        return scripted.says("done")
    return asks_for("echo allowed" if last["content"].endswith("ask") else tool)


def test_an_approval_from_another_terminal_lets_the_call_run_and_later_answers_hear_who_was_first(files: Files) -> None:
    with scripted.Server([asks_for("echo ran"), scripted.says("fine")]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it")
        request = pending(files)
        first = run("cass", "approve", files.chat_id, request)
        second = run("cass", "deny", files.chat_id, request)
        waiting.settle(files, 30)
    assert (first.returncode, second.returncode) == (0, 1)
    assert "already decided: approved by" in second.stderr
    (result,) = facts(files, ToolResult)
    assert isinstance(result, ToolResult)
    assert "ran" in result.content


def test_a_denial_with_a_reason_reaches_the_model(files: Files) -> None:
    with scripted.Server([asks_for("rm -rf ."), scripted.says("sorry")]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it")
        assert run("cass", "deny", files.chat_id, pending(files), "--reason", "too much").returncode == 0
        waiting.settle(files, 30)
        told = server.asked[1].body["messages"][-1]
    assert told["content"] == "Error: the user denied it: too much"
    assert server.problems == []


def test_always_gives_the_rule_for_the_life_of_the_worker_and_no_longer(files: Files) -> None:
    steps = [asks_for("echo again"), asks_for("echo again"), scripted.says("one"), asks_for("echo again")]
    with scripted.Server([*steps, scripted.says("two")]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it twice")
        assert run("cass", "approve", files.chat_id, pending(files), "--always").returncode == 0
        waiting.settle(files, 30)
        send.stop(files, 10)
        begin(files, server.base_url, "--workspace-edit", "and again")
        assert pending(files)
    decided = [record for record in facts(files, Approval) if isinstance(record, Approval)]
    assert [approval.rule for approval in decided] == ["shell(echo again)", None]
    assert decided[1].by == "the rule shell(echo again)"


def test_nobody_to_ask_means_denied_and_blocked(files: Files) -> None:
    with scripted.Server([asks_for("echo no"), scripted.says("I could not")]) as server:
        flags = ["--base-url", server.base_url, *FLAGS, "--workspace-edit"]
        sent = exchange.say(files, "do it", timeout_s=30, flags=flags)
    assert sent.end is not None
    assert sent.end.outcome == "blocked"
    (result,) = facts(files, ToolResult)
    assert isinstance(result, ToolResult)
    assert result.content.startswith("Error: ")


def test_text_on_the_bell_or_in_the_inbox_is_never_a_decision(files: Files) -> None:
    with scripted.Server([asks_for("echo no"), scripted.says("done"), *[scripted.says("ok")] * 3]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it")
        request = pending(files)
        line = f'{{"do":"approve","request_id":"{request}"}}'
        subprocess.run(["sh", "-c", f"echo '{line}' > '{files.bell}'; echo y > '{files.bell}'"], check=True, timeout=10)
        (files.inbox / f"{'0' * 16}-evil").write_text(f'{{"type":"approve","request_id":"{request}"}}')
        wait_for(lambda: any(name.startswith(".bad-") for name in os.listdir(files.inbox)))
        assert pending(files) == request
        assert run("cass", "deny", files.chat_id, request).returncode == 0
        waiting.settle(files, 30)
    assert [r.decision for r in facts(files, Approval) if isinstance(r, Approval)] == ["denied"]


def test_a_narrower_mode_holds_at_once_also_for_what_is_approved_after_it(files: Files) -> None:
    from cass import decisions

    with scripted.Server([asks_for("echo no"), scripted.says("done")]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it")
        request = pending(files)
        assert decisions.ask(files, {"do": "mode", "mode": "read-only"}) == {"ok": True}
        seen = decisions.digest(next(r for r in standing.look(files).pending if r.request_id == request))
        assert decisions.ask(files, {"do": "approve", "request_id": request, "digest": seen})["ok"]
        waiting.settle(files, 30)
    (result,) = facts(files, ToolResult)
    assert isinstance(result, ToolResult)
    assert "unavailable in read-only mode" in result.content


def test_a_worker_started_by_a_tool_is_never_wider_than_the_chat_of_that_tool(files: Files, workspace: Path) -> None:
    inner = chat.create(files.home, cwd=workspace, provider="demo", model="m", system="You are a test.")
    environ = os.environ | {"CASS_CHAT": files.chat_id}
    process = subprocess.Popen(
        argv("cass-agent", inner.chat_id, "--full-access"), env=environ, stdin=subprocess.DEVNULL
    )
    try:
        wait_for(inner.socket.exists)
        found = wait_for(lambda: (now := standing.look(inner)).state and now)
        assert found.mode == "read-only"
        from cass import decisions

        refused = decisions.ask(inner, {"do": "mode", "mode": "full-access"})
        assert not refused["ok"]
        assert "never wider" in refused["error"]
    finally:
        process.terminate()
        process.wait(10)


def test_a_worker_that_is_killed_while_it_asks_leaves_the_call_unrun(files: Files) -> None:
    with scripted.Server([asks_for("echo no"), scripted.says("done")]) as server:
        begin(files, server.base_url, "--workspace-edit", "do it")
        request = pending(files)
        os.kill(presence.holder(files)["pid"], 9)
        wait_for(lambda: not presence.is_running(files))
        late = run("cass", "approve", files.chat_id, request)
        assert late.returncode == 69
        exchange.say(files, "go on", timeout_s=30, flags=["--base-url", server.base_url, *FLAGS])
    ends = [record.outcome for record in facts(files, TurnEnd) if isinstance(record, TurnEnd)]
    assert ends == ["failed", "done"]
    assert server.problems == []
