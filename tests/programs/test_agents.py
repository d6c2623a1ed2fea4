"""Agents: chats that the tool `agent` begins, with workers of their own; what they may, who decides, how they end."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import scripted
from stage import argv, end_worker, facts, run, wait_for

from cass import catalogue, chat, decisions, inbox, presence, send, standing, waiting
from cass.agent import Agent
from cass.agents import DEPTH, PER_TURN
from cass.home import Files, Home
from cass.records import Approval, Assistant, ToolResult, TurnEnd, User


def agents(*prompts: str, **more: object) -> scripted.Answer:
    return scripted.calls(*({"name": "agent", "arguments": {"prompt": prompt, **more}} for prompt in prompts))


def shell(command: str) -> scripted.Answer:
    return scripted.calls({"name": "shell", "arguments": {"command": command}})


class Model(scripted.Server):
    """Answers each chat by its first message: the steps are said one after the other, the last for ever."""

    def __init__(self, **steps: list[scripted.Answer]) -> None:
        super().__init__(lambda asked: self._next(asked, steps))

    @staticmethod
    def _next(asked: scripted.Asked, steps: dict[str, list[scripted.Answer]]) -> scripted.Answer:
        messages = asked.body["messages"]
        first = next(said["content"] for said in messages if said["role"] == "user").rpartition("\n")[2]
        answers = steps[first]
        return answers[min(sum(said["role"] == "assistant" for said in messages), len(answers) - 1)]


def begin(files: Files, model: scripted.Server, *flags: str, ask: bool = True) -> str:
    return send.send(files, "go", ask=ask, flags=["--base-url", model.base_url, "--model", "m", *flags])


def brood(home: Home, parent: Files) -> list[Files]:
    """The chats of its agents, the oldest first."""
    found = [home.files(chat_id) for chat_id in sorted(catalogue.ids(home))]
    metas = [(files, chat.first(files)) for files in found]
    return [files for files, meta in metas if meta is not None and meta.agent_of == parent.chat_id]


def results(files: Files) -> list[ToolResult]:
    return [record for record in facts(files, ToolResult) if isinstance(record, ToolResult)]


def end_of(files: Files) -> TurnEnd:
    end = waiting.settle(files, 60)
    assert end is not None
    return end


@pytest.fixture(autouse=True)
def _no_worker_stays(home: Home) -> Iterator[None]:
    yield
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


def only(found: list[Files]) -> Files:
    assert len(found) == 1
    return found[0]


def test_an_agent_is_a_chat_with_a_worker_of_its_own_and_its_answer_is_the_result(files, home, workspace):
    with Model(go=[agents("look"), scripted.says("it has two files")], look=[scripted.says("two files")]) as model:
        begin(files, model)
        assert end_of(files).outcome == "done"
        assert model.problems == []
    agent = only(brood(home, files))
    meta = chat.first(agent)
    assert (meta.cwd, meta.depth) == (str(workspace), 1)
    (said,) = facts(agent, User)
    assert (said.content, said.mode, said.origin["by"], said.origin["chat"]) == (
        "look",
        "read-only",
        "agent",
        files.chat_id,
    )
    assert "role: you do a part of another chat's work" in said.note
    assert "role:" not in facts(files, User)[0].note
    (result,) = results(files)
    assert (result.content, result.ok) == (f"two files\n\n[chat {agent.chat_id}]", True)


def test_agents_of_one_answer_work_side_by_side(files, home, workspace):
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo met"
    with Model(
        go=[agents("left", "right", mode="full-access"), scripted.says("both")],
        left=[shell(meet.format("l", "r")), scripted.says("left is back")],
        right=[shell(meet.format("r", "l")), scripted.says("right is back")],
    ) as model:
        begin(files, model, "--full-access")
        assert end_of(files).outcome == "done"
        assert model.problems == []
    asked = next(record.tool_calls for record in facts(files, Assistant) if record.tool_calls)
    came = {result.tool_call_id: result.content.partition("\n")[0] for result in results(files)}
    assert [came[call.id] for call in asked] == ["left is back", "right is back"]


@pytest.mark.parametrize(
    ("mode", "arguments", "complaint"),
    [
        ("--readonly", {"mode": "workspace-edit"}, "workspace-edit is wider than read-only"),
        ("--workspace-edit", {"mode": "full-access"}, "full-access is wider than workspace-edit"),
        ("--readonly", {"cwd": "/"}, "is outside the workspace"),
        ("--readonly", {"cwd": "missing"}, "missing is gone"),
        ("--workspace-edit", {"cwd": "app.py"}, "is not a directory"),
        ("--readonly", {"prompt": " "}, '"prompt" is empty'),
        ("--readonly", {"mode": "any"}, '"mode" must be one of read-only, workspace-edit, full-access'),
    ],
)
def test_an_agent_gets_no_more_than_the_chat_that_calls_it_has(files, home, mode, arguments, complaint):
    call = scripted.calls({"name": "agent", "arguments": {"prompt": "look", **arguments}})
    with Model(go=[call, scripted.says("I see")]) as model:
        begin(files, model, mode)
        end_of(files)
    (result,) = results(files)
    assert not result.ok
    assert complaint in result.content
    assert brood(home, files) == []


def test_a_workspace_elsewhere_is_asked_about(files, home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    steps = [agents("look", cwd=str(tmp_path / "elsewhere"), mode="workspace-edit"), scripted.says("done")]
    with Model(go=steps, look=[scripted.says("empty")]) as model:
        begin(files, model, "--workspace-edit")
        request = wait_for(lambda: next(iter(standing.look(files).pending), None))
        assert brood(home, files) == []
        assert run("cass", "approve", files.chat_id, request.request_id).returncode == 0
        assert end_of(files).outcome == "done"
    assert chat.first(only(brood(home, files))).cwd == str(tmp_path / "elsewhere")


def test_depth_is_limited(files, home):
    nested = [agents("deeper"), scripted.says("up")]
    with Model(go=nested, deeper=nested) as model:
        begin(files, model)
        assert end_of(files).outcome == "done"
        offered = [["agent" in str(asked.body["tools"])] for asked in model.asked]
        assert model.problems == []
    depths = sorted(chat.first(home.files(chat_id)).depth for chat_id in catalogue.ids(home))
    assert depths == list(range(DEPTH + 1))
    assert [False] in offered
    deepest = next(f for f in map(home.files, catalogue.ids(home)) if chat.first(f).depth == DEPTH)
    assert [result.content for result in results(deepest)] == ["Error: unknown tool 'agent'"]


def test_number_is_limited_at_once_and_in_a_turn(files, home):
    home.make()
    home.config.write_text('{"max_agents": 3}')
    prompts = [f"n{n}" for n in range(PER_TURN + 1)]
    answers = {prompt: [scripted.says("yes", delay_s=0.01)] for prompt in prompts}
    with Model(go=[agents(*prompts), scripted.says("enough")], **answers) as model:
        begin(files, model)
        end_of(files)
    worked = [(chat.first(agent).created_at, facts(agent, TurnEnd)[0].created_at) for agent in brood(home, files)]
    at_once = [sum(begun <= at < ended for begun, ended in worked) for at, _ in worked]
    assert max(at_once) == 3
    said = [result.content for result in results(files)]
    assert len([text for text in said if text.startswith("yes")]) == PER_TURN
    assert [text for text in said if text.startswith("Error")] == [
        f"Error: agent: this turn has begun {PER_TURN} agents already; do the rest yourself"
    ]


def test_without_agents_the_tool_is_not_offered(files, home):
    home.make()
    home.config.write_text('{"max_agents": 0}')
    with Model(go=[scripted.says("alone")]) as model:
        begin(files, model)
        end_of(files)
        assert "agent" not in [tool["function"]["name"] for tool in model.asked[0].body["tools"]]


# ---- questions ------------------------------------------------------------------------------------------------------


def question(files: Files) -> str:
    return wait_for(lambda: next((r.request_id for r in standing.look(files).pending), None), what="a question")


@pytest.mark.parametrize("where", ["parent", "agent"])
@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_what_an_agent_asks_can_be_answered_in_both_chats(files, home, workspace, where, verb):
    with Model(
        go=[agents("work"), scripted.says("done")], work=[shell("echo yes > made; cat made"), scripted.says("worked")]
    ) as model:
        begin(files, model, "--workspace-edit")
        request = question(files)
        agent = only(brood(home, files))
        assert question(agent) == request
        said = json.loads(run("cass", "status", "--json", files.chat_id).stdout)[0]
        assert [asked["agent"] for asked in said["pending"]] == [agent.chat_id]
        answered = run("cass", verb, (files if where == "parent" else agent).chat_id, request)
        assert (answered.returncode, answered.stderr) == (0, "")
        assert end_of(files).outcome == "done"
        assert model.problems == []
    assert (workspace / "made").exists() == (verb == "approve")
    for one in (files, agent):
        (approval,) = facts(one, Approval)
        assert (approval.request_id, approval.decision) == (request, "approved" if verb == "approve" else "denied")
        assert f"by cass {verb}, pid" in approval.by
    assert standing.look(files).pending == ()


def test_questions_of_several_agents_wait_side_by_side(files, home, workspace):
    steps = {name: [shell(f"touch {name}"), scripted.says("ok")] for name in ("one", "two")}
    with Model(go=[agents("one", "two"), scripted.says("done")], **steps) as model:
        begin(files, model, "--workspace-edit")
        pending = wait_for(lambda: len(found := standing.look(files).pending) == 2 and found)
        for request in reversed(pending):
            assert standing.look(files).state == "awaiting-approval"
            assert run("cass", "approve", files.chat_id, request.request_id).returncode == 0
        assert end_of(files).outcome == "done"
    assert {path.name for path in workspace.iterdir()} >= {"one", "two"}


def test_a_question_of_an_agents_agent_reaches_the_first_chat(files, home, workspace):
    with Model(
        go=[agents("middle"), scripted.says("done")],
        middle=[agents("last"), scripted.says("passed on")],
        last=[shell("touch made"), scripted.says("made")],
    ) as model:
        begin(files, model, "--workspace-edit")
        request = question(files)
        assert run("cass", "approve", files.chat_id, request).returncode == 0
        assert end_of(files).outcome == "done"
    assert (workspace / "made").exists()
    (result,) = results(files)
    assert result.content.startswith("passed on")


def test_where_nobody_can_be_asked_an_agent_asks_nobody(files, home):
    with Model(go=[agents("work"), scripted.says("done")], work=[shell("true"), scripted.says("refused")]) as model:
        begin(files, model, "--workspace-edit", ask=False)
        end_of(files)
    (result,) = results(files)
    assert not result.ok
    assert "came to nothing: something was refused because nobody could be asked" in result.content


def test_a_tool_of_the_parent_cannot_answer_for_the_person(files, home, workspace):
    """What the parent's worker may carry to its agent, no process below it may."""
    with Model(
        go=[agents("work", mode="workspace-edit"), scripted.says("done")],
        work=[shell("true"), scripted.says("worked")],
    ) as model:
        begin(files, model, "--full-access")
        request = question(files)
        agent = only(brood(home, files))
        other = chat.create(home, cwd=workspace, provider="demo", model="m", system="You are a test.")
        command = f"{shlex.join(argv('cass', 'approve', agent.chat_id, request))}; echo status $?"
        with Model(sneak=[shell(command), scripted.says("tried")]) as second:
            send.send(other, "sneak", flags=["--base-url", second.base_url, "--model", "m", "--full-access"])
            end_of(other)
        assert "status 4" in results(other)[0].content
        assert question(agent) == request
        assert run("cass", "deny", agent.chat_id, request).returncode == 0
        end_of(files)


def test_a_narrower_mode_holds_for_agents_at_once(files, home, workspace):
    hold = "touch begun; while [ ! -e go ]; do sleep 0.01; done"
    with Model(
        go=[agents("work"), scripted.says("done")],
        work=[shell(hold), shell("touch never"), scripted.says("worked")],
    ) as model:
        begin(files, model, "--full-access")
        wait_for((workspace / "begun").exists)
        agent = only(brood(home, files))
        assert decisions.ask(files, {"do": "mode", "mode": "read-only", "program": "a test"}) == {"ok": True}
        (workspace / "go").touch()
        end_of(files)
    assert not (workspace / "never").exists()
    assert "shell is unavailable in read-only mode" in results(agent)[-1].content


# ---- ends -----------------------------------------------------------------------------------------------------------

HOLD = "touch begun; sleep 777; touch never"


def held(files: Files, home: Home, workspace: Path, model: scripted.Server) -> Files:
    """The chat of an agent in the middle of a command."""
    begin(files, model, "--full-access")
    wait_for((workspace / "begun").exists)
    return only(brood(home, files))


@pytest.fixture
def model() -> Iterator[scripted.Server]:
    with Model(go=[agents("work"), scripted.says("done")], work=[shell(HOLD), scripted.says("worked")]) as made:
        yield made


def test_cancelling_the_chat_cancels_its_agents(files, home, workspace, model):
    agent = held(files, home, workspace, model)
    assert run("cass", "cancel", files.chat_id).returncode == 0
    assert end_of(files).outcome == "cancelled"
    assert end_of(agent).outcome == "cancelled"
    wait_for(lambda: not presence.is_running(agent))
    assert results(files)[0].content.startswith("Error: cancelled by the user\nchat ")


def test_an_agent_that_is_left_at_once_does_nothing_more(files, home, workspace):
    async def leave() -> None:
        origin = {"chat": files.chat_id, "call": "c", "pid": os.getpid()}
        pieces = Agent.begin(files, "go", flags=["--idle", "0"], ask=False, origin=origin).pieces()
        assert await anext(pieces) == f"chat {files.chat_id}\n"
        await pieces.aclose()

    asyncio.run(leave())
    wait_for(lambda: not presence.is_needed(files))  # its worker looks as well, and holds the lock for that moment
    assert inbox.waiting(files) == []
    wait_for(lambda: not presence.is_running(files))
    assert [end.outcome for end in facts(files, TurnEnd)] in ([], ["cancelled"])


def test_an_agent_that_is_cancelled_is_an_error_that_the_model_reads(files, home, workspace, model):
    agent = held(files, home, workspace, model)
    assert run("cass", "cancel", agent.chat_id).returncode == 0
    assert end_of(files).outcome == "done"
    assert results(files)[0].content == f"Error: the agent's turn was cancelled\n\n[chat {agent.chat_id}]"


def test_a_killed_agent_is_an_error_that_the_model_reads(files, home, workspace, model):
    agent = held(files, home, workspace, model)
    os.kill(presence.holder(agent)["pid"], signal.SIGKILL)
    assert end_of(files).outcome == "done"
    assert "the worker of" in results(files)[0].content
    assert not results(files)[0].ok
    assert model.problems == []
    assert run("cass-send", "--wait", agent.chat_id, "--", "work").returncode == 0  # it is valid, and goes on
    assert model.problems == []


def test_agents_of_a_killed_worker_end_their_turn_and_all_chats_stay_valid(files, home, workspace, model):
    agent = held(files, home, workspace, model)
    os.kill(presence.holder(files)["pid"], signal.SIGKILL)
    wait_for(lambda: facts(agent, TurnEnd))
    assert [end.outcome for end in facts(agent, TurnEnd)] == ["cancelled"]
    wait_for(lambda: not presence.is_running(agent))
    model_after = Model(go=[scripted.says("on"), scripted.says("on")], on=[scripted.says("on")])
    with model_after:
        send.send(files, "on", flags=["--base-url", model_after.base_url, "--model", "m"])
        assert end_of(files).outcome == "done"
        assert model_after.problems == []
    assert results(files)[0].content.startswith("Error: interrupted: the worker ended")


def test_what_agents_cost_counts_for_the_chat_and_for_its_limit(files, home):
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20, "cost": 0.25}
    calls = [{"name": "agent", "arguments": {"prompt": "work"}}]
    with Model(
        go=[scripted.step({"text": "", "tool_calls": calls, "usage": usage})],
        work=[scripted.step({"text": "worked", "usage": usage})],
    ) as model:
        begin(files, model, "--max-cost", "0.9")
        end = end_of(files)
    assert [result.spent for result in results(files)] == [0.25, 0.25]
    assert (end.error, end.spent) == ("stopped: $1.00 spent of $0.9000 (--max-cost)", 1.0)


def priced(usd: float, *calls: dict[str, object], text: str = "") -> scripted.Answer:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20, "cost": usd}
    return scripted.step({"text": text, "tool_calls": calls, "usage": usage})


HELD = {"name": "shell", "arguments": {"command": HOLD}}


def test_what_a_killed_or_cancelled_agent_has_cost_counts_as_well(files, home, workspace):
    again = {"name": "agent", "arguments": {"prompt": "work"}}
    with Model(go=[priced(0.5, again), priced(0.5, again)], work=[priced(0.25, HELD)]) as model:
        agent = held(files, home, workspace, model)
        os.kill(presence.holder(agent)["pid"], signal.SIGKILL)
        (workspace / "begun").unlink()
        wait_for((workspace / "begun").exists)
        assert run("cass", "cancel", files.chat_id).returncode == 0
        assert end_of(files).spent == 1.5
    assert [result.spent for result in results(files)] == [0.25, 0.25]


def test_agents_side_by_side_keep_to_the_limit_together(files, home, workspace):
    wait = {"name": "shell", "arguments": {"command": "touch begun; while [ ! -e go ]; do sleep 0.01; done"}}
    wanted = [{"name": "agent", "arguments": {"prompt": name}} for name in ("one", "two")]
    with Model(
        go=[priced(0.1, *wanted)],
        one=[priced(0.1, wait), priced(0.2, HELD)],
        two=[priced(0.6, HELD)],
    ) as model:
        begin(files, model, "--full-access", "--max-cost", "0.85")
        wait_for((workspace / "begun").exists)
        wait_for(lambda: len(model.asked) == 3)
        (workspace / "go").touch()
        end = end_of(files)
    assert (end.outcome, end.error) == ("failed", "stopped: $1.00 spent of $0.8500 (--max-cost)")
    assert [facts(agent, TurnEnd)[0].outcome for agent in brood(home, files)] == ["cancelled", "cancelled"]


HOST = """
import asyncio, sys
from cass import Session
async def main():
    async with await Session.new(cwd=".", base_url=sys.argv[1], model="m", mode="full-access") as session:
        async with session.turn("go") as turn:
            async for _ in turn: pass
asyncio.run(main())
"""


def test_agents_of_a_host_program_end_with_it(home, workspace, model):
    host = subprocess.Popen([sys.executable, "-c", HOST, model.base_url])
    wait_for((workspace / "begun").exists)
    host.kill()
    host.wait()
    agent = next(files for files in map(home.files, catalogue.ids(home)) if chat.first(files).agent_of)
    wait_for(lambda: facts(agent, TurnEnd))
    assert [end.outcome for end in facts(agent, TurnEnd)] == ["cancelled"]


def test_an_agent_is_offered_the_tools_that_it_is_given(files, home):
    steps = [agents("look", tools=["ls", "agent"]), agents("look", tools=["rm"]), scripted.says("done")]
    with Model(go=steps, look=[scripted.says("seen")]) as model:
        begin(files, model)
        end_of(files)
        offered = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in model.asked]
    assert ["ls", "agent"] in offered
    assert results(files)[1].content.startswith("Error: agent: there is no tool 'rm' to give; there are ")


def test_an_agent_has_no_more_tools_than_its_chat_may_have(files, home):
    with Model(go=[agents("look"), scripted.says("done")], look=[scripted.says("seen")]) as model:
        begin(files, model, "--tools", "agent,read")
        end_of(files)
        offered = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in model.asked]
    assert offered == [["read", "agent"]] * 3


# ---- what nobody may gain by them -----------------------------------------------------------------------------------


def test_always_for_a_question_of_an_agent_holds_in_its_chat_alone(files, home, workspace):
    again = [shell("touch made"), shell("touch made"), scripted.says("worked")]
    with Model(go=[agents("work"), shell("touch made"), scripted.says("done")], work=again) as model:
        begin(files, model, "--workspace-edit", "--no-sandbox")
        request = question(files)
        assert run("cass", "approve", "--always", files.chat_id, request).returncode == 0
        own = wait_for(lambda: next((r for r in standing.look(files).pending if r.request_id != request), None))
        assert (own.name, own.agent) == ("shell", "")
        assert run("cass", "approve", files.chat_id, own.request_id).returncode == 0
        assert end_of(files).outcome == "done"
    assert [result.ok for result in results(only(brood(home, files)))] == [True, True]


def test_a_question_of_an_agent_that_ended_is_asked_no_more(files, home, workspace):
    steps = {name: [shell(f"touch {name}"), scripted.says("ok")] for name in ("one", "two")}
    with Model(go=[agents("one", "two"), scripted.says("done")], **steps) as model:
        begin(files, model, "--workspace-edit")
        wait_for(lambda: len(standing.look(files).pending) == 2)
        first, second = brood(home, files)
        assert run("cass", "cancel", first.chat_id).returncode == 0
        left = wait_for(lambda: len(found := standing.look(files).pending) == 1 and found)
        assert left[0].agent == second.chat_id
        (said,) = facts(files, Approval)
        assert (said.decision, said.by, said.agent) == ("denied", "nobody", first.chat_id)
        assert run("cass", "approve", files.chat_id, left[0].request_id).returncode == 0
        assert end_of(files).outcome == "done"
        assert model.problems == []


def test_a_directory_that_was_swapped_for_a_link_is_no_workspace(files, home, workspace, tmp_path):
    """A call waits for its turn between the decision and its beginning."""
    home.make()
    home.config.write_text('{"max_agents": 1}')
    (workspace / "sub").mkdir()
    hold = "touch begun; while [ ! -e go ]; do sleep 0.01; done"
    wanted = [{"prompt": "hold"}, {"prompt": "look", "cwd": "sub"}]
    with Model(
        go=[scripted.calls(*({"name": "agent", "arguments": one} for one in wanted)), scripted.says("done")],
        hold=[shell(hold), scripted.says("held")],
        look=[scripted.says("looked")],
    ) as model:
        begin(files, model, "--full-access")
        wait_for((workspace / "begun").exists)
        (workspace / "sub").rename(workspace / "away")
        (workspace / "sub").symlink_to(tmp_path)
        (workspace / "go").touch()
        assert end_of(files).outcome == "done"
    assert results(files)[1].content == "Error: agent: sub became a link, or lies behind one now; nothing was begun"


def test_an_agent_that_finds_its_caller_dead_when_it_starts_does_nothing(files, home, workspace):
    agent = chat.create(home, cwd=workspace, provider="demo", model="m", system="", agent_of=files.chat_id, depth=1)
    with Model(work=[shell("touch never"), scripted.says("worked")]) as model:
        origin = {"by": "agent", "chat": files.chat_id, "call": "c", "pid": os.getpid()}
        inbox.put(agent, {"type": "message", "content": "work", "ask": True, "origin": origin})
        flags = ["--base-url", model.base_url, "--model", "m", "--full-access", "--idle", "0"]
        presence.start(agent, flags, {decisions.TOOL_MARK: files.chat_id}).wait()
        wait_for(lambda: facts(agent, TurnEnd))
    assert [end.outcome for end in facts(agent, TurnEnd)] == ["cancelled"]
    assert not (workspace / "never").exists()
