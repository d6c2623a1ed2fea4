"""Chat completions: the API of OpenAI that most servers speak, as a request builder and a parser of its streams.

Pure: bytes in, values out. Servers differ in what they leave out, repeat or put elsewhere; each such difference that
is taken here is in the recorded streams of ``tests/wire`` or in a named test.

Source: https://platform.openai.com/docs/api-reference/chat
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cass.config import Connection
from cass.context import Message, Request
from cass.errors import ProviderError
from cass.jsonl import dump, load, new_id, now
from cass.providers import failures
from cass.providers.sse import Event
from cass.records import Assistant, Delta, ToolCall, ToolResult, Usage, User

KIND = "openai-compatible"
CALLS = 128
"""Of one answer, at most: as many as such APIs give out tools. A model that wants more has lost its way."""
_COMPARED = 64 << 20
"""Characters of arguments that are parsed, all in all, to find out where a call ends that nothing else tells."""
_PATH = "/chat/completions"
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


# ---- request --------------------------------------------------------------------------------------------------------


def url(base_url: str) -> str:
    """The address to ask: of the API's root, with or without final slash, or of the whole path; a query is kept.

    An address without any path gets the ``/v1`` that all such servers have in common.
    """
    parts = urlsplit(base_url.strip())
    path = re.sub("/{2,}", "/", parts.path).rstrip("/").removesuffix(_PATH)
    return urlunsplit(parts._replace(path=(path or "/v1") + _PATH, fragment=""))


def build(connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of a request."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if connection.api_key:
        headers["Authorization"] = f"Bearer {connection.api_key}"
    body: dict[str, Any] = {"model": request.model}
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    system = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = system + [_message(message, connection, request.model) for message in request.messages]
    body[connection.quirks.max_tokens_field] = request.max_tokens
    if request.effort:
        body["reasoning_effort"] = request.effort
    body["stream"] = True
    if not connection.quirks.counts_unasked:
        body["stream_options"] = {"include_usage": True}
    return url(connection.base_url), headers, dump(body)


def _message(message: Message, connection: Connection, model: str) -> dict[str, Any]:
    match message:
        case User():
            return {"role": "user", "content": "\n\n".join(filter(None, (message.note, message.content)))}
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
        case Assistant():
            return _assistant(message, connection, message.model == model)


def _assistant(message: Assistant, connection: Connection, same_model: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    field = connection.quirks.reasoning_field
    if field == "reasoning_content":
        said[field] = message.reasoning or ""  # who wants it wants it in every answer
    elif field and message.reasoning:
        said[field] = message.reasoning
    if message.tool_calls:
        extras = _extras(message) if same_model else {}
        said["tool_calls"] = [_call(call, extras.get(call.id)) for call in message.tool_calls]
    return said


def _extras(message: Assistant) -> dict[str, Any]:
    """What a provider hung on calls, by their ids; a chat may hold `raw` of another shape, or of another kind."""
    raw = _object(message.raw)
    blocks = _objects(raw.get("blocks")) if raw.get("kind") == KIND else []
    return {str(block.get("id")): block.get("extra_content") for block in blocks}


def _call(call: ToolCall, extra: Any) -> dict[str, Any]:
    """A call as it came, but for what would make servers refuse every later request.

    That is a name that no tool can have, and arguments that were no JSON, which go back as none.
    """
    function = {"name": _NO_NAME.sub("_", call.name)[:64] or "_", "arguments": dump(call.arguments).decode()}
    made: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if extra:
        made["extra_content"] = extra
    return made


# ---- answer ---------------------------------------------------------------------------------------------------------

_STOPS = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
}


@dataclass
class _Call:
    """A call under construction."""

    number: int
    id: str
    index: int | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Any = None
    end: str = ""
    """The last character of `pieces` that is no space."""
    told: bool = False
    """Whether a delta has named it."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Parser:
    """The answer `of`, put together from the events of its stream, or from one JSON body."""

    def __init__(self, of: str, model: str) -> None:
        self.of = of
        self.model = model
        self.finish_reason: str | None = None
        """The provider's own word."""
        self.done = False
        """Whether the stream said that it is over."""
        self.failure: ProviderError | None = None
        """The error that the server sent inside its answer."""
        self.usage: dict[str, Any] | None = None
        """The provider's own object; later values supersede earlier ones."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._compared = 0
        self._deltas: list[Delta] = []
        """Those of the events being fed."""
        self._texts: list[str] | None = None
        self._said = 0
        """How many of the last of `_texts`, which is text or reasoning, no delta has told yet."""

    def feed(self, events: list[Event]) -> list[Delta]:
        """Deltas of these events, neighbours of one sort made one, up to an error among them: `failure` then."""
        for event in events:
            if self.failure is None and event.data:
                self._event(event)
        self._speak()
        deltas, self._deltas = self._deltas, []
        return deltas

    def whole(self, body: bytes) -> list[Delta]:
        """Deltas of an answer that came as one JSON body, although a stream was asked for."""
        deltas = self.feed([Event(body)])
        if deltas:
            self.done = True
        elif self.failure is None and self.finish_reason is None:
            self.failure = failures.in_stream(load(body))
        return deltas

    def finish(self) -> Assistant:
        """The message, once the stream has ended. Raises ProviderError where it failed, or ended too early."""
        if self.failure is not None:
            raise self.failure
        if self.finish_reason is None and not self.done:
            raise ProviderError("the answer was cut off: the server ended the stream in its middle", transient=True)
        if self.finish_reason == "error":
            raise ProviderError("the server ended the answer with an error, and did not say which")
        extras = [{"id": call.id, "extra_content": call.extra} for call in self._calls if call.extra]
        return Assistant(
            id=self.of,
            content="".join(self._text),
            reasoning="".join(self._reasoning) or None,
            raw={"kind": KIND, "blocks": extras} if extras else None,
            tool_calls=tuple(_finished(call) for call in self._calls),
            model=self.model,
            stop=self._stop(),
            usage=None if self.usage is None else usage(self.usage),
            created_at=now(),
        )

    def _stop(self) -> str:
        stop = _STOPS.get(self.finish_reason or "", "stop")
        if stop != "length" and (self._calls or stop == "tool_calls"):
            return "tool_calls" if self._calls else "stop"  # some say `stop` beside calls
        return stop

    # ---- chunks

    def _event(self, event: Event) -> None:
        if event.data.strip() == b"[DONE]":
            self.done = True
            return
        try:
            chunk = _json(event)
            if isinstance(chunk, dict):
                self._chunk(chunk)
        except ProviderError as e:
            self.failure = e

    def _chunk(self, chunk: dict[str, Any]) -> None:
        choices = _objects(chunk.get("choices"))
        for choice in choices:
            if not choice.get("index"):
                self._choice(choice)
        for place in (chunk, _object(chunk.get("x_groq")), *choices):
            if isinstance(place.get("usage"), dict):
                self.usage = self.usage or {}
                self.usage.update((key, value) for key, value in place["usage"].items() if value is not None)
        if chunk.get("error"):
            self.failure = failures.in_stream(chunk["error"])

    def _choice(self, choice: dict[str, Any]) -> None:
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta)
        if isinstance(message, dict):
            self._message(message)

    def _delta(self, delta: dict[str, Any]) -> None:
        text, thought = _parts(delta.get("content"))
        # Some servers send the same thought under two names.
        thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")) or thought
        text = text or _text(delta.get("refusal"))
        if thought:
            self._say(self._reasoning, thought)
        if text:
            self._say(self._text, text)
        for call in _objects(delta.get("tool_calls")):
            self._tool_call(call)

    def _message(self, message: dict[str, Any]) -> None:
        """A whole message, alone or after its own deltas: only what did not come before counts."""
        rest = dict(message)
        if self._text:
            rest["content"] = rest["refusal"] = None
        if self._reasoning:
            rest["reasoning_content"] = rest["reasoning"] = None
        if self._calls:
            rest["tool_calls"] = None
        self._delta(rest)

    def _say(self, texts: list[str], text: str) -> None:
        """Add to the text or to the reasoning; what is of one sort is told as one delta."""
        if self._texts is not texts:
            self._speak()
            self._texts = texts
        texts.append(text)
        self._said += 1

    def _speak(self) -> None:
        if self._said and self._texts is not None:
            text = "".join(self._texts[-self._said :])
            thinks = self._texts is self._reasoning
            self._deltas.append(Delta(of=self.of, reasoning=text) if thinks else Delta(of=self.of, text=text))
        self._said = 0

    def _call_delta(self, tool_call: dict[str, Any]) -> None:
        self._speak()
        self._deltas.append(Delta(of=self.of, tool_call=tool_call))

    # ---- tool calls

    def _tool_call(self, piece: dict[str, Any]) -> None:
        function = _object(piece.get("function"))
        name, arguments = _text(function.get("name")), function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else dump(arguments).decode()
        call = self._meant(piece, name) or self._new(piece)
        call.pieces.append(text)
        call.end = text.rstrip()[-1:] or call.end
        call.extra = piece.get("extra_content") or call.extra
        if call.told:
            if text:
                self._call_delta({"index": call.number, "arguments": text})
            return
        call.name = name
        if name:
            call.told = True
            self._call_delta({"index": call.number, "id": call.id, "name": name, "arguments": call.text})

    def _meant(self, piece: dict[str, Any], name: str) -> _Call | None:
        """The call that `piece` goes on with; None: it begins one.

        An id says it best. Indexes are left out, or are all 0, or change within a call.
        """
        id, index = piece.get("id"), piece.get("index")
        if id:
            same = [call for call in self._calls if call.id == id]
            if same:
                return None if name and index is not None and index != same[-1].index else same[-1]
        at = [call for call in self._calls if index is not None and call.index == index]
        if not name:  # the head of a call names it: this is a tail, unless it brings an id and an index of its own
            return _last(at) if at or (id and index is not None) else _last(self._calls)
        if id:
            return at[-1] if at and not at[-1].told else None
        last = _last(self._calls if index is None else at)
        repeats = last is not None and (not last.told or (last.name == name and not self._is_whole(last)))
        return last if repeats else None

    def _is_whole(self, call: _Call) -> bool:
        """Whether its arguments are all there. Each question may cost their length, and every piece may ask."""
        if call.end != "}" or self._compared > _COMPARED:
            return False
        text = call.text
        self._compared += len(text)
        return isinstance(_value(text), dict)

    def _new(self, piece: dict[str, Any]) -> _Call:
        """A call with an id of its own: servers that leave ids out, or use one twice, get one made here."""
        id, index = piece.get("id"), piece.get("index")
        if not isinstance(id, str) or not id or any(call.id == id for call in self._calls):
            id = f"call_{new_id()}"
        if len(self._calls) == CALLS:
            raise ProviderError(f"the model wants more than {CALLS} tool calls at once")
        call = _Call(len(self._calls), id, index if isinstance(index, int) else None)
        self._calls.append(call)
        return call


def _last(calls: list[_Call]) -> _Call | None:
    return calls[-1] if calls else None


def _finished(call: _Call) -> ToolCall:
    """The call with its arguments parsed; text that is no JSON object is kept as it came."""
    text = call.text
    if not text.strip():
        return ToolCall(call.id, call.name)
    value = _value(text)
    if isinstance(value, str):
        value = _value(value)  # encoded twice
    if isinstance(value, dict) and _can_go_back(value):
        return ToolCall(call.id, call.name, value)
    return ToolCall(call.id, call.name, arguments_raw=text)


def _value(text: str) -> Any:
    try:
        return load(text)
    except ValueError:
        return None


def _can_go_back(value: dict[str, Any]) -> bool:
    try:
        return bool(dump(value))
    except (RecursionError, ValueError):  # nested deeper than can be written
        return False


def _json(event: Event) -> Any:
    """The value of an event. Raises ProviderError: for what is no JSON, and for an event named error."""
    try:
        value = load(event.data)
    except ValueError:
        if event.name == b"error":
            value = event.data.decode("utf-8", "replace")
        else:
            raise ProviderError("the server sent a chunk that is not JSON", transient=True) from None
    if event.name == b"error":
        raise failures.in_stream(value.get("error", value) if isinstance(value, dict) else value)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _parts(content: Any) -> tuple[str, str]:
    """Text and thought of a content, which is a string or a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    text = thought = ""
    for part in _objects(content):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thought += _text(inner) or "".join(_text(piece.get("text")) for piece in _objects(inner))
        else:
            text += _text(part.get("text"))
    return text, thought


def usage(said: dict[str, Any]) -> Usage:
    """Usage in our words; details stand in sub-objects, or beside the sums under names of the provider's own."""
    prompt = _object(said.get("prompt_tokens_details"))
    completion = _object(said.get("completion_tokens_details"))
    cached = (prompt.get("cached_tokens"), said.get("prompt_cache_hit_tokens"), said.get("cache_read_input_tokens"))
    written = (prompt.get("cache_write_tokens"), said.get("cache_creation_input_tokens"))
    return Usage(
        input=_first(said.get("prompt_tokens")),
        output=_first(said.get("completion_tokens")),
        cache_read=_first(*cached, said.get("cached_tokens")),
        cache_write=_first(*written),
        reasoning=_first(completion.get("reasoning_tokens"), said.get("reasoning_tokens")),
    )


def _first(*values: Any) -> int:
    """The first that is a count other than 0; else 0."""
    return next((int(value) for value in values if isinstance(value, (int, float)) and 0 < value < 1 << 53), 0)
