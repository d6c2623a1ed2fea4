"""An answer while it is streamed: what the parsers of all kinds have in common.

Pure: events in, deltas out, and at the end the message. A kind says what one JSON value means (`take`), how the answer
ended, what it used, and what of it must go back as it came.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cass.errors import ProviderError
from cass.jsonl import dump, load, now
from cass.providers import failures
from cass.providers.sse import Event
from cass.records import Assistant, Delta, ToolCall, Usage

CALLS = 128
"""Of one answer, at most: as many as such APIs give out tools. A model that wants more has lost its way."""


@dataclass
class Call:
    """A call under construction."""

    number: int
    id: str
    index: int | None = None
    """What the server counts it by."""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Any = None
    """What a provider hung on it."""
    end: str = ""
    """The last character of `pieces` that is no space."""
    told: bool = False
    """Whether a delta has named it."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Answer(ABC):
    """The answer `of`, put together from the events of its stream, or from one JSON body."""

    kind: ClassVar[str]
    stops: ClassVar[dict[str, str]] = {}
    """The provider's words for how an answer ended, in ours (`Assistant.stop`); any other word is a ``stop``."""

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
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Call] = []
        self._deltas: list[Delta] = []
        """Those of the events being fed."""
        self._texts: list[str] | None = None
        self._said = 0
        """How many of the last of `_texts`, which is text or reasoning, no delta has told yet."""

    # ---- what a kind says

    @abstractmethod
    def take(self, value: dict[str, Any]) -> None:
        """Take in the JSON object of one event, or of a whole body. Raises ProviderError."""

    @abstractmethod
    def counted(self, said: dict[str, Any]) -> Usage:
        """`usage` in our words."""

    def blocks(self) -> list[dict[str, Any]]:
        """What must go back as it came (`Assistant.raw`)."""
        return []

    def refusal(self) -> ProviderError | None:
        """Why an answer that has ended is none, where the provider's word for its end says so."""
        return None

    # ---- in

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

    def _event(self, event: Event) -> None:
        if event.data.strip() == b"[DONE]":
            self.done = True
            return
        try:
            value = self._value(event)
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    self.take(item)
        except ProviderError as e:
            self.failure = e

    def _value(self, event: Event) -> Any:
        """The value of an event. Raises ProviderError: for what is no JSON, and for an event named error."""
        try:
            value = load(event.data)
        except ValueError:
            if event.name == b"error":
                value = event.data.decode("utf-8", "replace")
            else:
                raise ProviderError("the server sent a chunk that is not JSON", transient=True) from None
        if event.name == b"error":
            self.fail(value.get("error", value) if isinstance(value, dict) else value)
        return value

    def fail(self, error: Any) -> None:
        """Raise what the server sent as an error. Before anything was said it counts as an HTTP error would."""
        raise failures.in_stream(error, begun=bool(self.text or self.reasoning or self.calls))

    def use(self, usage: Any) -> None:
        """Take in a provider's usage object, or a part of it."""
        if isinstance(usage, dict):
            self.usage = {} if self.usage is None else self.usage
            self.usage.update((key, value) for key, value in usage.items() if value is not None)

    # ---- deltas

    def say(self, text: str) -> None:
        self._say(self.text, text)

    def think(self, text: str) -> None:
        self._say(self.reasoning, text)

    def begin(self, id: Any, index: int | None = None) -> Call:
        """A call with an id of its own: servers that leave ids out, or use one twice, get one made here.

        Raises ProviderError for one too many.
        """
        if not isinstance(id, str) or not id or any(call.id == id for call in self.calls):
            id = f"call_{self.of}_{len(self.calls)}"
        if len(self.calls) == CALLS:
            raise ProviderError(f"the model wants more than {CALLS} tool calls at once")
        call = Call(len(self.calls), id, index)
        self.calls.append(call)
        return call

    def go_on(self, call: Call, text: str, name: str = "") -> None:
        """Add to the arguments of `call`; the first piece that brings its name tells of it."""
        call.pieces.append(text)
        call.end = text.rstrip()[-1:] or call.end
        if call.told:
            if text:
                self._call_delta({"index": call.number, "arguments": text})
        elif name:
            call.name, call.told = name, True
            self._call_delta({"index": call.number, "id": call.id, "name": name, "arguments": call.text})

    def _say(self, texts: list[str], text: str) -> None:
        """Add to the text or to the reasoning; what is of one sort is told as one delta."""
        if not text:
            return
        if self._texts is not texts:
            self._speak()
            self._texts = texts
        texts.append(text)
        self._said += 1

    def _speak(self) -> None:
        if self._said and self._texts is not None:
            text = "".join(self._texts[-self._said :])
            thinks = self._texts is self.reasoning
            self._deltas.append(Delta(of=self.of, reasoning=text) if thinks else Delta(of=self.of, text=text))
        self._said = 0

    def _call_delta(self, tool_call: dict[str, Any]) -> None:
        self._speak()
        self._deltas.append(Delta(of=self.of, tool_call=tool_call))

    # ---- out

    def finish(self) -> Assistant:
        """The message, once the stream has ended. Raises ProviderError where it failed, or ended too early."""
        if self.failure is not None:
            raise self.failure
        if self.finish_reason is None and not self.done:
            raise ProviderError("the answer was cut off: the server ended the stream in its middle", transient=True)
        if refusal := self.refusal():
            raise refusal
        blocks = self.blocks()
        return Assistant(
            id=self.of,
            content="".join(self.text),
            reasoning="".join(self.reasoning) or None,
            raw={"kind": self.kind, "blocks": blocks} if blocks else None,
            tool_calls=tuple(_finished(call) for call in self.calls),
            model=self.model,
            stop=self._stop(),
            usage=None if self.usage is None else self.counted(self.usage),
            created_at=now(),
        )

    def _stop(self) -> str:
        stop = self.stops.get(self.finish_reason or "", "stop")
        if stop != "length" and (self.calls or stop == "tool_calls"):
            return "tool_calls" if self.calls else "stop"  # some say `stop` beside calls
        return stop


def parsed(text: str) -> Any:
    """The JSON value of `text`; None where it is none."""
    try:
        return load(text)
    except ValueError:
        return None


def _finished(call: Call) -> ToolCall:
    """The call with its arguments parsed; text that is no JSON object is kept as it came."""
    text = call.text
    if not text.strip():
        return ToolCall(call.id, call.name)
    value = parsed(text)
    if isinstance(value, str):
        value = parsed(value)  # encoded twice
    if isinstance(value, dict) and _can_go_back(value):
        return ToolCall(call.id, call.name, value)
    return ToolCall(call.id, call.name, arguments_raw=text)


def _can_go_back(value: dict[str, Any]) -> bool:
    try:
        return bool(dump(value))
    except (RecursionError, ValueError):  # nested deeper than can be written
        return False
