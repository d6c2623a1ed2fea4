"""The page: finished lines come once and are the same whether they streamed or not; what grows stays small."""

import itertools
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from cass.jsonl import dump
from cass.records import (
    Assistant,
    BadRecord,
    Delta,
    Meta,
    Notice,
    Record,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
    decode,
)
from cass.viewer.look import Look
from cass.viewer.page import Page, newest
from cass.visible import safe

AT = "2026-01-01T00:00:00.000Z"
LATER = "2026-01-01T00:00:01.000Z"
BARE = Look(width=60, escapes=False, color=False)
THINKING = Status(state="thinking", mode="read-only", provider="p", model="m", created_at=AT, turn="u")

LINES = [
    "text",
    "more **text**",
    "",
    "",
    "- item",
    "  - nested",
    "1. one",
    "# head",
    "```python",
    "x = 1",
    "```",
    "> q",
]
LINES += ["| a | b |", "|---|---|", "| 1 | 2 |", "---", "    code", "~~~", "long " * 30]
LINES += ["| a | b |\n|---|--:|\n" + "| 1 | two words |\n" * 24 + "| a longer one | 2 |", "- item\n" * 25]
documents = st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)


def user(id: str = "u", content: str = "hi") -> User:
    return User(id=id, content=content, created_at=AT)


def answer(content: str, id: str = "a", **more: Any) -> Assistant:
    return Assistant(id=id, content=content, created_at=AT, **more)


def ended(outcome: str = "done") -> TurnEnd:
    return TurnEnd(turn="u", answers=("u",), outcome=outcome, created_at=AT)


def called(call: str, content: str = "done") -> list[Record]:
    asked = Assistant(id=f"of {call}", content="", created_at=AT, tool_calls=(ToolCall(call, "ls", {"path": call}),))
    return [asked, ToolResult(tool_call_id=call, name="ls", content=content, ok=True, created_at=AT)]


def taken(records: Sequence[Record], look: Look = BARE) -> list[str]:
    return Page(look).take(records, is_running=True)


def deltas(text: str, cuts: Sequence[int], of: str = "a") -> list[Record]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [Delta(of=of, text=text[a:b]) for a, b in itertools.pairwise(edges) if a < b]


@settings(max_examples=200, deadline=None)
@given(documents, st.lists(st.integers(0, 10**6), max_size=12), st.booleans())
def test_an_answer_reads_the_same_whether_it_streamed_or_not(text: str, cuts: list[int], shows: bool) -> None:
    look = Look(width=60, escapes=False, color=False, reasoning=shows)
    whole = answer(text, reasoning="one\n\ntwo\nthree")
    page = Page(look)
    lines = page.take([user(), THINKING], True)
    for piece in ["one\n\ntw", "o\nth", "ree"]:
        lines += page.take([Delta(of="a", reasoning=piece)], True)
    for delta in deltas(text, cuts):
        lines += page.take([delta], True)
        page.live(0.0, 10)
    lines += page.take([whole, ended()], True)
    assert lines == taken([user(), whole, ended()], look)


@settings(max_examples=200, deadline=None)
@given(documents, st.lists(st.integers(0, 10**6), max_size=12), st.booleans(), st.integers(0, 10**6))
def test_a_page_goes_on_where_another_one_ended(text: str, cuts: list[int], shows: bool, place: int) -> None:
    look = Look(width=60, escapes=False, color=False, reasoning=shows)
    records: list[Record] = [user(), THINKING, *called("x"), Delta(of="a", reasoning="one\n\ntw")]
    records += [Delta(of="a", reasoning="o\nthree"), *deltas(text, cuts), answer(text, reasoning="one\n\ntwo\nthree")]
    records += [*called("y"), *deltas(text, cuts, "b"), answer(text, "b"), ended()]
    cut = place % (len(records) + 1)
    page, next_page, uncut = Page(look), Page(look), Page(look)
    whole = [line for record in records for line in uncut.take([record], True)]
    lines = [line for record in records[:cut] for line in page.take([record], True)]
    facts = [record for record in records[:cut] if not isinstance(record, (Delta, Status))]
    live = [record for record in records[:cut] if isinstance(record, (Delta, Status))]
    next_page.resume([*facts, *live], page.growing)
    lines += next_page.take([], True)
    assert lines + [line for record in records[cut:] for line in next_page.take([record], True)] == whole


def test_a_finished_line_of_an_answer_is_given_before_the_answer_is() -> None:
    page = Page(BARE)
    assert page.take([Delta(of="a", text="One paragraph.\n\nThe next")], True) == ["One paragraph."]
    assert page.live(0.0, 10) == ["", "The next"]
    assert page.take([Delta(of="a", text="\n\n```py\nx = 1\ny")], True) == ["", "The next", "", "  x = 1"]
    assert page.live(0.0, 10) == ["  y"]
    assert page.take([answer("One paragraph.\n\nThe next\n\n```py\nx = 1\ny = 2\n```\n")], True) == ["  y = 2"]
    assert page.live(0.0, 10) == []


def test_a_record_that_is_seen_again_is_not_given_again() -> None:
    page = Page(BARE)
    records = [user(), answer("so"), *called("x"), ended()]
    assert page.take(records, True)
    assert page.take(records, True) == []


def test_calls_stand_together_and_everything_else_apart() -> None:
    records = [user(), *called("x"), *called("y"), answer("so"), Notice(level="info", text="a")]
    assert taken([*records, Notice(level="info", text="b")]) == [
        "❯ hi",
        "",
        "● ls x",
        "  ╰ ok · done",
        "● ls y",
        "  ╰ ok · done",
        "",
        "so",
        "",
        "· a",
        "· b",
    ]


def test_an_answer_whose_try_failed_is_said_to_be_broken_off_and_the_next_one_stands_for_itself() -> None:
    page = Page(BARE)
    lines = page.take([user(), THINKING, Delta(of="a", text="Hello wor")], True)
    lines += page.take([Delta(of="b", text="Hello")], True)
    lines += page.take([answer("Hello world", "b")], True)
    assert lines == ["❯ hi", "", "Hello wor", "", "… broken off", "", "Hello world"]


def test_an_answer_whose_worker_is_gone_is_given_as_far_as_it_came_and_its_end_is_said_once() -> None:
    page = Page(BARE)
    page.take([user(), THINKING, Delta(of="a", text="Half")], True)
    assert page.take([], is_running=False) == ["", "Half"]
    assert page.live(0.0, 10) == []
    closed = replace(ended("failed"), error="interrupted: the worker ended")
    assert page.take([closed], is_running=True) == ["", "✗ interrupted: the worker ended"]


CUT_SHORT = ToolResult(tool_call_id="x", name="ls", content="Error: cancelled by the user", ok=False, created_at=AT)
INTERRUPTED = replace(CUT_SHORT, content="Error: interrupted: the worker ended; what the call had begun may go on")


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([answer("Half", stop="cancelled"), ended("cancelled")], ["Half", "", "■ cancelled"]),
        ([answer("Half", stop="error"), replace(ended("failed"), error="no")], ["Half", "", "✗ failed: no"]),
        ([answer("Half", stop="length"), replace(ended("failed"), error="cut")], ["Half", "", "✗ failed: cut"]),
        ([answer("Half", stop="length"), ended()], ["Half", "", "… cut at the output limit"]),
        (
            [answer("Half", stop="error"), answer("Whole", "b")],
            ["Half", "", "… broken off: this try failed", "", "Whole"],
        ),
        ([*called("x")[:1], CUT_SHORT, ended("cancelled")], ["● ls x", "  ╰ cancelled by the user"]),
        ([*called("x"), ended("cancelled")], ["● ls x", "  ╰ ok · done", "", "■ cancelled"]),
        (
            [*called("x")[:1], INTERRUPTED, replace(ended("failed"), error="interrupted: the worker ended")],
            ["● ls x", "  ╰ failed · interrupted: the worker ended; what the call had begun may go on"],
        ),
    ],
)
@pytest.mark.parametrize("cut", range(4))
def test_how_something_ended_is_said_once(records: list[Record], says: list[str], cut: int) -> None:
    look = BARE._replace(width=90)
    page, next_page = Page(look), Page(look)
    lines = page.take([user(), *records[:cut]], True)
    next_page.resume([user(), *records[:cut]], page.growing)
    assert lines + next_page.take(records[cut:], True) == ["❯ hi", "", *says]


def test_why_an_answer_is_not_whole_stands_below_it_until_something_follows() -> None:
    page = Page(BARE)
    page.take([user(), THINKING, answer("Half", stop="error")], True)
    assert page.live(0.0, 10)[:3] == ["", "… broken off: this try failed", ""]
    assert page.take([Delta(of="b", text="One\n\n")], True)[:3] == ["", "… broken off: this try failed", ""]


def test_an_answer_that_is_not_what_streamed_is_given_whole() -> None:
    page = Page(BARE)
    page.take([THINKING, Delta(of="a", text="one\n\ntw")], True)
    assert page.take([answer("other")], True) == ["", "tw", "", "… broken off", "", "other"]


def test_live_state_is_not_shown_without_a_worker() -> None:
    page = Page(BARE)
    page.take([user(), THINKING, Delta(of="a", text="half")], is_running=False)
    assert page.live(0.0, 10) == []


def test_a_call_that_a_dead_worker_left_is_shown_to_have_no_result() -> None:
    page = Page(BARE)
    asked, done = called("x")
    page.take([user(), asked, ToolStarted(tool_call_id="x", created_at=AT, of="of x")], is_running=True)
    assert page.live(0.0, 10) == ["", "· ls x", "  ╰ running"]
    page.take([], is_running=False)
    assert page.live(0.0, 10) == ["", "● ls x", "  ╰ no result"]
    assert page.take([done], is_running=False) == ["", "● ls x", "  ╰ ok · done"]


@pytest.mark.parametrize(("width", "height"), [(20, 3), (60, 1), (60, 10), (3, 5)])
def test_what_grows_fits_the_screen(width: int, height: int) -> None:
    page = Page(Look(width=width))
    asked = Assistant(
        id="of", content="", created_at=AT, tool_calls=(ToolCall("x", "shell", {"command": "漢字 " * 99}),)
    )
    for records in (
        [THINKING, Delta(of="a", text="- item 漢字\n" * 30)],
        [
            asked,
            ToolStarted(tool_call_id="x", created_at=AT, of="of"),
            ToolOutput(tool_call_id="x", text="wide\t" * 400),
        ],
    ):
        page.take(records, True)
        lines = page.live(1.8e9, height)
        assert len(lines) <= height
        assert all(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= max(width, 2) for line in lines)


def test_what_runs_shows_its_state_and_seconds() -> None:
    page = Page(BARE)
    page.take([user(), THINKING], True)
    at = 1767225600.0  # AT
    assert page.live(at, 10) == ["", "· thinking"]
    assert page.live(at + 12.25, 10) == ["", "∙ thinking · 12 s"]
    page.take([Delta(of="a", text="word " * 80)], True)
    assert page.live(at + 12.5, 10)[-1] == "• thinking · 12 s · ≈ 100 tokens"
    page.take([answer("word " * 80, usage=Usage(900, 120)), replace(THINKING, created_at=LATER)], True)
    assert page.live(at + 75, 10)[-1] == "· thinking · 1 min 15 s · 120 tokens"
    page.take([replace(ended(), created_at="2026-01-01T00:00:02.000Z")], True)
    assert page.live(at + 99, 10) == []


def test_within_a_composer_only_what_grows_is_live() -> None:
    page = Page(BARE._replace(is_framed=True))
    page.take([user(), THINKING], True)
    assert page.live(0.0, 10) == []
    page.take([Delta(of="a", text="word")], True)
    assert page.live(0.0, 10) == ["", "word"]


def test_the_last_turn_comes_again_in_another_look_and_what_grows_with_it() -> None:
    page = Page(BARE)
    page.take([user(), *called("x", "\n".join(map(str, range(30)))), ended()], True)
    page.take([user("u2", "next"), *called("y", "\n".join(map(str, range(30))))], True)
    page.take([replace(THINKING, turn="u2")], True)
    page.take([Delta(of="a", text="Done.\n\nAnd")], True)
    again = page.again(Look(width=60, escapes=False, color=False, full=True), "tool output in full")
    text = "\n".join(again)
    assert again[1].startswith("── tool output in full ──")
    assert "❯ next" in text
    assert "❯ hi" not in text
    assert "  │ 29" in text
    assert again[-1] == "Done."
    assert page.take([answer("Done.\n\nAnd more.")], True) == ["", "And more."]


# ---- opening


def test_the_newest_messages_are_shown_and_that_there_are_earlier_ones() -> None:
    meta = Meta(chat_id="c", created_at=AT, cwd="/w")
    records = [meta, *(record for i in range(9) for record in (user(f"u{i}", f"n{i}"), answer(f"m{i}", f"a{i}")))]
    lines = Page(BARE).begin(records, 3)
    assert lines[:4] == ["cass  c", "/w", "", "── earlier messages are not shown; cass-view --no-follow"]
    assert lines[4:] == ["shows all", "", "m7", "", "❯ n8", "", "m8"]
    assert Page(BARE).begin(records, 0) == []
    assert "❯ n0" in Page(BARE).begin(records, 99)
    assert "── earlier" not in "\n".join(Page(BARE).begin(records, None))


def test_a_long_chat_opens_with_as_much_as_fits_the_budget() -> None:
    blocks = [user(f"u{i}", "x" * 1000) for i in range(100)]
    assert newest(blocks, None, 10_000) == 90
    assert newest([user("u", "x" * 10**6)], None, 10_000) == 0


def test_the_last_turn_can_come_again_after_opening() -> None:
    page = Page(BARE)
    page.begin([user("u1", "old"), ended(), user("u2", "new")], 0)
    assert "❯ new" in page.again(BARE, "again")


# ---- any content

texts = st.sampled_from(
    ["", "x", "call_0", "\x1b[2J", "[/INST]", "a\nb", "| a |\n|---|\n| b |", "- " * 9, "\ud800", AT]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
NAMES = """chat_id created_at provider model cwd v content id role note mode ask origin reasoning raw tool_calls stop
    usage tool_call_id name ok request_id decision by reason rule summary first_kept_id tokens_before turn answers
    outcome error of text tool_call arguments arguments_raw state detail level sandboxed used limit""".split()
KINDS = """meta system message tool_result approval compaction turn_end delta tool_started tool_output approval_request
    status notice""".split()
TOOLS = ["ls", "read", "grep", "write", "edit", "shell", "fetch", "other"]


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that may be a record: the right names, most of the right types."""
    record: dict[str, Any] = {name: draw(texts) for name in NAMES}
    record |= {"v": 1, "ask": True, "ok": draw(st.booleans()), "sandboxed": False, "tokens_before": 1}
    call = {"id": draw(texts), "name": draw(st.sampled_from(TOOLS)), "arguments": {"path": draw(values)}}
    call["arguments"] |= draw(
        st.dictionaries(st.sampled_from(["files", "edits", "content", "query", "paths", "command"]), values)
    )
    record |= {"tool_calls": [call, {**call, "arguments_raw": draw(values)}], "answers": [draw(values)]}
    record |= {
        "origin": {"by": draw(values)},
        "usage": {"input": draw(values)},
        "raw": None,
        "used": None,
        "limit": None,
    }
    record |= {"arguments": {"a": draw(values)}, "tool_call": draw(st.dictionaries(st.just("index"), values))}
    record |= {"type": draw(st.sampled_from(KINDS)), "role": draw(st.sampled_from(["user", "assistant"]))}
    if draw(st.booleans()):
        record[draw(st.sampled_from(NAMES))] = draw(values)
    return dump(record)


@settings(max_examples=120, deadline=None)
@given(st.lists(lines(), max_size=6), st.sampled_from([1, 20, 80]), st.booleans())
def test_no_content_of_a_chat_makes_the_page_fail(found: list[bytes], width: int, full: bool) -> None:
    page = Page(Look(width=width, full=full, reasoning=full, color=False))
    shown: list[str] = []
    for line in found:
        try:
            record = decode(line)
        except BadRecord:
            continue
        shown += page.take([record], True) + page.live(0.0, 9)
    shown += page.again(page.look, "again")
    for text in shown:
        assert re.sub(r"\x1b\[[0-9;]*m", "", text) == safe(re.sub(r"\x1b\[[0-9;]*m", "", text))


def test_arguments_that_are_nested_too_deeply_are_said_to_be() -> None:
    deep: Any = {}
    for _ in range(20_000):
        deep = {"a": deep}
    asked = Assistant(id="of", content="", created_at=AT, tool_calls=(ToolCall("x", "other", {"deep": deep}),))
    assert "nested too deeply" in "\n".join(taken([asked, ended()], Look(width=60, full=True)))


# ---- cost


def test_twenty_thousand_deltas_cost_time_in_proportion_to_their_number() -> None:
    rng = random.Random(1)
    words = ["word ", "word ", "word ", "*em* ", "end.\n", "\n\n- item", "\n\n```py\nx = 1\n```\n\n"]

    def cost(number: int) -> float:
        page = Page(Look())
        stream: list[Record] = [Delta(of="a", text=rng.choice(words)) for _ in range(number)]
        started = time.process_time()
        for i in range(0, number, 10):
            page.take(stream[i : i + 10], True)
            page.live(0.0, 20)
        return time.process_time() - started

    cost(500)
    assert cost(8000) < 24 * min(cost(1000) for _ in range(2)) + 0.2  # its square: 64


def test_a_message_that_its_sender_has_shown_is_not_shown_again_but_stands_in_the_turn():
    page = Page(BARE)
    page.seen.add("u")
    said = [User(id="u", content="$ ls", created_at=AT), Assistant(id="a", content="two files", created_at=AT)]
    assert page.take(said, is_running=True) == ["", "two files"]
    assert any("$ ls" in line for line in page.again(BARE, "again"))
