"""Blocks: the same ones however the two files are read, and text that cannot control a terminal."""

import random
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.blocks import Answer, Block, Call, Fold, Moved, Now
from cass.headline import headline
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Delta,
    Live,
    Meta,
    Notice,
    Record,
    Status,
    System,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Unknown,
    Usage,
    User,
)
from cass.visible import safe, safe_line

AT = "2026-01-01T00:00:00.000Z"
META = Meta(chat_id="c", created_at=AT, cwd="/w")


def user(id: str = "u", content: str = "hi") -> User:
    return User(id=id, content=content, created_at=AT)


def assistant(id: str = "a", content: str = "", calls: Sequence[str] = (), **more: Any) -> Assistant:
    made = tuple(ToolCall(call, "read", {"path": call}) for call in calls)
    return Assistant(id=id, content=content, tool_calls=made, created_at=AT, **more)


def result(call: str, content: str = "done", ok: bool = True, at: str = AT) -> ToolResult:
    return ToolResult(tool_call_id=call, name="read", content=content, ok=ok, created_at=at)


def end(turn: str = "u", outcome: str = "done", at: str = AT) -> TurnEnd:
    return TurnEnd(turn=turn, answers=(turn,), outcome=outcome, created_at=at)


def status(state: str = "thinking", at: str = AT, turn: str = "") -> Status:
    return Status(state=state, mode="read-only", provider="p", model="m", created_at=at, turn=turn)


# ---- the order of two files does not matter


def chronicle(rng: random.Random) -> list[Record]:
    """A chat and its live records as they are written; half of the time on a machine whose clock is set at random."""
    seconds = rng.choices(range(3600), k=3000) if rng.random() < 0.5 else range(3000)
    clock = iter(f"2026-01-01T00:{i // 60:02d}:{i % 60:02d}.000Z" for i in seconds)
    made: list[Record] = [replace(META, created_at=next(clock)), System(content="s")]
    for turn in range(rng.randrange(1, 4)):
        made.append(replace(user(f"u{turn}"), created_at=next(clock)))
        made.append(status(at=next(clock), turn=f"u{turn}"))
        for message in range(rng.randrange(0, 4)):
            of = f"a{turn}.{message}"
            made += [Delta(of=of, text=f"{of} "), Delta(of=of, reasoning="r"), Delta(of=of, text="more")]
            calls = [f"call_{i}" for i in range(rng.randrange(0, 3))]  # the same ids in every message
            if rng.random() < 0.15:
                continue  # its provider failed: it never becomes a fact
            made.append(replace(assistant(of, f"{of} more", calls), created_at=next(clock)))
            acts = [act(rng, of, call, f"r{turn}.{message}.{call}", clock) for call in calls]
            if rng.random() < 0.5:  # side by side
                while acts := [left for left in acts if left]:
                    made.append(rng.choice(acts).pop(0))
            made += [record for one in acts for record in one]
        if rng.random() < 0.8:
            outcome = rng.choice(["done", "failed"])
            made.append(end(f"u{turn}", outcome, next(clock)))
            made.append(status("idle", next(clock)))
    return made


def act(rng: random.Random, of: str, call: str, request: str, clock: Any) -> list[Record]:
    made: list[Record] = []
    if rng.random() < 0.4:
        made.append(
            ApprovalRequest(
                request_id=request,
                tool_call_id=call,
                name="read",
                arguments={},
                reason="why",
                sandboxed=False,
                created_at=next(clock),
                of=of,
            )
        )
        made.append(
            Approval(request_id=request, tool_call_id=call, decision="approved", by="me", created_at=next(clock))
        )
    made += [ToolStarted(tool_call_id=call, created_at=next(clock), of=of), ToolOutput(tool_call_id=call, text=request)]
    made.append(result(call, f"result {request}", at=next(clock)))
    return made


def folded(records: Sequence[Record]) -> tuple[list[Block], Now]:
    fold = Fold()
    return fold.steps(records), fold.now()


def merged(rng: random.Random, facts: list[Record], live: list[Record]) -> list[Record]:
    """Any way to read two files, with some facts seen again later."""
    facts, live, made = list(facts), list(live), []
    while facts or live:
        made.append((facts if facts and (not live or rng.random() < 0.5) else live).pop(0))
        seen = [record for record in made if not isinstance(record, Live)]
        if seen and rng.random() < 0.1:
            made.append(rng.choice(seen))
    return made


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_blocks_are_the_same_whichever_file_is_read_first_and_how_often(seed: int) -> None:
    rng = random.Random(seed)
    written = chronicle(rng)
    written = written[: rng.randrange(len(written) + 1)]
    facts: list[Record] = [record for record in written if not isinstance(record, Live)]
    live: list[Record] = [record for record in written if isinstance(record, Live)]
    expected = folded(written)
    assert folded(live + facts) == expected
    assert folded(facts + live) == expected
    assert folded(merged(rng, facts, live)) == expected
    assert folded(facts)[0] == expected[0]


# ---- what is finished, and when


def test_a_call_is_finished_with_its_result_beneath_it() -> None:
    fold = Fold()
    asked = assistant(calls=["x", "y"])
    assert fold.steps([user(), asked]) == [user(), asked]
    assert fold.step(result("x")) == [Call(call=asked.tool_calls[0], result=result("x"), started_at=AT)]
    assert fold.now().calls == (Call(call=asked.tool_calls[1]),)


def test_results_that_come_out_of_turn_are_given_in_the_order_of_the_calls() -> None:
    fold = Fold()
    first, second = fold.steps([assistant(calls=["x", "y"])])[0].tool_calls  # type: ignore[union-attr]
    assert fold.step(result("y")) == []
    assert fold.step(result("x")) == [
        Call(call=first, result=result("x"), started_at=AT),
        Call(call=second, result=result("y"), started_at=AT),
    ]


def test_of_calls_side_by_side_each_that_runs_or_is_done_is_open_until_those_before_it_are() -> None:
    fold = Fold()
    asked = assistant(calls=["w", "x", "y", "z"])
    starts = [ToolStarted(tool_call_id=call, created_at=AT, of="a") for call in ("w", "x", "y")]
    fold.steps([asked, *starts, ToolOutput(tool_call_id="y", text="o"), result("x")])
    w, x, y, _ = asked.tool_calls
    assert fold.now().calls == (
        Call(call=w, started_at=AT),
        Call(call=x, result=result("x"), started_at=AT),
        Call(call=y, started_at=AT, output="o"),
    )


def test_an_answer_to_a_question_of_an_agent_is_none_to_the_call_that_began_it() -> None:
    fold = Fold()
    answer = Approval(request_id="r", tool_call_id="x", decision="denied", by="me", created_at=AT, agent="c-a8f3")
    asked = assistant(calls=["x"])
    assert fold.steps([asked, answer]) == [asked, answer]
    assert fold.step(result("x")) == [Call(call=asked.tool_calls[0], result=result("x"), started_at=AT)]


def test_two_calls_of_one_message_with_the_same_id_get_their_results_in_order() -> None:
    blocks = Fold().steps([assistant(calls=["x", "x"]), result("x", "one"), result("x", "two")])
    assert [block.result.content for block in blocks if isinstance(block, Call) and block.result] == ["one", "two"]


def test_equal_results_of_calls_with_the_same_id_are_two() -> None:
    blocks = Fold().steps([assistant(calls=["x", "x"]), result("x"), result("x"), result("x")])
    assert len([block for block in blocks if isinstance(block, Call) and block.result]) == 2


@pytest.mark.parametrize("next_record", [end(), user("u2"), assistant("a2"), replace(end(), outcome="failed")])
def test_a_call_without_a_result_is_given_when_something_else_follows(next_record: Record) -> None:
    asked = assistant(calls=["x"])
    assert Fold().steps([asked, next_record]) == [asked, Call(call=asked.tool_calls[0]), next_record]


def test_a_result_whose_call_lies_before_the_beginning_is_given_with_its_name() -> None:
    assert Fold().steps([result("x")]) == [Call(call=ToolCall("x", "read"), result=result("x"))]


def test_the_first_meta_is_a_block_and_a_later_one_tells_only_of_another_workspace() -> None:
    later = replace(META, created_at="2026-01-02T00:00:00.000Z")
    moved = replace(later, created_at="2026-01-03T00:00:00.000Z", cwd="/other")
    assert Fold().steps([META, META, later, moved]) == [META, Moved("/other")]


def test_what_has_no_place_on_a_screen_gives_no_block() -> None:
    compaction = Compaction(summary="", first_kept_id=None, tokens_before=1, created_at=AT)
    notice = Notice(level="info", text="hello")
    assert Fold().steps([System(content="s"), Unknown("new"), compaction, notice]) == [compaction, notice]


# ---- what is live


def test_deltas_grow_one_answer_until_the_chat_holds_it() -> None:
    fold = Fold()
    begun = {"index": 0, "id": "x", "name": "read", "arguments": '{"pa'}
    fold.steps([status(), Delta(of="a", reasoning="hm"), Delta(of="a", text="Hel"), Delta(of="a", text="lo")])
    fold.steps([Delta(of="a", tool_call=begun), Delta(of="a", tool_call={"index": 0, "arguments": 'th"'})])
    assert fold.now().answer == Answer(of="a", text="Hello", reasoning="hm", calls=(("read", '{"path"'),))
    fold.step(assistant("a", "Hello"))
    assert fold.now().answer is None


def test_what_was_live_before_a_turn_ended_is_over() -> None:
    fold = Fold()
    fold.steps([status(turn="u"), Delta(of="lost", text="half")])
    fold.step(end(outcome="failed"))
    assert fold.now() == Now()
    fold.steps([status(turn="u2"), Delta(of="next", text="new")])
    assert fold.now().answer == Answer(of="next", text="new")


def test_an_approval_is_asked_for_until_it_is_given() -> None:
    fold = Fold()
    asked = assistant(calls=["x"])
    request = ApprovalRequest(
        request_id="r", tool_call_id="x", name="read", arguments={}, reason="why", sandboxed=True, created_at=AT, of="a"
    )
    given_ = Approval(request_id="r", tool_call_id="x", decision="approved", by="me", created_at=AT)
    fold.steps([asked, request])
    assert fold.now().calls == (Call(call=asked.tool_calls[0], request=request),)
    fold.step(given_)
    assert fold.now().calls == (Call(call=asked.tool_calls[0], approval=given_),)
    assert fold.step(result("x")) == [
        Call(call=asked.tool_calls[0], approval=given_, result=result("x"), started_at=AT)
    ]


def test_a_clock_that_is_set_back_makes_no_waiting_call_look_as_if_it_ran() -> None:
    fold = Fold()
    early, late = "2026-01-01T00:00:00.000Z", "2026-01-01T09:00:00.000Z"
    fold.steps([user(), replace(assistant("a", calls=["call_0"]), created_at=late)])
    fold.steps(
        [ToolStarted(tool_call_id="call_0", created_at=late, of="a"), ToolOutput(tool_call_id="call_0", text="o")]
    )
    assert fold.now().calls[0].output == "o"
    fold.steps([result("call_0", at=early), replace(assistant("b", calls=["call_0"]), created_at=early)])
    assert fold.now().calls == (Call(call=ToolCall("call_0", "read", {"path": "call_0"})),)
    fold.step(ToolStarted(tool_call_id="call_0", created_at=early, of="b"))
    assert fold.now().calls[0].started_at == early


def test_what_the_turn_took_is_no_part_of_what_comes_after_it() -> None:
    fold = Fold()
    fold.steps([user(), status(turn="u"), replace(assistant(), usage=Usage(900, 120))])
    assert (fold.now().since, fold.now().output) == (AT, 120)
    fold.steps([end(), status(turn="")])
    assert (fold.now().since, fold.now().output) == (None, 0)


def test_many_deltas_cost_time_in_proportion_to_their_number() -> None:
    fold = Fold()
    fold.steps(Delta(of="a", text="word ") for _ in range(20_000))
    answer = fold.now().answer
    assert answer is not None
    assert len(answer.text) == 100_000


# ---- text

ESCAPES = [
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]0;pwned\x07",
    "\x1b]8;;http://evil.test\x07click\x1b]8;;\x07",
    "\x1b[2J\x1b[10A",
    "\x1b[6n",
    "\x1bc",
    "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\",
    "\x1b]",
    "\x9b2J",
    "\x9d0;x\x9c",
    "safe command\rrm -rf ~",
    "\u202egnp.exe",
    "a\u2066b\u2069\u200e\u200f",
    "\x00\x08\x7f\x85\u2028\ufeff\U000e0041",
    "\ud800",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_e01_what_could_control_a_terminal_is_shown_instead(text: str) -> None:
    shown = safe(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]
    assert len(shown) >= len(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c", "␛]52;c"),
        ("\x9b2J", "␛[2J"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a␍b"),
        ("\u202e", "⟨U+202E⟩"),
        ("tab\tand\nline 中文 👩‍👩‍👧 é", "tab\tand\nline 中文 👩‍👩‍👧 é"),
        ("[/INST] list[int] :smile: <T> &amp;", "[/INST] list[int] :smile: <T> &amp;"),
        ("❤️ 1️⃣ 🏳️‍🌈 ☎︎ می‌خواهم", "❤️ 1️⃣ 🏳️‍🌈 ☎︎ می‌خواهم"),
        ("a\ufe0f1\ufe0f", "a⟨U+FE0F⟩1⟨U+FE0F⟩"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f⟨U+FE0F⟩"),
        ("r\u200dm\x9b\u200d", "r⟨U+200D⟩m␛[⟨U+200D⟩"),
    ],
)
def test_safe_text(text: str, shown: str) -> None:
    assert safe(text) == shown


INVISIBLE = [0x3164, 0x115F, 0x1160, 0xFFA0, 0x2800, 0x034F, 0x17B4, 0x17B5, *range(0x180B, 0x1810)]
INVISIBLE += [*range(0xFE00, 0xFE10), *range(0x1D173, 0x1D17B), *range(0xE0100, 0xE01F0), 0x200B, 0x200C, 0x200D]


@pytest.mark.parametrize("code", INVISIBLE, ids=hex)
def test_e01_what_has_no_picture_is_shown_though_it_counts_as_printable(code: int) -> None:
    assert safe(f"rm{chr(code)}") == f"rm⟨U+{code:04X}⟩"


@given(st.text(st.sampled_from("a\x9b\u200d\ufe0f\u20e3❤中\r\n\u3164") | st.characters()))
def test_safe_text_can_be_written_and_is_safe_again(text: str) -> None:
    assert safe(safe(text)) == safe(text)
    assert "\n" not in safe_line(text)
    safe(text).encode()


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("read", {"files": [{"path": "a.py", "lines": "35-60"}, {"path": "b.md"}]}, "a.py 35-60, b.md"),
        ("read", {"path": "a.py", "offset": 3}, "a.py offset 3"),
        ("ls", {}, "."),
        ("ls", {"path": "src"}, "src"),
        ("grep", {"query": "def main"}, '"def main" in .'),
        ("fetch", {"url": "HTTPS://\u0430.example"}, "https://xn--80a.example/"),
        ("fetch", {"url": "https://a/", "offset": 500}, "https://a/ from 500"),
        ("fetch", {"url": "no \u202e url"}, "no ⟨U+202E⟩ url"),
        ("grep", {"query": "a.*b", "regex": True, "paths": ["x", "y"]}, "/a.*b/ in x, y"),
        ("write", {"path": "a", "content": "1\n2\n"}, "a (2 lines)"),
        ("edit", {"path": "a", "edits": [{}]}, "a (1 edit)"),
        ("shell", {"command": "one\ntwo\n"}, "one\ntwo"),
        ("shell", {"command": "safe\rrm -rf ~"}, "safe␍rm -rf ~"),
        ("shell", {"cmd": ["x"]}, 'cmd=["x"]'),
        ("write", {"path": 3, "content": None}, "path=3 content=null"),
        ("mcp__tool", {"a": 1, "b": "x\ny"}, "a=1 b=x␊y"),
        ("agent", {"prompt": "look at\nsrc\n"}, "look at\nsrc"),
        (
            "agent",
            {"prompt": "look", "mode": "read-only", "cwd": "s\nrc", "tools": ["ls", "read"]},
            "look (read-only, in s␊rc, with ls, read)",
        ),
    ],
)
def test_arguments_are_laid_out_for_people(name: str, arguments: dict[str, Any], shown: str) -> None:
    assert headline(ToolCall("x", name, arguments)) == shown


def test_arguments_that_are_not_json_are_shown_as_they_came() -> None:
    assert "{pa\x1b"[:3] in headline(ToolCall("x", "read", {}, "{pa\x1b"))
    assert "\x1b" not in headline(ToolCall("x", "read", {}, "{pa\x1b"))
