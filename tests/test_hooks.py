"""Hooks: who is called when and with what, and what comes of it."""

import asyncio
import json
import shlex
from pathlib import Path

import pytest
from sessions import asynchronous, of, take
from stage import argv, wait_for

from cass import config, hooks, jsonl, project, trust
from cass.config import Options
from cass.errors import ConfigError
from cass.hooked import MARK, Hooked
from cass.records import Approval, ApprovalRequest, Assistant, Notice, ToolResult, TurnEnd

CALL = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo ran >> ran.txt"}}]}
DONE = {"text": "Done."}


def write(home, **found):
    home.make()
    home.config.write_bytes(jsonl.dump({"hooks": {event.replace("_", "-"): every for event, every in found.items()}}))


def warnings(found):
    return [notice.text for notice in of(found, Notice) if "the hook" in notice.text]


@asynchronous
async def test_each_event_is_told_what_happens(home, workspace, opened):
    write(home, **{event.replace("-", "_"): ["cat >> told.jsonl"] for event in hooks.EVENTS})

    async with opened(CALL, DONE, DONE, mode="full-access") as session:
        assert warnings(await take(session)) == []
        await take(session)
        chat_id = session.id
    told = [json.loads(line) for line in (workspace / "told.jsonl").read_text().splitlines()]
    assert [one["event"] for one in told] == ["chat-start", "before-tool", "after-tool", "turn-end", "turn-end"]
    start, before, after, end, _ = told
    assert start == {
        "event": "chat-start",
        "chat": chat_id,
        "cwd": str(workspace),
        "mode": "full-access",
        "provider": "scripted",
        "model": "scripted",
        "new": True,
    }
    assert (before["tool"], before["arguments"], before["asks"]) == ("shell", CALL["tool_calls"][0]["arguments"], False)
    assert (after["ok"], after["result"]) == (True, "(no output)")
    assert (end["outcome"], end["error"], end["answer"]) == ("done", None, "Done.")


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("echo not today >&2; exit 2", "a hook of the user denied it: not today"),
        ("""echo '{"reason": "never"}'; exit 2""", "a hook of the user denied it: never"),
        ("exit 2", "a hook of the user denied it"),
        ({"run": "exit 2", "tools": ["sh*"]}, "a hook of the user denied it"),
    ],
)
@asynchronous
async def test_a_hook_denies_a_call_whatever_the_mode_and_nobody_is_asked(home, workspace, opened, hook, reason):
    write(home, before_tool=["true", hook, "touch after"])
    for mode in ("full-access", "workspace-edit"):
        async with opened(CALL, DONE, mode=mode, sandbox=False) as session:
            found = await take(session)
        (result,) = of(found, ToolResult)
        assert (result.ok, result.content) == (False, f"Error: {reason}")
        assert of(found, Approval) == []
        assert of(found, TurnEnd)[0].outcome == "done"
    assert not (workspace / "ran.txt").exists()
    assert not (workspace / "after").exists()


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("echo oops; exit 3", "exit status 3: oops"),
        ("/nowhere/at/all", "exit status 127"),
        ("kill -9 $$", "killed by signal 9"),
        ({"run": 'echo \'{"reason": "x"}\'; sleep 60', "timeout_s": 0.2}, "ended after 0.2 s"),
        ("printf '\\033]0;title\\a'; exit 1", "exit status 1: "),
        ("yes | head -c 3000000; exit 1", "exit status 1: y"),
    ],
)
@asynchronous
async def test_a_hook_that_fails_or_hangs_is_a_notice_and_the_turn_goes_on(home, workspace, opened, hook, said):
    write(home, before_tool=[hook])
    async with opened(CALL, DONE, mode="full-access") as session:
        found = await take(session)
    (text,) = warnings(found)
    assert said in text
    assert len(text) < 500
    assert text.isprintable()
    assert (workspace / "ran.txt").exists()


@asynchronous
async def test_what_a_hook_says_allows_nothing(home, workspace, opened):
    write(home, before_tool=["""echo '{"decision": "approve", "allow": true}'"""])
    async with opened(CALL, DONE, mode="workspace-edit", sandbox=False) as session:
        found = await take(session, ask=False)
        assert of(found, TurnEnd)[0].outcome == "blocked"
    async with opened(CALL, DONE) as session:
        assert "unavailable in read-only mode" in of(await take(session), ToolResult)[0].content
    assert not (workspace / "ran.txt").exists()


@asynchronous
async def test_who_waits_for_an_approval_is_told_and_cannot_give_it(home, workspace, opened):
    approve = shlex.join(argv("cass", "approve", "."))
    write(home, approval_needed=[f"cat > told.json; {approve} 2> said.txt; mv said.txt refused.txt"])
    async with opened(CALL, DONE, mode="workspace-edit", sandbox=False) as session, session.turn("go") as turn:
        found = []
        async for record in turn:
            found.append(record)
            if isinstance(record, ApprovalRequest):
                waiting = asyncio.create_task(asyncio.to_thread(wait_for, (workspace / "refused.txt").exists))
                waiting.add_done_callback(lambda _, id=record.request_id: turn.deny(id, "no"))
    told = json.loads((workspace / "told.json").read_text())
    assert (told["tool"], told["request"]) == ("shell", of(found, ApprovalRequest)[0].request_id)
    assert (workspace / "refused.txt").read_text()
    assert [(one.decision, one.reason) for one in of(found, Approval)] == [("denied", "no")]


@asynchronous
async def test_an_answer_ends_the_hook_that_waits_for_it(home, workspace, opened):
    write(home, approval_needed=["sleep 60"])
    async with opened(CALL, DONE, mode="workspace-edit", sandbox=False) as session:
        found = await take(session, on=lambda turn, one: turn.approve(one.request_id) if is_asked(one) else None)
    assert of(found, ToolResult)[0].ok
    assert warnings(found) == []


def is_asked(record):
    return isinstance(record, ApprovalRequest)


@asynchronous
async def test_a_hook_gets_no_keys_and_calls_itself_not_again(home, workspace, opened, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    write(home, chat_start=["env > env.txt"])
    async with opened(DONE) as session:
        await take(session)
    text = (workspace / "env.txt").read_text()
    assert "sk-secret" not in text
    assert f"{MARK}=chat-start" in text
    assert Hooked.of((hooks.Hook("turn-end", "x"),), {MARK: "turn-end"}) == Hooked()


@asynchronous
async def test_a_cancelled_turn_ends_its_hook(home, workspace, opened):
    write(home, before_tool=["echo $$ > new; mv new pid; sleep 60"], turn_end=["touch ended"])

    async with opened(CALL, DONE, mode="full-access") as session, session.turn("go") as turn:
        found = []
        async for record in turn:
            found.append(record)
            if isinstance(record, Assistant):
                begun = asyncio.create_task(asyncio.to_thread(wait_for, lambda: (workspace / "pid").exists()))
                begun.add_done_callback(lambda _: turn.interrupt())
    assert of(found, TurnEnd)[0].outcome == "cancelled"
    assert (workspace / "ended").exists()
    assert not Path("/proc", (workspace / "pid").read_text().strip()).exists()


def test_a_project_has_no_hooks(home, workspace):
    (workspace / ".cass").mkdir()
    (workspace / ".cass" / "config.json").write_text('{"hooks": {"turn-end": ["touch PWNED"]}}')
    trust.give(trust.standing(workspace, home), home)
    assert "not for a project to set, and not used: hooks" in project.load(workspace, home).notices[0]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "where there is one$"),
        ({"before": ["x"]}, 'there is no event "before"$'),
        ({"turn-end": "x"}, '"turn-end" is no list$'),
        ({"before-tool": ["x"], "turn-end": [""]}, 'number 1 of "turn-end" is no COMMAND$'),
        ({"turn-end": [{"run": "x", "tools": ["shell"]}]}, 'number 1 of "turn-end" is no COMMAND$'),
        ({"before-tool": ["x", {"tools": ["shell"]}]}, 'number 2 of "before-tool" is no COMMAND$'),
        ({"before-tool": [{"run": "x", "timeout_s": 0}]}, 'number 1 of "before-tool" is no COMMAND$'),
        ({"before-tool": [{"run": "x", "timeout": 1}]}, 'number 1 of "before-tool" is no COMMAND$'),
    ],
)
def test_what_is_wrong_with_them_is_said(home, value, said):
    home.make()
    home.config.write_bytes(jsonl.dump({"hooks": value}))
    with pytest.raises(ConfigError, match=r'config.json: "hooks": expected \{EVENT: \[COMMAND.*' + said):
        config.load(home, Options(), {})
