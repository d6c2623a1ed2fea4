"""Records: a line of a chat survives writing and reading; a bad one says what is wrong, and not what it holds."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass import context, ends, jsonl, records
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Attachment,
    BadRecord,
    Compaction,
    Delta,
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
from cass.values import MEDIA_TYPES

AT = "2026-06-20T14:30:12.345Z"

ODD = 'a\u2028b\u0085c\x0bd\x0c\x1c\r\n\t"\\中文😀\ufffd\x7f'
WHOLE = st.text() | st.just(ODD)
TORN = st.text(st.characters()) | st.just("cut \ud83d emoji \ude00")
COUNT = st.integers(0, 1 << 40)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """JSON values."""
    numbers = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | text
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))


def kinds(text: st.SearchStrategy[str]) -> st.SearchStrategy[Record]:
    """Any record that is written, with every field taken or left."""
    maybe = st.none() | text
    tree = st.dictionaries(text, values(text), max_size=3)
    flat = st.dictionaries(text, text, max_size=2)
    cost = st.none() | st.floats(0, 1e6)
    usage = st.none() | st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT, cost=cost)
    hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
    images = st.lists(
        st.builds(Attachment, hashes, st.sampled_from(sorted(MEDIA_TYPES)), text, COUNT, COUNT, COUNT), max_size=2
    ).map(tuple)
    calls = st.lists(st.builds(ToolCall, text, text, tree, maybe), max_size=2).map(tuple)
    ids = st.lists(text, min_size=1, max_size=3).map(tuple)
    ended = st.sampled_from(["done", "failed", "cancelled", "blocked"])
    return st.one_of(
        st.builds(
            Meta,
            chat_id=text,
            created_at=text,
            provider=text,
            model=text,
            cwd=text,
            base_url=maybe,
            parent_chat_id=maybe,
            branch_from=maybe,
            agent_of=maybe,
            depth=COUNT,
            agents_files=st.none() | st.lists(flat, max_size=2),
        ),
        st.builds(System, content=text),
        st.builds(
            User, id=text, content=text, created_at=text, note=maybe, mode=text, provider=text, model=text,
            effort=maybe, ask=st.booleans(), origin=tree, attachments=images,
        ),
        st.builds(
            Assistant, id=text, content=text, created_at=text, reasoning=maybe, raw=st.none() | tree, tool_calls=calls,
            model=text, stop=text, usage=usage,
        ),
        st.builds(
            ToolResult, tool_call_id=text, name=text, content=text, ok=st.booleans(), created_at=text,
            seen=st.none() | flat,
        ),
        st.builds(
            Approval, request_id=text, tool_call_id=text, decision=text, by=text, created_at=text, reason=maybe,
            rule=maybe,
        ),
        st.builds(Compaction, summary=text, first_kept_id=maybe, tokens_before=COUNT, created_at=text, usage=usage),
        st.builds(
            TurnEnd, turn=text, answers=ids, outcome=ended, created_at=text, error=maybe, usage=usage, spent=cost,
        ),
        st.builds(Delta, of=text, text=maybe, reasoning=maybe, tool_call=st.none() | tree),
        st.builds(ToolStarted, tool_call_id=text, created_at=text),
        st.builds(ToolOutput, tool_call_id=text, text=text),
        st.builds(
            ApprovalRequest, request_id=text, tool_call_id=text, name=text, arguments=tree, reason=text,
            sandboxed=st.booleans(), created_at=text, rule=maybe, diff=maybe,
        ),
        st.builds(
            Status, state=text, mode=text, provider=text, model=text, created_at=text, used=st.none() | COUNT,
            limit=st.none() | COUNT, detail=maybe,
        ),
        st.builds(Notice, level=text, text=text),
    )  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(kinds(WHOLE))
def test_a_record_is_the_same_after_writing_and_reading(record):
    line = records.encode(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert records.decode(line) == records.decode(line[:-1]) == record


@settings(deadline=None, max_examples=60)
@given(kinds(TORN))
def test_half_a_character_is_written_as_strict_json_and_reads_the_same_for_ever(record):
    line = records.encode(record)
    value = json.loads(line.decode("utf-8"), parse_constant=pytest.fail)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    again = records.decode(line)
    assert records.decode(records.encode(again)) == again


@settings(deadline=None, max_examples=60)
@given(values(TORN) | st.floats() | st.integers())
def test_dump_gives_strict_json_whatever_it_is_given(value):
    json.loads(jsonl.dump(value).decode("utf-8"), parse_constant=pytest.fail)


def test_a_pair_of_surrogates_that_was_split_is_joined():
    assert jsonl.load(jsonl.dump({"a": "\ud83d" + "\ude00"})) == {"a": "😀"}
    assert jsonl.load(rb'{"a": "\ud83d\ude00", "b": "x\ud83dy"}') == {"a": "😀", "b": "x\ufffdy"}


def test_a_line_with_a_lone_surrogate_in_it_still_loads():
    line = rb'{"type":"tool_result","tool_call_id":"c","name":"ls","content":"a\ud83d","ok":true,"created_at":"t"}'
    found = records.decode(line)
    assert isinstance(found, ToolResult)
    assert found.content == "a\ufffd"


@pytest.mark.parametrize("number", [1 << 64, -(1 << 70), 10**300], ids=["65 bits", "71 bits", "300 digits"])
@pytest.mark.parametrize("beside", ["1", "NaN", "-Infinity"])
def test_an_integer_beyond_64_bits_is_a_number_still_and_what_json_has_no_word_for_is_null(number, beside):
    value = jsonl.load(f'{{"big": {number}, "beside": {beside}}}')
    written = json.loads(jsonl.dump(value | {"own": number}), parse_constant=pytest.fail)
    assert written == {"big": pytest.approx(number), "own": number, "beside": 1 if beside == "1" else None}


@pytest.mark.parametrize("depth", [10, 250, 300, 900, 5_000, 200_000])
def test_what_is_nested_deeply_loads_and_can_be_written_again_or_is_refused(depth):
    try:
        value = jsonl.load(b'{"a":' * depth + b"1" + b"}" * depth)
    except ValueError:
        return
    written = jsonl.dump(value)
    assert written.startswith(b'{"a":{"a":{"a":')
    assert jsonl.load(written) == value or depth > 250


def test_a_split_at_line_separators_of_unicode_does_not_happen():
    user = User(id="1", content=ODD, created_at=AT)
    raw = json.dumps(
        {"type": "message", "role": "user", "id": "1", "content": ODD, "created_at": AT}, ensure_ascii=False
    )
    assert records.decode(raw.encode()) == records.decode(records.encode(user)) == user


# ---- what is left out, unknown or wrong -----------------------------------------------------------------------------


def test_fields_at_their_default_are_left_out_and_calls_are_always_there():
    written = json.loads(records.encode(Assistant(id="1", content="", created_at=AT)))
    assert set(written) == {"type", "role", "id", "content", "created_at", "tool_calls"} | {"model", "stop"} & set(
        written
    )
    assert written["tool_calls"] == []
    assert "usage" not in written


def test_a_kind_that_is_not_known_is_kept_by_name():
    assert records.decode(b'{"type":"hologram","x":1}') == Unknown("hologram")
    assert records.decode(b'{"type":"message","role":"narrator","content":"x"}') == Unknown("message")
    with pytest.raises(TypeError):
        records.encode(Unknown("hologram"))


def test_fields_that_are_not_known_are_passed_over():
    assert records.decode(b'{"type":"system","content":"a","colour":"red"}') == System(content="a")


def test_a_compaction_that_keeps_nothing_reads_the_same_with_and_without_the_field():
    line = b'{"type":"compaction","summary":"s","tokens_before":1,"created_at":"t"%s}'
    without, null = records.decode(line % b""), records.decode(line % b',"first_kept_id":null')
    assert without == null == Compaction(summary="s", first_kept_id=None, tokens_before=1, created_at="t")


SECRET = "tiger7"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "not JSON"),
        (SECRET, "not JSON"),
        (f'{{"type":"system","content":"{SECRET}', "not JSON"),
        (f'{{"type":"system","content":"{SECRET}"}} {SECRET}', "not JSON"),
        (f'["{SECRET}"]', "not a JSON object"),
        (f'"{SECRET}"', "not a JSON object"),
        (f'{{"content":"{SECRET}"}}', 'no "type"'),
        (f'{{"type":["{SECRET}"]}}', 'no "type"'),
        (f'{{"type":"message","role":"user","content":"{SECRET}","created_at":"t"}}', 'without "id"'),
        (f'{{"type":"system","content":["{SECRET}"]}}', '"content" is list, not str'),
        (f'{{"type":"tool_result","tool_call_id":"{SECRET}","name":"n","content":"c","ok":1,"created_at":"t"}}', "ok"),
        (f'{{"type":"turn_end","turn":"{SECRET}","answers":"1","outcome":"done","created_at":"t"}}', '"answers"'),
        ('{"type":"message","role":"assistant","id":"","content":"","created_at":"","tool_calls":[9]}', "call"),
        (f'{{"type":"message","role":"assistant","id":"1","content":"","created_at":"t","usage":"{SECRET}"}}', "usage"),
        (f'{{"type":"meta","chat_id":"{SECRET}","created_at":"t","agents_files":"{SECRET}"}}', "agents_files"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_without_its_text(line, says):
    with pytest.raises(BadRecord) as bad:
        records.decode(line.encode())
    assert says in str(bad.value)
    assert SECRET not in str(bad.value)


@settings(deadline=None, max_examples=60)
@given(st.binary())
def test_any_bytes_are_a_record_or_a_bad_one(line):
    with contextlib.suppress(BadRecord):
        records.decode(line)


def test_bytes_that_are_no_utf_8_are_replaced_and_not_the_end_of_the_line():
    found = records.decode(b'{"type":"system","content":"a\xff\xed\xa0\xbdb"}')
    assert isinstance(found, System)
    assert found.content.startswith("a\ufffd")
    assert found.content.endswith("b")


def test_times_are_utc_with_milliseconds_and_ids_differ():
    now = jsonl.now()
    assert len(now) == len(AT)
    assert now.endswith("Z")
    assert now <= jsonl.now()
    assert len({jsonl.new_id() for _ in range(1000)}) == 1000


# ---- repair ---------------------------------------------------------------------------------------------------------


def asks(id: str, *calls: str, stop: str = "tool_calls") -> Assistant:
    return Assistant(id=id, content="", tool_calls=tuple(ToolCall(c, "ls") for c in calls), stop=stop, created_at=AT)


def result(call: str) -> ToolResult:
    return ToolResult(tool_call_id=call, name="ls", content="x", ok=True, created_at=AT)


def user(id: str) -> User:
    return User(id=id, content=id, created_at=AT)


def end(turn: str, *answers: str) -> TurnEnd:
    return TurnEnd(turn=turn, answers=answers or (turn,), outcome="done", created_at=AT)


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ([], []),
        ([asks("1", "a", "b")], ["a", "b"]),
        ([asks("1", "a", "b"), result("a")], ["b"]),
        ([asks("1", "a"), result("a"), asks("2", "a")], ["a"]),
        ([asks("1", "a"), result("a"), asks("2", "a"), result("a")], []),
        ([asks("1", "a", "a")], ["a", "a"]),
        ([asks("1", "a", "a"), result("a")], ["a"]),
        ([asks("1", "a", "a"), result("a"), result("a")], []),
        ([asks("1", "a", stop="error")], []),
        ([result("z"), asks("1", "a")], ["a"]),
    ],
)
def test_open_calls_are_those_without_a_result_also_when_ids_come_again(found, left):
    assert [call.id for call in ends.open_calls(found)] == left


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ([], ()),
        ([user("1")], ("1",)),
        ([user("1"), end("1")], ()),
        ([user("1"), user("2"), end("1", "1", "2"), user("3")], ("3",)),
        ([user("1"), user("2")], ("1", "2")),
    ],
)
def test_an_open_turn_is_the_messages_that_no_end_answers(found, left):
    assert ends.open_turn(found) == left


STEPS = st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=3, unique=True), st.booleans()), max_size=4)


def history(turns: list[list[tuple[list[str], bool]]]) -> list[Record]:
    """A valid chat: turns of answers with calls, each with its results; the flag: the person writes in between."""
    found: list[Record] = [System(content="s")]
    for number, steps in enumerate(turns):
        ids = [f"u{number}"]
        found.append(user(ids[0]))
        for step, (calls, steered) in enumerate(steps):
            found.append(asks(f"a{number}.{step}", *calls))
            found += [result(call) for call in calls]
            if steered:
                ids.append(f"u{number}.{step}")
                found.append(user(ids[-1]))
        found.append(Assistant(id=f"a{number}", content="done", created_at=AT))
        found.append(end(ids[0], *ids))
    return found


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, min_size=1, max_size=3), st.data())
def test_a_chat_cut_anywhere_is_valid_again_once_it_is_closed(turns, data):
    whole = history(turns)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    closed = [*cut, *ends.closing(cut, "the worker ended", AT)]
    assert ends.open_calls(closed) == []
    assert ends.open_turn(closed) == ()
    assert ends.closing(closed, "again", AT) == []
    request = context.build(
        [*closed, user("next")],
        tools=(), model="m", max_tokens=10, effort=None, limit_tokens=100_000, max_tool_output=1000,
    )  # fmt: skip
    waiting: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolResult):
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls] if isinstance(message, Assistant) else []
    assert waiting == []
    assert request.messages[-1] == user("next")


def test_closing_says_why_and_names_the_turn():
    found = ends.closing([user("1"), asks("2", "c"), user("3")], "the worker ended", AT)
    assert found == [
        ToolResult(
            tool_call_id="c",
            name="ls",
            content="Error: interrupted: the worker ended; what the call had begun may have gone on",
            ok=False,
            created_at=AT,
        ),
        TurnEnd(turn="1", answers=("1", "3"), outcome="failed", error="interrupted: the worker ended", created_at=AT),
    ]
