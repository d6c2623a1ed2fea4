"""The worker: what it obeys at once and in line, what it hears while it is busy, and how it ends."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import scripted
from stage import argv, facts, run, wait_for

from cass import exchange, inbox, presence, send, standing, waiting
from cass.home import Files
from cass.records import Assistant, Compaction, Delta, Notice, ToolResult, TurnEnd, User
from cass.tail import Tail


def flags(server: scripted.Server, *more: str) -> list[str]:
    return ["--base-url", server.base_url, "-m", "m", *more]


def live(files: Files, kind: type) -> list:
    tail = Tail(files.live)
    found = [record for record in tail.read() if isinstance(record, kind)]
    tail.close()
    return found


def outcomes(files: Files) -> list[str]:
    return [end.outcome for end in facts(files, TurnEnd) if isinstance(end, TurnEnd)]


def test_messages_put_while_a_turn_runs_are_answered_in_their_order(files: Files) -> None:
    with scripted.Server(lambda asked: scripted.says("ok", delay_s=0.02)) as server:
        for n in range(5):
            send.send(files, f"message {n}", flags=flags(server))
        waiting.settle(files, 30)
        said = [user.content for user in facts(files, User) if isinstance(user, User)]
    assert said == [f"message {n}" for n in range(5)]
    assert outcomes(files) == ["done"] * 5
    assert server.problems == []


def test_a_steering_message_is_heard_when_the_running_call_ends_and_the_rest_is_not_run(
    files: Files, workspace: Path
) -> None:
    calls = scripted.calls(
        {"name": "shell", "arguments": {"command": "touch begun; while [ ! -e go ]; do sleep 0.01; done"}},
        {"name": "shell", "arguments": {"command": "touch never"}},
    )
    with scripted.Server([calls, scripted.says("as you say")]) as server:
        first = send.send(files, "do two things", flags=flags(server, "--full-access"))
        wait_for((workspace / "begun").exists)
        second = send.send(files, "stop, do only one", steer=True)
        (workspace / "go").touch()
        waiting.settle(files, 30)
        asked = server.asked[1].body["messages"]
    assert not (workspace / "never").exists()
    assert asked[-2]["content"] == "Error: not run: the user wrote"
    assert asked[-1]["content"].endswith("stop, do only one")
    (end,) = facts(files, TurnEnd)
    assert isinstance(end, TurnEnd)
    assert (end.answers, end.outcome) == ((first, second), "done")
    assert server.problems == []


@pytest.mark.parametrize("phase", ["streaming", "a tool running", "retrying"])
def test_cancel_ends_a_turn_at_once_and_the_next_request_is_valid(phase: str, files: Files, workspace: Path) -> None:
    first = {
        "streaming": scripted.step({"text": "word " * 20, "deltas": 20, "hang": True}),
        "a tool running": scripted.calls(
            {"name": "shell", "arguments": {"command": "touch begun; sleep 60"}}, {"name": "ls", "arguments": {}}
        ),
        "retrying": scripted.fails(429, None, Retry_After="50"),
    }[phase]
    with scripted.Server([first, scripted.says("hello again")]) as server:
        send.send(files, "begin", flags=flags(server, "--full-access"))
        if phase == "streaming":
            wait_for(lambda: live(files, Delta))
        elif phase == "retrying":
            wait_for(lambda: standing.look(files).state == "retrying")
        else:
            wait_for((workspace / "begun").exists)
        assert run("cass", "cancel", files.chat_id, timeout=10).returncode == 0
        waiting.settle(files, 5)
        answer = exchange.say(files, "hi", timeout_s=30)
    assert answer.text == "hello again"
    assert outcomes(files) == ["cancelled", "done"]
    assert server.problems == []
    if phase == "streaming":
        (cut,) = [a for a in facts(files, Assistant) if isinstance(a, Assistant) and a.stop == "cancelled"]
        assert cut.content.startswith("word ")
    if phase == "a tool running":
        results = [r.content for r in facts(files, ToolResult) if isinstance(r, ToolResult)]
        assert all(result.startswith("Error: cancelled by the user") for result in results)
        assert len(results) == 2
        left = subprocess.run(["pgrep", "-f", "touch begun; sleep 60"], capture_output=True, check=False)
        assert left.returncode == 1, "the tool's processes are gone"


def test_a_cancel_behind_a_message_is_meant_for_its_turn(files: Files) -> None:
    def answer(asked: scripted.Asked) -> scripted.Answer:
        hangs = asked.body["messages"][-1]["content"].endswith("hang")
        return scripted.raw(scripted.HANG) if hangs else scripted.says("next")

    with scripted.Server(answer) as server:
        presence.start(files, flags(server)).wait()
        os.kill(presence.holder(files)["pid"], signal.SIGSTOP)  # so that it sees both at once
        inbox.put(files, {"type": "message", "content": "hang", "ask": False, "origin": {"by": "send"}})
        inbox.put(files, {"type": "cancel"})
        os.kill(presence.holder(files)["pid"], signal.SIGCONT)
        assert exchange.say(files, "after", timeout_s=30).text == "next"
    assert outcomes(files) == ["cancelled", "done"]


def test_clear_leaves_the_history_out_also_after_a_restart(files: Files) -> None:
    with scripted.Server(lambda asked: scripted.says("fine")) as server:
        exchange.say(files, "a secret plan", timeout_s=30, flags=flags(server))
        inbox.put(files, {"type": "clear"})
        wait_for(lambda: facts(files, Compaction))
        send.stop(files, 10)
        exchange.say(files, "what did I say?", timeout_s=30, flags=flags(server))
        asked = server.asked[1].body["messages"]
    assert [message["role"] for message in asked] == ["system", "user"]
    assert "secret" not in str(asked)
    assert "access mode" in asked[1]["content"], "the model is told anew what it knew"


def test_compact_replaces_the_history_by_the_model_s_summary(files: Files) -> None:
    with scripted.Server([scripted.says("one"), scripted.says("We agreed on blue."), scripted.says("blue")]) as server:
        exchange.say(files, "it shall be blue", timeout_s=30, flags=flags(server))
        inbox.put(files, {"type": "compact", "focus": "colours"})
        wait_for(lambda: facts(files, Compaction))
        assert exchange.say(files, "which colour?", timeout_s=30).text == "blue"
        asked = server.asked[2].body["messages"]
        assert "colours" in server.asked[1].body["messages"][-1]["content"]
    assert "We agreed on blue." in str(asked)
    assert "it shall be blue" not in str(asked)
    assert server.problems == []


def test_a_compaction_that_fails_changes_nothing_and_says_so(files: Files) -> None:
    with scripted.Server([scripted.says("one"), scripted.fails(400), scripted.says("two")]) as server:
        exchange.say(files, "remember this", timeout_s=30, flags=flags(server))
        inbox.put(files, {"type": "compact"})
        wait_for(lambda: any(notice.level == "error" for notice in live(files, Notice)))
        exchange.say(files, "go on", timeout_s=30)
        assert "remember this" in str(server.asked[2].body["messages"])
    assert not facts(files, Compaction)


def test_another_model_holds_from_the_next_message_on_and_the_model_is_told(files: Files) -> None:
    with scripted.Server(lambda asked: scripted.says("ok")) as server:
        exchange.say(files, "one", timeout_s=30, flags=flags(server))
        inbox.put(files, {"type": "model", "model": "larger"})
        inbox.put(files, {"type": "effort", "effort": "high"})
        exchange.say(files, "two", timeout_s=30)
        bodies = [asked.body for asked in server.asked]
    assert [body["model"] for body in bodies] == ["m", "larger"]
    assert bodies[1]["reasoning_effort"] == "high"
    assert "model: larger" in bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("content", [b'{"type":"dance"}', b"not JSON", b'{"no":"type"}', b"\xff\xfe", b"[]", b""])
def test_what_nobody_understands_is_put_aside_and_said(content: bytes, files: Files) -> None:
    presence.start(files).wait()
    (files.inbox / ".odd").write_bytes(content)
    (files.inbox / ".odd").rename(files.inbox / f"{'0' * 16}-odd")
    inbox.ring(files)
    wait_for(lambda: (files.inbox / f".bad-{'0' * 16}-odd").exists())
    assert any(".bad-" in notice.text for notice in wait_for(lambda: live(files, Notice)))
    assert exchange.say(files, "still there?", timeout_s=30).end.outcome == "done"


def test_a_second_worker_is_refused_and_hears_who_holds_the_chat(files: Files) -> None:
    presence.start(files).wait()
    pid = presence.holder(files)["pid"]
    second = run("cass-agent", files.chat_id)
    assert second.returncode == 69
    assert f"pid {pid}" in second.stderr
    assert presence.is_running(files)


def test_an_idle_worker_ends_and_one_that_somebody_needs_does_not(files: Files) -> None:
    attached = presence.attach(files)
    presence.start(files, ["--idle", "0"]).wait()
    assert exchange.say(files, "hello", timeout_s=30).end.outcome == "done"
    assert presence.is_running(files)
    os.close(attached)
    wait_for(lambda: not presence.is_running(files))


def test_a_lost_ring_heals(files: Files) -> None:
    presence.start(files).wait()
    draft = files.inbox / ".quiet"
    draft.write_bytes(b'{"type":"message","content":"list .","ask":false,"origin":{"by":"send"}}')
    draft.rename(files.inbox / f"{'f' * 16}-quiet")
    wait_for(lambda: "quiet" in [id for end in facts(files, TurnEnd) if isinstance(end, TurnEnd) for id in end.answers])


def test_sigterm_cancels_the_turn_and_ends_the_worker(files: Files) -> None:
    with scripted.Server([scripted.raw(scripted.HANG)]) as server:
        send.send(files, "hang", flags=flags(server))
        server.wait(1)
        os.kill(presence.holder(files)["pid"], signal.SIGTERM)
        wait_for(lambda: not presence.is_running(files))
    assert outcomes(files) == ["cancelled"]


def test_the_orphans_of_tools_are_buried(files: Files, workspace: Path) -> None:
    orphan = "(sh -c 'echo $$ > orphan; exec sleep 0.2' &) ; exit 0"
    with scripted.Server(
        [scripted.calls({"name": "shell", "arguments": {"command": orphan}}), scripted.says("ok")]
    ) as s:
        exchange.say(files, "go", timeout_s=30, flags=flags(s, "--full-access"))
        pid = int((workspace / "orphan").read_text())
        inbox.ring(files)
        wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_a_worker_has_no_terminal_and_its_memory_cannot_be_read_by_its_tools(files: Files) -> None:
    process = subprocess.Popen(
        argv("cass-agent", files.chat_id), stdin=subprocess.DEVNULL, env=os.environ | {"X_API_KEY": "k"}
    )
    try:
        wait_for(files.socket.exists)
        assert Path(f"/proc/{process.pid}/comm").read_text() == "cass-agent\n"
        assert Path(f"/proc/{process.pid}/environ").stat().st_uid == 0
    finally:
        process.terminate()
        process.wait(10)


def test_every_file_of_a_chat_is_private_whatever_the_umask(files: Files) -> None:
    before = os.umask(0)
    try:
        shell = scripted.calls({"name": "shell", "arguments": {"command": "head -c 3000000 /dev/zero | tr '\\0' x"}})
        with scripted.Server([shell, scripted.says("ok")]) as server:
            exchange.say(files, "go", timeout_s=30, flags=flags(server, "--full-access"))
            run("cass-send", files.chat_id, "one more", "--no-start")
            for path in [files.home.root, *files.home.root.rglob("*")]:
                assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    finally:
        os.umask(before)
