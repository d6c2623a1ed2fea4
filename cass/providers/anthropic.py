"""Messages: Anthropic's own API, as a request builder and a parser of its streams.

Source: https://platform.claude.com/docs/en/api/messages
Images: https://platform.claude.com/docs/en/build-with-claude/vision
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from cass.budget import Message
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.jsonl import dump
from cass.providers import address, effort, utterance
from cass.providers.answer import Answer, Call
from cass.providers.ids import Ids
from cass.providers.openai_compatible import name
from cass.providers.shape import count, mapping, mappings, text
from cass.records import Assistant, ToolCall, ToolResult, Usage, User

KIND = "anthropic"
VERSION = "2023-06-01"
_CACHED = {"cache_control": {"type": "ephemeral"}}
"""A breakpoint: what is sent up to here is kept for five minutes. A request may have four."""
_MOVING = 2
"""Breakpoints that go along with the conversation: the last finds what the one before it kept."""
_THOUGHT = ("thinking", "redacted_thinking")


# ---- request --------------------------------------------------------------------------------------------------------


def build(connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of a request."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "anthropic-version": VERSION}
    if connection.api_key:
        headers["x-api-key"] = connection.api_key
    thinking = effort.anthropic(request.model, request.effort, request.max_tokens)
    if "budget_tokens" in mapping(thinking.get("thinking")):
        headers["anthropic-beta"] = "interleaved-thinking-2025-05-14"  # later models think between calls unasked
    body: dict[str, Any] = {"model": request.model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tools"][-1] |= _CACHED
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system} | _CACHED]
    body["messages"] = _messages(request)
    body |= {"max_tokens": request.max_tokens} | thinking | {"stream": True}
    return address.join(connection.base_url, "/messages", version="/v1", always=True), headers, dump(body)


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}


def _messages(request: Request) -> list[dict[str, Any]]:
    """Messages, those of one role in a row made one: all results of an answer's calls must stand in the next one."""
    ids = Ids(r"[a-zA-Z0-9_-]{1,64}", unique=True)
    made: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if isinstance(message, Assistant) else "user"
        blocks = _blocks(message, request, ids)
        if made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": role, "content": blocks})
    for said in [said for said in made if said["role"] == "user"][-_MOVING:]:
        # The last key of the last block: where the mark is gone again in a later request, nothing else changes.
        said["content"][-1] |= _CACHED
    return made


def _blocks(message: Message, request: Request, ids: Ids) -> list[dict[str, Any]]:
    match message:
        case User():
            return _user(message, request.images)
        case ToolResult():
            result = {"type": "tool_result", "tool_use_id": ids.result(message.tool_call_id)}
            result |= {"content": message.content} if message.content.strip() else {}
            return [result if message.ok else result | {"is_error": True}]
        case Assistant():
            return _assistant(message, message.model == request.model, ids)


def _user(user: User, images: Mapping[str, str]) -> list[dict[str, Any]]:
    """Images first: the models are said to work best so."""
    blocks: list[dict[str, Any]] = []
    for image in utterance.images(user, images):
        blocks += [{"type": "text", "text": image.caption}] if image.caption else []
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        blocks.append({"type": "image", "source": source})
    words = utterance.text(user)
    return blocks + ([{"type": "text", "text": words}] if words.strip() else [])


def _assistant(message: Assistant, same_model: bool, ids: Ids) -> list[dict[str, Any]]:
    """The blocks of an answer: as they came, where they can be told; else its thoughts, text and calls."""
    calls = {call.id: _call(call, ids.call(call.id, own=False)) for call in message.tool_calls}
    raw = mapping(message.raw)
    kept = mappings(raw.get("blocks")) if same_model and raw.get("kind") == KIND else []
    if not _tells_all(kept, message):
        kept = [block for block in kept if block.get("type") in _THOUGHT]
        kept += [{"type": "text", "chars": len(message.content)}, *({"type": "tool_use", "id": id} for id in calls)]
    blocks: list[dict[str, Any]] = []
    at = 0
    for block in kept:
        match block:
            case {"type": "text", "chars": int(chars)}:
                said = message.content[at : at + chars]
                at += chars
                blocks += [{"type": "text", "text": said}] if said.strip() else []  # blank text is refused
            case {"type": "tool_use", "id": str(id)}:
                blocks.append(calls[id])
            case _:
                blocks.append(block)
    return blocks


def _tells_all(kept: list[dict[str, Any]], message: Assistant) -> bool:
    """Whether the blocks that were kept speak of all the text and of all the calls, in their order."""
    texts = [block.get("chars") for block in kept if block.get("type") == "text"]
    ids = [block.get("id") for block in kept if block.get("type") == "tool_use"]
    known = all(block.get("type") in ("text", "tool_use", *_THOUGHT) for block in kept)
    whole = all(type(chars) is int and chars >= 0 for chars in texts) and sum(map(count, texts)) == len(message.content)
    return known and whole and ids == [call.id for call in message.tool_calls]


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name(call.name), "input": call.arguments}


# ---- answer ---------------------------------------------------------------------------------------------------------


class Parser(Answer):
    """The answer, from the events of its blocks."""

    kind = KIND
    stops: ClassVar[dict[str, str]] = {
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
    }

    def __init__(self, of: str, model: str) -> None:
        super().__init__(of, model)
        self._kept: list[dict[str, Any]] = []
        """The blocks in their order, text by its length and calls by their ids."""
        self._open: dict[int, dict[str, Any]] = {}
        """What is being streamed, of `_kept`, by its index."""
        self._calls: dict[int, Call] = {}
        self._inputs: dict[int, dict[str, Any]] = {}
        """Arguments that came with the beginning of a call, in case that nothing follows."""
        self._why = ""

    def blocks(self) -> list[dict[str, Any]]:
        """Nothing where there was no thought: text and calls say it all."""
        kept = [block for block in self._kept if block.get("chars") != 0]
        return kept if any(block["type"] in _THOUGHT for block in kept) else []

    def refusal(self) -> ProviderError | None:
        if self.finish_reason != "refusal":
            return None
        return ProviderError(f"the provider refused to answer: {self._why or 'it did not say why'}")

    def counted(self, said: dict[str, Any]) -> Usage:
        """Usage in our words: Anthropic counts what it read from and wrote to its cache apart from the input."""
        read, written = count(said.get("cache_read_input_tokens")), count(said.get("cache_creation_input_tokens"))
        return Usage(
            input=count(said.get("input_tokens")) + read + written,
            output=count(said.get("output_tokens")),
            cache_read=read,
            cache_write=written,
            reasoning=count(mapping(said.get("output_tokens_details")).get("thinking_tokens")),
        )

    def take(self, event: dict[str, Any]) -> None:
        index = event["index"] if isinstance(event.get("index"), int) else -1
        match event.get("type"):
            case "content_block_delta":
                self._delta(index, mapping(event.get("delta")))
            case "content_block_start":
                self._start(index, mapping(event.get("content_block")))
            case "content_block_stop":
                self._end(index)
            case "message_start":
                self.use(mapping(event.get("message")).get("usage"))
            case "message_delta":
                self._stopped(mapping(event.get("delta")))
                self.use(event.get("usage"))
            case "message_stop":
                self.done = True
            case "message":
                self._message(event)
            case "error":
                self.fail(event.get("error") or event)
            case _ if event.get("error"):
                self.fail(event["error"])

    def _message(self, message: dict[str, Any]) -> None:
        """A whole message, where a stream was asked for."""
        for index, block in enumerate(mappings(message.get("content"))):
            self._start(index, block)
            self._end(index)
        self._stopped(message)
        self.use(message.get("usage"))

    def _stopped(self, said: dict[str, Any]) -> None:
        if said.get("stop_reason"):
            self.finish_reason = str(said["stop_reason"])
        details = mapping(said.get("stop_details"))
        self._why = text(details.get("explanation")) or text(details.get("category")) or self._why

    def _start(self, index: int, block: dict[str, Any]) -> None:
        """Begin a block; those of tools that the provider runs itself are passed over."""
        self._end(index)
        match block.get("type"):
            case "text":
                self._keep(index, {"type": "text", "chars": 0})
                self._delta(index, {"type": "text_delta", "text": block.get("text")})
            case "thinking":
                signed = {"signature": block["signature"]} if isinstance(block.get("signature"), str) else {}
                self._keep(index, {"type": "thinking", "thinking": ""} | signed)
                self._delta(index, {"type": "thinking_delta", "thinking": block.get("thinking")})
            case "redacted_thinking":
                self._keep(index, {"type": "redacted_thinking", "data": text(block.get("data"))})
            case "tool_use":
                call = self._calls[index] = self.begin(block.get("id"))
                self._inputs[index] = mapping(block.get("input"))
                self._keep(index, {"type": "tool_use", "id": call.id})
                self.go_on(call, "", text(block.get("name")))

    def _keep(self, index: int, block: dict[str, Any]) -> None:
        self._kept.append(block)
        self._open[index] = block

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._open.get(index, {})
        match delta.get("type"):
            case "text_delta":
                said = text(delta.get("text"))
                if "chars" not in block and said:
                    self._keep(index, block := {"type": "text", "chars": 0})
                if said:
                    block["chars"] += len(said)
                self.say(said)
            case "thinking_delta":
                thought = text(delta.get("thinking"))
                if "thinking" in block:
                    block.setdefault("pieces", []).append(thought)
                self.think(thought)
            case "signature_delta" if "thinking" in block:
                block["signature"] = block.get("signature", "") + text(delta.get("signature"))
            case "input_json_delta" if index in self._calls:
                self.go_on(self._calls[index], text(delta.get("partial_json")))

    def _end(self, index: int) -> None:
        block = self._open.pop(index, None)
        if block is not None and "pieces" in block:
            block["thinking"] = "".join(block.pop("pieces"))
        call, given = self._calls.pop(index, None), self._inputs.pop(index, None)
        if call is not None and given and not call.text.strip():
            self.go_on(call, dump(given).decode())

    def finish(self) -> Assistant:
        for index in list(self._open):  # a server may forget to end its blocks
            self._end(index)
        return super().finish()
