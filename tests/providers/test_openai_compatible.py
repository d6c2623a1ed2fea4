"""Chat completions: requests as every server takes them, answers in every shape that servers send."""

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass import jsonl, records
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.known import Quirks
from cass.providers import openai_compatible
from cass.providers.openai_compatible import Parser
from cass.providers.sse import Decoder, Event
from cass.records import Assistant, Delta, ToolCall, ToolResult, Usage, User
from tests import scripted
from tests.providers.test_wire import called, joined

AT = "2026-06-20T14:30:12.345Z"


def parsed(*chunks: bytes) -> tuple[list[Delta], Parser]:
    parser, decoder = Parser("of", "m"), Decoder()
    deltas = [delta for chunk in chunks for delta in parser.feed(decoder.feed(chunk))]
    return deltas + parser.feed(decoder.end()), parser


def answer(*payloads: Any) -> Assistant:
    """The message that a stream of payloads, ended by [DONE], is."""
    return parsed(*scripted.sse(*payloads, "[DONE]"))[1].finish()


# ---- answers --------------------------------------------------------------------------------------------------------

C = scripted.chunk


def piece(id: str | None = None, name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk with one piece of a tool call; None: left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return C({"tool_calls": [{**({"id": id} if id else {}), "type": "function", "function": function, **more}]})


def calls(*payloads: Any) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in answer(*payloads, C(finish="tool_calls")).tool_calls]


READ = ("a", "read", {"path": "x.txt"})


def test_a01_calls_without_an_index_stay_apart():
    assert calls(
        piece("a", "read", '{"path":"x.txt"}'),
        piece("b", "ls", '{"path":'),
        piece(arguments='"."}'),
    ) == [READ, ("b", "ls", {"path": "."})]


def test_a01_a_call_without_an_id_gets_one():
    [(id, name, arguments)] = calls(piece(name="ls", arguments="{}", index=0))
    assert (bool(id), name, arguments) == (True, "ls", {})


@pytest.mark.parametrize("index", [0, None])
def test_a01_calls_without_ids_stay_apart(index):
    more = {} if index is None else {"index": index}
    found = calls(
        piece(name="read", arguments='{"path":"x.txt"}', **more),
        piece(name="read", arguments='{"path":', **more),
        piece(arguments='"y"}', **more),
    )
    assert [arguments for _, _, arguments in found] == [{"path": "x.txt"}, {"path": "y"}]
    assert len({id for id, _, _ in found}) == 2


def test_a02_parallel_calls_that_all_say_index_0():
    assert calls(
        piece("a", "read", '{"path":"x.txt"}', index=0),
        piece("b", "read", '{"path":"b"}', index=0),
    ) == [READ, ("b", "read", {"path": "b"})]


def test_a02_the_tail_of_a_call_may_have_another_index_than_its_head():
    assert calls(
        piece("a", "read", '{"path":"x.txt"}', index=0),
        piece("b", "read", '{"path":', index=0),
        piece(arguments='"b"}', index=1),
    ) == [READ, ("b", "read", {"path": "b"})]


def test_interleaved_calls_are_told_apart_by_index():
    assert calls(
        piece("a", "read", "", index=0),
        piece("b", "ls", "", index=1),
        piece(arguments='{"path":', index=0),
        piece(arguments='{"path":', index=1),
        piece(arguments='"x.txt"}', index=0),
        piece(arguments='"."}', index=1),
    ) == [READ, ("b", "ls", {"path": "."})]


def test_two_calls_with_one_id_get_two():
    found = calls(piece("0", "ls", "{}", index=0), piece("0", "read", '{"path":"x.txt"}', index=1))
    assert [(name, arguments) for _, name, arguments in found] == [("ls", {}), ("read", {"path": "x.txt"})]
    assert len({id for id, _, _ in found}) == 2


def test_a_new_id_on_each_piece_does_not_split_a_call():
    assert calls(piece("a", "read", '{"path":', index=0), piece("b", arguments='"x.txt"}', index=0)) == [READ]


def test_a_name_that_comes_after_the_id_is_told_once():
    deltas, parser = parsed(*scripted.sse(piece("a", index=0), piece(name="ls", arguments="{}", index=0), "[DONE]"))
    assert called(deltas) == [("a", "ls", "{}")]
    assert parser.finish().tool_calls == (ToolCall("a", "ls", {}),)


def test_arguments_that_are_no_json_are_kept_and_never_made_up():
    message = answer(piece("a", "read", '{"path":"a"}{"path":"b"}', index=0), C(finish="tool_calls"))
    assert message.tool_calls == (ToolCall("a", "read", {}, '{"path":"a"}{"path":"b"}'),)
    message = answer(piece("a", "read", "[1]", index=0), C(finish="tool_calls"))
    assert message.tool_calls == (ToolCall("a", "read", {}, "[1]"),)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "."}, {"path": "."}),
        (None, {}),
        ("", {}),
        ("  ", {}),
        ('"{\\"path\\": \\".\\"}"', {"path": "."}),
    ],
    ids=["an object", "none", "empty", "blank", "encoded twice"],
)
def test_a06_arguments_in_every_form(arguments, expected):
    assert calls(piece("a", "ls", arguments, index=0)) == [("a", "ls", expected)]


A03 = (
    b": OPENROUTER PROCESSING\r\n\r\ndata:" + json.dumps(C({"content": "he"})).encode() + b"\r\n\r\n: ping\r\n\r\n"
    b"data:\r\n\r\ndata: " + json.dumps(C({"content": "llo"})).encode() + b"\r\n\r\ndata:"
    b"" + json.dumps(C({}, "stop")).encode()
)


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\r\n", b""], ids=repr)
def test_a03_no_space_crlf_comments_and_no_done(end):
    stream = A03 + end
    for chunks in ([stream], [stream[n : n + 1] for n in range(len(stream))]):
        deltas, parser = parsed(*chunks)
        assert joined(deltas, "text") == "hello"
        assert (parser.finish().content, parser.finish().stop) == ("hello", "stop")


@pytest.mark.parametrize("none", [False, True])
def test_a04_chunks_without_choices(none):
    more: dict[str, Any] = {"usage": None} if none else {}
    first: dict[str, Any] = {"id": "", "model": "", "prompt_filter_results": [{"prompt_index": 0}]}
    message = answer(
        first | {"choices": None if none else []},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        C({"content": "ok"}, **more),
        C({}, "stop", **more),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}},
    )
    assert (message.content, message.usage) == ("ok", Usage(input=7, output=2))


@pytest.mark.parametrize(
    ("payloads", "said"),
    [
        ([{"error": {"code": 502, "message": "worker limit reached"}}], "worker limit reached"),
        ([C({"content": ""}, "error") | {"error": {"message": "provider disconnected"}}, "[DONE]"], "disconnected"),
        ([{"error": "STREAM_EXPLODED"}, "[DONE]"], "STREAM_EXPLODED"),
        ([C({}, "error"), "[DONE]"], "ended the answer with an error"),
    ],
)
def test_a05_an_error_inside_the_stream_is_the_end_of_it(payloads, said):
    deltas, parser = parsed(b"".join(scripted.sse(C({"content": "par"}), *payloads, C({"content": "more"}))))
    assert joined(deltas, "text").startswith("par")
    with pytest.raises(ProviderError, match=said) as caught:
        parser.finish()
    assert not caught.value.transient


@pytest.mark.parametrize("data", [b'{"message": "boom"}', b'{"error": {"message": "boom"}}', b"boom"])
def test_a05_an_event_named_error_is_one(data):
    _, parser = parsed(*scripted.sse(C({"content": "par"})), b"event: error\ndata: " + data + b"\n\n")
    with pytest.raises(ProviderError, match="boom"):
        parser.finish()


def test_h02_an_error_chunk_can_say_that_the_request_was_too_long():
    error = {"code": 400, "message": "request (9 tokens) exceeds the available context size (8 tokens)"}
    _, parser = parsed(*scripted.sse({"error": error}))
    with pytest.raises(ProviderError) as caught:
        parser.finish()
    assert caught.value.too_long


@pytest.mark.parametrize(
    "chunks", [[], [C({"content": "Hello wor"})], [piece("a", "shell", '{"command":"pri', index=0)]]
)
def test_h03_a_stream_that_just_ends_is_no_answer(chunks):
    _, parser = parsed(*scripted.sse(*chunks))
    with pytest.raises(ProviderError, match="cut off") as caught:
        parser.finish()
    assert caught.value.transient


def test_a_chunk_that_is_no_json_fails_and_may_be_tried_again():
    deltas, parser = parsed(b"".join((*scripted.sse(C({"content": "a"})), b"data: {oops\n\n")))
    assert joined(deltas, "text") == "a"
    with pytest.raises(ProviderError, match="not JSON") as caught:
        parser.finish()
    assert caught.value.transient


def test_calls_that_come_only_in_a_final_message_count_once():
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    final = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "tool_calls": [call]}}]}
    whole = answer(final, C(finish="tool_calls"))
    both = answer(C({"content": "hi"}), C({"tool_calls": [call | {"index": 0}]}), final, C(finish="tool_calls"))
    for message in (whole, both):
        assert (message.content, message.tool_calls) == ("hi", (ToolCall("a", "ls", {}),))


def test_one_json_body_is_an_answer_too():
    parser = Parser("of", "m")
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "length"}
    deltas = parser.whole(json.dumps({"choices": [choice], "usage": {"prompt_tokens": 3}}).encode())
    assert deltas == [Delta(of="of", text="hi")]
    assert (parser.finish().stop, parser.finish().usage) == ("length", Usage(input=3))


@pytest.mark.parametrize(
    ("finish", "with_call", "stop"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("function_call", True, "tool_calls"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("eos", False, "stop"),
        (None, False, "stop"),
    ],
)
def test_how_an_answer_ended(finish, with_call, stop):
    payloads = [piece("a", "ls", "{}", index=0)] if with_call else [C({"content": "x"})]
    assert answer(*payloads, C({}, finish)).stop == stop


def test_other_choices_than_the_first_are_passed_over():
    second = {"index": 1, "delta": {"content": "two"}, "finish_reason": "length"}
    message = answer(C({"content": "one"}), {"choices": [second]}, C({}, "stop"))
    assert (message.content, message.stop) == ("one", "stop")


@pytest.mark.parametrize(
    "delta", [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"reasoning": "hm", "reasoning_content": "hm"}]
)
def test_reasoning_counts_once_under_whatever_name(delta):
    assert answer(C(delta), C({"content": "x"}), C({}, "stop")).reasoning == "hm"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(input=9, cache_read=4)),
        ({"prompt_tokens": 9, "cached_tokens": 4}, Usage(input=9, cache_read=4)),
        ({"prompt_tokens": 9, "cache_creation_input_tokens": 3}, Usage(input=9, cache_write=3)),
        ({"prompt_tokens": 9, "completion_tokens_details": None, "prompt_tokens_details": None}, Usage(input=9)),
    ],
)
def test_usage_under_every_name(said, expected):
    assert openai_compatible.usage(said) == expected


@pytest.mark.parametrize("place", ["chunk", "x_groq", "choice"])
def test_usage_in_every_place(place):
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    chunk: dict[str, Any] = C({}, "stop")
    if place == "chunk":
        chunk["usage"] = usage
    elif place == "x_groq":
        chunk["x_groq"] = {"usage": usage}
    else:
        chunk["choices"][0]["usage"] = usage
    assert answer(C({"content": "x"}, usage={"prompt_tokens": None}), chunk).usage == Usage(input=5, output=1)


def test_deltas_of_one_chunk_are_joined_by_sort():
    payloads = [C({"reasoning": "a"}), C({"reasoning": "b"}), C({"content": "c"}), C({"content": "d"}), C({}, "stop")]
    deltas, _ = parsed(b"".join(scripted.sse(*payloads)))
    assert deltas == [Delta(of="of", reasoning="ab"), Delta(of="of", text="cd")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "choices delta message content tool_calls function name arguments id index usage error finish_reason "
                "type thinking text reasoning prompt_tokens prompt_tokens_details cached_tokens x_groq".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(st.lists(JSON, max_size=4), JSON)
def test_whatever_a_server_sends_is_an_answer_or_an_error(payloads, body):
    _, parser = parsed(*scripted.sse(*payloads, "[DONE]"))
    whole = Parser("of", "m")
    whole.whole(json.dumps(body).encode())
    for one in (parser, whole):
        try:
            message = one.finish()
        except ProviderError:
            continue
        messages = (user("hi"), message, *(result(call.id, "x") for call in message.tool_calls), user("go on"))
        if message.content or message.tool_calls:
            built(messages)


def test_a_json_body_without_a_message_is_shown():
    parser = Parser("of", "m")
    assert parser.whole(b'{"object": "error", "message": "no such model"}') == []
    with pytest.raises(ProviderError, match="no such model"):
        parser.finish()


@pytest.mark.parametrize("depth", [200, 300, 990, 5_000])
def test_arguments_of_any_depth_are_kept(depth):
    text = '{"a":' * depth + "1" + "}" * depth
    message = answer(piece("a", "ls", text, index=0), C(finish="tool_calls"))
    assert records.encode(message)
    [call] = message.tool_calls
    assert call.arguments or call.arguments_raw == text


def test_a_name_that_no_tool_can_have_goes_back_as_one_that_servers_take():
    messages = (
        user("hi"),
        said("", ToolCall("a", "functions.read file"), ToolCall("b", "")),
        result("a", ""),
        result("b", ""),
    )
    names = [call["function"]["name"] for call in built(messages)["messages"][2]["tool_calls"]]
    assert names == ["functions_read_file", "_"]


def test_a_second_call_whose_name_comes_after_its_id_stays_apart():
    assert calls(
        piece("a", "read", '{"path":"x.txt"}', index=0),
        piece("b", index=1),
        piece(name="ls", arguments="{}", index=1),
    ) == [READ, ("b", "ls", {})]


@pytest.mark.parametrize("payload", ["null", "7", "[]", '"x"', {"choices": [None]}, {"choices": [{"delta": 5}]}, {}])
def test_chunks_of_no_use_are_passed_over(payload):
    assert answer(payload, C({"content": "x"}), C({}, "stop")).content == "x"


def test_a_deep_or_surrogate_text_is_taken():
    assert answer('{"choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}').content == "\ufffd"


# ---- requests -------------------------------------------------------------------------------------------------------

CONNECTION = Connection("test", "openai-compatible", "http://127.0.0.1:1/v1", api_key="KEY")
TOOL = {"name": "ls", "description": "d", "parameters": {"type": "object", "properties": {}}}


def user(text: str, note: str | None = None) -> User:
    return User(id=text, content=text, created_at=AT, note=note)


def said(text: str, *wanted: ToolCall, **more: Any) -> Assistant:
    return Assistant(id=text, content=text, created_at=AT, tool_calls=wanted, model="m", **more)


def result(id: str, text: str) -> ToolResult:
    return ToolResult(tool_call_id=id, name="ls", content=text, ok=True, created_at=AT)


MESSAGES = (
    user("hi", "<now>\nmode: x\n</now>"),
    said("", ToolCall("call_0", "ls", {"path": "é\ud83d"}), ToolCall("b!", "ls", {}, "{oops")),
    result("call_0", "a\nb"),
    result("b!", "Error: no"),
    said("fine"),
    user("go on"),
)


def built(messages: tuple[Any, ...] = MESSAGES, connection: Connection = CONNECTION, **more: Any) -> dict[str, Any]:
    request = Request("You are a test.", messages, (TOOL,), "m", 8192, **more)
    _, headers, body = openai_compatible.build(connection, request)
    assert scripted.problems(body, headers.items()) == []
    value: dict[str, Any] = jsonl.load(body)
    return value


def test_a_request_is_what_the_strictest_server_takes():
    body = built()
    assert body["model"] == "m"
    assert body["max_tokens"] == 8192
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"] == [{"type": "function", "function": TOOL}]
    assert [message["role"] for message in body["messages"]] == "system user assistant tool tool assistant user".split()
    assert body["messages"][1]["content"] == "<now>\nmode: x\n</now>\n\nhi"
    assert body["messages"][2]["content"] is None
    assert [call["id"] for call in body["messages"][2]["tool_calls"]] == ["call_0", "b!"]
    arguments = [call["function"]["arguments"] for call in body["messages"][2]["tool_calls"]]
    assert arguments == ['{"path":"é�"}', "{}"]
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "call_0", "content": "a\nb"}


def test_the_key_goes_as_bearer_and_nowhere_else():
    url, headers, body = openai_compatible.build(CONNECTION, Request("s", MESSAGES, (), "m", 1))
    assert headers["Authorization"] == "Bearer KEY"
    assert "x-api-key" not in {name.lower() for name in headers}
    assert "KEY" not in url
    assert b"KEY" not in body
    assert b"tools" not in body.split(b'"messages"')[0]


def test_without_a_key_nothing_is_said_about_one():
    connection = Connection("test", "openai-compatible", "http://127.0.0.1:1")
    assert "Authorization" not in openai_compatible.build(connection, Request("s", MESSAGES, (), "m", 1))[1]


def test_effort_is_sent_where_it_is_set():
    assert "reasoning_effort" not in built()
    assert built(effort="low")["reasoning_effort"] == "low"
    assert built(effort="none")["reasoning_effort"] == "none"


def test_a_provider_with_another_name_for_the_limit_gets_it():
    connection = Connection(
        "x", "openai-compatible", "https://x.test", quirks=Quirks(max_tokens_field="max_completion_tokens")
    )
    body = built(connection=connection)
    assert (body["max_completion_tokens"], "max_tokens" in body) == (8192, False)


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("", [{}, {}]),
        ("reasoning", [{"reasoning": "hm"}, {}]),
        ("reasoning_content", [{"reasoning_content": "hm"}, {"reasoning_content": ""}]),
    ],
)
def test_reasoning_goes_back_only_where_it_is_wanted(field, sent):
    messages = (
        user("hi"),
        said("", ToolCall("a", "ls"), reasoning="hm"),
        result("a", "x"),
        said("fine"),
        user("go on"),
    )
    connection = Connection("x", "openai-compatible", "https://x.test", quirks=Quirks(reasoning_field=field))
    answers = [message for message in built(messages, connection)["messages"] if message["role"] == "assistant"]
    assert [{key: answer[key] for key in answer if key.startswith("reasoning")} for answer in answers] == sent


def test_a_provider_that_refuses_to_be_asked_for_usage_is_not_asked():
    connection = Connection("x", "openai-compatible", "https://x.test", quirks=Quirks(counts_unasked=True))
    assert "stream_options" not in built(connection=connection)


def test_what_a_provider_hangs_on_a_call_goes_back_with_it():
    extra = {"google": {"thought_signature": "c2ln"}}
    message = answer(piece("a", "ls", "{}", index=0, extra_content=extra), C(finish="tool_calls"))
    _, _, body = openai_compatible.build(CONNECTION, Request("s", (user("hi"), message, result("a", "x")), (), "m", 1))
    assert jsonl.load(body)["messages"][2]["tool_calls"][0]["extra_content"] == extra
    _, _, body = openai_compatible.build(CONNECTION, Request("s", (message, result("a", "x")), (), "another", 1))
    assert b"extra_content" not in body


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "openai-compatible"},
        {"kind": "openai-compatible", "blocks": None},
        {"kind": "openai-compatible", "blocks": "x"},
        {"kind": "openai-compatible", "blocks": [1, None, {}, {"id": "a"}, {"id": ["a"]}, {"extra_content": 1}]},
        {"kind": ["openai-compatible"], "blocks": [{"id": "a", "extra_content": 1}]},
        {"blocks": [{"id": "a", "extra_content": 1}]},
        [],
        "x",
    ],
    ids=repr,
)
def test_what_a_chat_holds_of_a_provider_in_another_shape_is_left_out(raw):
    said = Assistant(id="m1", content="", raw=raw, tool_calls=(ToolCall("a", "ls"),), model="m", created_at=AT)
    _, _, body = openai_compatible.build(CONNECTION, Request("s", (user("hi"), said, result("a", "x")), (), "m", 1))
    (call,) = jsonl.load(body)["messages"][2]["tool_calls"]
    assert call == {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}


def test_tools_and_messages_of_a_request_are_a_prefix_of_the_next_ones():
    def head(messages: tuple[Any, ...]) -> bytes:
        _, _, body = openai_compatible.build(CONNECTION, Request("s", messages, (TOOL,), "m", 8192))
        return body[: body.rindex(b'],"max_tokens"')]

    bodies = [head(MESSAGES[:count]) for count in (1, 4, 5, 6)]
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(before)


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1//", "http://h:1/v1/chat/completions"),
        ("http://h:1//v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/chat/completions/", "http://h:1/v1/chat/completions"),
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        (" http://h:1/api/coding/v3/ ", "http://h:1/api/coding/v3/chat/completions"),
        ("https://h/openai/d?api-version=1", "https://h/openai/d/chat/completions?api-version=1"),
        ("https://h/v1#x", "https://h/v1/chat/completions"),
    ],
)
def test_a08_a_base_url_in_every_form_leads_to_one_address(base_url, asked):
    connection = Connection("test", "openai-compatible", base_url)
    assert openai_compatible.build(connection, Request("s", MESSAGES, (), "m", 1))[0] == asked


def test_an_empty_event_is_no_chunk():
    parser = Parser("of", "m")
    assert parser.feed([Event(b""), Event(b"[DONE]")]) == []
    assert parser.done


# ---- more than anybody means ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False], ids=["one chunk", "a chunk each"])
def test_an_answer_with_calls_without_end_fails_at_once(whole):
    many = [{"index": n, "id": f"c{n}", "function": {"name": "ls", "arguments": "{}"}} for n in range(20_000)]
    chunks = [C({"tool_calls": many})] if whole else [C({"tool_calls": [one]}) for one in many]
    began = time.process_time()
    with pytest.raises(ProviderError, match="more than 128 tool calls at once") as caught:
        answer(*chunks)
    assert not caught.value.transient
    assert time.process_time() - began < 5


def test_as_many_calls_as_an_api_has_tools_are_taken():
    assert len(calls(*(piece(f"c{n}", "ls", "{}", index=n) for n in range(128)))) == 128


@pytest.mark.parametrize("text", ["}", "x", " "])
def test_a_call_in_very_many_pieces_takes_time_in_step_with_their_number(text):
    parser = Parser("of", "m")
    events = [Event(scripted.sse(piece(None, "ls", text * 100))[0][6:-2])] * 20_000
    began = time.process_time()
    parser.feed(events)
    assert time.process_time() - began < 5


def test_usage_with_ever_more_names_takes_time_in_step_with_their_number():
    parser = Parser("of", "m")
    began = time.process_time()
    parser.feed([Event(b'{"usage": {"u%d": 1}}' % n) for n in range(80_000)])
    assert time.process_time() - began < 5
