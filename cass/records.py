"""Records: every line of a chat, and every value that travels between the parts of cass.

A chat file holds facts (`Meta` to `TurnEnd`), a live file what is only true for now (`Delta` to `Notice`). What the
worker appends, `Session` yields and the viewer folds is the same record. Both files are JSON objects, one a line,
split on ``\\n`` bytes only.
"""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from cass import elder
from cass.jsonl import dump, load
from cass.values import Attachment as Attachment
from cass.values import ToolCall as ToolCall
from cass.values import Usage as Usage


class BadRecord(ValueError):
    """A line that is no record: what is wrong with it, never its text."""


class _Value:
    """Equality and looks of a record by its fields: one method for all, where each class would compile its own."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        named = zip((name for name, _ in _fields(type(self))), _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"


def _values(record: _Value) -> list[Any]:
    return [getattr(record, name) for name, _ in _fields(type(record))]


# ---- facts: lines of a chat -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Meta(_Value):
    """The first line of a chat."""

    type: ClassVar[str] = "meta"
    chat_id: str
    created_at: str
    provider: str = ""
    model: str = ""
    cwd: str = ""
    """The workspace, absolute. A later `Meta` changes it."""
    base_url: str | None = None
    """The endpoint, where a flag named it: a later start without the flag goes on with it."""
    v: int = 1
    parent_chat_id: str | None = None
    branch_from: str | None = None
    """Id of the parent's message, or of its tool call, that the branch begins at."""
    family: str | None = None
    """The chat that all branches come from; None for that chat itself."""
    agent_of: str | None = None
    """Id of the chat whose tool `agent` began this one."""
    depth: int = 0
    """So many chats stand above it."""
    agents_files: list[dict[str, str]] | None = None
    """Project instructions that the system prompt holds: ``{"path", "sha256"}``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class System(_Value):
    """The system prompt, the same bytes for the chat's life."""

    type: ClassVar[str] = "system"
    content: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class User(_Value):
    """What a person, or a program in their name, said."""

    type: ClassVar[str] = "message"
    role: ClassVar[str] = "user"
    id: str
    """The sender's."""
    content: str
    created_at: str
    note: str | None = None
    """The text, verbatim, that told the model what changed; stands in front of `content` in every request."""
    mode: str = "read-only"
    provider: str = ""
    model: str = ""
    effort: str | None = None
    ask: bool = False
    """Whether somebody can be asked in the turn this begins."""
    origin: dict[str, Any] = field(default_factory=dict)
    """``{"by": "composer|send|fifo|api|agent", ...}``; a composer adds its ``"composer"`` id."""
    attachments: tuple[Attachment, ...] = ()
    """Images that go with it; one that this version cannot read is left out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Assistant(_Value):
    """One answer of the model, whole."""

    type: ClassVar[str] = "message"
    role: ClassVar[str] = "assistant"
    id: str
    """The `of` of its deltas."""
    content: str
    created_at: str
    reasoning: str | None = None
    raw: dict[str, Any] | None = None
    """``{"kind", "blocks"}``: a provider's own blocks that must go back as they came, to the same kind and model."""
    tool_calls: tuple[ToolCall, ...] = ()
    model: str = ""
    stop: str = "stop"
    """``stop``, ``tool_calls``, ``length``, ``cancelled`` or ``error``; one with ``error`` is shown and never sent."""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolResult(_Value):
    """What came of a call."""

    type: ClassVar[str] = "tool_result"
    tool_call_id: str
    name: str
    content: str
    """The whole output, 1 MiB at most; shortened further only when a request is built."""
    ok: bool
    created_at: str
    seen: dict[str, str] | None = None
    """Files whose content the model now knows: absolute path to SHA-256 of the bytes."""
    diff: str | None = None
    """What the call changed in a text file, in the unified format, 64 KiB at most; for people, not for the model."""
    sandboxed: bool | None = None
    """Whether a command ran in the sandbox; None: nothing was run."""
    spent: float | None = None
    """USD that an agent's chat has cost for it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Approval(_Value):
    """Who allowed or denied what."""

    type: ClassVar[str] = "approval"
    request_id: str
    tool_call_id: str
    decision: str
    """``approved`` or ``denied``."""
    by: str
    """In words, for people: user, program and pid that answered, or the policy that did."""
    created_at: str
    reason: str | None = None
    rule: str | None = None
    """The rule that was given for the life of the worker with the answer "always"."""
    agent: str = ""
    """The chat of an agent whose question this answers, as of `ApprovalRequest`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Compaction(_Value):
    """History before `first_kept_id` is replaced by `summary` in later requests; an empty summary is a clear."""

    type: ClassVar[str] = "compaction"
    summary: str
    first_kept_id: str | None
    """Id of the first message that stays; None: none stays, what follows does."""
    tokens_before: int
    created_at: str
    usage: Usage | None = None
    """Of the request for the summary."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TurnEnd(_Value):
    """How a turn ended."""

    type: ClassVar[str] = "turn_end"
    turn: str
    """Id of the user message that began it."""
    answers: tuple[str, ...]
    """Ids of all user messages it took in."""
    outcome: str
    """``done``, ``failed``, ``cancelled`` or ``blocked``."""
    created_at: str
    error: str | None = None
    usage: Usage | None = None
    spent: float | None = None
    """USD that the chat has cost so far; what a branch took over was its parent's."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind that this version does not know: kept in the file, passed over by every fold."""

    kind: str


# ---- what is only true for now: lines of a live file ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Delta(_Value):
    """A streamed piece of the assistant message `of`: exactly one of the other fields is set."""

    type: ClassVar[str] = "delta"
    of: str
    text: str | None = None
    reasoning: str | None = None
    tool_call: dict[str, Any] | None = None
    """``{"index", "id", "name", "arguments"}``: `arguments` is a piece of JSON text; id and name come whole, once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolStarted(_Value):
    type: ClassVar[str] = "tool_started"
    tool_call_id: str
    created_at: str
    of: str = ""
    """Id of the answer that asks for the call: ids of calls repeat."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolOutput(_Value):
    """A piece of a running tool's output, as it comes."""

    type: ClassVar[str] = "tool_output"
    tool_call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ApprovalRequest(_Value):
    """The turn waits until the person decides."""

    type: ClassVar[str] = "approval_request"
    request_id: str
    tool_call_id: str
    name: str
    arguments: dict[str, Any]
    reason: str
    """Why it is asked, one line."""
    sandboxed: bool
    created_at: str
    rule: str | None = None
    """The rule that the answer "always" would give."""
    of: str = ""
    """Id of the answer that asks for the call."""
    diff: str | None = None
    """What a write or an edit would change in its file, in the unified format; None: not known, or nothing."""
    agent: str = ""
    """The chat of an agent that asks, here as well as there; "" for this chat itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Status(_Value):
    """What the worker does now."""

    type: ClassVar[str] = "status"
    state: str
    """``idle``, ``thinking``, ``running``, ``awaiting-approval`` or ``retrying``."""
    mode: str
    provider: str
    model: str
    created_at: str
    used: int | None = None
    """Tokens of the context in use, as last reported or estimated."""
    limit: int | None = None
    """Tokens the model takes."""
    assumed: bool = False
    """Whether `limit` is a guess, because nothing is known about the model."""
    cost: float | None = None
    """USD that the chat has cost, as far as prices are known; None: no request's was."""
    detail: str | None = None
    """A line for people: what is retried, when, why."""
    turn: str = ""
    """Id of the user message whose turn runs; "" between turns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Notice(_Value):
    """A line for the person that is no fact of the chat."""

    type: ClassVar[str] = "notice"
    level: str
    """``info``, ``warning`` or ``error``."""
    text: str


Fact = Meta | System | User | Assistant | ToolResult | Approval | Compaction | TurnEnd | Unknown
Live = Delta | ToolStarted | ToolOutput | ApprovalRequest | Status | Notice
Record = Fact | Live

_KINDS: dict[str, type] = {
    kind.type: kind
    for kind in (
        *(Meta, System, ToolResult, Approval, Compaction, TurnEnd),
        *(Delta, ToolStarted, ToolOutput, ApprovalRequest, Status, Notice),
    )
}
_ROLES: dict[str, type] = {"user": User, "assistant": Assistant}


# ---- encoding -------------------------------------------------------------------------------------------------------


def encode(record: Record) -> bytes:
    """One line of JSON with its newline. Fields at their default are left out, but for a message's `tool_calls`."""
    if isinstance(record, Unknown):
        raise TypeError("an unknown record is read, never written")
    line: dict[str, Any] = {"type": record.type}
    if isinstance(record, (User, Assistant)):
        line["role"] = record.role
    for name, default in _fields(type(record)):
        value = getattr(record, name)
        if name == "tool_calls":
            line[name] = [call.said() for call in value]
        elif name == "attachments" and value:
            line[name] = [attachment.said() for attachment in value]
        elif name == "usage" and value is not None:
            line[name] = value.said()
        elif value is not None and (value != default or isinstance(value, (bool, int))):
            line[name] = value
    return dump(line) + b"\n"


_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field; `MISSING` where it is required."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(
            (f.name, f.default if f.default_factory is MISSING else f.default_factory()) for f in fields(kind)
        )
    return _FIELDS[kind]


def decode(line: bytes) -> Record:
    """The record of one line, without or with its newline. Raises BadRecord, which does not quote the line."""
    try:
        value = load(line)
    except ValueError as e:
        raise BadRecord(f"not JSON: {getattr(e, 'msg', e)}") from None
    if not isinstance(value, dict):
        raise BadRecord("not a JSON object")
    kind = value.get("type")
    if not isinstance(kind, str):
        raise BadRecord('no "type"')
    if kind in elder.KINDS:
        value = elder.translate(value, line)
        kind = value["type"]
    made = _ROLES.get(str(value.get("role"))) if kind == "message" else _KINDS.get(kind)
    return Unknown(kind) if made is None else _make(made, value)


def _make(kind: type, value: dict[str, Any]) -> Record:
    arguments: dict[str, Any] = {}
    for name, default in _fields(kind):
        given = value.get(name)
        if given is None:
            if default is MISSING and name != "first_kept_id":
                raise BadRecord(f'{value["type"]} without "{name}"')
            arguments[name] = None if default is MISSING else default
            continue
        _check(kind, name, given)
        if name == "tool_calls":
            given = tuple(_tool_call(call) for call in given)
        elif name == "attachments":
            given = tuple(filter(None, map(Attachment.of, given)))
        elif name == "usage":
            given = Usage.of(given)
        elif name == "answers":
            given = tuple(str(answer) for answer in given)
        arguments[name] = given
    record: Record = kind(**arguments)
    return record


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "bool": bool,
    "int": int,
    "float": (int, float),
    "dict": dict,
    "list": list,
    "tuple": list,
    "Usage": dict,
}


def _check(kind: type, name: str, given: Any) -> None:
    annotation = kind.__annotations__[name]
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    expected = text.split("[")[0].split(" ")[0].split(".")[-1]
    if not isinstance(given, _PYTHON.get(expected, object)):
        raise BadRecord(f'"{name}" is {type(given).__name__}, not {expected}')


def _tool_call(value: Any) -> ToolCall:
    if (call := ToolCall.of(value)) is None:
        raise BadRecord("a tool call without id and name")
    return call
