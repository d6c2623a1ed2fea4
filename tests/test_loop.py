"""One turn: what it yields, in which order, and that the chat is valid however it ends."""

import asyncio
import contextlib
import functools
import os
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scripted

from cass import context, ends, jsonl, loop, providers, summary, tries
from cass.access import Mode
from cass.bill import Bill
from cass.config import Connection
from cass.decisions import Answer
from cass.desk import Desk
from cass.errors import CassError
from cass.models import Facts, Prices
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Delta,
    Notice,
    Record,
    Status,
    System,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
)
from cass.rules import Rules
from cass.tools.paths import Place

AT = "2026-06-20T14:30:12.345Z"
Asked = Callable[[str], Awaitable[Answer]]
LIVE = (Delta, Status, ToolStarted, ToolOutput, ApprovalRequest)
YES, NO = Answer(True, "me"), Answer(False, "me", "too risky")


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def inner(*args: Any, **given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **given), 60))

    return inner


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def calls(*wanted: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "tool_calls": list(wanted)}


async def nobody(request_id: str) -> Answer:
    raise AssertionError(f"asked for {request_id}")


@pytest.fixture
def make(tmp_path: Path, workspace: Path) -> Callable[..., Desk]:
    """A desk whose model answers with the given steps, or is asked at `base_url`."""

    def made(
        *steps: dict[str, Any], base_url: str = "", answer: Callable[[str], Awaitable[Answer]] = nobody, **more: Any
    ) -> Desk:
        path = tmp_path / "steps.json"
        path.write_bytes(jsonl.dump(list(steps)))
        connection = Connection("scripted", "demo", script=str(path), delay_ms=0)
        if base_url:
            connection = Connection("scripted", "openai-compatible", base_url, api_key="k", read_timeout_s=20)
        desk = Desk(
            records=[System(content="You are a test.")],
            provider=providers.connect(connection),
            place=Place(workspace, tmp_path / "home", tmp_path / "out", "", "chat", {}, {"PATH": "/usr/bin:/bin"}),
            model="m",
            provider_name="scripted",
            mode=Mode.READ_ONLY,
            rules=Rules(),
            effort=None,
            max_tokens=1000,
            supports_tools=True,
            max_turns=None,
            max_tool_output=10_000,
            context_limit=100_000,
            answer=answer,
            is_steered=lambda: False,
            steering=lambda: None,
        )
        return replace(desk, **more)

    return made


def user(content: str = "hi", *, ask: bool = True, id: str = "u1") -> User:
    return User(id=id, content=content, created_at=AT, ask=ask)


async def take(
    desk: Desk, message: User | None = None, until: Callable[[Record], bool] = lambda _: False
) -> list[Record]:
    """The records of one turn, kept at the desk as its owner would; it is cancelled after the one `until` accepts."""
    found: list[Record] = []
    cancelled = False
    async with aclosing(loop.turn(desk, message or user())) as turn:
        step = anext(turn)
        with contextlib.suppress(StopAsyncIteration):
            while True:
                found.append(await step)
                if not isinstance(found[-1], LIVE):
                    desk.records.append(found[-1])
                cancels = not cancelled and until(found[-1])
                cancelled |= cancels
                step = turn.athrow(asyncio.CancelledError()) if cancels else anext(turn)
    await desk.provider.aclose()
    return found


def of(found: list[Record], *kinds: type) -> list[Any]:
    return [record for record in found if isinstance(record, kinds)]


def names(found: list[Record]) -> list[str]:
    """Kinds in order, runs of deltas as one, without what the worker does meanwhile."""
    kinds = [type(record).__name__ for record in found if not isinstance(record, Status)]
    return [kind for n, kind in enumerate(kinds) if kind != "Delta" or kinds[n - 1] != "Delta"]


def result(found: list[Record]) -> str:
    (only,) = of(found, ToolResult)
    return only.content


def assert_valid(desk: Desk) -> None:
    """The next request answers every call once, directly."""
    request = context.build(
        [*desk.records, user("next", id="next")],
        tools=(), model="m", max_tokens=10, effort=None, limit_tokens=100_000, max_tool_output=1000,
    )  # fmt: skip
    waiting: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolResult):
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls] if isinstance(message, Assistant) else []
    assert ends.open_calls(desk.records) == []
    assert ends.open_turn(desk.records) == ()


# ---- answers --------------------------------------------------------------------------------------------------------


@asynchronous
async def test_an_answer_is_streamed_and_then_whole(make):
    found = await take(make({"text": "Hello there, this is the answer.", "reasoning": "hm"}))
    assert names(found) == ["User", "Delta", "Assistant", "TurnEnd"]
    (answer,) = of(found, Assistant)
    deltas = of(found, Delta)
    assert {delta.of for delta in deltas} == {answer.id}
    assert "".join(delta.text or "" for delta in deltas) == answer.content == "Hello there, this is the answer."
    assert answer.reasoning == "hm"
    end = found[-1]
    assert (end.turn, end.answers, end.outcome, end.error) == ("u1", ("u1",), "done", None)
    assert end.usage == answer.usage


PRICED = Facts(prices=((0, Prices(1_000, 5_000)),))


@asynchronous
async def test_every_request_is_charged_and_the_end_says_what_the_chat_has_cost(make):
    desk = make(calls(call("read", files=[{"path": "app.py"}])), {"text": "done"}, {"text": "more"}, bill=Bill(PRICED))
    found = await take(desk)
    costs = [answer.usage.cost for answer in of(found, Assistant)]
    assert costs == [pytest.approx((u.input + 5 * u.output) / 1_000) for u in (a.usage for a in of(found, Assistant))]
    assert found[-1].usage.cost == found[-1].spent == pytest.approx(sum(costs))
    later = await take(desk, user("and now?", id="u2"))
    assert later[-1].spent == pytest.approx(sum(costs) + later[-1].usage.cost)


@asynchronous
async def test_a_summary_is_charged_too(make):
    desk = make({"text": "hello"}, {"text": "They said hello."}, bill=Bill(PRICED))
    await take(desk)
    (done,) = [record async for record in summary.compact(desk) if isinstance(record, Compaction)]
    assert done.usage.cost == pytest.approx((done.usage.input + 5 * done.usage.output) / 1_000)
    assert context.spent([*desk.records, done]) == pytest.approx(desk.bill.usage.cost)
    await desk.provider.aclose()


@asynchronous
async def test_no_request_is_made_once_the_limit_of_what_it_may_cost_is_reached(make):
    wanted = [calls(call("read", files=[{"path": "app.py"}])) for _ in range(5)]
    found = await take(make(*wanted, bill=Bill(PRICED, 0.0001)))
    assert len(of(found, Assistant)) == 1
    assert found[-1].outcome == "failed"
    assert re.fullmatch(r"stopped: \$[0-9.]+ spent of \$0\.0001 \(--max-cost\)", found[-1].error)


@asynchronous
async def test_a_limit_of_what_it_may_cost_cannot_hold_where_that_is_not_known(make):
    found = await take(make(calls(call("read", files=[{"path": "app.py"}])), {"text": "done"}, bill=Bill(limit=1.0)))
    assert len(of(found, Assistant)) == 1
    assert "what m costs is not known" in found[-1].error
    assert "models.json" in found[-1].error


@asynchronous
async def test_what_a_call_changed_is_kept_for_people_and_not_sent(make):
    desk = make(calls(call("write", path="new.txt", content="a\n")), {"text": "done"}, mode=Mode.FULL_ACCESS)
    (written,) = of(await take(desk), ToolResult)
    assert written.diff == "@@ -0,0 +1,1 @@\n+a\n"
    assert "@@" not in written.content


@asynchronous
async def test_a_file_is_read_and_then_talked_about(make):
    desk = make(calls(call("read", files=[{"path": "app.py"}]), text="I look."), {"text": "main returns 1"})
    found = await take(desk)
    assert names(found) == ["User", "Delta", "Assistant", "ToolStarted", "ToolResult", "Delta", "Assistant", "TurnEnd"]
    assert "def main():" in result(found)
    assert of(found, ToolResult)[0].ok
    assert of(found, Assistant)[1].content == "main returns 1"
    first, second = of(found, Assistant)
    assert found[-1].usage == first.usage + second.usage
    assert desk.place.seen, "what the model has seen of files is remembered"
    assert_valid(desk)


@asynchronous
async def test_calls_run_one_after_the_other_in_the_order_given(make):
    wanted = [call("shell", command=f"echo {n} >> log; cat log") for n in range(3)]
    found = await take(make(calls(*wanted), {"text": "ok"}, mode=Mode.FULL_ACCESS))
    assert [r.content for r in of(found, ToolResult)] == ["0", "0\n1", "0\n1\n2"]


@asynchronous
async def test_output_comes_while_a_tool_runs(make, workspace):
    wanted = calls(call("shell", command="echo first; cat gate; echo second"))
    desk = make(wanted, {"text": "ok"}, mode=Mode.FULL_ACCESS)
    os.mkfifo(workspace / "gate")
    found = []
    async with aclosing(loop.turn(desk, user())) as turn:
        async for record in turn:
            found.append(record)
            if not isinstance(record, LIVE):
                desk.records.append(record)
            if isinstance(record, ToolOutput) and record.text == "first\n":
                (workspace / "gate").write_text("open\n")
    assert "".join(r.text for r in of(found, ToolOutput)) == "first\nopen\nsecond\n"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (call("x"), "Error: unknown tool 'x'"),
        (call("read", files=[{"path": "none.txt"}]), "Error: "),
        (call("read", colour="red"), "Error: read: "),
        (call("ls", path="/"), "Error: / is outside the workspace; read-only mode reads only inside it"),
        (call("ls", path=".."), "is outside the workspace"),
        (call("shell", command="touch x"), "Error: shell is unavailable in read-only mode; go on within it, with grep"),
        (call("write", path="x", content="y"), "Error: write is unavailable in read-only mode"),
    ],
)  # fmt: skip
@asynchronous
async def test_a_call_that_cannot_be_is_an_error_that_the_model_reads(make, workspace, wanted, says):
    desk = make(calls(wanted), {"text": "I see"})
    found = await take(desk)
    assert says in result(found)
    assert result(found).startswith("Error: ")
    assert not of(found, ToolResult)[0].ok
    assert found[-1].outcome == "done", "a refusal that a mode makes is not the end"
    assert sorted(path.name for path in workspace.iterdir()) == ["app.py", "notes.txt"]


@asynchronous
async def test_the_model_is_offered_what_its_mode_has(make):
    every = "ls read grep write edit shell fetch"
    for mode, offered in [(Mode.READ_ONLY, "ls read grep"), (Mode.FULL_ACCESS, every)]:
        with scripted.Server([scripted.says("hi")]) as server:
            await take(make(base_url=server.base_url, mode=mode))
        assert server.problems == []
        assert [tool["function"]["name"] for tool in server.asked[0].body["tools"]] == offered.split()


@pytest.mark.parametrize("arguments", ["{not json", '["a list"]', "17"])
@asynchronous
async def test_arguments_that_are_no_object_never_run(make, arguments):
    wanted = scripted.chunk(
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": arguments}}]}
    )
    answers = [
        scripted.raw(*scripted.sse(wanted, scripted.chunk(finish="tool_calls"), "[DONE]")),
        scripted.says("I see"),
    ]
    with scripted.Server(answers) as server:
        desk = make(base_url=server.base_url)
        found = await take(desk)
    assert result(found).startswith(f"Error: the arguments of ls are not a JSON object: {arguments}")
    assert found[-1].outcome == "done"
    assert server.problems == []
    assert_valid(desk)


@asynchronous
async def test_a_result_is_kept_up_to_a_mebibyte_and_says_what_is_missing(make):
    command = "head -c 3000000 /dev/zero | tr '\\0' x"
    found = await take(make(calls(call("shell", command=command)), {"text": "ok"}, mode=Mode.FULL_ACCESS))
    assert (1 << 20) <= len(result(found)) < (1 << 20) + 500
    assert "left out" in result(found) or "not kept" in result(found)


# ---- approvals ------------------------------------------------------------------------------------------------------

TOUCH = calls(call("shell", command="touch made"))


def answering(*answers: Answer) -> Callable[[str], Awaitable[Answer]]:
    left = list(answers)

    async def answer(request_id: str) -> Answer:
        return left.pop(0)

    return answer


@asynchronous
async def test_what_is_approved_runs_and_who_approved_it_is_recorded(make, workspace):
    found = await take(make(TOUCH, {"text": "ok"}, mode=Mode.WORKSPACE_EDIT, answer=answering(YES)))
    assert names(found)[-7:] == [
        "ApprovalRequest",
        "Approval",
        "ToolStarted",
        "ToolResult",
        "Delta",
        "Assistant",
        "TurnEnd",
    ]
    (request,), (approval,) = of(found, ApprovalRequest), of(found, Approval)
    assert request.arguments == {"command": "touch made"}
    assert request.rule == "shell(touch made)"
    assert (approval.request_id, approval.decision, approval.by) == (request.request_id, "approved", "me")
    assert approval.tool_call_id == request.tool_call_id == of(found, ToolResult)[0].tool_call_id
    assert (workspace / "made").exists()
    assert [status.state for status in of(found, Status)] == ["thinking", "awaiting-approval", "running", "thinking"]


@asynchronous
async def test_what_is_denied_does_not_run_and_the_model_reads_why(make, workspace):
    found = await take(make(TOUCH, {"text": "ok"}, mode=Mode.WORKSPACE_EDIT, answer=answering(NO)))
    assert result(found) == "Error: the user denied it: too risky"
    assert (of(found, Approval)[0].decision, of(found, Approval)[0].reason) == ("denied", "too risky")
    assert not (workspace / "made").exists()
    assert found[-1].outcome == "done"


@asynchronous
async def test_where_nobody_can_be_asked_asking_is_denying_and_the_turn_is_blocked(make, workspace):
    found = await take(make(TOUCH, {"text": "ok"}, mode=Mode.WORKSPACE_EDIT), user(ask=False))
    assert of(found, ApprovalRequest) == []
    assert of(found, Approval)[0].decision == "denied"
    assert "nobody could be asked" in result(found)
    assert not (workspace / "made").exists()
    assert found[-1].outcome == "blocked"
    assert "refused" in found[-1].error


@asynchronous
async def test_a_rule_spares_the_question_and_is_recorded(make, workspace):
    desk = make(TOUCH, {"text": "ok"}, mode=Mode.WORKSPACE_EDIT, rules=Rules(allow=("shell(touch *)",)))
    found = await take(desk, user(ask=False))
    (approval,) = of(found, Approval)
    assert approval.by == "the rule shell(touch *)"
    assert (workspace / "made").exists()
    assert found[-1].outcome == "done"


@asynchronous
async def test_a_mode_that_was_narrowed_while_it_was_asked_holds(make, workspace):
    async def narrowing(request_id: str) -> Answer:
        desk.mode = Mode.READ_ONLY
        return YES

    desk = make(TOUCH, {"text": "ok"}, mode=Mode.WORKSPACE_EDIT, answer=narrowing)
    found = await take(desk)
    assert result(found).startswith("Error: shell is unavailable in read-only mode")
    assert not (workspace / "made").exists()


@asynchronous
async def test_a_wider_mode_waits_for_the_next_turn(make, workspace):
    def widening(record: Record) -> bool:
        if isinstance(record, Assistant):
            desk.mode = Mode.FULL_ACCESS
        return False

    desk = make(TOUCH, {"text": "ok"}, TOUCH, {"text": "ok"})
    found = await take(desk, until=widening)
    assert result(found).startswith("Error: shell is unavailable in read-only mode")
    assert not (workspace / "made").exists()
    await take(desk, user(id="u2"))
    assert (workspace / "made").exists()


# ---- ends -----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_a_turn_stops_after_so_many_requests(make):
    desk = make(*[calls(call("ls"))] * 5, max_turns=2)
    found = await take(desk)
    assert len(of(found, Assistant)) == 2
    assert (found[-1].outcome, found[-1].error) == ("failed", "stopped after 2 requests (--max-turns)")
    assert_valid(desk)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"text": ""}, "without any text"),
        ({"text": " \n"}, "without any text"),
        ({"text": "", "reasoning": "hm"}, "without any text"),
        ({"text": "cut o", "stop": "length"}, "cut off at the output limit"),
        ({"text": "par", "error": "the server is on fire"}, "the server is on fire"),
        ({"error": "no such model"}, "no such model"),
    ],
)
@asynchronous
async def test_a_turn_without_a_whole_answer_has_failed_and_says_why(make, step, says):
    desk = make(step)
    found = await take(desk)
    assert found[-1].outcome == "failed"
    assert says in found[-1].error
    if step.get("error") and step.get("text"):
        assert [(a.content, a.stop) for a in of(found, Assistant)] == [("par", "error")]
    assert_valid(desk)


@asynchronous
async def test_a_failure_in_passing_is_tried_again_and_the_text_is_shown_once(make, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    answers = [scripted.fails(503), scripted.fails(429, Retry_After="0"), scripted.says("the answer")]
    with scripted.Server(answers) as server:
        desk = make(base_url=server.base_url)
        found = await take(desk)
    assert found[-1].outcome == "done"
    retrying = [status for status in of(found, Status) if status.state == "retrying"]
    assert ["1 of 4" in retrying[0].detail, "2 of 4" in retrying[1].detail] == [True, True]
    assert "".join(delta.text or "" for delta in of(found, Delta)) == "the answer"
    assert len(of(found, Assistant)) == 1
    assert [asked.raw for asked in server.asked] == [server.asked[0].raw] * 3
    assert server.problems == []


@asynchronous
async def test_what_a_failed_try_streamed_is_marked_and_never_sent(make, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    desk = make({"text": "half an ans", "error": "cut", "transient": True, "times": 1}, {"text": "second"})
    found = await take(desk)
    shown = [(a.content, a.stop) for a in of(found, Assistant)]
    assert shown == [("half an ans", "error"), ("half an ans", "stop")]
    assert len({a.id for a in of(found, Assistant)}) == 2, "no delta of one try is taken for one of the next"
    kept = context.kept(desk.records)
    assert [m.content for m in kept if isinstance(m, Assistant)] == ["half an ans"]
    assert found[-1].outcome == "done"


@pytest.mark.parametrize("piece", [{"content": "half"}, {"tool_calls": [{"id": "a", "function": {"name": "ls"}}]}])
@asynchronous
async def test_h03_an_answer_that_breaks_off_in_its_middle_is_asked_for_once_more_and_no_more(make, monkeypatch, piece):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    cut = scripted.raw(*scripted.sse(scripted.chunk(piece)), scripted.RESET)
    with scripted.Server([scripted.fails(503), cut, scripted.fails(503), cut, scripted.says("late")]) as server:
        found = await take(make(base_url=server.base_url))
    assert len(server.asked) == 4
    assert found[-1].outcome == "failed"
    assert "given up, as it broke off 2 times" in found[-1].error


@asynchronous
async def test_a_failure_that_does_not_pass_is_given_up(make, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    with scripted.Server([scripted.fails(500)] * 10) as server:
        desk = make(base_url=server.base_url)
        found = await take(desk)
    assert len(server.asked) == tries.RETRIES + 1
    assert found[-1].outcome == "failed"
    assert "given up after 5 tries" in found[-1].error
    assert server.base_url in found[-1].error
    assert_valid(desk)


@pytest.mark.parametrize("answer", [scripted.fails(401), scripted.fails(404), scripted.fails(429, Retry_After="3600")])
@asynchronous
async def test_what_trying_again_cannot_mend_is_not_tried_again(make, answer):
    with scripted.Server([answer] * 3) as server:
        desk = make(base_url=server.base_url)
        found = await take(desk)
    assert len(server.asked) == 1
    assert found[-1].outcome == "failed"
    assert "api_key" not in found[-1].error


@asynchronous
async def test_a_retry_never_runs_a_tool_again(make, workspace, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    failing = {"text": "ok", "error": "hiccup", "transient": True, "times": 1}
    await take(make(calls(call("shell", command="echo x >> log")), failing, mode=Mode.FULL_ACCESS))
    assert (workspace / "log").read_text() == "x\n"


# ---- the person writes, or cancels ----------------------------------------------------------------------------------


@asynchronous
async def test_what_the_person_writes_meanwhile_is_heard_before_the_next_call(make):
    waiting = [user("stop that", id="u2")]
    desk = make(
        calls(call("ls"), call("ls"), call("ls")),
        {"text": "as you say"},
        is_steered=lambda: bool(waiting),
        steering=lambda: waiting.pop() if waiting else None,
    )
    found = await take(desk)
    assert [r.content for r in of(found, ToolResult)][1:] == ["Error: not run: the user wrote"] * 2
    assert names(found)[-4:] == ["User", "Delta", "Assistant", "TurnEnd"]
    assert found[-1].answers == ("u1", "u2")
    assert_valid(desk)


@asynchronous
async def test_what_the_person_writes_during_the_last_answer_is_answered_too(make):
    waiting = [user("and more", id="u2")]
    desk = make({"text": "first"}, {"text": "second"}, steering=lambda: waiting.pop() if waiting else None)
    found = await take(desk)
    assert [a.content for a in of(found, Assistant)] == ["first", "second"]
    assert found[-1].answers == ("u1", "u2")


@pytest.mark.parametrize(
    ("kind", "partial"),
    [
        *((User, []), (Status, []), (Delta, ["I look aroun"]), (Assistant, []), (ToolStarted, [])),
        *((ToolOutput, []), (ToolResult, []), (ApprovalRequest, [])),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@asynchronous
async def test_a_turn_cancelled_at_any_record_leaves_a_valid_chat(make, kind, partial):
    command = call("shell", command="echo begun")
    mode = Mode.WORKSPACE_EDIT if kind is ApprovalRequest else Mode.FULL_ACCESS
    desk = make(calls(command, command, text="I look around."), {"text": "ok"}, mode=mode)
    found = await take(desk, until=lambda record: isinstance(record, kind))
    assert (type(found[-1]), found[-1].outcome, found[-1].error) == (TurnEnd, "cancelled", None)
    assert [a.content for a in of(found, Assistant) if a.stop == "cancelled"] == partial
    if kind is ToolOutput:
        assert [r.content for r in of(found, ToolResult)] == [
            "Error: cancelled by the user\nbegun\n", "Error: cancelled by the user"
        ]  # fmt: skip
    assert_valid(desk)


@asynchronous
async def test_a_tool_has_ended_before_its_cancelled_turn_does(make, workspace):
    command = "trap 'sleep 0.1; echo bye > said; exit' TERM; echo begun; while :; do sleep 0.01; done"
    desk = make(calls(call("shell", command=command)), mode=Mode.FULL_ACCESS)
    found = await take(desk, until=lambda record: isinstance(record, ToolOutput))
    assert found[-1].outcome == "cancelled"
    assert (workspace / "said").read_text() == "bye\n"


# ---- a context that fills up -----------------------------------------------------------------------------------------


def test_the_context_in_use_holds_the_tools_that_a_rule_adds_to_the_mode(make):
    desk = make(records=[System(content="You are a test."), user()])
    allowed = replace(desk, rules=Rules(allow=("fetch(https://docs.example/*)",)))
    assert {"fetch"} == {one["name"] for one in allowed.request(allowed.records, desk.mode).tools} - {
        one["name"] for one in desk.request(desk.records, desk.mode).tools
    }
    assert allowed.used() > desk.used()


def past(desk: Desk, count: int = 6, size: int = 4_000, used: int = 0) -> None:
    """Give `desk` a history of `count` turns of `size` characters; the last answer reported `used` tokens."""
    for number in range(count):
        usage = Usage(input=used) if used and number == count - 1 else None
        answer = Assistant(id=f"old-a{number}", content=f"answer {number} " * (size // 10), usage=usage, created_at=AT)
        end = TurnEnd(turn=f"old{number}", answers=(f"old{number}",), outcome="done", created_at=AT)
        desk.records.extend([user(f"question {number}", id=f"old{number}"), answer, end])


def sent(asked: scripted.Asked) -> list[str]:
    return [message["content"] or "" for message in asked.body["messages"]]


@asynchronous
async def test_the_older_part_is_summarised_before_the_context_is_full_and_what_is_new_stays(make):
    with scripted.Server([scripted.says("We did much."), scripted.says("the answer")]) as server:
        desk = make(base_url=server.base_url, context_limit=10_000)
        past(desk, used=8_500)
        found = await take(desk, user("and now?"))
    assert server.problems == []
    (done,) = of(found, Compaction)
    assert (done.summary, done.first_kept_id) == ("We did much.", "old4")
    assert done.tokens_before >= 8_500
    assert done.usage is not None
    assert found[-1].usage.input == sum(record.usage.input for record in of(found, Assistant)) + done.usage.input
    summarising, answering = map(sent, server.asked)
    assert summarising[-1].startswith("Summarise")
    assert [text for text in summarising if text.startswith("question")] == [f"question {n}" for n in range(4)]
    assert "We did much." in answering[1]
    assert answering[1].endswith("question 4")
    assert [text for text in answering if text.startswith("question")] == ["question 5"]
    assert answering[-1] == "and now?"
    assert (found[-1].outcome, of(found, Assistant)[-1].content) == ("done", "the answer")
    assert_valid(desk)


@asynchronous
async def test_a_summary_is_asked_for_with_the_beginning_of_the_requests_before_it(make):
    """That is what a provider's cache of prefixes serves."""
    big = {"text": "first " * 1_500, "usage": {"prompt_tokens": 8_500, "completion_tokens": 1, "total_tokens": 8_501}}
    with scripted.Server([scripted.step(big), scripted.says("short"), scripted.says("the answer")]) as server:
        desk = make(base_url=server.base_url, context_limit=10_000)
        past(desk, 5)
        await take(desk, user("first", id="a"))
        await take(make(base_url=server.base_url, context_limit=10_000, records=desk.records), user("next", id="b"))
    first, summarising, _ = (asked.raw for asked in server.asked)
    assert summarising.startswith(first[: first.rindex(b'],"max_tokens"')])


@asynchronous
async def test_a_long_turn_is_summarised_in_its_middle_and_keeps_what_the_user_wants_word_for_word(make, workspace):
    (workspace / "big.txt").write_text("line of a large file\n" * 1_500)
    full = {"prompt_tokens": 9_000, "completion_tokens": 1, "total_tokens": 9_001}
    read = {"tool_calls": [{"name": "read", "arguments": {"path": "big.txt"}}], "usage": full}
    with scripted.Server([scripted.step(read), scripted.says("Read it."), scripted.says("done")]) as server:
        desk = make(base_url=server.base_url, context_limit=10_000, max_tool_output=100_000)
        found = await take(desk, user("Count the lines, exactly."))
    assert server.problems == []
    (done,) = of(found, Compaction)
    assert done.first_kept_id is None
    assert done.summary.startswith("Read it.")
    assert "Count the lines, exactly." in done.summary
    assert found[-1].outcome == "done"
    assert_valid(desk)


@asynchronous
async def test_a_model_that_calls_a_tool_instead_of_summarising_is_asked_again_without_tools(make):
    calls = scripted.calls({"name": "ls", "arguments": {"path": "."}})
    with scripted.Server([calls, scripted.says("In short."), scripted.says("the answer")]) as server:
        desk = make(base_url=server.base_url, context_limit=10_000)
        past(desk, used=8_500)
        found = await take(desk)
    assert of(found, Compaction)[0].summary == "In short."
    assert ["tools" in asked.body for asked in server.asked] == [True, False, True]


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        (scripted.fails(400, {"error": "no summaries"}), "no summaries"),
        (scripted.says("They went on and on. " * 2_000), "the summary is no shorter than what it would replace"),
    ],
    ids=["refused", "no shorter"],
)
@asynchronous
async def test_a_summary_that_fails_is_said_once_and_the_turn_goes_on(make, summary, why):
    call = {"tool_calls": [{"name": "ls", "arguments": {"path": "."}}]}
    answers = [summary, scripted.step(call), scripted.says("the answer")]
    with scripted.Server(answers) as server:
        desk = make(base_url=server.base_url, context_limit=10_000)
        past(desk, used=8_500)
        found = await take(desk)
    assert of(found, Compaction) == []
    (said,) = [notice.text for notice in of(found, Notice) if "could not be summarised" in notice.text]
    assert why in said
    assert len(server.asked) == 3
    assert found[-1].outcome == "done"


@asynchronous
async def test_that_the_context_fills_up_is_said_once_before_it_is_full(make):
    usage = {"prompt_tokens": 7_200, "completion_tokens": 1, "total_tokens": 7_201}
    step = {"tool_calls": [{"name": "ls", "arguments": {"path": "."}}], "usage": usage}
    with scripted.Server([scripted.step(step), scripted.step({"text": "ok", "usage": usage})]) as server:
        desk = make(base_url=server.base_url, context_limit=10_000)
        found = await take(desk)
    (said,) = of(found, Notice)
    assert said.text.startswith("the context is 72% full")


OVERFLOWS = {
    "llama.cpp": "the request exceeds the available context size (9000 tokens > 4096 tokens), try increasing it",
    "openai": "This model's maximum context length is 4096 tokens. However, your messages resulted in 9,000 tokens.",
    "anthropic": "prompt is too long: 9000 tokens > 4096 maximum",
    "gemini": "The input token count (9000) exceeds the maximum number of tokens allowed (4096).",
}


@pytest.mark.parametrize("words", OVERFLOWS.values(), ids=OVERFLOWS)
@asynchronous
async def test_a_request_that_was_too_long_is_summarised_and_made_again(make, words):
    refusal = scripted.fails(400, {"error": {"message": words, "code": "context_length_exceeded"}})
    with scripted.Server([refusal, scripted.says("In short."), scripted.says("the answer")]) as server:
        desk = make(base_url=server.base_url)
        past(desk)
        found = await take(desk)
    assert server.problems == []
    assert desk.context_limit == 4_096
    assert "a context of 4,096" in next(notice.text for notice in of(found, Notice))
    assert of(found, Compaction)[0].summary == "In short.\n\n(The 5 oldest turns were too long to be part of this.)"
    assert len(server.asked[2].raw) < len(server.asked[1].raw) < len(server.asked[0].raw)
    assert (found[-1].outcome, of(found, Assistant)[-1].content) == ("done", "the answer")


@asynchronous
async def test_a_refusal_without_figures_makes_shorter_requests_too(make):
    refusal = scripted.fails(413)
    with scripted.Server([refusal, scripted.says("In short."), scripted.says("the answer")]) as server:
        desk = make(base_url=server.base_url)
        past(desk)
        found = await take(desk)
    assert len(server.asked[1].raw) < tries.SHRINK * 1.1 * len(server.asked[0].raw)
    assert found[-1].outcome == "done"


@asynchronous
async def test_a_request_of_which_nothing_can_be_left_out_fails_and_says_so(make):
    refusal = scripted.fails(400, {"error": {"message": OVERFLOWS["openai"]}})
    with scripted.Server([refusal] * 4) as server:
        desk = make(base_url=server.base_url)
        found = await take(desk, user("x" * 40_000))
    assert found[-1].outcome == "failed"
    assert "context too large, and nothing more can be left out" in found[-1].error
    assert len(server.asked) == 2
    assert_valid(desk)


# ---- compaction -----------------------------------------------------------------------------------------------------


async def compacted(desk: Desk, focus: str | None = None) -> list[Record]:
    found = []
    async for record in summary.compact(desk, focus):
        found.append(record)
        if not isinstance(record, LIVE):
            desk.records.append(record)
    await desk.provider.aclose()
    return found


@asynchronous
async def test_a_summary_takes_the_place_of_the_history(make):
    desk = make({"text": "first"}, {"text": "We said hi."})
    await take(desk)
    (done,) = of(await compacted(desk, "the names"), Compaction)
    assert (done.summary, done.first_kept_id) == ("We said hi.", None)
    assert done.tokens_before > 0
    (message,) = context.kept([*desk.records, user("next", id="u2")])
    assert "We said hi." in message.note


@asynchronous
async def test_a_summary_is_asked_for_again_where_that_may_help(make, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_WAIT_S", 0.001)
    answers = [scripted.fails(529), scripted.fails(400, {"error": OVERFLOWS["openai"]}), scripted.says("In short.")]
    with scripted.Server(answers) as server:
        desk = make(base_url=server.base_url)
        past(desk)
        found = await compacted(desk)
    assert [status.state for status in of(found, Status)] == ["thinking", "retrying"]
    assert "a context of 4,096" in of(found, Notice)[0].text
    assert of(found, Compaction)[0].summary.startswith("In short.")
    assert len(server.asked[2].raw) < len(server.asked[1].raw) == len(server.asked[0].raw)


@pytest.mark.parametrize("step", [{"text": " "}, {"error": "no"}, {"text": "They said, at length: first. " * 20}])
@asynchronous
async def test_a_summary_that_failed_changes_nothing(make, step):
    desk = make({"text": "first"}, step)
    await take(desk)
    before = list(desk.records)
    with pytest.raises(CassError):
        await compacted(desk)
    assert desk.records == before
