"""Chats of Cassady 0.4: read as they are, and gone on with in a new one."""

import json

import pytest
from stage import argv, end_worker, facts, run, script
from terminal import Pty

from cass import branch, catalogue, chat, elder, ends, heir
from cass.home import Files, Home
from cass.records import Assistant, Meta, System, ToolResult, TurnEnd, User

AT = "2026-05-01T10:00:0{}.123456789+00:00"
CALL = {"id": "call_1", "name": "read", "arguments": {"files": [{"path": "app.py"}]}}


def lines(workspace, *more):
    meta = {"type": "meta", "chat_id": "2026-05-01-120000-Xy_1", "created_at": AT.format(0), "model": "old-model"}
    return [
        meta | {"cwd": str(workspace)},
        {"type": "system", "content": "You are Cassady 0.4."},
        {"type": "user", "content": "read app.py \"please\"", "ts": AT.format(1)},
        {"type": "assistant", "content": "", "reasoning": "hm", "tool_calls": [CALL], "ts": AT.format(2)},
        {"type": "tool", "tool_call_id": "call_1", "name": "read", "ok": True, "content": "main", "ts": AT.format(3)},
        {"type": "assistant", "content": "It has main.", "reasoning": "", "tool_calls": [], "ts": AT.format(4)},
        *more,
    ]  # fmt: skip


def write(home: Home, found) -> Files:
    home.make()
    files = home.files(found[0]["chat_id"])
    files.chat.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in found))
    return files


@pytest.fixture
def old(home, workspace):
    return write(home, lines(workspace))


def test_its_lines_are_read_as_records_with_ids_that_stay(old):
    said = [record for record in chat.read(old) if not isinstance(record, (Meta, System))]
    user, asks, result, answer = said
    assert isinstance(user, User)
    assert (user.content, user.created_at) == ('read app.py "please"', "2026-05-01T10:00:01.123Z")
    assert isinstance(asks, Assistant)
    assert (asks.reasoning, asks.stop, asks.tool_calls[0].arguments) == ("hm", "tool_calls", CALL["arguments"])
    assert isinstance(result, ToolResult)
    assert (result.ok, result.content) == (True, "main")
    assert isinstance(answer, Assistant)
    assert (answer.content, answer.reasoning, answer.stop) == ("It has main.", None, "stop")
    assert said == [record for record, _ in branch.read(old)][2:]
    assert len({user.id, asks.id, answer.id}) == 3


@pytest.mark.parametrize(
    ("change", "is_elder"),
    [
        ({}, True),
        ({0: {"v": 1}}, False),
        ({2: {"type": "message", "role": "user"}, 3: {"type": "x"}, 4: {"type": "x"}, 5: {"type": "x"}}, False),
    ],
)
def test_it_is_told_by_its_first_lines(home, workspace, change, is_elder):
    found = [line | change.get(number, {}) for number, line in enumerate(lines(workspace))]
    assert elder.wrote(write(home, found).chat) is is_elder


def test_a_new_chat_holds_what_was_said_with_the_end_of_each_turn(home, workspace):
    asked = {"type": "assistant", "content": "", "tool_calls": [CALL | {"id": "call_2"}], "ts": AT.format(6)}
    old = write(home, lines(workspace, {"type": "user", "content": "again", "ts": AT.format(5)}, asked))
    before = old.chat.read_bytes()
    made = heir.make(old)
    assert old.chat.read_bytes() == before
    meta, system, *said = chat.read(made)
    assert isinstance(meta, Meta)
    assert (meta.parent_chat_id, meta.model, meta.cwd) == (old.chat_id, "old-model", str(workspace))
    assert isinstance(system, System)
    assert "0.4" not in system.content
    kinds = [User, Assistant, ToolResult, Assistant, TurnEnd, User, Assistant, ToolResult, TurnEnd]
    assert [type(record) for record in said] == kinds
    assert [record.outcome for record in said if isinstance(record, TurnEnd)] == ["done", "failed"]
    assert ends.open_turn(said) == ()
    assert ends.open_calls(said) == []
    assert not elder.wrote(made.chat)
    assert heir.find(old) == made


def test_lists_and_searches_show_it(old):
    (summary,) = catalogue.summaries(old.home)
    assert (summary.title, summary.changed_at) == ('read app.py "please"', AT.format(4))
    found = run("cass", "grep", "has main")
    assert (found.returncode, old.chat_id in found.stdout) == (0, True)
    assert "It has main." in run("cass-view", old.chat_id, "--no-follow", "--plain").stdout
    assert "It has main." in run("cass", "export", old.chat_id).stdout


def test_going_on_makes_a_new_chat_once_and_says_so(old, home, workspace):
    before = old.chat.read_bytes()
    first = run("cass", "-p", "--resume", old.chat_id, "list .")
    assert first.returncode == 0, first.stderr
    made = heir.find(old)
    assert made is not None
    assert f"it goes on as {made.chat_id}" in first.stderr
    sent = run("cass-send", old.chat_id, "list .", "--wait", "--json")
    assert json.loads(sent.stdout)["chat_id"] == made.chat_id
    assert (len(catalogue.ids(home)), old.chat.read_bytes()) == (2, before)
    assert [record.content for record in facts(made, User)] == ['read app.py "please"', "list .", "list ."]
    end_worker(made)
    refused = run("cass-agent", old.chat_id)
    assert (refused.returncode, "cass --resume" in refused.stderr) == (2, True)


def test_the_model_is_told_what_was_said_before(old, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, {}, {}, {"text": "Yes."})  # a step for each answer that a request holds
    assert run("cass", "-p", "--resume", old.chat_id, "and now?").stdout == "Yes.\n"
    made = heir.find(old)
    assert made is not None
    *_, last = facts(made, User)
    assert (last.provider, last.content) == ("scripted", "and now?")


def test_on_a_terminal_it_is_said_above_the_prompt(old):
    terminal = Pty(argv("cass", "--resume", old.chat_id, "--layout", "inline"))
    try:
        terminal.until("it goes on as")
        terminal.until("It has main.")
        terminal.type("\x04")
        terminal.end()
        made = heir.find(old)
        assert made is not None
        assert f"Resume this chat with: cass --resume {made.chat_id}".encode() in terminal.said
    finally:
        terminal.close()
        if made := heir.find(old):
            end_worker(made)
