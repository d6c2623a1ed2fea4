"""Gemini: Google's own API, as a request builder and a parser of its streams.

Source: https://ai.google.dev/api/generate-content
Images: https://ai.google.dev/gemini-api/docs/image-understanding
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from cass.budget import Message
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.jsonl import dump
from cass.pattern import pattern
from cass.providers import address, effort, utterance
from cass.providers.answer import Answer
from cass.providers.openai_compatible import name
from cass.providers.shape import count, mapping, mappings, text
from cass.records import Assistant, ToolResult, Usage, User

KIND = "gemini"
_OTHERS = "skip_thought_signature_validator"
"""In place of the signature of a call that this model did not make: without one, version 3 refuses the request.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""
_UNSIGNED = pattern(r"gemma|gemini-(robotics|1|2)")


# ---- request --------------------------------------------------------------------------------------------------------


def build(connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of a request."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if connection.api_key:
        headers["x-goog-api-key"] = connection.api_key
    body: dict[str, Any] = {}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
    body["contents"] = _contents(request)
    thinking = effort.gemini(request.model, request.effort)
    body["generationConfig"] = {"maxOutputTokens": request.max_tokens} | thinking
    path = f"/{_model(request.model)}:streamGenerateContent?alt=sse"
    # Beside the native form stands that of OpenAI, under an address of its own.
    root = re.sub(r"/openai(/chat/completions)?/*$", "", connection.base_url.strip())
    return address.join(root, path, version="/v1beta", always=True), headers, dump(body)


def _model(model: str) -> str:
    return quote(model if "/" in model else f"models/{model}", safe="/:@")


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool["description"], "parametersJsonSchema": tool["parameters"]}


def _contents(request: Request) -> list[dict[str, Any]]:
    """Contents, those of one role in a row made one: all results of an answer's calls must stand in the next one."""
    made: list[dict[str, Any]] = []
    own: set[str] = set()
    for message in request.messages:
        role = "model" if isinstance(message, Assistant) else "user"
        parts = _parts(message, request, own)
        if made and made[-1]["role"] == role:
            made[-1]["parts"] += parts
        elif parts:
            made.append({"role": role, "parts": parts})
    return made


def _parts(message: Message, request: Request, own: set[str]) -> list[dict[str, Any]]:
    """Parts of a message. `own`: ids that the model itself gave to its last calls; no other ids are sent."""
    match message:
        case User():
            return _user(message, request.images)
        case ToolResult():
            id = {"id": message.tool_call_id} if message.tool_call_id in own else {}
            response = {"output" if message.ok else "error": message.content}
            return [{"functionResponse": id | {"name": name(message.name), "response": response}}]
        case Assistant():
            return _assistant(message, request.model, own)


def _user(user: User, images: Mapping[str, str]) -> list[dict[str, Any]]:
    """The text behind the image, as the documentation advises for one."""
    parts: list[dict[str, Any]] = []
    for image in utterance.images(user, images):
        parts += [{"text": image.caption}] if image.caption else []
        parts.append({"inlineData": {"mimeType": image.media_type, "data": image.data}})
    words = utterance.text(user)
    return parts + ([{"text": words}] if words else [])


def _assistant(message: Assistant, model: str, own: set[str]) -> list[dict[str, Any]]:
    """The parts of an answer: as they came, where they can be told; else its text and its calls."""
    raw = mapping(message.raw)
    kept = mappings(raw.get("blocks")) if message.model == model and raw.get("kind") == KIND else []
    if not _tells_all(kept, message):
        kept = [{"chars": len(message.content)}, *({"call": call.id} for call in message.tool_calls)]
        if message.tool_calls and not _UNSIGNED.search(model):
            kept[1]["thoughtSignature"] = _OTHERS
    calls = {call.id: call for call in message.tool_calls}
    own -= calls.keys()
    own |= {part["call"] for part in kept if "call" in part and part.get("id") == part["call"]}
    parts: list[dict[str, Any]] = []
    at = 0
    for part in kept:
        signed = {"thoughtSignature": part["thoughtSignature"]} if "thoughtSignature" in part else {}
        match part:
            case {"chars": int(chars)}:
                said = message.content[at : at + chars]
                at += chars
                parts += [{"text": said} | signed] if said or signed else []
            case {"call": str(call_id)}:
                id = {"id": call_id} if call_id in own else {}
                call = id | {"name": name(calls[call_id].name), "args": calls[call_id].arguments}
                parts.append({"functionCall": call} | signed)
    return parts


def _tells_all(kept: list[dict[str, Any]], message: Assistant) -> bool:
    """Whether the parts that were kept speak of all the text and of all the calls, in their order."""
    texts = [part["chars"] for part in kept if "chars" in part]
    ids = [part["call"] for part in kept if "call" in part]
    whole = all(type(chars) is int and chars >= 0 for chars in texts) and sum(map(count, texts)) == len(message.content)
    is_either = not any("chars" in part and "call" in part for part in kept)
    return bool(kept) and is_either and whole and ids == [call.id for call in message.tool_calls]


# ---- answer ---------------------------------------------------------------------------------------------------------

_REFUSALS = frozenset(
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY OTHER MALFORMED_FUNCTION_CALL "
    "UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE".split()
)
"""Ends of an answer that is none, or only half of one."""
_CHANCE = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"})
"""Those that the model itself has made, and would not make again."""


class Parser(Answer):
    """The answer, from the parts of its candidates."""

    kind = KIND
    stops: ClassVar[dict[str, str]] = {"MAX_TOKENS": "length"}

    def __init__(self, of: str, model: str) -> None:
        super().__init__(of, model)
        self._kept: list[dict[str, Any]] = []
        """The parts in their order, text by its length and calls by our ids."""
        self._why = ""

    def blocks(self) -> list[dict[str, Any]]:
        """Nothing where nothing is signed and the model gave no ids: text and calls say it all."""
        kept = [part for part in self._kept if part.get("chars") != 0 or "thoughtSignature" in part]
        return kept if any("thoughtSignature" in part or "id" in part for part in kept) else []

    def refusal(self) -> ProviderError | None:
        if self.finish_reason not in _REFUSALS:
            return None
        words = f"the provider broke the answer off: {self.finish_reason}" + (f": {self._why}" if self._why else "")
        return ProviderError(words, transient=self.finish_reason in _CHANCE)

    def counted(self, said: dict[str, Any]) -> Usage:
        """Usage in our words: Gemini counts thoughts apart from the answer, and results of its own tools apart."""
        thoughts = count(said.get("thoughtsTokenCount"))
        return Usage(
            input=count(said.get("promptTokenCount")) + count(said.get("toolUsePromptTokenCount")),
            output=count(said.get("candidatesTokenCount")) + thoughts,
            cache_read=count(said.get("cachedContentTokenCount")),
            reasoning=thoughts,
        )

    def take(self, chunk: dict[str, Any]) -> None:
        for candidate in mappings(chunk.get("candidates")):
            if not candidate.get("index"):
                self._candidate(candidate)
        self.use(chunk.get("usageMetadata"))
        if blocked := text(mapping(chunk.get("promptFeedback")).get("blockReason")):
            raise ProviderError(f"the provider refused the request: {blocked}")
        if chunk.get("error"):
            self.fail(chunk["error"])

    def _candidate(self, candidate: dict[str, Any]) -> None:
        for part in mappings(mapping(candidate.get("content")).get("parts")):
            self._part(part)
        if candidate.get("finishReason"):
            self.finish_reason = str(candidate["finishReason"])
        self._why = text(candidate.get("finishMessage")) or self._why

    def _part(self, part: dict[str, Any]) -> None:
        signature = text(part.get("thoughtSignature"))
        signed = {"thoughtSignature": signature} if signature else {}
        said = text(part.get("text"))
        if isinstance(part.get("functionCall"), dict):
            self._call(part["functionCall"], signed)
        elif part.get("thought"):
            self.think(said)  # not asked for again, by whatever it is signed
        elif said or signed:
            if signed or not self._kept or "chars" not in self._kept[-1] or "thoughtSignature" in self._kept[-1]:
                self._kept.append({"chars": 0} | signed)
            self._kept[-1]["chars"] += len(said)
            self.say(said)

    def _call(self, wanted: dict[str, Any], signed: dict[str, Any]) -> None:
        call = self.begin(wanted.get("id"))
        given = {"id": call.id} if call.id == wanted.get("id") else {}
        self._kept.append({"call": call.id} | given | signed)
        args = wanted.get("args")
        self.go_on(call, args if isinstance(args, str) else dump(args or {}).decode(), text(wanted.get("name")))
