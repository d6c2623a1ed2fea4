"""The context: a request that every server takes, whose beginning stays the same, and that fits."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass import budget, context, prompt
from cass.config import Connection
from cass.context import Request
from cass.providers import openai_compatible
from cass.records import (
    Approval,
    Assistant,
    Compaction,
    Meta,
    Notice,
    Record,
    System,
    ToolCall,
    ToolResult,
    TurnEnd,
    Unknown,
    Usage,
    User,
)
from tests import scripted

AT = "2026-06-20T14:30:12.345Z"
HEAD = [Meta(chat_id="c", created_at=AT), System(content="You are a test.")]
CONNECTION = Connection("test", "openai-compatible", "http://127.0.0.1:1/v1")


def user(id: str, content: str = "", **more: Any) -> User:
    return User(id=id, content=content or f"said {id}", created_at=AT, **more)


def said(id: str, content: str = "", calls: Sequence[str] = (), **more: Any) -> Assistant:
    wanted = tuple(ToolCall(call, "ls", {"path": "."}) for call in calls)
    return Assistant(id=id, content=content, created_at=AT, tool_calls=wanted, **more)


def result(call: str, content: str = "done", ok: bool = True) -> ToolResult:
    return ToolResult(tool_call_id=call, name="ls", content=content, ok=ok, created_at=AT)


def end(*answers: str, outcome: str = "done") -> TurnEnd:
    return TurnEnd(turn=answers[0], answers=answers, outcome=outcome, created_at=AT)


def compaction(summary: str, first_kept_id: str | None = None) -> Compaction:
    return Compaction(summary=summary, first_kept_id=first_kept_id, tokens_before=1, created_at=AT)


def build(*records: Record, limit: int = 1_000_000, max_tokens: int = 100, cut: int = 100_000) -> Request:
    return context.build(
        [*HEAD, *records],
        tools=(),
        model="m",
        max_tokens=max_tokens,
        effort=None,
        limit_tokens=limit,
        max_tool_output=cut,
    )


def used(*records: Record) -> int | None:
    return context.used(records, 100_000)


def words(request: Request) -> list[str]:
    """Each message in a word."""
    return [f"{m.name}:{m.content}" if isinstance(m, ToolResult) else m.content or "calls" for m in request.messages]


def check(request: Request) -> None:
    """Fail where a strict server would refuse the request; it is sent after a user message or a result only."""
    _, headers, body = openai_compatible.build(CONNECTION, request)
    found = [problem for problem in scripted.problems(body, headers.items()) if "last message" not in problem]
    assert found == []


# ---- what belongs to a request --------------------------------------------------------------------------------------


def test_the_messages_stand_as_they_were_said():
    request = build(user("a"), said("b", "", ["1"]), result("1"), said("c", "fine"), end("a"), user("d"))
    assert words(request) == ["said a", "calls", "ls:done", "fine", "said d"]
    assert (request.system, request.left_out) == ("You are a test.", 0)
    check(request)


def test_what_is_no_message_is_passed_over():
    approval = Approval(request_id="r", tool_call_id="1", decision="approved", by="x", created_at=AT)
    request = build(
        Unknown("x"), user("a"), said("b", "", ["1"]), approval, Notice(level="info", text="x"), result("1")
    )
    assert words(request) == ["said a", "calls", "ls:done"]


def test_a_failed_turn_without_answer_or_result_is_left_out():
    failed = end("a", "b", outcome="failed")
    assert words(build(user("a"), user("b"), failed, user("c"))) == ["said c"]
    assert words(build(user("a"), user("b"), end("a", "b", outcome="cancelled"), user("c"))) == [
        "said a",
        "said b",
        "said c",
    ]


def test_a_failed_turn_with_an_answer_or_a_result_stays():
    records = [user("a"), said("b", "", ["1"]), result("1"), end("a", outcome="failed"), user("c")]
    assert words(build(*records)) == ["said a", "calls", "ls:done", "said c"]


def test_a_message_that_steered_a_failed_turn_is_left_out_alone():
    records = [user("a"), said("b", "", ["1"]), result("1"), user("s"), end("a", "s", outcome="failed"), user("c")]
    assert words(build(*records)) == ["said a", "calls", "ls:done", "said c"]


def test_an_answer_that_failed_is_never_sent_nor_are_its_calls_and_results():
    records = [user("a"), said("b", "half", ["1"], stop="error"), result("1"), said("c", "whole"), end("a")]
    assert words(build(*records)) == ["said a", "whole"]
    assert words(build(user("a"), said("b", "half", stop="error"), end("a", outcome="failed"), user("c"))) == ["said c"]


def test_an_answer_without_text_and_calls_is_not_sent():
    assert words(build(user("a"), said("b", "", stop="cancelled"), end("a"), user("c"))) == ["said a", "said c"]


@pytest.mark.parametrize("later", [[], [user("c")], [said("c", "x")], [end("a"), user("c")]])
def test_a07_open_calls_are_closed_before_anything_else_is_said(later):
    request = build(user("a"), said("b", "", ["1", "2"]), result("2"), *later)
    assert words(request)[:4] == ["said a", "calls", "ls:Error: interrupted", "ls:done"]
    check(request)


def test_results_stand_in_the_order_of_their_calls_and_what_a_user_said_meanwhile_behind_them():
    request = build(user("a"), said("b", "", ["1", "2"]), result("2", "two"), user("s"), result("1", "one"))
    assert words(request) == ["said a", "calls", "ls:one", "ls:two", "said s"]


def test_results_without_a_call_are_dropped():
    assert words(build(result("0"), user("a"), said("b", "", ["1"]), result("1"), result("1"), result("9"))) == [
        "said a",
        "calls",
        "ls:done",
    ]


def test_ids_may_repeat_from_answer_to_answer():
    records = [user("a"), said("b", "", ["0"]), result("0", "x"), said("c", "", ["0"]), result("0", "y")]
    assert words(build(*records)) == ["said a", "calls", "ls:x", "calls", "ls:y"]
    check(build(*records))


# ---- compaction -----------------------------------------------------------------------------------------------------

NOTE = prompt.block({"access mode": "read-only", "workspace": "/w"})


def test_a_summary_stands_before_what_follows_it():
    request = build(user("a", note=NOTE), said("b", "x"), end("a"), compaction("it went well"), user("c"))
    assert words(request) == ["said c"]
    [first] = request.messages
    assert isinstance(first, User)
    assert first.note == f"Summary of the conversation so far:\n\nit went well\n\n{NOTE}"


def test_a_compaction_keeps_what_it_names():
    records = [
        user("a"),
        said("b", "x"),
        end("a"),
        user("c"),
        said("d", "y"),
        end("c"),
        compaction("s", "c"),
        user("e"),
    ]
    assert words(build(*records)) == ["said c", "y", "said e"]


def test_only_the_last_compaction_counts():
    records = [user("a"), compaction("one"), user("b"), said("c", "x"), compaction("two"), user("d")]
    request = build(*records)
    assert words(request) == ["said d"]
    assert isinstance(request.messages[0], User)
    assert "two" in (request.messages[0].note or "")
    assert "one" not in (request.messages[0].note or "")


def test_a_compaction_in_the_middle_of_a_turn_begins_with_a_user():
    request = build(user("a"), said("b", "", ["1"]), result("1"), compaction("s", "b"))
    assert words(request) == ["Go on from here.", "calls", "ls:done"]
    check(request)


def test_a_clear_leaves_nothing_and_the_system_prompt():
    request = build(user("a", note=NOTE), said("b", "x"), end("a"), compaction(""), user("c"))
    assert (words(request), request.system) == (["said c"], "You are a test.")
    assert isinstance(request.messages[0], User)
    assert request.messages[0].note is None
    assert context.kept([*HEAD, user("a", note=NOTE), compaction("")]) == []


def test_what_was_kept_knows_what_the_summary_repeats():
    kept = context.kept([*HEAD, user("a", note=NOTE), compaction("s"), user("b", note=prompt.block({"date": "x"}))])
    assert prompt.told(kept) == {"access mode": "read-only", "workspace": "/w", "date": "x"}


# ---- cutting --------------------------------------------------------------------------------------------------------


def test_a_long_result_keeps_head_and_tail_and_says_what_is_missing():
    text = "".join(f"line {number}\n" for number in range(10_000))
    content = words(build(user("a"), said("b", "", ["1"]), result("1", text), cut=2_000))[2].removeprefix("ls:")
    head, _, rest = content.partition("\n\n[... ")
    missing, _, rest = rest.partition(" characters left out here")
    tail = rest.partition(" ...]\n\n")[2]
    assert len(content) <= 2_000
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(missing) + len(tail) == len(text)
    assert len(head) > 800
    assert len(tail) > 800
    assert "narrower" in rest


@pytest.mark.parametrize("limit", [1, 50, 400])
def test_a_limit_smaller_than_its_note_is_no_fault(limit):
    assert words(build(user("a"), said("b", "", ["1"]), result("1", "x" * 1_000), cut=limit))


def test_a_result_of_just_the_limit_stays_whole():
    assert words(build(user("a"), said("b", "", ["1"]), result("1", "x" * 2_000), cut=2_000))[2] == "ls:" + "x" * 2_000


# ---- the budget -----------------------------------------------------------------------------------------------------


def turns(count: int, size: int) -> list[Record]:
    """Turns of one call each, of about `size` bytes."""
    records: list[Record] = []
    for number in range(count):
        records += [user(f"u{number}", note=prompt.block({"model": f"m{number}", f"fact {number}": "x"}))]
        records += [said(f"c{number}", "", [f"{number}"]), result(f"{number}", "r" * size), said(f"a{number}", "fine")]
        records += [end(f"u{number}")]
    return records


def estimate(request: Request) -> int:
    return sum(context.tokens(message.content) for message in request.messages)


def test_long_results_are_shortened_before_any_turn_goes_the_oldest_first():
    request = build(*turns(20, 4_000), user("last"), limit=18_000)
    lengths = [len(message.content) for message in request.messages if isinstance(message, ToolResult)]
    assert (request.left_out, request.shortened) == (0, lengths.index(4_000))
    assert 0 < request.shortened < 20
    assert max(lengths[: request.shortened]) <= budget.SHORTENED
    assert "call ls again" in request.messages[2].content
    assert estimate(request) < 18_000
    check(request)


def test_a_read_that_was_made_again_gives_way_first_and_the_newest_stays_whole():
    def reads(number: int, path: str, content: str, ok: bool = True) -> list[Record]:
        call = ToolCall(f"{number}", "read", {"files": [{"path": path}]})
        found = ToolResult(tool_call_id=call.id, name="read", content=content, ok=ok, created_at=AT)
        return [user(f"u{number}"), Assistant(id=f"c{number}", content="", tool_calls=(call,), created_at=AT), found]

    records = [
        *reads(0, "a", "old " * 1_000), *reads(1, "b", "other " * 1_000), *reads(2, "a", "new " * 1_000),
        *reads(3, "b", "Error: gone", ok=False), user("last"),
    ]  # fmt: skip
    request = build(*records, limit=3_500)
    found = [message.content for message in request.messages if isinstance(message, ToolResult)]
    assert found == [budget.READ_AGAIN, "other " * 1_000, "new " * 1_000, "Error: gone"]
    check(request)


def test_then_whole_turns_go_the_oldest_first():
    request = build(*turns(20, 4_000), user("last"), limit=6_000)
    assert request.left_out > 0
    assert request.messages[0].content == f"said u{request.left_out}"
    assert request.messages[-1].content == "said last"
    assert estimate(request) < 6_000
    check(request)


def test_what_gives_way_is_rounded_up_so_that_the_next_request_begins_the_same():
    records = turns(60, 2_000)
    ends = [number for number, record in enumerate(records) if isinstance(record, TurnEnd)]
    begins = [build(*records[: number + 1], user("next"), limit=20_000).messages for number in ends]
    kept = [after[: len(before) - 1] == before[:-1] for before, after in itertools.pairwise(begins)]
    assert sum(kept) > 0.75 * len(kept)


def test_what_the_turns_that_went_had_told_is_told_by_the_first_that_stays():
    request = build(*turns(20, 4_000), user("last"), limit=6_000)
    told = prompt.told(request.messages[:1])
    first = request.left_out
    assert told == {"model": f"m{first}"} | {f"fact {number}": "x" for number in range(first + 1)}


def test_most_requests_leave_out_what_the_one_before_left_out():
    records = turns(60, 2_000)
    ends = [number for number, record in enumerate(records) if isinstance(record, TurnEnd)]
    left_out = [build(*records[: number + 1], user("next"), limit=10_000).left_out for number in ends]
    assert left_out == sorted(left_out)
    assert len(set(left_out)) < len(left_out) / 2


def test_of_the_last_turn_older_results_are_shortened_and_nothing_goes():
    loop: list[Record] = [user("a")]
    for number in range(20):
        loop += [said(f"c{number}", "", [f"{number}"]), result(f"{number}", f"{number} " + "r" * 6_000)]
    request = build(*turns(3, 1_000), *loop, limit=20_000)
    assert (request.left_out, request.shortened > 0) == (0, True)
    results = [message for message in request.messages if isinstance(message, ToolResult)][3:]
    assert len(results) == 20
    assert len(results[0].content) <= budget.SHORTENED
    assert len(results[-1].content) > 6_000
    assert estimate(request) < 20_000
    check(request)


def test_the_answers_share_of_the_context_is_kept_free_but_never_all_of_it():
    records = [*turns(20, 4_000), user("last")]
    assert build(*records, limit=25_000, max_tokens=8_000).shortened > build(*records, limit=25_000).shortened
    assert build(*records, limit=8_000, max_tokens=8_000).messages[-1].content == "said last"
    assert len(build(*records, limit=8_000, max_tokens=8_000).messages) > 1


def test_a_single_message_that_is_too_long_is_sent_all_the_same():
    request = build(user("a", "x" * 100_000), limit=1_000)
    assert [len(message.content) for message in request.messages] == [100_000]


# ---- use ------------------------------------------------------------------------------------------------------------


def test_used_is_what_the_last_answer_reported_and_an_estimate_of_the_rest():
    records: list[Record] = [*HEAD, user("a"), said("b", "x", usage=Usage(input=1_000, output=50))]
    assert used(*records) == 1_050
    more = used(*records, user("c", "x" * 400))
    assert more is not None
    assert 1_150 <= more < 1_200


def test_used_is_an_estimate_where_nothing_was_reported_and_after_a_compaction():
    assert used(*HEAD) is None
    assert used(*HEAD, user("a", "x" * 400)) in range(100, 120)
    reported = said("b", "x", usage=Usage(input=1_000))
    assert used(*HEAD, user("a"), reported, compaction("s"), user("c", "x" * 400)) in range(100, 140)
    assert (used(*HEAD, user("a"), reported, compaction("")) or 1_000) < 10, "the system prompt alone"


def test_the_tools_that_the_next_request_holds_count_where_nothing_was_reported():
    tools = [{"name": "ls", "description": "x" * 400, "parameters": {}}]
    records: list[Record] = [*HEAD, user("a"), said("b", "x", usage=Usage(input=1_000, output=50))]
    assert context.used(records, 100, tools) == 1_050
    summarised = [*records, compaction("s")]
    without, all_told = (context.used(summarised, 100, some) or 0 for some in ((), tools))
    assert all_told - without in range(100, 130)


def test_a_result_longer_than_is_sent_counts_as_what_is_sent():
    records: list[Record] = [user("a"), said("b", "", ["0"]), result("0", "r" * 4_000_000)]
    assert used(*records) in range(25_000, 26_000)
    reported = said("b", "", ["0"], usage=Usage(input=1_000))
    assert used(user("a"), reported, result("0", "r" * 4_000_000)) in range(26_000, 27_000)


# ---- what a summary leaves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("room", "first"),
    [(100_000, None), (3_000, "u18"), (1_200, "u19"), (500, "next"), (0, "next")],
)
def test_the_newest_turns_stay_that_fit_and_what_was_just_said_in_any_case(room, first):
    assert context.recent([*HEAD, *turns(20, 4_000), user("next")], room) == first


def test_a_turn_that_runs_does_not_stay_where_it_is_too_long():
    running = [user("a"), said("b", "", ["0"]), result("0", "r" * 40_000)]
    assert context.recent([*HEAD, *turns(3, 100), *running], 1_000) is None
    assert context.recent([*HEAD, *turns(3, 4_000), *running], 11_000) == "a"


# ---- any records ----------------------------------------------------------------------------------------------------

_IDS = st.sampled_from(["0", "1", "2"])


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Records in any order: answers without results, results without calls, turns that end anyhow."""
    records: list[Record] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from("user user said said calls calls result result end clear compaction".split()))
        text = draw(st.sampled_from(["x", "é" * 30, "r" * 3_000]))
        match kind:
            case "user":
                records.append(user(f"u{number}", text))
            case "said":
                records.append(
                    said(f"a{number}", draw(st.sampled_from(["", text])), stop=draw(st.sampled_from(["stop", "error"])))
                )
            case "calls":
                calls = draw(st.lists(_IDS, min_size=1, unique=True))
                records.append(said(f"a{number}", draw(st.sampled_from(["", text])), calls))
            case "result":
                records.append(result(draw(_IDS), text))
            case "end":
                users = tuple(r.id for r in records if isinstance(r, User)) or ("none",)
                outcome = draw(st.sampled_from(["done", "failed", "cancelled"]))
                records.append(TurnEnd(turn=users[0], answers=users, outcome=outcome, created_at=AT))
            case "clear":
                records.append(compaction(""))
            case _:
                messages = [r.id for r in records if isinstance(r, (User, Assistant))]
                records.append(compaction("a summary", draw(st.sampled_from([None, *messages]))))
    return records


@given(histories(), st.sampled_from([100, 1_000, 1_000_000]), st.sampled_from([100, 100_000]))
def test_any_history_leads_to_a_valid_request(records, limit, cut):
    check(build(*records, user("next"), limit=limit, cut=cut))


@given(histories())
def test_a_request_is_the_beginning_of_the_next_one(records):
    plain = [record for record in records if not isinstance(record, Compaction)]
    plain = [r for r in plain if not (isinstance(r, TurnEnd) and r.outcome == "failed")]
    whole = build(*plain).messages
    for count in points(plain):
        before = build(*plain[:count]).messages
        assert whole[: len(before)] == before


def points(records: list[Record]) -> Iterator[int]:
    """Where a request can be made: no call is open."""
    open_calls: set[str] = set()
    for count, record in enumerate(records):
        if not open_calls:
            yield count
        if isinstance(record, Assistant) and record.stop != "error":
            open_calls = {call.id for call in record.tool_calls}
        elif isinstance(record, ToolResult):
            open_calls.discard(record.tool_call_id)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=12))
def test_bytes_of_a_request_are_the_beginning_of_the_next_ones(sizes):
    records: list[Record] = []
    bodies: list[bytes] = []
    for number, size in enumerate(sizes):
        records += [
            user(f"u{number}", note=prompt.block({"n": str(number)})),
            said(f"c{number}", "", ["0"]),
            result("0", "é" * size),
        ]
        _, _, body = openai_compatible.build(CONNECTION, build(*records))
        bodies.append(body[: body.rindex(b'],"max_tokens"')])
        records += [said(f"a{number}", "fine"), end(f"u{number}")]
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(before)
