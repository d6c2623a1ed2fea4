"""Context: the fold of a chat's records into a request that fits the model and is valid for the strictest server.

While nothing has to be left out, the messages of a request are a prefix of the next one's: a provider's cache of
prefixes then holds. What gives way otherwise is for `cass.budget` to say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cass import budget, gallery, prompt
from cass.budget import Message, tokens, weight
from cass.gallery import Refused, Unseen
from cass.jsonl import dump
from cass.records import Assistant, Compaction, Meta, Record, System, ToolCall, ToolResult, TurnEnd, User

_AGAIN = "ask for less at a time: a range of lines with read, a narrower grep, a command that prints less"


class Request(NamedTuple):
    """What a provider is asked, in no provider's words."""

    system: str
    messages: tuple[Message, ...]
    """Each call of an `Assistant` is followed by its one `ToolResult`; results are cut already."""
    tools: tuple[dict[str, Any], ...]
    """``{"name", "description", "parameters"}``."""
    model: str
    max_tokens: int
    effort: str | None = None
    left_out: int = 0
    """Turns that did not fit."""
    shortened: int = 0
    """Tool results that were shortened to make the rest fit."""
    images: Mapping[str, str] = {}
    """Base64 of the images that go with the messages, by their hashes: it has each."""
    unseen: tuple[Unseen, ...] = ()
    """Those that words stand for."""

    @property
    def weight(self) -> int:
        """An estimate of its tokens."""
        return tokens(self.system) + tokens(dump(list(self.tools))) + sum(map(weight, self.messages))


def build(
    records: Sequence[Record],
    *,
    tools: Sequence[dict[str, Any]],
    model: str,
    max_tokens: int,
    effort: str | None,
    limit_tokens: int,
    max_tool_output: int,
    refused: Refused = lambda _: "",
) -> Request:
    """The request that these records lead to. `limit_tokens`: input and output; `max_tool_output`: characters.

    It has no images yet: see `gallery.hang`. `refused` says which the model cannot be shown.
    """
    system = next((record.content for record in records if isinstance(record, System)), "")
    folded = _fold(records)
    unseen: list[Unseen] = []
    turns = [[budget.short(message, max_tool_output, _AGAIN) for message in turn] for turn in folded.turns]
    for turn in turns:
        for number, message in enumerate(turn):
            turn[number], words = gallery.told(message, refused)
            unseen += words
    # An answer must have room too, but never all of it: the limit may be small, or wrong.
    room = limit_tokens - min(max_tokens, limit_tokens // 2)
    room -= tokens(system) + tokens(dump(list(tools))) + tokens(folded.summary)
    cut = budget.fit(turns, max(room, 1))
    messages = _prefaced(turns[cut.turns :], folded, turns[: cut.turns])
    return Request(
        system,
        tuple(messages),
        tuple(tools),
        model,
        max_tokens,
        effort,
        cut.turns,
        cut.shortened,
        unseen=tuple(unseen),
    )


def kept(records: Sequence[Record]) -> list[Message]:
    """The messages that belong to the next request, were there room for all of them."""
    folded = _fold(records)
    return _prefaced(folded.turns, folded, [])


def used(records: Sequence[Record], max_tool_output: int, tools: Sequence[dict[str, Any]] = ()) -> int | None:
    """Tokens in use: as the last answer reported, with an estimate of what came after it; None: nothing was said.

    `tools`: the schemas that the next request holds.
    """
    later = 0
    is_new = True
    for record in reversed(records):
        if isinstance(record, Compaction):
            is_new = False
            break
        if isinstance(record, Assistant) and record.usage is not None and record.usage.input:
            return record.usage.input + record.usage.output + later
        if isinstance(record, (User, Assistant, ToolResult)):
            later += weight(budget.short(record, max_tool_output, _AGAIN))
    messages = [budget.short(message, max_tool_output, _AGAIN) for message in kept(records)]
    if is_new and not messages:
        return None
    system = sum(tokens(record.content) for record in records if isinstance(record, System))
    return system + tokens(dump(list(tools))) + sum(map(weight, messages))


def spent(records: Sequence[Record]) -> float | None:
    """USD that the requests of this chat and of its agents have cost, as far as it is known; None: of none.

    A branch begins with records of its parent, older than itself.
    """
    begun = next((record.created_at for record in records if isinstance(record, Meta)), "")
    costs = [cost(record) for record in records if getattr(record, "created_at", "") >= begun]
    known = [usd for usd in costs if usd is not None]
    return round(sum(known), 9) if known else None


def cost(record: Record) -> float | None:
    """USD that a record tells of; None: of none."""
    match record:
        case Assistant(usage=usage) | Compaction(usage=usage):
            return usage.cost if usage is not None else None
        case ToolResult(spent=spent):
            return spent
        case _:
            return None


def recent(records: Sequence[Record], room: int) -> str | None:
    """Id of the user message that begins the oldest of the last turns that take at most `room` tokens together.

    What the user has just said stays in any case. None where nothing can stay, or where nothing would be replaced.
    """
    turns = _fold(records).turns
    begins = None
    for turn in reversed(turns):
        room -= sum(map(weight, turn))
        if room < 0 and (begins or any(not isinstance(message, User) for message in turn)):
            break
        begins = turn[0]
    return begins.id if isinstance(begins, User) and begins is not turns[0][0] else None


# ---- the fold -------------------------------------------------------------------------------------------------------


class _Fold:
    """Messages by turn, oldest first; every call answered once, before anything else is said."""

    def __init__(self) -> None:
        self.turns: list[list[Message]] = []
        self.summary = ""
        self.before: dict[str, str] = {}
        """What the notes said that a compaction left out."""
        self._ended = True
        self._open: list[tuple[ToolCall, ToolResult | None]] = []
        self._waiting: list[User] = []
        """Users who wrote before the open calls had their results."""

    def add(self, record: Record) -> None:
        match record:
            case User():
                if self._open:
                    self._waiting.append(record)
                else:
                    self._append(record)
            case Assistant() if record.stop != "error":
                self._close(record.created_at)
                if record.content or record.tool_calls:
                    self._append(record)
                    self._open = [(call, None) for call in record.tool_calls]
            case ToolResult():
                self._answer(record)
            case TurnEnd():
                self._end(record)

    def finish(self) -> None:
        self._close("")

    def _append(self, message: Message) -> None:
        if self._ended or not self.turns:
            self.turns.append([])
            self._ended = False
        self.turns[-1].append(message)

    def _answer(self, result: ToolResult) -> None:
        """Take the result of the first open call with its id; any other result is dropped."""
        for number, (call, given) in enumerate(self._open):
            if call.id == result.tool_call_id and given is None:
                self._open[number] = call, result
                break
        if self._open and all(given for _, given in self._open):
            self._close(result.created_at)

    def _close(self, at: str) -> None:
        open_calls, self._open = self._open, []
        for call, given in open_calls:
            missing = ToolResult(
                tool_call_id=call.id, name=call.name, content="Error: interrupted", ok=False, created_at=at
            )
            self._append(given or missing)
        waiting, self._waiting = self._waiting, []
        for user in waiting:
            self._append(user)

    def _end(self, end: TurnEnd) -> None:
        """End the turn; users whom a failed one left without answer and result are forgotten."""
        self._close(end.created_at)
        self._ended = True
        if end.outcome != "failed" or not self.turns:
            return
        turn = self.turns[-1]
        while turn and isinstance(turn[-1], User) and turn[-1].id in end.answers:
            turn.pop()
        if not turn:
            self.turns.pop()


def _fold(records: Sequence[Record]) -> _Fold:
    folded = _Fold()
    start = 0
    last = max((n for n, record in enumerate(records) if isinstance(record, Compaction)), default=-1)
    if last >= 0:
        compaction = records[last]
        assert isinstance(compaction, Compaction)
        folded.summary = compaction.summary
        start = _first_kept(records, last, compaction.first_kept_id)
        folded.before = prompt.told(records[:start]) if folded.summary else {}
    for record in records[start:]:
        folded.add(record)
    folded.finish()
    return folded


def _first_kept(records: Sequence[Record], last: int, id: str | None) -> int:
    """Index of the message with this id before the compaction at `last`; without one, what follows it."""
    kept = (n for n in range(last) if isinstance(found := records[n], (User, Assistant)) and found.id == id)
    return next(kept, last + 1)


def _prefaced(turns: list[list[Message]], folded: _Fold, left_out: Iterable[list[Message]]) -> list[Message]:
    """The messages of `turns`; the first user's note also says what the model would else have lost with the rest."""
    messages = [message for turn in turns for message in turn]
    lost = folded.before | prompt.told(message for turn in left_out for message in turn)
    if not (folded.summary or (messages and lost)):
        return messages
    first = messages[0] if messages else None
    if not isinstance(first, User):  # a compaction in the middle of a turn
        first = User(id="summary", content="Go on from here.", created_at=first.created_at if first else "")
        messages.insert(0, first)
    own = prompt.told([first])
    parts = [
        f"Summary of the conversation so far:\n\n{folded.summary}" if folded.summary else None,
        prompt.block({name: value for name, value in lost.items() if name not in own}),
        first.note,
    ]
    messages[0] = replace(first, note="\n\n".join(part for part in parts if part) or None)
    return messages
