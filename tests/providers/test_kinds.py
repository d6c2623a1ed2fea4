"""Requests of each kind: what goes back as it came, what is made to fit, and what stays a prefix."""

import itertools
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass import jsonl
from cass.budget import Message
from cass.connection import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.known import Quirks
from cass.providers import anthropic, gemini, openai_compatible, openai_responses, plain
from cass.providers.sse import Event
from cass.records import Assistant, Attachment, ToolCall, ToolResult, User

AT = "2026-06-20T14:30:12.345Z"
KINDS = {kind.KIND: kind for kind in (openai_compatible, openai_responses, anthropic, gemini)}
LISTS = {"openai-compatible": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}
TOOL = {"name": "ls", "description": "d", "parameters": {"type": "object", "properties": {}}}
NATIVE = ["openai-responses", "anthropic", "gemini"]


def user(text: str, note: str | None = None) -> User:
    return User(id=text, content=text, created_at=AT, note=note)


def said(text: str, *wanted: ToolCall, model: str = "m", **more: Any) -> Assistant:
    return Assistant(id=text, content=text, created_at=AT, tool_calls=wanted, model=model, **more)


def result(id: str, text: str, ok: bool = True) -> ToolResult:
    return ToolResult(tool_call_id=id, name="ls", content=text, ok=ok, created_at=AT)


MESSAGES: tuple[Message, ...] = (
    user("hi", "<now>\nmode: x\n</now>"),
    said("I look.", ToolCall("call_0", "ls", {"path": "é"}), ToolCall("b!", "ls", {}, "{oops")),
    result("call_0", "a\nb"),
    result("b!", "Error: no", ok=False),
    said("fine"),
    user("go on"),
    said("", ToolCall("call_0", "ls", {"path": "."})),
    result("call_0", ""),
    user("and this"),
)


def bytes_of(kind: str, messages: tuple[Message, ...] = MESSAGES, **more: Any) -> bytes:
    given: dict[str, Any] = {"model": "m", "tools": (TOOL,), "max_tokens": 8192} | more
    connection = Connection("test", kind, "http://h", api_key="KEY")
    url, headers, body = KINDS[kind].build(connection, Request(system="You are a test.", messages=messages, **given))
    assert "KEY" not in url
    assert b"KEY" not in body
    assert sum("KEY" in value for value in headers.values()) == 1
    return body


def built(kind: str, messages: tuple[Message, ...] = MESSAGES, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = jsonl.load(bytes_of(kind, messages, **more))
    return value


def answered(kind: str, *events: dict[str, Any], model: str = "m") -> Assistant:
    parser = KINDS[kind].Parser("of", model)
    parser.feed([Event(jsonl.dump(event)) for event in events])
    return replace(parser.finish(), created_at=AT)


# ---- the whole of a request -----------------------------------------------------------------------------------------


def test_a_request_of_anthropic():
    mark = {"cache_control": {"type": "ephemeral"}}
    body = built("anthropic")
    assert list(body) == ["model", "tools", "system", "messages", "max_tokens", "stream"]
    assert body["tools"] == [{"name": "ls", "description": "d", "input_schema": TOOL["parameters"]} | mark]
    assert body["system"] == [{"type": "text", "text": "You are a test."} | mark]
    call = {"type": "tool_use", "name": "ls"}
    other = body["messages"][1]["content"][2]["id"]
    again = body["messages"][5]["content"][0]["id"]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "<now>\nmode: x\n</now>\n\nhi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                call | {"id": "call_0", "input": {"path": "é"}},
                call | {"id": other, "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_0", "content": "a\nb"},
                {"type": "tool_result", "tool_use_id": other, "content": "Error: no", "is_error": True},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "fine"}]},
        {"role": "user", "content": [{"type": "text", "text": "go on"} | mark]},
        {"role": "assistant", "content": [call | {"id": again, "input": {"path": "."}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": again},
                {"type": "text", "text": "and this"} | mark,
            ],
        },
    ]


def test_a_request_of_responses():
    body = built("openai-responses")
    assert list(body)[:4] == ["model", "instructions", "tools", "input"]
    assert (body["max_output_tokens"], body["store"], body["stream"]) == (8192, False, True)
    assert body["tools"] == [{"type": "function", **TOOL, "strict": False}]
    assert [item.get("role", item["type"]) for item in body["input"]] == (
        "user assistant function_call function_call function_call_output function_call_output assistant user "
        "function_call function_call_output user".split()
    )
    assert body["input"][2] == {
        "type": "function_call",
        "call_id": "call_0",
        "name": "ls",
        "arguments": '{"path":"é"}',
    }
    assert body["input"][4] == {"type": "function_call_output", "call_id": "call_0", "output": "a\nb"}


def test_a_request_of_gemini():
    body = built("gemini", model="gemini-2.0-flash")
    assert list(body) == ["systemInstruction", "tools", "contents", "generationConfig"]
    assert body["systemInstruction"] == {"parts": [{"text": "You are a test."}]}
    declared = {"name": "ls", "description": "d", "parametersJsonSchema": TOOL["parameters"]}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert [content["role"] for content in body["contents"]] == "user model user model user model user".split()
    assert body["contents"][1]["parts"] == [
        {"text": "I look."},
        {"functionCall": {"name": "ls", "args": {"path": "é"}}},
        {"functionCall": {"name": "ls", "args": {}}},
    ]
    assert body["contents"][2]["parts"] == [
        {"functionResponse": {"name": "ls", "response": {"output": "a\nb"}}},
        {"functionResponse": {"name": "ls", "response": {"error": "Error: no"}}},
    ]
    assert body["generationConfig"] == {"maxOutputTokens": 8192}


def test_calls_of_others_get_a_signature_where_gemini_asks_for_one():
    parts = built("gemini", model="gemini-3-pro-preview")["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [None, gemini._OTHERS, None]


# ---- ids ------------------------------------------------------------------------------------------------------------


def ids(kind: str, messages: tuple[Message, ...], quirks: Quirks | None = None) -> tuple[list[str], list[str]]:
    """Ids of the calls, and of the results, in their order."""
    connection = Connection("test", kind, "http://h", quirks=quirks or Quirks())
    body = jsonl.load(KINDS[kind].build(connection, Request("s", messages, (TOOL,), "m", 1))[2])
    found: tuple[list[str], list[str]] = [], []
    names = {"tool_use": 0, "function_call": 0, "tool_result": 1, "function_call_output": 1}

    def look(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                look(item)
        elif isinstance(value, dict):
            which = names.get(str(value.get("type")), {"tool": 1}.get(str(value.get("role"))))
            id = value.get("tool_use_id") or value.get("tool_call_id") or value.get("call_id") or value.get("id")
            if value.get("type") == "function" and "function" in value and "id" in value:
                which = 0
            if which is not None:
                found[which].append(str(id))
            look(list(value.values()))

    look(body[LISTS[kind]])
    return found


@pytest.mark.parametrize(
    ("kind", "pattern", "quirks"),
    [
        ("anthropic", "[a-zA-Z0-9_-]{1,64}", None),
        ("openai-responses", ".{1,64}", None),
        ("openai-compatible", ".{1,40}", None),
        ("openai-compatible", "[a-zA-Z0-9]{9}", Quirks(call_ids="[a-zA-Z0-9]{9}")),
    ],
)
def test_ids_of_another_models_calls_fit_and_a_result_follows_its_call(kind, pattern, quirks):
    given = ["functions.read:0", "x" * 100, "toolu_01", "functions.read:0", "call/é", "b" * 9]
    messages: list[Message] = [user("hi")]
    for id in given:
        messages += [said("", ToolCall(id, "ls"), model="other"), result(id, "x")]
    calls, results = ids(kind, tuple(messages), quirks)
    assert calls == results
    assert all(re.fullmatch(pattern, id) for id in calls)
    assert len(set(calls)) == (5 if kind == "openai-compatible" else 6)
    assert ids(kind, tuple(messages), quirks)[0] == calls


@pytest.mark.parametrize("kind", ["openai-compatible", "openai-responses"])
def test_a_models_own_ids_go_back_as_they_came(kind):
    id = "functions.read:0" + "x" * 100
    assert ids(kind, (user("hi"), said("", ToolCall(id, "ls")), result(id, "x"))) == ([id], [id])


# ---- what goes back as it came --------------------------------------------------------------------------------------

THINKING: dict[str, tuple[dict[str, Any], ...]] = {
    "anthropic": (
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "I "}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "look."}},
        {"type": "content_block_start", "index": 3, "content_block": {"type": "thinking", "thinking": "and"}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "signature_delta", "signature": "bQ"}},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "a", "name": "ls"}},
        {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "I "}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "look."}, {"text": "", "thoughtSignature": "bQ"}]}}]},
        {
            "candidates": [
                {
                    "content": {"parts": [{"functionCall": {"name": "ls", "id": "a"}, "thoughtSignature": "c2ln"}]},
                    "finishReason": "STOP",
                }
            ]
        },
    ),
    "openai-responses": (
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "message", "id": "msg_1", "phase": "commentary"},
        },
        {"type": "response.output_text.delta", "output_index": 1, "delta": "I look."},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {
                "type": "reasoning",
                "id": "rs_1",
                "status": "completed",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "c2ln",
            },
        },
        {
            "type": "response.output_item.done",
            "output_index": 2,
            "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "ls", "arguments": "{}"},
        },
        {"type": "response.completed", "response": {"status": "completed"}},
    ),
}
BACK: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look."},
        {"type": "thinking", "thinking": "and", "signature": "bQ"},
        {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
    ],
    "gemini": [
        {"text": "I look."},
        {"text": "", "thoughtSignature": "bQ"},
        {"functionCall": {"id": "a", "name": "ls", "args": {}}, "thoughtSignature": "c2ln"},
    ],
    "openai-responses": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "c2ln",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            "phase": "commentary",
        },
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
    ],
}


def back(kind: str, answer: Assistant, model: str = "m") -> list[dict[str, Any]]:
    """What is sent of an answer in the next request."""
    value = built(kind, (user("hi"), answer, result("a", "x")), model=model)[LISTS[kind]]
    if kind == "openai-responses":
        return list(value[1:-1])
    return list(value[1]["content" if kind == "anthropic" else "parts"])


@pytest.mark.parametrize("kind", NATIVE)
def test_thoughts_go_back_as_they_came_and_where_they_stood(kind):
    answer = answered(kind, *THINKING[kind])
    assert answer.content == "I look."
    assert (answer.reasoning or "").startswith("hm")
    assert answer.tool_calls == (ToolCall("a", "ls"),)
    assert back(kind, answer) == BACK[kind]


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("asked", KINDS)
def test_thoughts_go_back_to_the_same_kind_and_model_only(kind, asked):
    answer = answered(kind, *THINKING[kind])
    for model in ("m", "gemini-2.0-other"):
        sent = json.dumps(built(asked, (user("hi"), answer, result("a", "x")), model=model))
        assert ("c2ln" in sent) == (kind == asked and model == "m")
        assert "I look." in sent


@pytest.mark.parametrize("kind", NATIVE)
def test_an_answer_that_was_changed_since_goes_back_by_what_it_says_now(kind):
    answer = replace(answered(kind, *THINKING[kind]), content="I have looked.", tool_calls=())
    sent = json.dumps(back(kind, answer))
    assert "I have looked." in sent
    assert '"ls"' not in sent


WORDS = st.sampled_from("text message tool_use function_call thinking reasoning a b".split())
BLOCKS = st.dictionaries(
    st.sampled_from("type chars id call call_id text".split()), st.none() | st.integers(-2, 9) | WORDS, max_size=3
)


@pytest.mark.parametrize("kind", NATIVE)
@given(blocks=st.lists(BLOCKS, max_size=4))
def test_whatever_a_chat_holds_of_a_provider_a_request_is_made(kind, blocks):
    answer = said("I look.", ToolCall("a", "ls"), raw={"kind": kind, "blocks": blocks})
    sent = json.dumps(back(kind, answer))
    assert "I look." in "".join(re.findall(r'"text": "([^"]*)"', sent))  # in pieces, where the provider sent it so
    assert '"ls"' in sent


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type index delta message content content_block text thinking signature id name input usage error "
                "candidates parts functionCall args finishReason promptFeedback blockReason usageMetadata thought "
                "response item item_id output output_index status call_id arguments summary stop_reason".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
TYPES = st.sampled_from(
    "content_block_start content_block_delta content_block_stop message_delta message error text tool_use thinking "
    "text_delta thinking_delta signature_delta input_json_delta response.output_item.added response.output_item.done "
    "response.output_text.delta response.function_call_arguments.delta response.completed response.failed reasoning "
    "function_call message_start".split()
)
EVENTS = st.dictionaries(
    st.sampled_from("index output_index content_block delta item response candidates error usage item_id".split()),
    st.fixed_dictionaries({"type": TYPES}, optional={"id": JSON, "text": JSON, "input": JSON, "content": JSON}) | JSON,
    max_size=4,
).flatmap(lambda event: TYPES.map(lambda type: event | {"type": type}))


@pytest.mark.parametrize("kind", NATIVE)
@given(events=st.lists(EVENTS | JSON, max_size=5))
def test_whatever_a_server_sends_is_an_answer_or_an_error(kind, events):
    for whole in (False, True):
        parser = KINDS[kind].Parser("of", "m")
        if whole:
            parser.whole(jsonl.dump(events))
        else:
            parser.feed([*(Event(jsonl.dump(event)) for event in events), Event(b"[DONE]")])
        try:
            answer = parser.finish()
        except ProviderError:
            continue
        built(kind, (user("hi"), answer, *(result(call.id, "x") for call in answer.tool_calls), user("go on")))


# ---- prefixes -------------------------------------------------------------------------------------------------------


def head(kind: str, body: bytes) -> bytes:
    """A request up to the end of its last message."""
    end = {"openai-compatible": b'],"max_tokens"', "openai-responses": b'],"max_output_tokens"'}
    end |= {"anthropic": b']}],"max_tokens"', "gemini": b']}],"generationConfig"'}
    return body[: body.rindex(end[kind])]


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_a_prefix_of_the_next_one(kind):
    answers = [answered(kind, *THINKING[kind])] if kind in THINKING else []
    messages = (*MESSAGES, *answers, *(result("a", "x") for _ in answers), user("more"))
    ends = [n + 1 for n, message in enumerate(messages) if not isinstance(message, Assistant)]
    bodies = [bytes_of(kind, messages[:end]) for end in ends]
    if kind == "anthropic":  # its marks move; a cache compares what they stand on
        bodies = [body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for body in bodies]
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(head(kind, before))


# ---- without tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_tools_is_told_of_calls_in_words(kind):
    request = plain.told(Request("s", MESSAGES, (), "m", 1))
    body = json.dumps(jsonl.load(KINDS[kind].build(Connection("t", kind, "http://h"), request)[2]), ensure_ascii=False)
    assert 'I called ls with {\\"path\\":\\"é\\"}' in body
    assert "[ls failed with:]\\nError: no" in body
    for word in ("tool_use", "tool_calls", "function_call", "functionCall", '"tool"', "tool_result"):
        assert word not in body
    roles = ["user" if isinstance(message, User) else "assistant" for message in request.messages]
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert plain.told(Request("s", MESSAGES, (TOOL,), "m", 1)).messages == MESSAGES


def test_a_history_told_without_calls_keeps_its_images():
    images = [Attachment(f"{n:064x}", "image/png", f"{n}.png", 9, 4, 3) for n in range(3)]
    asked = [replace(user("hi"), attachments=(images[0],)), said("", ToolCall("1", "ls", {})), result("1", "a")]
    found = plain.told(Request("s", (*asked, replace(user("x"), attachments=tuple(images[1:]))), (), "m", 1)).messages
    assert [one for message in found if isinstance(message, User) for one in message.attachments] == images
