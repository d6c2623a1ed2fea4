"""`--tools`: what the model is offered and told, in every program that asks one, and what is refused."""

import json

import pytest
from sessions import asynchronous, of, take
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Pty

from cass import Mode, Session, catalogue, presence
from cass.errors import UsageError
from cass.records import ToolResult, User

CALL = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}
SKILL = "---\nname: knit\ndescription: Knits.\n---\nKnit.\n"


@pytest.fixture
def asked(home, workspace, monkeypatch):
    """Asks with some arguments, and says what the model was told of tools, and what came of its call of shell."""
    script(home, CALL, {"text": "done"})
    monkeypatch.setenv("CASS_PROVIDER", "scripted")

    def ask(*arguments: str) -> tuple[str, ToolResult]:
        before = set(catalogue.ids(home))
        done = run("cass", *arguments)
        assert done.returncode == 0, done.stderr
        (made,) = set(catalogue.ids(home)) - before
        (user,), (result,) = facts(home.files(made), User), facts(home.files(made), ToolResult)
        return user.note.partition("allowed tools: ")[2].partition("\n")[0], result

    return ask


@pytest.mark.parametrize(
    ("given", "told", "refusal"),
    [
        ("read, ls", "ls, read", "shell is unavailable in this chat; go on with read, ls"),
        ("", "none", "shell is unavailable in this chat; go on with no tools"),
    ],
)
def test_a_call_of_a_tool_that_is_left_out_comes_to_nothing_also_in_full_access(asked, workspace, given, told, refusal):
    found, result = asked("-p", "hi", "--full-access", "--tools", given)
    assert (found, result.ok, result.content) == (told, False, f"Error: {refusal}")
    assert not (workspace / "made").exists()


def test_the_configuration_says_it_for_every_chat_and_an_option_for_one(asked, home, workspace):
    home.config.write_text('{"tools": ["grep"]}')
    assert asked("-p", "hi", "--full-access")[0] == "grep"
    assert asked("-p", "hi", "--full-access", "--tools", "shell")[1].ok
    assert (workspace / "made").exists()
    home.config.write_text('{"tools": "grep"}')
    assert '"tools"' in run("cass", "-p", "hi").stderr


def test_tasks_of_a_batch_have_their_own(asked, workspace):
    (workspace / "tasks.jsonl").write_text('{"prompt": "hi", "tools": ["read"], "mode": "full-access"}\n')
    assert asked("batch", "tasks.jsonl", "--tools", "ls,shell")[0] == "read"
    (workspace / "tasks.jsonl").write_text('{"prompt": "hi", "mode": "full-access"}\n')
    assert asked("batch", "tasks.jsonl", "--tools", "ls,grep")[0] == "grep, ls"


@pytest.mark.parametrize(
    "program", [("cass", "-p", "hi"), ("cass", "batch", "x"), ("cass-agent", "x"), ("cass", "acp")]
)
def test_a_wrong_name_is_said_before_anything_is_made(home, workspace, program):
    done = run(*program, "--tools", "read,raed")
    assert done.returncode == 2
    assert "there is no tool 'raed'; there are ls, read, grep, write, edit, shell" in done.stderr
    assert catalogue.ids(home) == []


def test_a_tool_of_the_persons_own_and_one_of_a_server_are_known(asked, home, workspace):
    (home.root / "tools").mkdir()
    own = home.root / "tools" / "ticket-1"
    schema = {"name": "ticket", "description": "x", "does": "reads", "parameters": {"type": "object"}}
    own.write_text(f"#!/bin/sh\necho '{json.dumps(schema)}'\n")
    own.chmod(0o755)
    (home.root / "mcp.json").write_text('{"mcpServers": {"time": {"command": "false"}}}')
    assert asked("-p", "hi", "--tools", "ticket,mcp__time__*")[0] == "ticket"
    wrong = run("cass", "-p", "hi", "--tools", "ticket,mcp__tiem__now")
    assert (wrong.returncode, "no tool 'mcp__tiem__now'" in wrong.stderr, "ticket, agent, mcp__S" in wrong.stderr) == (
        *(2, True, True),
    )


def test_skills_are_not_told_to_a_model_that_cannot_read_them(asked, home):
    skill = home.root / "skills" / "knit" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    for given in ("read", "ls"):
        asked("-p", "hi", "--tools", given)
    notes = [facts(home.files(chat_id), User)[0].note for chat_id in sorted(catalogue.ids(home))]
    assert sorted("skill knit" in note for note in notes) == [False, True]


def test_the_worker_of_a_chat_on_a_terminal_keeps_to_them(home, workspace, monkeypatch):
    script(home, CALL, {"text": "done"})
    terminal = Pty(argv("cass", "-P", "scripted", "--full-access", "--tools", "ls"))
    try:
        terminal.until("idle")
        terminal.type("go on\r")
        (chat_id,) = catalogue.ids(home)
        (result,) = wait_for(lambda: facts(home.files(chat_id), ToolResult))
        assert "shell is unavailable in this chat; go on with ls" in result.content
    finally:
        terminal.close()
        for chat_id in catalogue.ids(home):
            end_worker(home.files(chat_id))


@asynchronous
async def test_a_program_names_them_as_allowed_tools(opened, home):
    async with opened(CALL, {"text": "done"}, mode=Mode.FULL_ACCESS, allowed_tools=["ls"]) as session:
        (result,) = of(await take(session), ToolResult)
        assert "shell is unavailable" in result.content
        chat_id = session.id
    with pytest.raises(UsageError, match="no tool 'raed'"):
        await Session.resume(chat_id, allowed_tools=["raed"])
    assert not presence.is_running(home.files(chat_id)), "a session that was not opened holds no chat"
    with pytest.raises(UsageError, match="a list of names"):
        await Session.resume(chat_id, allowed_tools="ls")
