"""Blocks: what a person sees of a chat, folded from its records.

    records of the chat, records of the live file -> blocks now finished, and what is true just now

A block is a record as it is, or a tool call together with its approval and its result. Finished blocks depend on the
chat alone and come once each, in order; what the chat has settled supersedes what was live. Live records are matched
by id, never by the order in which the two files were read, and never by a clock, which somebody may set back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Delta,
    Meta,
    Notice,
    Record,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    User,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call with all that came of it."""

    call: ToolCall
    approval: Approval | None = None
    result: ToolResult | None = None
    """None in a finished block: the turn ended without one."""
    request: ApprovalRequest | None = None
    """Set while the call waits for the person."""
    started_at: str | None = None
    """When it began to run; None while it does not, and where nobody can say when it did."""
    output: str = ""
    """What it has written so far; set while it runs."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The workspace changed."""

    cwd: str


Block = Meta | Moved | User | Assistant | Call | Approval | Compaction | TurnEnd | Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An assistant message that is still growing."""

    of: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and the JSON text so far of each call it has begun."""


@dataclass(frozen=True, slots=True)
class Now:
    """What is only true for now, and shown only while a worker runs."""

    answer: Answer | None = None
    calls: tuple[Call, ...] = ()
    """The first call without a result, and of those behind it the ones that run, wait for the person, or are done."""
    status: Status | None = None
    since: str | None = None
    """When the turn began; None where that is not known."""
    output: int = 0
    """Tokens of the turn's answers so far that are whole, as the provider counted them."""


@dataclass(slots=True)
class _Text:
    """Pieces of a growing message; joined when looked at, so that many small ones cost no more than few long ones."""

    turn: str
    """The one that ran when its first piece came."""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, list[str]] = field(default_factory=dict)

    def add(self, delta: Delta) -> None:
        if delta.text is not None:
            self.text.append(delta.text)
        if delta.reasoning is not None:
            self.reasoning.append(delta.reasoning)
        if delta.tool_call is not None:
            index = str(delta.tool_call.get("index"))
            self.names[index] = str(delta.tool_call.get("name") or self.names.get(index, ""))
            self.arguments.setdefault(index, []).append(str(delta.tool_call.get("arguments") or ""))

    def answer(self, of: str) -> Answer:
        calls = tuple((name, _joined(self.arguments[index])) for index, name in self.names.items())
        return Answer(of=of, text=_joined(self.text), reasoning=_joined(self.reasoning), calls=calls)


def _joined(pieces: list[str]) -> str:
    pieces[:] = ["".join(pieces)]
    return pieces[0]


@dataclass(slots=True)
class _Run:
    """The last run of a call. Should an answer use an id twice, the calls run one after the other."""

    number: int
    """1 for the first run of this id in this answer."""
    since: str
    output: list[str] = field(default_factory=list)


class Fold:
    """The state between two records. `step` takes one in, `now` tells what is still open."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._cwd: str | None = None
        self._calls: list[Call] = []
        """Calls not yet emitted, in order, all of one message."""
        self._of = ""
        """Id of that message."""
        self._given: set[tuple[str, ...]] = set()
        """Keys of the results that they have got."""
        self._free_at = ""
        """When the last thing happened that the next call had to wait for: calls run one after the other."""
        self._texts: dict[str, _Text] = {}
        self._runs: dict[tuple[str, str], _Run] = {}
        """By the ids of answer and call."""
        self._last_run: dict[str, _Run] = {}
        """By the id of the call: output names no more."""
        self._results: Counter[tuple[str, str]] = Counter()
        self._asked: dict[str, ApprovalRequest] = {}
        self._status: Status | None = None
        self._began: str | None = None
        """When the last turn did."""
        self._is_in_turn = False
        self._output = 0
        self._ended: set[str] = set()
        """Turns that ended: what was live in them is over."""

    def step(self, record: Record) -> list[Block]:
        """Fold one record in; return the blocks that are finished by it."""
        key = _key(record)
        if key in self._seen and not (key in self._given and self._is_result_wanted(record)):
            return []
        if key is not None:
            self._seen.add(key)
        match record:
            case Meta():
                return self._meta(record)
            case Assistant():
                self._texts.pop(record.id, None)
                self._output += record.usage.output if record.usage else 0
                blocks = [*self._flush(), record]
                self._calls, self._of = [Call(call=call) for call in record.tool_calls], record.id
                self._given, self._free_at = set(), record.created_at
                return blocks
            case Approval():
                return self._approval(record)
            case ToolResult():
                return self._result(record)
            case TurnEnd():
                self._ended |= {record.turn, *record.answers}
                self._is_in_turn = False
                return [*self._flush(), record]
            case User():
                if not self._is_in_turn:
                    self._is_in_turn, self._began, self._output = True, record.created_at, 0
                return [*self._flush(), record]
            case Compaction():
                return [*self._flush(), record]
            case Notice():
                return [record]
            case _:
                self._live(record)
                return []

    def steps(self, records: Iterable[Record]) -> list[Block]:
        return [block for record in records for block in self.step(record)]

    def now(self) -> Now:
        texts = reversed(self._texts.items())
        answer = next((text.answer(of) for of, text in texts if text.turn not in self._ended), None)
        calls = tuple(self._open())
        status = self._status if self._status is not None and self._status.turn not in self._ended else None
        if not self._is_in_turn:
            return Now(answer, calls, status)
        return Now(answer, calls, status, self._began, self._output)

    # ---- facts

    def _meta(self, meta: Meta) -> list[Block]:
        before, self._cwd = self._cwd, meta.cwd
        if before is None:
            return [meta]
        return [Moved(meta.cwd)] if meta.cwd != before else []

    def _approval(self, approval: Approval) -> list[Block]:
        self._asked.pop(approval.request_id, None)
        self._free_at = approval.created_at
        for i, call in enumerate(self._calls):
            # One that an agent waited for says nothing of the call that began it.
            if call.call.id == approval.tool_call_id and call.result is None and not approval.agent:
                self._calls[i] = replace(call, approval=approval)
                return []
        return [approval]

    def _result(self, result: ToolResult) -> list[Block]:
        """Put `result` under its call. Ids may repeat, so it belongs to the first call of that id which has none."""
        began, self._free_at = self._free_at, result.created_at
        for i, call in enumerate(self._calls):
            if call.call.id == result.tool_call_id and call.result is None:
                self._calls[i] = replace(call, result=result, started_at=began or None)
                self._results[self._of, result.tool_call_id] += 1
                self._given.add(_key(result) or ())
                return self._finished()
        return [Call(call=ToolCall(result.tool_call_id, result.name), result=result)]

    def _is_result_wanted(self, record: Record) -> bool:
        """Whether `record` may be a second result that is just like one before it: same id, text and millisecond."""
        return isinstance(record, ToolResult) and any(
            call.call.id == record.tool_call_id and call.result is None for call in self._calls
        )

    def _finished(self) -> list[Block]:
        done = next((i for i, call in enumerate(self._calls) if call.result is None), len(self._calls))
        finished, self._calls = self._calls[:done], self._calls[done:]
        return list(finished)

    def _flush(self) -> list[Block]:
        calls, self._calls = self._calls, []
        return list(calls)

    # ---- what is live

    def _live(self, record: Record) -> None:
        match record:
            case Status():
                self._status = record
            case Delta():
                if ("assistant", record.of) not in self._seen:
                    turn = self._status.turn if self._status else ""
                    self._texts.setdefault(record.of, _Text(turn)).add(record)
            case ToolStarted(tool_call_id=id):
                before = self._runs.get((record.of, id))
                run = _Run(before.number + 1 if before else 1, record.created_at)
                self._runs[record.of, id] = self._last_run[id] = run
            case ToolOutput(tool_call_id=id):
                if id in self._last_run:
                    self._last_run[id].output.append(record.text)
            case ApprovalRequest():
                if ("approval", record.request_id) not in self._seen:
                    self._asked[record.request_id] = record
            case _:  # the system prompt, and kinds of a later version: nothing to see
                pass

    def _open(self) -> Iterator[Call]:
        ids: set[str] = set()
        for number, call in enumerate(self._calls):
            if call.result is not None:
                yield call
            elif call.call.id not in ids:  # should an answer use an id twice, its second call waits for the first
                ids.add(call.call.id)
                running = self._running(call)
                if not number or running.request is not None or running.started_at is not None:
                    yield running

    def _running(self, call: Call) -> Call:
        key = self._of, call.call.id
        request = next((r for r in self._asked.values() if (r.of, r.tool_call_id) == key), None)
        run = self._runs.get(key)
        if run is None or run.number <= self._results[key]:
            return replace(call, request=request)
        return replace(call, request=request, started_at=run.since, output=_joined(run.output))


def _key(record: Record) -> tuple[str, ...] | None:
    """What makes a fact this one and no other; None for what is live."""
    match record:
        case User(id=id):
            return ("user", id)
        case Assistant(id=id):
            return ("assistant", id)
        case Approval(request_id=id):
            return ("approval", id)
        case ToolResult():
            return ("result", record.tool_call_id, record.created_at, record.content[:200])
        case TurnEnd():
            return ("end", record.turn, record.created_at)
        case Meta() | Compaction():
            return (record.type, record.created_at)
        case _:
            return None
