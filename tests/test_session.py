"""A session: a chat held for writing, its turns, and what holds between them. The embedding API."""

import asyncio
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scripted
from sessions import Watcher, asynchronous, of, take
from stage import facts, script, wait_for

from cass import catalogue, chat, presence, providers, records
from cass import session as module
from cass.access import Mode
from cass.config import Connection
from cass.errors import CassError, ChatBroken, ConfigError, Held, MissingKey, NoChat, UsageError
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Delta,
    Meta,
    Notice,
    Record,
    Status,
    System,
    ToolOutput,
    ToolResult,
    TurnEnd,
    User,
)
from cass.session import Session
from cass.tail import Tail
from cass.turn import Turn


def shell(command: str, text: str = "") -> dict[str, Any]:
    return {"text": text, "tool_calls": [{"name": "shell", "arguments": {"command": command}}]}


# ---- turns ----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_what_a_turn_yields_is_what_the_files_hold(opened):
    async with opened({"text": "Hello there."}) as session:
        found = await take(session)
        live = Tail(session.files.live)
        shown = live.read()
        live.close()
        kept = facts(session.files)
    assert [type(record) for record in kept] == [Meta, System, User, Assistant, TurnEnd]
    assert kept[2:] == of(found, User, Assistant, TurnEnd)
    assert of(shown, Delta) == of(found, Delta)
    assert of(shown, Status)[-1].state == "idle"
    assert kept == session.records


@asynchronous
async def test_the_first_message_tells_the_model_where_it_is_and_the_next_only_what_changed(opened, workspace):
    async with opened({"text": "a"}, {"text": "b"}, {"text": "c"}) as session:
        for text in ("one", "two"):
            await take(session, text)
        session.set_mode(Mode.FULL_ACCESS)
        await take(session, "three")
        notes = [user.note for user in of(session.records, User)]
    assert f"workspace: {workspace}" in notes[0]
    assert "access mode: read-only" in notes[0]
    assert notes[1] is None
    assert "access mode: full-access" in notes[2]
    assert "workspace:" not in notes[2]


@asynchronous
async def test_turns_do_not_overlap(opened):
    async with opened({"text": "a"}, {"text": "b"}) as session:
        async with session.turn("one") as turn:
            assert session.is_busy
            for begin in (lambda: session.turn("two"), session.compact):
                with pytest.raises(UsageError, match="a turn is running"):
                    begin()
            async for _ in turn:
                pass
        assert not session.is_busy
        assert (await take(session, "two"))[-1].outcome == "done"


@asynchronous
async def test_two_turns_made_before_either_is_entered_do_not_overlap(opened):
    async with opened({"text": "a"}, {"text": "b"}) as session:
        first, second = session.turn("one"), session.turn("two")
        async with first:
            with pytest.raises(UsageError, match="a turn is running"):
                async with second:
                    pass
            async for _ in first:
                pass
        assert len(of(session.records, User)) == 1


def answering(answer: Callable[[Turn, str], None]) -> Watcher:
    return lambda turn, record: answer(turn, record.request_id) if isinstance(record, ApprovalRequest) else None


@asynchronous
async def test_an_approval_is_given_by_its_id_and_the_first_one_counts(opened, workspace):
    def decide(turn: Turn, record: Record) -> None:
        if isinstance(record, ApprovalRequest):
            with pytest.raises(UsageError, match="no request 'other' is waiting"):
                turn.approve("other")

            async def later() -> None:
                turn.approve(record.request_id, by="a test")
                with pytest.raises(UsageError, match="already decided: approved by a test"):
                    turn.deny(record.request_id)

            tasks.append(asyncio.create_task(later()))

    tasks: list[asyncio.Task[None]] = []
    async with opened(shell("touch made"), {"text": "ok"}, mode="workspace-edit") as session:
        found = await take(session, on=decide)
        await asyncio.gather(*tasks)
    assert of(found, Approval)[0].by == "a test"
    assert (workspace / "made").exists()


@asynchronous
async def test_an_approval_may_be_given_before_the_turn_waits_for_it(opened, workspace):
    async with opened(shell("touch made"), {"text": "ok"}, mode="workspace-edit") as session:
        found = await take(session, on=answering(lambda turn, id: turn.approve(id)))
    assert of(found, Approval)[0].decision == "approved"
    assert (workspace / "made").exists()


@asynchronous
async def test_a_denial_with_its_reason_reaches_the_model(opened, workspace):
    async with opened(shell("touch made"), {"text": "ok"}, mode="workspace-edit") as session:
        found = await take(session, on=answering(lambda turn, id: turn.deny(id, "not now")))
    assert of(found, ToolResult)[0].content == "Error: the user denied it: not now"
    assert not (workspace / "made").exists()


@asynchronous
async def test_always_holds_for_the_life_of_the_session_and_for_that_command_alone(opened):
    asked: list[str] = []

    def always(turn: Turn, record: Record) -> None:
        if isinstance(record, ApprovalRequest):
            asked.append(record.arguments["command"])
            turn.approve(record.request_id, always=True)

    steps = [shell("echo one"), {"text": "ok"}, shell("echo one"), shell("echo two"), {"text": "ok"}]
    async with opened(*steps, mode="workspace-edit") as session:
        found = [*await take(session, on=always), *await take(session, on=always)]
    assert asked == ["echo one", "echo two"]
    assert [a.rule for a in of(found, Approval)] == ["shell(echo one)", None, "shell(echo two)"]
    assert of(found, Approval)[1].by == "the rule shell(echo one)"


@asynchronous
async def test_without_anybody_to_ask_the_turn_is_blocked(opened, workspace):
    async with opened(shell("touch made"), {"text": "ok"}, mode="workspace-edit") as session:
        found = await take(session, ask=False)
    assert found[-1].outcome == "blocked"
    assert not (workspace / "made").exists()


@asynchronous
async def test_keys_are_not_in_the_environment_of_commands(opened, monkeypatch):
    for name in ("OPENAI_API_KEY", "My_Api_Key", "GH_TOKEN", "DB_PASSWORD", "A_SECRET"):
        monkeypatch.setenv(name, f"sk-{name}")
    monkeypatch.setenv("ORDINARY", "kept")
    async with opened(shell("env"), {"text": "ok"}, mode="full-access") as session:
        (result,) = of(await take(session), ToolResult)
        kept = session.files.chat.read_text()
    assert "ORDINARY=kept" in result.content
    assert f"HOME={os.environ['HOME']}" in result.content
    assert f"CASS_CHAT={session.id}" in result.content
    assert "sk-" not in kept


@asynchronous
async def test_the_key_in_use_is_in_no_command_under_any_name(home, workspace, monkeypatch):
    monkeypatch.setenv("MY_PROXY", "sk-in-use")
    monkeypatch.setenv("COPY", "sk-in-use")
    answers = [scripted.calls({"name": "shell", "arguments": {"command": "env"}}), scripted.says("ok")]
    with scripted.Server(answers) as server:
        options = {"provider": "openai", "base_url": server.base_url, "api_key_env": "MY_PROXY", "model": "m"}
        async with await Session.new(home=home.root, cwd=workspace, mode="full-access", **options) as session:
            (result,) = of(await take(session), ToolResult)
    assert server.asked[0].header("authorization") == "Bearer sk-in-use"
    assert "PATH=" in result.content
    assert "sk-in-use" not in result.content


@asynchronous
async def test_a_key_that_turns_up_in_output_is_hidden_before_it_is_kept(home, workspace, monkeypatch):
    key = "sk-in-use-0123456789"
    monkeypatch.setenv("MY_KEY", key)
    (workspace / ".env").write_text(f"A=1\nKEY={key}\n")
    commands = [f"printf %s {key[:9]}; sleep 0.05; echo {key[9:]}", "tr a-z A-Z <.env; cat .env; echo end"]
    answers = [
        scripted.calls(*({"name": "shell", "arguments": {"command": command}} for command in commands)),
        scripted.calls({"name": "read", "arguments": {"path": ".env"}}),
        scripted.says("ok"),
    ]
    options = {"provider": "openai", "api_key_env": "MY_KEY", "model": "m", "mode": "full-access"}
    with scripted.Server(answers) as server:
        async with await Session.new(home=home.root, cwd=workspace, base_url=server.base_url, **options) as session:
            found = await take(session)
            files = [session.files.chat, session.files.live]
            kept = b"".join(path.read_bytes() for path in files)
    split, whole, read = of(found, ToolResult)
    assert split.content == "[a secret, hidden here by cass]"
    assert whole.content.endswith("KEY=[a secret, hidden here by cass]\nend")
    assert "KEY=[a secret, hidden here by cass]" in read.content
    assert key.encode() not in kept.replace(f"echo {key[9:]}".encode(), b"")
    assert not any(key in json.dumps(asked.body) for asked in server.asked)


@asynchronous
async def test_other_known_secrets_are_hidden_as_well(home, workspace, monkeypatch):
    other, withheld = "sk-of-another-provider", "postgres://me:hunter2@db/x"
    monkeypatch.setenv("DATABASE_URL", withheld)
    entry = {"id": "mine", "kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": other}
    home.make()
    home.providers.write_bytes(json.dumps({"providers": [entry]}).encode())
    (workspace / "notes").write_text(f"{other}\n{withheld}\nend\n")
    answers = [scripted.calls({"name": "read", "arguments": {"path": "notes"}}), scripted.says("ok")]
    with scripted.Server(answers) as server:
        async with await Session.new(home=home.root, cwd=workspace, base_url=server.base_url, model="m") as session:
            (result,) = of(await take(session), ToolResult)
    assert result.content.count("[a secret, hidden here by cass]") == 2
    assert "hunter2" not in result.content
    assert other not in result.content


@asynchronous
async def test_what_shell_env_names_is_given_to_commands(opened, home, monkeypatch):
    monkeypatch.setenv("GH_TOKEN", "wanted")
    monkeypatch.setenv("NPM_TOKEN", "unwanted")
    home.make()
    home.config.write_text('{"shell_env": ["GH_*", "CI=1"]}')
    async with opened(shell("env"), {"text": "ok"}, mode="full-access") as session:
        (result,) = of(await take(session), ToolResult)
    assert "GH_TOKEN=wanted" in result.content
    assert "CI=1" in result.content
    assert "NPM_TOKEN" not in result.content


@asynchronous
async def test_an_untrusted_project_is_spoken_of_and_not_used(opened, home, workspace):
    (workspace / ".cass").mkdir()
    (workspace / ".cass" / "config.json").write_text('{"deny": ["shell"]}')
    async with opened({"text": "ok"}) as session:
        assert session.desk.rules.deny == ()
        assert "not used, nobody trusted it: cass trust" in session.files.live.read_text()


# ---- cancelling -----------------------------------------------------------------------------------------------------

HANGING = {"text": "some words", "hang": True}
BUSY = shell("echo begun; sleep 600")
CASES = {
    "while it streams": (HANGING, Delta, "full-access"),
    "while a tool runs": (BUSY, ToolOutput, "full-access"),
    "while an approval waits": (BUSY, ApprovalRequest, "workspace-edit"),
    "at its beginning": (HANGING, User, "full-access"),
}


async def assert_goes_on(session: Session) -> None:
    """The next turn is valid for a strict server."""
    with scripted.Server([scripted.says("hello again")]) as server:
        asked = Connection("scripted", "openai-compatible", server.base_url, api_key="k")
        session.desk.provider = providers.connect(asked)
        found = await take(session, "again")
        await session.desk.provider.aclose()
    assert server.problems == []
    assert found[-1].outcome == "done"


@pytest.mark.parametrize("later", [False, True], ids=["between two records", "while it waits"])
@pytest.mark.parametrize(("step", "kind", "mode"), CASES.values(), ids=CASES)
@asynchronous
async def test_an_interrupted_turn_tells_its_end_and_the_next_request_is_valid(opened, step, kind, mode, later):
    def interrupt(turn: Turn, record: Record) -> None:
        if isinstance(record, kind):
            asyncio.get_running_loop().call_later(0.05, turn.interrupt) if later else turn.interrupt()

    async with opened(step, mode=mode) as session:
        found = await take(session, on=interrupt)
        assert (type(found[-1]), found[-1].outcome) == (TurnEnd, "cancelled")
        if kind is ToolOutput:
            assert of(found, ToolResult)[0].content == "Error: cancelled by the user\nbegun\n"
        assert session.records == facts(session.files)
        await assert_goes_on(session)


@pytest.mark.parametrize(("step", "kind", "mode"), CASES.values(), ids=CASES)
@asynchronous
async def test_leaving_a_turn_early_cancels_it_and_leaves_the_chat_valid(opened, step, kind, mode):
    async with opened(step, mode=mode) as session:
        async with session.turn("hi") as turn:
            async for record in turn:
                if isinstance(record, kind):
                    break
        assert not session.is_busy
        assert of(session.records, TurnEnd)[-1].outcome == "cancelled"
        await assert_goes_on(session)


@pytest.mark.parametrize(("step", "kind", "mode"), CASES.values(), ids=CASES)
@asynchronous
async def test_an_error_in_the_body_leaves_the_chat_valid_and_goes_on_outwards(opened, step, kind, mode):
    async with opened(step, mode=mode) as session:
        with pytest.raises(ZeroDivisionError):
            await take(session, on=lambda _, record: 1 // 0 if isinstance(record, kind) else None)
        assert of(session.records, TurnEnd)[-1].outcome == "cancelled"
        await assert_goes_on(session)


@pytest.mark.parametrize(("step", "kind", "mode"), CASES.values(), ids=CASES)
@asynchronous
async def test_cancelling_the_task_of_a_turn_is_not_swallowed(opened, step, kind, mode):
    async with opened(step, mode=mode) as session:
        seen = asyncio.Event()
        task = asyncio.create_task(take(session, on=lambda _, record: seen.set() if isinstance(record, kind) else None))
        await seen.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not session.is_busy
        assert of(session.records, TurnEnd)[-1].outcome == "cancelled"
        await assert_goes_on(session)


@asynchronous
async def test_a_turn_under_a_timeout_is_cut_off_by_it(opened):
    async with opened(HANGING) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await take(session)
        assert of(session.records, TurnEnd)[-1].outcome == "cancelled"


@asynchronous
async def test_an_interrupted_command_is_gone_with_all_it_began(opened, workspace):
    command = "echo $$ > pid; sleep 600 & echo $! > below; echo begun; wait"
    async with opened(shell(command), mode="full-access") as session:
        await take(session, on=lambda turn, record: turn.interrupt() if isinstance(record, ToolOutput) else None)
    for name in ("pid", "below"):
        pid = (workspace / name).read_text().strip()
        wait_for(lambda pid=pid: not _runs(pid), what=name)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@asynchronous
async def test_interrupting_twice_or_after_the_end_is_nothing(opened):
    async with opened(HANGING, {"text": "b"}) as session:
        async with session.turn("hi") as turn:
            async for record in turn:
                if isinstance(record, Delta):
                    turn.interrupt()
                    turn.interrupt()
        turn.interrupt()
        await turn.cancel()
        assert len(of(session.records, TurnEnd)) == 1


# ---- the mode and the model -----------------------------------------------------------------------------------------


@asynchronous
async def test_a_narrower_mode_holds_at_once_and_a_wider_one_from_the_next_turn(opened, workspace):
    def change(mode: Mode) -> Callable[[Turn, Record], None]:
        return lambda _, record: session.set_mode(mode) if isinstance(record, Assistant) else None

    steps = [shell("touch a"), {"text": "ok"}, shell("touch b"), {"text": "ok"}, shell("touch c"), {"text": "ok"}]
    async with opened(*steps, mode="full-access") as session:
        await take(session, on=change(Mode.READ_ONLY))
        assert presence.holder(session.files)["mode"] == "read-only"
        await take(session, on=change(Mode.FULL_ACCESS))
        assert not (workspace / "a").exists()
        assert not (workspace / "b").exists()
        await take(session)
        assert (workspace / "c").exists()
        assert [user.mode for user in of(session.records, User)] == ["full-access", "read-only", "full-access"]


@pytest.mark.parametrize("cwd", ["/", "~"])
@asynchronous
async def test_neither_the_root_nor_the_home_is_given_to_workspace_edit(home, cwd):
    script(home, {"text": "a"})
    with pytest.raises(UsageError, match="cannot be the workspace"):
        await Session.new(home=home.root, cwd=cwd, provider="scripted", mode="workspace-edit")
    assert catalogue.ids(home) == []
    async with await Session.new(home=home.root, cwd=cwd, provider="scripted") as session:
        with pytest.raises(UsageError, match="cannot be the workspace"):
            session.set_mode(Mode.WORKSPACE_EDIT)
        assert session.desk.mode is Mode.READ_ONLY


@asynchronous
async def test_another_model_answers_from_the_next_turn_and_a_wrong_one_changes_nothing(opened):
    async with opened({"text": "a"}, {"text": "b"}) as session:
        await take(session)
        session.set_model(None, "other", "high")
        with pytest.raises(ConfigError):
            session.set_model("nobody", "x")
        with pytest.raises(MissingKey, match="set OPENAI_API_KEY"):
            session.set_model("openai", "x")
        await take(session)
        said = [(user.provider, user.model, user.effort) for user in of(session.records, User)]
    assert said == [("scripted", "scripted", None), ("scripted", "other", "high")]


@asynchronous
async def test_what_a_refusal_taught_of_a_model_is_true_of_that_model_alone(home, workspace):
    home.make()
    refusal = scripted.fails(400, {"error": {"message": "prompt is too long: 9000 tokens > 4096 maximum"}})
    with scripted.Server([refusal, scripted.says("a")]) as server:
        entry = {"id": "work", "base_url": server.base_url, "default_model": "m"}
        home.providers.write_text(json.dumps({"providers": [entry]}))
        async with await Session.new(home=home.root, cwd=workspace, provider="work") as session:
            before = session.desk.context_limit, session.desk.max_tokens, session.desk.density
            await take(session)
            learnt = session.desk.context_limit, session.desk.max_tokens, session.desk.density
            session.set_model(None, None, "high")
            assert (session.desk.context_limit, session.desk.max_tokens, session.desk.density) == learnt != before
            session.set_model(None, "other")
            assert (session.desk.context_limit, session.desk.max_tokens, session.desk.density) == before


@asynchronous
async def test_a_key_that_was_configured_meanwhile_is_used_when_its_provider_is_chosen(home, workspace, monkeypatch):
    monkeypatch.setenv("OLD_KEY", "sk-old")
    home.make()
    with scripted.Server([scripted.step({"text": "a"}), scripted.step({"text": "b"})]) as server:
        entry = {"id": "work", "base_url": server.base_url, "api_key_env": "OLD_KEY", "default_model": "m"}
        home.providers.write_text(json.dumps({"providers": [entry]}))
        async with await Session.new(home=home.root, cwd=workspace, provider="work", max_tokens=77) as session:
            await take(session)
            home.providers.write_text(json.dumps({"providers": [{**entry, "api_key_env": None, "api_key": "sk-new"}]}))
            session.set_model("work", "other")
            await take(session)
        sent = [dict(asked.headers)["authorization"] for asked in server.asked]
        bodies = [asked.body for asked in server.asked]
    assert sent == ["Bearer sk-old", "Bearer sk-new"]
    assert [(body["model"], body["max_tokens"]) for body in bodies] == [("m", 77), ("other", 77)], "flags hold"


# ---- opening and closing --------------------------------------------------------------------------------------------


@asynchronous
async def test_a_resumed_chat_sees_the_turns_before(opened, home, monkeypatch):
    monkeypatch.delenv("CASS_PROVIDER")
    async with opened({"text": "first answer"}, {"text": "second answer"}) as session:
        await take(session, "one")
    async with await Session.resume(session.id[-4:], home=home.root) as again:
        found = await take(again, "two")
        assert of(found, Assistant)[0].content == "second answer", "the script counts the answers it is sent"
        assert of(found, User)[0].note is None
    assert [r.content for r in facts(session.files, User, Assistant)] == ["one", "first answer", "two", "second answer"]


@asynchronous
async def test_a_chat_that_is_held_is_not_touched(opened, home):
    async with opened({"text": "a"}) as session:
        await take(session)
        before = session.files.chat.read_bytes()
        with pytest.raises(Held, match=str(os.getpid())):
            await Session.resume(session.id, home=home.root)
        assert session.files.chat.read_bytes() == before
        assert session.records == facts(session.files)


@asynchronous
async def test_what_cannot_be_opened_says_so(home, workspace, files):
    with pytest.raises(NoChat):
        await Session.resume("nothing", home=home.root)
    with pytest.raises(MissingKey, match="set OPENAI_API_KEY"):
        await Session.new(home=home.root, cwd=workspace, provider="openai")
    with pytest.raises(ConfigError):
        await Session.new(home=home.root, cwd=workspace, provider="nobody")
    with pytest.raises(CassError, match="is gone"):
        await Session.new(home=home.root, cwd=workspace / "none")
    files.chat.write_bytes(b'{"type":"system","content":"s"}\n')
    with pytest.raises(CassError, match="no meta record"):
        await Session.resume(files.chat_id, home=home.root)
    assert not presence.is_running(files)


@asynchronous
async def test_a_workspace_that_is_gone_is_an_error_and_another_one_is_recorded(opened, home, workspace, tmp_path):
    async with opened({"text": "a"}, {"text": "b"}) as session:
        await take(session)
    shutil.rmtree(workspace)
    with pytest.raises(CassError, match="is gone"):
        await Session.resume(session.id, home=home.root)
    other = tmp_path / "other"
    other.mkdir()
    async with await Session.resume(session.id, home=home.root, cwd=other) as again:
        await take(again)
        assert chat.meta(again.records).cwd == str(other)
        assert f"workspace: {other}" in of(again.records, User)[-1].note


@asynchronous
async def test_what_a_dead_worker_left_open_is_closed_and_damage_is_said(opened, home):
    async with opened(shell("true"), {"text": "b"}, mode="full-access") as session:
        await take(session)
    lines = session.files.chat.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b"tool_result" not in line][:4]
    session.files.chat.write_bytes(b"".join(kept) + b'{"type":"tool_res')
    async with await Session.resume(session.id, home=home.root) as again:
        (notice,) = chat.damage(again.records)
        assert "line 5 is damaged" in notice.text
        assert (
            of(again.records, ToolResult)[0].content
            == "Error: interrupted: the worker ended; what the call had begun may have gone on"
        )
        assert of(again.records, TurnEnd)[0].outcome == "failed"
        live = Tail(again.files.live)
        assert notice in live.read()
        live.close()
        await assert_goes_on(again)


@asynchronous
async def test_a_chat_replaced_between_turns_stops_the_session(opened):
    async with opened({"text": "a"}) as session:
        session.files.chat.unlink()
        with pytest.raises(ChatBroken, match="was removed"):
            await take(session)
        assert not session.is_busy


@asynchronous
async def test_a_session_that_cannot_mend_its_chat_gives_it_up(opened, home):
    async with opened({"text": "a"}) as session:
        files = session.files
    with open(files.chat, "ab") as file:
        file.write(records.encode(User(id="open", content="hi", created_at="2026-06-20T14:30:12.345Z")))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (files.chat.stat().st_size, limits[1]))  # as a full disk has it
    try:
        with pytest.raises(ChatBroken, match="cannot append"):
            await Session.resume(files.chat_id, home=home.root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    async with await Session.resume(files.chat_id, home=home.root) as session:
        assert session.records[-1].outcome == "failed"


@asynchronous
async def test_closing_frees_the_lock_and_leaves_no_descriptor(opened):
    before = len(os.listdir("/proc/self/fd"))
    async with opened({"text": "a"}) as session:
        await take(session)
        assert presence.is_running(session.files)
    assert not presence.is_running(session.files)
    assert len(os.listdir("/proc/self/fd")) == before


# ---- clearing and compacting ----------------------------------------------------------------------------------------


@asynchronous
async def test_a_cleared_chat_begins_anew_for_the_model_and_keeps_its_file(opened):
    async with opened({"text": "one"}, {"text": "two"}) as session:
        await take(session, "the word is tiger")
        await session.clear()
        found = await take(session, "which word?")
        assert of(found, Assistant)[0].content == "one", "the script saw no earlier answer"
        assert of(found, User)[0].note is not None, "everything is told again"
    assert "tiger" in session.files.chat.read_text()
    assert of(session.records, Compaction)[0].summary == ""


@asynchronous
async def test_a_compacted_chat_goes_on_from_its_summary(opened):
    async with opened({"text": "zero"}, {"text": "The word is tiger."}) as session:
        await take(session, "the word is tiger")
        async with session.compact("words") as turn:
            found = [record async for record in turn]
        assert of(found, Compaction)[0].summary == "The word is tiger."
        assert not session.is_busy
        await assert_goes_on(session)
    assert [type(r) for r in facts(session.files)][-4:] == [Compaction, User, Assistant, TurnEnd]


@asynchronous
async def test_a_compaction_that_fails_or_is_cancelled_changes_nothing(opened):
    async with opened({"text": "zero"}, {"text": "", "hang": True}) as session:
        await take(session)
        before = session.files.chat.read_bytes()
        async with session.compact() as turn:
            async for record in turn:
                if isinstance(record, Status):
                    break
        assert session.files.chat.read_bytes() == before
        assert not session.is_busy


@asynchronous
async def test_notices_of_the_settings_are_shown_once(opened, home):
    home.make()
    home.config.write_text('{"colour": "red"}')
    async with opened({"text": "a"}) as session:
        live = Tail(session.files.live)
        texts = [record.text for record in live.read() if isinstance(record, Notice)]
        live.close()
    assert any('unknown key "colour"' in text for text in texts)


def test_the_example_of_the_module_runs_as_it_stands(home, workspace):
    """What the docstring shows is what a person copies."""
    code = "\n".join(line.removeprefix("    ") for line in module.__doc__.splitlines() if line.startswith("    "))
    assert "turn.deny(id)" in code
    script(home, {"text": "in app.py"})
    names: dict[str, Any] = {}
    exec("async def main():\n" + "\n".join("    " + line for line in code.splitlines()), names)
    asyncio.run(asyncio.wait_for(names["main"](), 60))
