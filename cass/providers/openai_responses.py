"""Responses: OpenAI's API for models that reason between calls, as a request builder and a parser of its streams.

Nothing is kept at the provider (``store: false``): what a model thought comes back encrypted, and goes with the next
request.

Source: https://platform.openai.com/docs/api-reference/responses
Images: https://platform.openai.com/docs/guides/images-vision
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
from cass.providers.shape import count, dollars, mapping, mappings, text
from cass.records import Assistant, ToolCall, ToolResult, Usage, User

KIND = "openai-responses"
_NO_THOUGHT = {"type": "reasoning"}
_KEPT = ("type", "id", "summary", "content", "encrypted_content")
"""Fields of a thought that are accepted back; its state is not among them."""


# ---- request --------------------------------------------------------------------------------------------------------


def build(connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of a request."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if connection.api_key:
        headers["Authorization"] = f"Bearer {connection.api_key}"
    body: dict[str, Any] = {"model": request.model}
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        # `strict` is true where nothing is said, and refuses optional parameters.
        body["tools"] = [{"type": "function"} | tool | {"strict": False} for tool in request.tools]
    ids = Ids(r".{1,64}", unique=True)
    body["input"] = [item for message in request.messages for item in _items(message, request, ids)]
    body |= {"max_output_tokens": request.max_tokens} | effort.responses(request.model, request.effort)
    body |= {"store": False, "stream": True}
    return address.join(connection.base_url, "/responses", version="/v1"), headers, dump(body)


def _items(message: Message, request: Request, ids: Ids) -> list[dict[str, Any]]:
    match message:
        case User():
            return [{"type": "message", "role": "user", "content": _user(message, request.images)}]
        case ToolResult():
            return [
                {
                    "type": "function_call_output",
                    "call_id": ids.result(message.tool_call_id),
                    "output": message.content,
                }
            ]
        case Assistant():
            return _assistant(message, message.model == request.model, ids)


def _user(user: User, images: Mapping[str, str]) -> list[dict[str, Any]]:
    """Text first, as in the examples of the API."""
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": utterance.text(user)}]
    for image in utterance.images(user, images):
        parts += [{"type": "input_text", "text": image.caption}] if image.caption else []
        # The schema of the API has `detail` as required, and servers of others' go by that.
        parts.append({"type": "input_image", "detail": "auto", "image_url": image.uri})
    return parts


def _assistant(message: Assistant, same_model: bool, ids: Ids) -> list[dict[str, Any]]:
    """The items of an answer: as they came, where they can be told; else its text and its calls."""
    calls = {call.id: _call(call, ids.call(call.id, own=same_model)) for call in message.tool_calls}
    raw = mapping(message.raw)
    kept = mappings(raw.get("blocks")) if same_model and raw.get("kind") == KIND else []
    if not _tells_all(kept, message):
        kept = [item for item in kept if item.get("type") == "reasoning"]
        kept += [{"type": "message", "chars": len(message.content)}]
        kept += [{"type": "function_call", "call_id": id} for id in calls]
    items: list[dict[str, Any]] = []
    at = 0
    for item in kept:
        match item:
            case {"type": "message", "chars": int(chars)}:
                said = message.content[at : at + chars]
                at += chars
                phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
                items += [_said(said) | phase] if said else []
            case {"type": "function_call", "call_id": str(id)}:
                items.append(calls[id])
            case _:
                items.append(item)
    return items


def _said(said: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": said, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def _tells_all(kept: list[dict[str, Any]], message: Assistant) -> bool:
    """Whether the items that were kept speak of all the text and of all the calls, in their order."""
    texts = [item.get("chars") for item in kept if item.get("type") == "message"]
    ids = [item.get("call_id") for item in kept if item.get("type") == "function_call"]
    known = all(item.get("type") in ("reasoning", "message", "function_call") for item in kept)
    whole = all(type(chars) is int and chars >= 0 for chars in texts) and sum(map(count, texts)) == len(message.content)
    return known and whole and ids == [call.id for call in message.tool_calls]


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    arguments = dump(call.arguments).decode()
    return {"type": "function_call", "call_id": id, "name": name(call.name), "arguments": arguments}


# ---- answer ---------------------------------------------------------------------------------------------------------


class Parser(Answer):
    """The answer, from the events of its items."""

    kind = KIND
    stops: ClassVar[dict[str, str]] = {"incomplete": "length"}

    def __init__(self, of: str, model: str) -> None:
        super().__init__(of, model)
        self._kept: list[dict[str, Any]] = []
        """The items in their order: thoughts whole, messages by their length, calls by their ids."""
        self._items: dict[str, dict[str, Any]] = {}
        """Those of `_kept` that are messages and thoughts, by the id or the place of their item."""
        self._calls: dict[str, Call] = {}
        self._thought: set[str] = set()
        """Items whose thoughts came as deltas."""
        self._why = ""

    def blocks(self) -> list[dict[str, Any]]:
        """Nothing where there is neither a thought nor a phase: text and calls say it all."""
        kept = [item for item in self._kept if item.get("chars") != 0 and item != _NO_THOUGHT]
        return kept if any(item["type"] == "reasoning" or "phase" in item for item in kept) else []

    def refusal(self) -> ProviderError | None:
        if self.finish_reason == "incomplete" and self._why not in ("", "max_output_tokens"):
            return ProviderError(f"the provider broke the answer off: {self._why}")
        if self.finish_reason in ("failed", "cancelled"):
            return ProviderError(f"the provider ended the answer as {self.finish_reason}, and did not say why")
        return None

    def counted(self, said: dict[str, Any]) -> Usage:
        cache = mapping(said.get("input_tokens_details"))
        return Usage(
            input=count(said.get("input_tokens")),
            output=count(said.get("output_tokens")),
            cache_read=count(cache.get("cached_tokens")),
            cache_write=count(cache.get("cache_write_tokens")),
            reasoning=count(mapping(said.get("output_tokens_details")).get("reasoning_tokens")),
            cost=dollars(said.get("cost")),
        )

    def take(self, event: dict[str, Any]) -> None:
        item = mapping(event.get("item"))
        place = self._place(event, item)
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(place, text(event.get("delta")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(place, text(event.get("delta")))
            case "response.reasoning_summary_part.added" if place in self._thought:
                self.think("\n\n")
            case "response.function_call_arguments.delta" if place in self._calls:
                self.go_on(self._calls[place], text(event.get("delta")))
            case "response.output_item.added":
                self._added(place, item)
            case "response.output_item.done":
                self._done(place, item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._over(mapping(event.get("response")))
            case "error":
                self.fail(event.get("error") or event)
            case None if event.get("object") == "response":
                self._over(event)
            case None if event.get("error"):
                self.fail(event["error"])

    @staticmethod
    def _place(event: dict[str, Any], item: dict[str, Any]) -> str:
        """What the events of one item have in common: some servers leave one of these out, or change the other."""
        if isinstance(event.get("output_index"), int):
            return f"#{event['output_index']}"
        return text(event.get("item_id")) or text(item.get("id"))

    def _added(self, place: str, item: dict[str, Any]) -> None:
        match item.get("type"):
            case "message":
                self._message(place, item)
            case "reasoning":
                self._kept.append(self._items.setdefault(place, dict(_NO_THOUGHT)))
            case "function_call":
                call = self._calls[place] = self.begin(item.get("call_id") or item.get("id"))
                self._kept.append({"type": "function_call", "call_id": call.id})
                self.go_on(call, text(item.get("arguments")), text(item.get("name")))

    def _message(self, place: str, item: dict[str, Any]) -> dict[str, Any]:
        if place not in self._items:
            phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
            self._items[place] = {"type": "message", "chars": 0} | phase
            self._kept.append(self._items[place])
        return self._items[place]

    def _text(self, place: str, said: str) -> None:
        self._message(place, {})["chars"] += len(said)
        self.say(said)

    def _think(self, place: str, thought: str) -> None:
        self._thought.add(place)
        self.think(thought)

    def _done(self, place: str, item: dict[str, Any]) -> None:
        """An item as it is in the end: what its deltas have not told counts."""
        match item.get("type"):
            case "message":
                if not self._message(place, item)["chars"]:
                    self._text(place, "".join(_texts(item.get("content"))))
            case "function_call":
                if place not in self._calls:
                    self._added(place, item)
                elif not self._calls[place].text.strip():
                    self.go_on(self._calls[place], text(item.get("arguments")), text(item.get("name")))
            case "reasoning":
                if place not in self._thought:
                    self._think(place, "\n\n".join([*_texts(item.get("summary")), *_texts(item.get("content"))]))
                if place not in self._items:
                    self._added(place, item)
                if item.get("encrypted_content") or item.get("content"):  # else it would be looked for at the provider
                    kept = {key: item.get(key) or [] for key in _KEPT if item.get(key) or key == "summary"}
                    self._items[place].update(kept)

    def _over(self, response: dict[str, Any]) -> None:
        self.use(response.get("usage"))
        if response.get("error"):
            self.fail(response["error"])
        if not self._kept:
            for number, item in enumerate(mappings(response.get("output"))):
                self._done(f"#{number}", item)
        self._why = text(mapping(response.get("incomplete_details")).get("reason"))
        self.finish_reason = text(response.get("status")) or "completed"


def _texts(parts: Any) -> list[str]:
    return [text(part.get("text")) or text(part.get("refusal")) for part in mappings(parts)]
