"""A branch: a new chat that goes on from a moment of another one, which stays as it is, whoever works on it.

The records up to that moment are copied byte by byte, what they left open is closed, and the first one names the chat
that they come from. Nothing refers to the other chat's file: it may be deleted.
"""

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cass import attachments, chat, jsonl
from cass.ends import open_calls, open_turn
from cass.errors import CassError, UsageError
from cass.headline import headline
from cass.home import Files, create_private
from cass.records import (
    Approval,
    Assistant,
    BadRecord,
    Fact,
    Meta,
    Notice,
    Record,
    System,
    ToolCall,
    ToolResult,
    TurnEnd,
    Usage,
    User,
    decode,
    encode,
)
from cass.snapshots import Call
from cass.tail import Tail

NOT_RUN = "Error: not run: the chat was branched before this call"

_DIGITS = 6
"""Of a number; what is longer is a part of an id, which may have digits alone."""

Line = tuple[Record, bytes]
"""A record, and the line that it was read from, without its newline."""


class Kind(StrEnum):
    """What a moment lies at."""

    USER = "user"
    """Before this message, which is to be written anew."""
    ASSISTANT = "assistant"
    """After this answer; of the tools it calls none has run."""
    CALL = "call"
    """Before this call is run."""
    RESULT = "result"
    """After it."""
    END = "end"
    """After all that is there."""


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a chat that it can be branched at, or restored to."""

    number: int
    """From 1, in the order of the file; the same in every branch that has it."""
    kind: Kind
    id: str
    """Of the message or the tool call."""
    text: str
    """What a person knows it by: one line of any length, or for `USER` the whole message."""
    at: str
    """UTC."""
    end: int
    """So many records come before it."""
    call: Call | None = None
    """Of `CALL` and `RESULT`."""


def read(files: Files) -> list[Line]:
    """All facts of a chat; damaged lines are left out."""
    tail = Tail(files.chat)
    lines = [*tail.lines(), tail.rest]
    tail.close()
    found: list[Line] = []
    for line in filter(bytes.strip, lines):
        with contextlib.suppress(BadRecord):
            found.append((decode(line), line))
    return found


def points(found: Sequence[Record]) -> list[Point]:
    """All points of a chat, in order."""
    return _walk(found)[0]


def end(found: Sequence[Record]) -> Point:
    """The point after everything."""
    said = [r for r in found if isinstance(r, (User, Assistant, ToolResult)) and not _is_not_run(r)]
    at = said[-1].created_at if said else ""
    ids = [record.id for record in said if isinstance(record, (User, Assistant))]
    return Point(0, Kind.END, ids[-1] if ids else "", "", at, len(found))


def calls(found: Sequence[Record], point: Point) -> tuple[set[Call], set[Call]]:
    """The calls of a chat that were done at that moment, and those that were not yet.

    Neither, where a branch began before the call: another chat may have run it, at any time.
    """
    settled = _walk(found)[1]
    done = {call for call, (index, was_run) in settled.items() if was_run and index < point.end}
    return done, {call for call, (index, _) in settled.items() if index >= point.end}


def _walk(found: Sequence[Record]) -> tuple[list[Point], dict[Call, tuple[int, bool]]]:
    """The points; and for each call where it was settled, and whether it was run.

    Of several open calls with one id a result is that of the first, as for `open_calls`.
    """
    points: list[Point] = []
    settled: dict[Call, tuple[int, bool]] = {}
    waiting: list[tuple[Call, ToolCall]] = []
    end, at = 0, ""

    def add(kind: Kind, id: str, text: str, call: Call | None = None) -> None:
        points.append(Point(len(points) + 1, kind, id, text, at, end, call))

    for index, record in enumerate(found):
        match record:
            case User():
                end, at = index, record.created_at
                add(Kind.USER, record.id, attachments.spelled(record.content, record.attachments))
                end = index + 1
            case Assistant() if record.stop != "error":
                end, at = index + 1, record.created_at
                add(Kind.ASSISTANT, record.id, _one_line(record.content) or _wants(record))
                waiting += [((record.id, number), call) for number, call in enumerate(record.tool_calls)]
                settled |= dict.fromkeys((call for call, _ in waiting), (len(found), False))
            case ToolResult():
                answered = next((w for w in waiting if w[1].id == record.tool_call_id), None)
                if answered is None:
                    continue
                waiting.remove(answered)
                key, call = answered
                settled[key] = index, not _is_not_run(record)
                if settled[key][1]:
                    add(Kind.CALL, call.id, _one_line(f"{call.name} {headline(call)}"), key)
                    end, at = index + 1, record.created_at
                    add(Kind.RESULT, call.id, _one_line(record.content), key)
            case TurnEnd():
                settled |= dict.fromkeys((key for key, _ in waiting), (index, False))
                waiting.clear()
    for key, call in waiting[:1] if points and points[-1].kind in (Kind.ASSISTANT, Kind.RESULT) else ():  # it runs now
        add(Kind.CALL, call.id, _one_line(f"{call.name} {headline(call)}"), key)
    return points, settled


def _is_not_run(record: Record) -> bool:
    return isinstance(record, ToolResult) and record.content == NOT_RUN


def _one_line(text: str) -> str:
    return " ".join(text[:4000].split())


def _wants(answer: Assistant) -> str:
    return f"({len(answer.tool_calls)} call{'s' if len(answer.tool_calls) != 1 else ''})"


def find(found: Sequence[Record], text: str, chat: str = "CHAT") -> Point:
    """The point that a person means: its number, or a unique part of an id; of a call it is its result.

    Raises UsageError, which names `chat`.
    """
    there = points(found)
    is_number = text.isdecimal() and len(text) <= _DIGITS
    if is_number and 0 < int(text) <= len(there):
        return there[int(text) - 1]
    fitting = {point.id: point for point in there if text and text in point.id and not is_number}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        numbers = ", ".join(str(point.number) for point in fitting.values())
        raise UsageError(f"{text!r} fits several points: {numbers}")
    raise UsageError(f"no point {text!r}; there are {len(there)}: cass branch {chat} --list")


# ---- making ---------------------------------------------------------------------------------------------------------


def branch(files: Files, found: Sequence[Line], point: Point) -> Files:
    """Make a new chat of `found`, the lines of another one, up to `point`. Raises CassError.

    The message that a `USER` moment lies before becomes the draft of the new chat.
    """
    made = chat.reserve(files.home)
    temporary = made.home.conversations / f".{made.chat_id}.new"
    try:
        if point.kind is Kind.USER:
            _write(made.draft, point.text.encode("utf-8", "replace"))
        _write(temporary, b"".join(copy(found, point, files.chat_id, made.chat_id, jsonl.now())))
        temporary.rename(made.chat)
    except OSError as e:
        temporary.unlink(missing_ok=True)
        made.chat.unlink(missing_ok=True)
        raise CassError(f"cannot make a branch in {made.home.root}: {os.strerror(e.errno or 0)}") from e
    return made


def copy(found: Sequence[Line], point: Point, parent: str, chat_id: str, at: str) -> list[bytes]:
    """The lines of the branch `chat_id` of the chat `parent`."""
    end = point.end
    settled = found[end][0] if end < len(found) else None
    kept = [record for record, _ in found[:end]]
    if isinstance(settled, TurnEnd) and point.kind is not Kind.CALL and not open_calls(kept):
        end += 1
        kept.append(settled)
    meta = chat.meta(kept)
    if meta is None:
        raise CassError(f"{parent} holds no meta record: it is no chat")
    first = dataclasses.replace(
        meta,
        chat_id=chat_id,
        created_at=at,
        parent_chat_id=parent,
        branch_from=point.id or None,
        family=meta.family or parent,
        agent_of=None,  # nobody waits for a branch: it is a person's chat, whatever it comes from
        depth=0,
    )
    lines = [_copied(record, line) for record, line in found[:end] if not isinstance(record, (Meta, Notice))]
    return [encode(first), *lines, *map(encode, _closing(kept, at))]


def _copied(record: Record, line: bytes) -> bytes:
    """A line as it is, but for what the parent had cost by then: the branch has cost nothing."""
    if isinstance(record, TurnEnd) and record.spent is not None:
        return encode(dataclasses.replace(record, spent=None))
    return line + b"\n"


def _closing(kept: Sequence[Record], at: str) -> list[Fact]:
    """What makes the next request valid and leaves no turn open."""
    results: list[Fact] = [
        ToolResult(tool_call_id=call.id, name=call.name, content=NOT_RUN, ok=False, created_at=at)
        for call in open_calls(kept)
    ]
    answers = open_turn(kept)
    if not answers:
        return results
    begun = next(n for n, record in enumerate(kept) if isinstance(record, User) and record.id == answers[0])
    turn = [record for record in kept[begun:] if not isinstance(record, (Approval, System))]
    usage = sum((r.usage for r in turn if isinstance(r, Assistant) and r.usage is not None), Usage())
    last = turn[-1]
    outcome = "done" if isinstance(last, Assistant) and not last.tool_calls and last.stop == "stop" else "cancelled"
    end = TurnEnd(turn=answers[0], answers=answers, outcome=outcome, usage=usage, created_at=at)
    return [*results, end]


def _write(path: Path, data: bytes) -> None:
    with open(create_private(path, os.O_TRUNC), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
