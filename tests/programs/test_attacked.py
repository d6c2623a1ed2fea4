"""What somebody may do to a running chat from outside: nothing accepted is lost, nothing is decided for the person."""

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import scripted
from stage import argv, facts, run, wait_for

from cass import decisions, exchange, inbox, presence, records, send, standing, waiting
from cass.home import Files
from cass.records import ApprovalRequest, ToolResult, TurnEnd, User


def flags(server: scripted.Server, mode: str = "--full-access") -> list[str]:
    return ["--base-url", server.base_url, "-m", "m", mode]


def said(files: Files) -> list[str]:
    return [user.id for user in facts(files, User) if isinstance(user, User)]


def pending(files: Files) -> ApprovalRequest:
    found: ApprovalRequest = wait_for(lambda: next(iter(standing.look(files).pending), None))
    return found


def call(name: str, **arguments: Any) -> scripted.Answer:
    return scripted.calls({"name": name, "arguments": arguments})


def shell(command: str) -> scripted.Answer:
    return call("shell", command=command)


# ---- messages -------------------------------------------------------------------------------------------------------


def test_steering_messages_that_a_cancel_overtakes_are_heard_all_the_same(files: Files) -> None:
    with scripted.Server(lambda asked: answer(asked)) as server:
        first = send.send(files, "run", flags=flags(server))
        wait_for(lambda: standing.look(files).state == "running")
        steers = [send.send(files, f"steer {n}", steer=True) for n in range(30)]
        inbox.put(files, {"type": "cancel"})
        last = exchange.say(files, "and now?", timeout_s=60).id
        waiting.settle(files, 60)
    assert Counter(said(files)) == Counter([first, *steers, last])
    assert inbox.is_empty(files)
    assert server.problems == []


def answer(asked: scripted.Asked) -> scripted.Answer:
    last = asked.body["messages"][-1]
    return shell("sleep 0.3") if last["content"].endswith("run") and last["role"] == "user" else scripted.says("ok")


LITTER = ["fifo", "taken fifo", "directory", "link", "huge", "long name", "odd name", "not utf-8"]


@pytest.mark.parametrize("what", LITTER)
def test_whatever_lies_in_the_inbox_is_put_aside_and_the_chat_goes_on(what: str, files: Files) -> None:
    files.make()
    box = os.fsencode(files.inbox)
    name = {
        "taken fifo": b".taken-0000-a",
        "long name": b"0-" + b"n" * 240,
        "odd name": b"0-a b\nc",
        "not utf-8": b"0-\xff",
    }.get(what, b"0000-a")
    place = os.path.join(box, name)
    match what:
        case "fifo" | "taken fifo":
            os.mkfifo(place)
        case "directory":
            os.mkdir(place)
        case "link":
            os.symlink("/dev/zero", place)
        case "huge":
            with open(place, "wb") as file:
                file.truncate(300 << 30)
        case _:
            with open(place, "wb") as file:
                file.write(b'{"type":"dance"}')
    assert exchange.say(files, "list .", timeout_s=20).end.outcome == "done"
    assert wait_for(lambda: [entry for entry in os.listdir(box) if entry.startswith(b".bad-")])
    send.stop(files, 10)
    assert exchange.say(files, "list .", timeout_s=20).end.outcome == "done"


@pytest.mark.parametrize(
    "item",
    [
        {"type": "model", "model": {"a": 1}},
        {"type": "model", "provider": [1]},
        {"type": "effort", "effort": 3},
        {"type": "compact", "focus": {}},
        {"type": "message", "content": ["x"]},
        {"type": "message"},
        {"type": "model", "provider": "no such provider"},
    ],
)
def test_a_command_of_another_shape_is_no_end_and_no_loop(item: dict[str, object], files: Files) -> None:
    inbox.put(files, item)
    assert exchange.say(files, "list .", timeout_s=20).end.outcome == "done"
    wait_for(lambda: inbox.is_empty(files))
    pid = presence.holder(files)["pid"]
    assert exchange.say(files, "list .", timeout_s=20).end.outcome == "done"
    assert presence.holder(files)["pid"] == pid


def test_a_message_sent_again_under_its_id_is_answered_from_the_chat(files: Files) -> None:
    with scripted.Server([scripted.says("once")]) as server:
        first = exchange.say(files, "hello", id="retry-1", timeout_s=20, flags=flags(server))
        again = run("cass-send", files.chat_id, "hello", "--id", "retry-1", "--wait", "--timeout", "10")
        other = run("cass-send", files.chat_id, "something else", "--id", "retry-1", "--wait", "--timeout", "10")
    assert (first.text, again.stdout, again.returncode) == ("once", "once\n", 0)
    assert other.returncode == 2
    assert "belongs to another message" in other.stderr
    assert said(files) == ["retry-1"]


def test_a_writer_that_never_stops_does_not_keep_the_chat_from_stopping(files: Files) -> None:
    presence.start(files).wait()
    writer = subprocess.Popen(["sh", "-c", f"exec yes > '{files.bell}'"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: facts(files, User))
        send.stop(files, 10)
        assert writer.wait(10) == -signal.SIGPIPE  # it wrote until nobody read any more
    finally:
        writer.kill()
        writer.wait()


# ---- the lock, the directory, the chat ------------------------------------------------------------------------------


@pytest.mark.parametrize("removed", ["lock", "run"])
def test_there_is_no_second_worker_when_somebody_cleans_up(removed: str, files: Files) -> None:
    with scripted.Server(lambda asked: answer(asked)) as server:
        send.send(files, "run", flags=flags(server))
        wait_for(lambda: standing.look(files).state == "running")
        files.lock.unlink() if removed == "lock" else shutil.rmtree(files.run)
        assert presence.is_running(files)
        second = run("cass-agent", files.chat_id)
        assert second.returncode == 69
        assert exchange.say(files, "still there?", timeout_s=30).end.outcome == "done"
        results = [result.content for result in facts(files, ToolResult) if isinstance(result, ToolResult)]
    assert not any("interrupted" in result for result in results)
    assert [end.outcome for end in facts(files, TurnEnd) if isinstance(end, TurnEnd)] == ["done", "done"]


# ---- decisions ------------------------------------------------------------------------------------------------------


FORGED: list[dict[str, Any]] = [
    {"name": "read"},
    {"arguments": {"path": ".envrc", "content": "harmless"}},
    {"diff": "@@ -0,0 +1,1 @@\n+harmless\n"},
    {"reason": "it is harmless"},
    {"sandboxed": True},
    {"rule": "write"},
]


def test_only_what_was_shown_is_approved(files: Files) -> None:
    with scripted.Server([call("write", path=".envrc", content="evil\n"), scripted.says("done")]) as server:
        send.send(files, "go", ask=True, flags=flags(server, "--workspace-edit"))
        asked = pending(files)
        assert asked.diff == "@@ -0,0 +1,1 @@\n+evil\n"
        for forged in FORGED:
            with open(files.live, "ab") as live:
                live.write(records.encode(dataclasses.replace(asked, **forged)))
            refused = run("cass", "approve", files.chat_id, asked.request_id)
            assert refused.returncode == 1, forged
            assert "not what waits" in refused.stderr
        bare = decisions.ask(files, {"do": "approve", "request_id": asked.request_id})
        assert not bare["ok"]
        allowed = {"do": "approve", "request_id": asked.request_id, "digest": decisions.digest(asked)}
        assert decisions.ask(files, allowed) == {"ok": True}
        waiting.settle(files, 20)


def test_a_file_that_changed_while_it_was_asked_about_is_asked_about_again(files: Files, workspace: Path) -> None:
    edit = call("edit", path=".envrc", edits=[{"old_text": "b", "new_text": "c", "replace_all": True}])
    (workspace / ".envrc").write_text("a b\n")
    with scripted.Server([edit, edit, scripted.says("done")]) as server:
        send.send(files, "go", ask=True, flags=flags(server, "--workspace-edit"))
        first = pending(files)
        (workspace / ".envrc").write_text("a b\nb too\n")
        assert run("cass", "approve", files.chat_id, first.request_id).returncode == 0
        second = wait_for(lambda: next((r for r in standing.look(files).pending if r != first), None))
        assert (workspace / ".envrc").read_text() == "a b\nb too\n"
        assert second.diff == "@@ -1,2 +1,2 @@\n-a b\n-b too\n+a c\n+c too\n"
        assert run("cass", "approve", files.chat_id, second.request_id).returncode == 0
        waiting.settle(files, 20)
    assert (workspace / ".envrc").read_text() == "a c\nc too\n"
    refused, done = (result for result in facts(files, ToolResult) if isinstance(result, ToolResult))
    assert "changed after the user was asked" in refused.content
    assert done.ok


def test_a_question_names_where_every_path_leads(files: Files, workspace: Path) -> None:
    secret = workspace.parent / "secret"
    secret.write_text("s")
    (workspace / "link").symlink_to(secret)
    read = call("read", files=[{"path": "/etc/hosts"}, {"path": "link"}])
    with scripted.Server([read, scripted.says("done")]) as server:
        send.send(files, "go", ask=True, flags=flags(server, "--workspace-edit"))
        assert pending(files).reason == f"it reads /etc/hosts, {secret}, outside the workspace"


def test_what_a_tool_left_behind_cannot_decide_for_the_next_worker(files: Files) -> None:
    left = os.environ | {decisions.TOOL_MARK: "2026-06-20-143012-a8f3"}
    with scripted.Server([shell("echo real"), scripted.says("done")]) as server:
        send.send(files, "go", ask=True, flags=flags(server, "--workspace-edit"))
        asked = pending(files)
        refused = run("cass", "approve", files.chat_id, asked.request_id, env=left)
        assert refused.returncode == 4
        assert "a tool must not decide" in refused.stderr
        assert run("cass", "approve", files.chat_id, asked.request_id).returncode == 0
        waiting.settle(files, 20)


def test_a_tool_cannot_get_a_wider_mode_by_starting_a_worker_itself(files: Files) -> None:
    inner = " ".join(f"'{word}'" for word in argv("cass", "-p", "list .", "--yolo", "-P", "demo"))
    command = f'env -u CASS_CHAT -u CASS_TOOL {inner}; grep -h \'"role":"user"\' "$CASS_HOME"/conversations/*.jsonl'
    with scripted.Server([shell(command), scripted.says("done")]) as server:
        send.send(files, "go", ask=True, flags=[*flags(server, "--workspace-edit"), "--no-sandbox"])
        assert run("cass", "approve", files.chat_id, pending(files).request_id).returncode == 0
        waiting.settle(files, 30)
    (result,) = facts(files, ToolResult)
    assert isinstance(result, ToolResult)
    assert '"mode":"full-access"' not in result.content
    assert '"content":"list ."' in result.content


DEEP = b'{"do":"approve","request_id":' + b"[" * 1000 + b"]" * 1000 + b"}"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"x" * 200_000, DEEP], ids=lambda line: str(line[:8]))
def test_what_comes_to_the_door_never_ends_the_worker(line: bytes, files: Files) -> None:
    presence.start(files).wait()
    before = os.getcwd()
    os.chdir(files.run)
    try:
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.settimeout(10)
            visitor.connect("s")
            visitor.sendall(line + b"\n")
            assert b'"ok":false' in visitor.recv(65536)
    finally:
        os.chdir(before)
    assert decisions.ask(files, {"do": "mode", "mode": "read-only"}) == {"ok": True}


def test_many_decisions_at_once_are_each_answered(files: Files) -> None:
    presence.start(files).wait()
    code = "import sys; from pathlib import Path; from cass import decisions; from cass.home import Home\n"
    code += "f = Home(Path(sys.argv[1])).files(sys.argv[2])\n"
    code += "print(sum(decisions.ask(f, {'do': 'mode', 'mode': 'read-only'}, 30)['ok'] for _ in range(25)))"
    environ = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(decisions.__file__))}
    argv = [sys.executable, "-c", code, str(files.home.root), files.chat_id]
    askers = [subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert [asker.communicate(timeout=60)[0].strip() for asker in askers] == ["25"] * 8


def test_a_stopped_worker_is_said_to_be_silent(files: Files) -> None:
    presence.start(files).wait()
    pid = presence.holder(files)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        done = run("cass", "deny", files.chat_id, "x", timeout=20)
        assert done.returncode == 1
        assert "did not answer" in done.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
