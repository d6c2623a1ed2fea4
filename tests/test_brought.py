"""What a host program brings to a session: tools of its own, and a provider, as plain Python objects."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sessions import asynchronous, of, take
from stage import facts, run, script

from cass import Effect, HostTool, Mode, Request, Session, catalogue
from cass.errors import ConfigError, MissingKey, ProviderError, ToolError, UsageError
from cass.jsonl import now
from cass.records import ApprovalRequest, Assistant, Delta, ToolCall, ToolOutput, ToolResult, TurnEnd, User


def tool(function: Any, effect: str = "reads", name: str = "ticket", **more: Any) -> HostTool:
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}}
    return HostTool(name=name, description="A ticket.", parameters=parameters, run=function, effect=effect, **more)


async def ticket(arguments: dict[str, Any]) -> str:
    return f"ticket {arguments['number']}: the lamp is broken"


async def counted(arguments: dict[str, Any]) -> AsyncIterator[str]:
    for number in range(arguments["number"]):
        yield f"{number} "


def calls(name: str = "ticket", **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


DONE = {"text": "ok"}


async def result(session: Session, **how: Any) -> ToolResult:
    (found,) = of(await take(session, **how), ToolResult)
    return found


# ---- tools ----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_the_model_calls_a_tool_of_the_host_and_reads_what_it_returns(opened):
    async with opened(calls(number=7), DONE, tools=[tool(ticket)]) as session:
        found = await result(session)
        (user,) = of(session.records, User)
    assert (found.ok, found.content) == (True, "ticket 7: the lamp is broken")
    assert "ticket" in user.note


@asynchronous
async def test_what_a_tool_yields_is_shown_as_it_comes(opened):
    async with opened(calls(number=3), DONE, tools=[tool(counted)]) as session:
        found = await take(session)
    assert [piece.text for piece in of(found, ToolOutput)] == ["0 ", "1 ", "2 "]
    assert of(found, ToolResult)[0].content == "0 1 2 "


async def fails(_: dict[str, Any]) -> str:
    raise ToolError("there is no such ticket")


async def breaks(_: dict[str, Any]) -> str:
    raise LookupError("x" * 500)


async def counts(_: dict[str, Any]) -> Any:
    return 5


@asynchronous
async def test_rules_of_the_person_name_it_and_one_that_names_no_tool_is_said(opened, home):
    home.make()
    home.config.write_text('{"deny": ["ticket(*7*)", "tickets"]}')
    async with opened(calls(number=7), calls(number=8), DONE, tools=[tool(ticket)]) as session:
        (said,) = [notice for notice in session.notices if "speaks of no tool" in notice]
        denied, done = of(await take(session), ToolResult)
    assert said.startswith('"deny": tickets speaks of no tool: there are ls, read,')
    assert ", ticket, " in said
    assert denied.content == "Error: the rule ticket(*7*) denies it"
    assert done.ok


SECRET = "a-key-that-nobody-may-see"


async def tells(_: dict[str, Any]) -> str:
    raise ToolError(f"{SECRET} was refused")


async def crashes(_: dict[str, Any]) -> str:
    raise LookupError(SECRET)


@pytest.mark.parametrize("function", [tells, crashes])
@asynchronous
async def test_no_error_of_a_tool_puts_a_secret_out(opened, function, monkeypatch, capfd):
    monkeypatch.setenv("A_TOKEN", SECRET)
    async with opened(calls(), DONE, tools=[tool(function)]) as session:
        found = await result(session)
    assert "[a secret, hidden here by cass]" in found.content
    log = capfd.readouterr().err
    assert SECRET not in found.content + log
    assert ("in crashes" in log) is (function is crashes)


@pytest.mark.parametrize(
    ("function", "content"),
    [
        (fails, "Error: there is no such ticket"),
        (breaks, "Error: ticket has a bug: LookupError: " + "x" * 200),
        (counts, "Error: ticket has a bug: TypeError: the tool ticket gave int, not a text"),
    ],
)
@asynchronous
async def test_a_tool_that_fails_is_read_by_the_model_and_the_turn_goes_on(opened, function, content):
    async with opened(calls(), DONE, tools=[tool(function)]) as session:
        found = await take(session)
    assert of(found, ToolResult)[0].content == content
    assert found[-1].outcome == "done"


@asynchronous
async def test_a_tool_that_writes_or_runs_is_not_offered_in_read_only_mode(opened):
    brought = [tool(ticket, effect, effect) for effect in Effect]
    async with opened(calls("runs", number=1), DONE, tools=brought) as session:
        assert "unavailable in read-only mode" in (await result(session)).content
        offered = {mode: session.desk.toolbox.names(mode) & set(Effect) for mode in Mode}
        names = [schema["name"] for schema in session.desk.toolbox.schemas(Mode.FULL_ACCESS)]
        assert [name for name in names if name in set(Effect)] == list(Effect)
    assert offered[Mode.READ_ONLY] == {"reads"}
    assert offered[Mode.WORKSPACE_EDIT] == offered[Mode.FULL_ACCESS] == set(Effect)


@asynchronous
async def test_a_tool_that_runs_is_asked_about_until_it_is_always_allowed(opened):
    asked = []

    def allow(turn: Any, record: Any) -> None:
        if isinstance(record, ApprovalRequest):
            asked.append((record.name, record.reason, record.sandboxed, record.rule))
            turn.approve(record.request_id, always=True)

    steps = [calls(number=1), DONE, calls(number=2), DONE]
    async with opened(*steps, mode="workspace-edit", tools=[tool(ticket, "runs")]) as session:
        for _ in range(2):
            assert (await result(session, on=allow)).ok
    assert asked == [("ticket", "workspace-edit mode asks before every ticket", False, "ticket")]


@asynchronous
async def test_paths_of_a_tool_are_bounded_as_those_of_any_and_come_resolved(opened, workspace):
    given: list[Any] = []

    async def keep(arguments: dict[str, Any]) -> str:
        given.append(arguments)
        return "kept"

    def deny(turn: Any, record: Any) -> None:
        if isinstance(record, ApprovalRequest):
            turn.deny(record.request_id, record.reason)

    (workspace / "link").symlink_to("/etc")
    steps = [calls(to="a.txt", more=["b/../c"], n=1), calls(to="link/passwd"), calls(to=5), DONE]
    brought = [tool(keep, "writes", paths=("to", "more"))]
    async with opened(*steps, mode="workspace-edit", tools=brought) as session:
        inside, outside, wrong = of(await take(session, on=deny), ToolResult)
    assert inside.ok
    assert given == [{"to": f"{workspace}/a.txt", "more": [f"{workspace}/c"], "n": 1}]
    assert "it writes /etc/passwd, outside the workspace" in outside.content
    assert wrong.content == 'Error: ticket: "to" must be a path, or a list of some'


@asynchronous
async def test_a_cancelled_turn_cancels_the_tool(opened):
    ended = asyncio.Event()

    async def waits(_: dict[str, Any]) -> AsyncIterator[str]:
        try:
            yield "waiting"
            await asyncio.Event().wait()
        finally:
            ended.set()

    def stop(turn: Any, record: Any) -> None:
        if isinstance(record, ToolOutput):
            turn.interrupt()

    async with opened(calls(), tools=[tool(waits)]) as session:
        found = await take(session, on=stop)
        assert ended.is_set()
    assert of(found, ToolResult)[0].content == "Error: cancelled by the user\nwaiting"
    assert found[-1].outcome == "cancelled"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "read"}, "there is a tool read already"),
        ({"name": "a-b"}, "a tool's name is a letter"),
        ({"effect": "none"}, "its effect is one of reads, writes, runs, not 'none'"),
        ({"parameters": {}}, 'are a JSON schema with "type": "object"'),
    ],
)
@asynchronous
async def test_a_tool_that_cannot_be_is_refused_before_there_is_a_chat(home, workspace, wrong, message):
    given = {"name": "a", "description": "b", "parameters": {"type": "object"}, "run": ticket}
    with pytest.raises(UsageError, match=message):
        await Session.new(home=home.root, cwd=workspace, tools=[HostTool(**{**given, **wrong})])
    assert catalogue.ids(home) == []


# ---- a provider -----------------------------------------------------------------------------------------------------


class Echo:
    """Says what it was told, in two pieces; calls `ls` first where the message says so."""

    name = "echo"
    closed = False

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        self.asked.append(request)
        last = request.messages[-1]
        if last.content == "nothing":
            return
        if last.content == "busy":
            raise ProviderError("the model is busy")
        calls = (ToolCall("c1", "ls", {"path": "."}),) if last.content == "look" else ()
        for piece in ("you said: ", last.content):
            yield Delta(of=of, text=piece)
        text = f"you said: {last.content}"
        yield Assistant(id=of, content=text, tool_calls=calls, model=request.model, created_at=now())

    async def aclose(self) -> None:
        self.closed = True


@asynchronous
async def test_a_provider_of_the_host_answers_and_is_closed_with_the_session(home, workspace):
    echo = Echo()
    async with await Session.new(home=home.root, cwd=workspace, provider=echo, model="parrot") as session:
        assert not any("demo" in notice for notice in session.notices)
        found = await take(session, "look")
        files = session.files
    assert [piece.text for piece in of(found, Delta)][:2] == ["you said: ", "look"]
    assert of(found, ToolResult)[0].content.startswith("app.py")
    assert [request.model for request in echo.asked] == ["parrot", "parrot"]
    (user,) = facts(files, User)
    assert (user.provider, user.model) == ("echo", "parrot")
    assert echo.closed


@pytest.mark.parametrize(
    ("said", "error"),
    [("nothing", "the provider echo ended without an answer"), ("busy", "the model is busy")],
)
@asynchronous
async def test_a_provider_that_fails_ends_the_turn_and_not_the_session(home, workspace, said, error):
    async with await Session.new(home=home.root, cwd=workspace, provider=Echo()) as session:
        for _ in range(2):
            end = (await take(session, said))[-1]
            assert isinstance(end, TurnEnd)
            assert (end.outcome, end.error) == ("failed", error)
        assert (await take(session, "hello"))[-1].outcome == "done"


@asynchronous
async def test_a_chat_with_a_provider_and_tools_of_a_host_goes_on_without_them(home, workspace):
    script(home, calls(number=7), DONE, name="scripted")
    async with await Session.new(home=home.root, cwd=workspace, provider="scripted", tools=[tool(ticket)]) as session:
        await take(session)
        chat = session.id
    async with await Session.resume(chat, home=home.root, provider=Echo()) as session:
        assert of(await take(session, "again"), Assistant)[0].content == "you said: again"
    done = run("cass", "-p", "--resume", chat, "list .")
    assert done.returncode == 0, done.stderr
    assert "app.py" in done.stdout


@asynchronous
async def test_what_contradicts_a_provider_of_the_host_is_refused(home, workspace):
    with pytest.raises(UsageError, match="an address and a key of its own"):
        await Session.new(home=home.root, cwd=workspace, provider=Echo(), base_url="http://127.0.0.1:1")
    home.make()
    home.config.write_text('{"default_access_mode": 5}')
    with pytest.raises(ConfigError):
        await Session.new(home=home.root, cwd=workspace, provider=Echo())
    assert catalogue.ids(home) == []


@asynchronous
async def test_a_missing_key_leaves_no_chat_behind(home, workspace):
    with pytest.raises(MissingKey):
        await Session.new(home=home.root, cwd=workspace, provider="openai")
    assert catalogue.ids(home) == []
