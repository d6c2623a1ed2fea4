"""Recorded streams of every API: each gives what it says, wherever its bytes are cut."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cass.errors import ProviderError
from cass.providers import anthropic, gemini, openai_compatible, openai_responses
from cass.providers.answer import Answer
from cass.providers.sse import Decoder
from cass.records import Assistant, Delta, Usage

WIRE = Path(__file__).parents[1] / "wire"
INDEX: list[dict[str, Any]] = json.loads((WIRE / "index.json").read_text())
KINDS: dict[str, Any] = {
    "anthropic-messages": anthropic,
    "gemini": gemini,
    "openai-chat": openai_compatible,
    "openai-responses": openai_responses,
}
REFUSALS = {"refusal": "refused to answer", "RECITATION": "broke the answer off: RECITATION"}
"""Words of a provider for an end that leaves no answer, and ours."""
EACH_BYTE = 4_096
"""Bytes up to which a stream is cut in two at each of its places; beyond, at random ones."""


def parsed(kind: Any, *chunks: bytes) -> tuple[list[Delta], Answer]:
    parser, decoder = kind.Parser("of", "m"), Decoder()
    deltas = [delta for chunk in chunks for delta in parser.feed(decoder.feed(chunk))]
    return deltas + parser.feed(decoder.end()), parser


def joined(deltas: list[Delta], field: str) -> str:
    return "".join(getattr(delta, field) or "" for delta in deltas)


def called(deltas: list[Delta]) -> list[tuple[str, str, str]]:
    """Id, name and text of the arguments of each call, as a viewer gathers them."""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        if delta.tool_call is not None:
            told = delta.tool_call
            call = calls.setdefault(told["index"], [told.get("id", ""), told.get("name", ""), ""])
            call[2] += told["arguments"]
    return [(id, name, text) for id, name, text in calls.values()]


def cuts(data: bytes) -> list[list[int]]:
    """Whole, byte by byte where that is not too long, in two at each place or at some, and at random ones."""
    chosen = random.Random(len(data))
    size = len(data)
    twice = range(1, size) if size <= EACH_BYTE else chosen.sample(range(1, size), 40)
    some = [sorted(chosen.sample(range(1, size), 40)) for _ in range(5)]
    return [[], *([place] for place in twice), *some, *([list(range(1, size))] if size < 20_000 else [])]


def test_all_of_them_are_here():
    assert len(INDEX) == 91
    assert {entry["file"] for entry in INDEX} == {path.name for path in WIRE.glob("*.sse")}


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_a_recorded_stream_gives_what_it_says_wherever_it_is_cut(entry):
    data = (WIRE / entry["file"]).read_bytes()
    whole = summary(*parsed(KINDS[entry["api"]], data))
    check(entry, *whole, data.decode())
    for places in cuts(data):
        pieces = (data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True))
        assert summary(*parsed(KINDS[entry["api"]], *pieces)) == whole


def summary(deltas: list[Delta], parser: Answer) -> tuple[list[str], list[tuple[str, str, str]], Any, Any]:
    """What was streamed, the provider's word for the end, and the message, or the error that stands for it."""
    streamed = [joined(deltas, "text"), joined(deltas, "reasoning")]
    try:
        end: Any = replace(parser.finish(), created_at="")
    except ProviderError as e:
        end = str(e)
    return streamed, called(deltas), parser.finish_reason, end


def check(
    entry: dict[str, Any], streamed: list[str], told: list[tuple[str, str, str]], finish: Any, end: Any, data: str
) -> None:
    expected = entry["expected"]
    assert streamed == [expected["text"], expected["reasoning"]]
    assert finish == expected["finish"]
    if words := no_answer(entry, data):
        assert words in str(end)
        return
    assert isinstance(end, Assistant)
    assert (end.content, end.reasoning or "") == (expected["text"], expected["reasoning"])
    assert end.usage == used(entry)
    for call, (id, name, text), wanted in zip(end.tool_calls, told, expected["tool_calls"], strict=True):
        assert (call.id, call.name) == (id, name) == (wanted["id"] or id, wanted["name"])
        if wanted["arguments_json"] is None:
            assert call.arguments_raw == text == wanted["arguments"]
        else:
            assert (call.arguments, call.arguments_raw) == (wanted["arguments_json"], None)
            assert json.loads(text or "{}") == wanted["arguments_json"]
    goes_back(entry["api"], json.dumps(end.raw), data)


def no_answer(entry: dict[str, Any], data: str) -> str:
    """Words of the error that such a stream ends in; "" where it is an answer."""
    expected = entry["expected"]
    if expected["error"]:
        return str(expected["error"]["message"])
    if "blockReason" in data:
        return "refused the request: SAFETY"
    return REFUSALS.get(expected["finish"], "" if expected["done_marker"] or expected["finish"] else "cut off")


def used(entry: dict[str, Any]) -> Usage | None:
    """What the provider counted, in our words: cached tokens are part of the input, thoughts part of the output."""
    said, raw = entry["expected"]["usage"], entry["expected"]["usage_raw"]
    if not raw:
        return None
    read, written, thought = (said.get(key) or 0 for key in ("cached_input", "cache_write", "reasoning"))
    apart = {"anthropic-messages": (read + written, 0), "gemini": (raw.get("toolUsePromptTokenCount", 0), thought)}
    more_in, more_out = apart.get(entry["api"], (0, 0))
    return Usage(said["input"] + more_in, said["output"] + more_out, read, written, thought, raw.get("cost"))


def goes_back(api: str, kept: str, data: str) -> None:
    """Whatever of the answer must go back as it came was kept."""
    marks = {
        "anthropic-messages": {"signature": "signature_delta", "redacted_thinking": "redacted_thinking"},
        "gemini": {"thoughtSignature": "thoughtSignature"},
        "openai-responses": {"encrypted_content": '"encrypted_content":"'},
    }
    for mark, sent in marks.get(api, {}).items():
        assert (mark in kept) == (sent in data)
