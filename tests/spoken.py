"""Answers in the events of each API, with thoughts that must go back as they came; for `scripted.Server`."""

import json
from typing import Any

from tests import scripted

PATHS = {
    "openai-compatible": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent",
}
SIGNED = "c2lnbmVk"
Call = dict[str, Any]
"""``{"id", "name", "arguments"}``."""


def answer(kind: str, text: str = "", *calls: Call, thought: str = "hm") -> scripted.Answer:
    """A thought, a text and calls, as a server of that kind streams them."""
    if kind == "openai-compatible":
        return scripted.step({"text": text, "reasoning": thought, "tool_calls": calls})
    events = {"openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini}[kind](text, calls, thought)
    return scripted.raw(*scripted.sse(*events))


def _responses(text: str, calls: tuple[Call, ...], thought: str) -> list[Any]:
    summary = [{"type": "summary_text", "text": thought}]
    items: list[Any] = [{"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNED}]
    items += [{"type": "message", "content": [{"type": "output_text", "text": text}]}] if text else []
    for call in calls:
        arguments = json.dumps(call["arguments"])
        item = {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "name": call["name"]}
        items.append(item | {"arguments": arguments})
    done = [{"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)]
    usage = {"input_tokens": 7, "output_tokens": 3}
    return [*done, {"type": "response.completed", "response": {"status": "completed", "usage": usage}}]


def _anthropic(text: str, calls: tuple[Call, ...], thought: str) -> list[Any]:
    blocks: list[tuple[Any, Any]] = [
        ({"type": "thinking", "thinking": thought}, {"type": "signature_delta", "signature": SIGNED})
    ]
    blocks += [({"type": "text", "text": ""}, {"type": "text_delta", "text": text})] if text else []
    for call in calls:
        arguments = {"type": "input_json_delta", "partial_json": json.dumps(call["arguments"])}
        blocks.append(({"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}, arguments))
    events: list[Any] = [{"type": "message_start", "message": {"usage": {"input_tokens": 7}}}]
    for index, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if calls else "end_turn"
    stopped = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}
    return [*events, stopped, {"type": "message_stop"}]


def _gemini(text: str, calls: tuple[Call, ...], thought: str) -> list[Any]:
    parts: list[Any] = [{"text": thought, "thought": True}]
    parts += [{"text": text}, {"text": "", "thoughtSignature": SIGNED}] if text else []
    for call in calls:
        wanted = {"name": call["name"], "args": call["arguments"], "id": call["id"]}
        parts.append({"functionCall": wanted, "thoughtSignature": SIGNED})
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3}
    chunks: list[Any] = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    return [*chunks, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}]
