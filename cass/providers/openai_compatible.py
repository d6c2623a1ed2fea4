"""Chat completions: the API of OpenAI that most servers speak, as a request builder and a parser of its streams.

Pure: bytes in, values out. Servers differ in what they leave out, repeat or put elsewhere; each such difference that
is taken here is in the recorded streams of ``tests/wire`` or in a named test.

Source: https://platform.openai.com/docs/api-reference/chat
Images: https://platform.openai.com/docs/guides/images-vision
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from cass.budget import Message
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.jsonl import dump
from cass.pattern import pattern
from cass.providers import address, effort, utterance
from cass.providers.answer import Answer, Call, parsed
from cass.providers.ids import Ids
from cass.providers.shape import count, dollars, mapping, mappings, text
from cass.records import Assistant, ToolCall, ToolResult, Usage, User

KIND = "openai-compatible"
_COMPARED = 64 << 20
"""Characters of arguments that are parsed, all in all, to find out where a call ends that nothing else tells."""
_NO_NAME = pattern(r"[^a-zA-Z0-9_-]")


# ---- request --------------------------------------------------------------------------------------------------------


def build(connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of a request."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if connection.api_key:
        headers["Authorization"] = f"Bearer {connection.api_key}"
    body: dict[str, Any] = {"model": request.model}
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    ids = Ids(connection.quirks.call_ids)
    system = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = system + [_message(message, connection, request, ids) for message in request.messages]
    body[connection.quirks.max_tokens_field] = request.max_tokens
    body |= effort.chat(connection.quirks.no_thinking, request.effort)
    body["stream"] = True
    if not connection.quirks.counts_unasked:
        body["stream_options"] = {"include_usage": True}
    return address.join(connection.base_url, "/chat/completions", version="/v1"), headers, dump(body)


def _message(message: Message, connection: Connection, request: Request, ids: Ids) -> dict[str, Any]:
    match message:
        case User():
            return {"role": "user", "content": _user(message, request.images)}
        case ToolResult():
            return {"role": "tool", "tool_call_id": ids.result(message.tool_call_id), "content": message.content}
        case Assistant():
            return _assistant(message, connection, message.model == request.model, ids)


def _user(user: User, images: Mapping[str, str]) -> str | list[dict[str, Any]]:
    """Text first, as in the examples of the API; a text alone is no list, which some servers do not take."""
    if not user.attachments:
        return utterance.text(user)
    parts: list[dict[str, Any]] = [{"type": "text", "text": utterance.text(user)}]
    for image in utterance.images(user, images):
        parts += [{"type": "text", "text": image.caption}] if image.caption else []
        parts.append({"type": "image_url", "image_url": {"url": image.uri}})
    return parts


def _assistant(message: Assistant, connection: Connection, same_model: bool, ids: Ids) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    field = connection.quirks.reasoning_field
    if field == "reasoning_content":
        said[field] = message.reasoning or ""  # who wants it wants it in every answer
    elif field and message.reasoning:
        said[field] = message.reasoning
    if message.tool_calls:
        extras = _extras(message) if same_model else {}
        said["tool_calls"] = [
            _call(call, ids.call(call.id, own=same_model), extras.get(call.id)) for call in message.tool_calls
        ]
    return said


def _extras(message: Assistant) -> dict[str, Any]:
    """What a provider hung on calls, by their ids; a chat may hold `raw` of another shape, or of another kind."""
    raw = mapping(message.raw)
    blocks = mappings(raw.get("blocks")) if raw.get("kind") == KIND else []
    return {str(block.get("id")): block.get("extra_content") for block in blocks}


def _call(call: ToolCall, id: str, extra: Any) -> dict[str, Any]:
    """A call as it came, but for what would make servers refuse every later request.

    That is a name that no tool can have, and arguments that were no JSON, which go back as none.
    """
    function = {"name": name(call.name), "arguments": dump(call.arguments).decode()}
    made: dict[str, Any] = {"id": id, "type": "function", "function": function}
    if extra:
        made["extra_content"] = extra
    return made


def name(called: str) -> str:
    """The name of a call, as a tool could have it."""
    return _NO_NAME.sub("_", called)[:64] or "_"


# ---- answer ---------------------------------------------------------------------------------------------------------


class Parser(Answer):
    """The answer, from chunks in every shape that servers send."""

    kind = KIND
    stops: ClassVar[dict[str, str]] = {
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "tool_use": "tool_calls",
        "length": "length",
        "max_tokens": "length",
        "model_length": "length",
    }

    def __init__(self, of: str, model: str) -> None:
        super().__init__(of, model)
        self._compared = 0

    def counted(self, said: dict[str, Any]) -> Usage:
        return usage(said)

    def blocks(self) -> list[dict[str, Any]]:
        return [{"id": call.id, "extra_content": call.extra} for call in self.calls if call.extra]

    def refusal(self) -> ProviderError | None:
        if self.finish_reason == "error":
            return ProviderError("the server ended the answer with an error, and did not say which")
        return None

    def take(self, chunk: dict[str, Any]) -> None:
        choices = mappings(chunk.get("choices"))
        for choice in choices:
            if not choice.get("index"):
                self._choice(choice)
        for place in (chunk, mapping(chunk.get("x_groq")), *choices):
            self.use(place.get("usage"))
        if chunk.get("error"):
            self.fail(chunk["error"])

    def _choice(self, choice: dict[str, Any]) -> None:
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta)
        if isinstance(message, dict):
            self._message(message)

    def _delta(self, delta: dict[str, Any]) -> None:
        said, thought = _parts(delta.get("content"))
        # Some servers send the same thought under two names.
        self.think(text(delta.get("reasoning_content")) or text(delta.get("reasoning")) or thought)
        self.say(said or text(delta.get("refusal")))
        for call in mappings(delta.get("tool_calls")):
            self._tool_call(call)

    def _message(self, message: dict[str, Any]) -> None:
        """A whole message, alone or after its own deltas: only what did not come before counts."""
        rest = dict(message)
        if self.text:
            rest["content"] = rest["refusal"] = None
        if self.reasoning:
            rest["reasoning_content"] = rest["reasoning"] = None
        if self.calls:
            rest["tool_calls"] = None
        self._delta(rest)

    # ---- tool calls

    def _tool_call(self, piece: dict[str, Any]) -> None:
        function = mapping(piece.get("function"))
        name, arguments = text(function.get("name")), function.get("arguments")
        said = arguments if isinstance(arguments, str) else "" if arguments is None else dump(arguments).decode()
        index = piece.get("index")
        call = self._meant(piece, name) or self.begin(piece.get("id"), index if isinstance(index, int) else None)
        call.extra = piece.get("extra_content") or call.extra
        self.go_on(call, said, name)

    def _meant(self, piece: dict[str, Any], name: str) -> Call | None:
        """The call that `piece` goes on with; None: it begins one.

        An id says it best. Indexes are left out, or are all 0, or change within a call.
        """
        id, index = piece.get("id"), piece.get("index")
        if id:
            same = [call for call in self.calls if call.id == id]
            if same:
                return None if name and index is not None and index != same[-1].index else same[-1]
        at = [call for call in self.calls if index is not None and call.index == index]
        if not name:  # the head of a call names it: this is a tail, unless it brings an id and an index of its own
            return _last(at) if at or (id and index is not None) else _last(self.calls)
        if id:
            return at[-1] if at and not at[-1].told else None
        last = _last(self.calls if index is None else at)
        repeats = last is not None and (not last.told or (last.name == name and not self._is_whole(last)))
        return last if repeats else None

    def _is_whole(self, call: Call) -> bool:
        """Whether its arguments are all there. Each question may cost their length, and every piece may ask."""
        if call.end != "}" or self._compared > _COMPARED:
            return False
        said = call.text
        self._compared += len(said)
        return isinstance(parsed(said), dict)


def _last(calls: list[Call]) -> Call | None:
    return calls[-1] if calls else None


def _parts(content: Any) -> tuple[str, str]:
    """Text and thought of a content, which is a string or a list of parts."""
    if not isinstance(content, list):
        return text(content), ""
    said = thought = ""
    for part in mappings(content):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thought += text(inner) or "".join(text(piece.get("text")) for piece in mappings(inner))
        else:
            said += text(part.get("text"))
    return said, thought


def usage(said: dict[str, Any]) -> Usage:
    """Usage in our words; details stand in sub-objects, or beside the sums under names of the provider's own."""
    prompt = mapping(said.get("prompt_tokens_details"))
    completion = mapping(said.get("completion_tokens_details"))
    cached = (prompt.get("cached_tokens"), said.get("prompt_cache_hit_tokens"), said.get("cache_read_input_tokens"))
    written = (prompt.get("cache_write_tokens"), said.get("cache_creation_input_tokens"))
    return Usage(
        input=count(said.get("prompt_tokens")),
        output=count(said.get("completion_tokens")),
        cache_read=count(*cached, said.get("cached_tokens")),
        cache_write=count(*written),
        reasoning=count(completion.get("reasoning_tokens"), said.get("reasoning_tokens")),
        cost=dollars(said.get("cost")),
    )
