"""The summary: what takes the place of the older part of a history before the context is full.

It is the model's own, asked for with the tools and the beginning of the requests before it, so that a provider's cache
of prefixes serves it; the chat file keeps everything.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from cass import budget, context, jsonl
from cass.context import Request
from cass.desk import Desk
from cass.errors import CassError
from cass.records import Assistant, Compaction, Record, User, open_turn

WARN = 0.7
"""Share of the context at which the person is told."""
DUE = 0.8
"""Share at which the older part is replaced."""
KEPT = 0.2
"""Share that the newest turns may take to stay word for word."""
WORTH = 0.3
"""Share that the history must take, lest a summary be made for nothing: the rest is prompt and tools."""

_ASK = (
    "Summarise this conversation so that the work can go on without it: the goal, what was decided and why, what was "
    "done (files, commands, results that matter), what is open. Be exact with names and paths. Answer with the summary "
    "alone, and call no tool."
)


def share(desk: Desk) -> float:
    """How much of the context is in use, 0 to 1 and beyond."""
    return (context.used(desk.records, desk.max_tool_output) or 0) / max(desk.context_limit, 1)


def is_due(desk: Desk) -> bool:
    """Whether the older part should give way, and doing so would help."""
    return share(desk) >= DUE and _is_worth(desk)


def _is_worth(desk: Desk) -> bool:
    return sum(map(budget.weight, context.kept(desk.records))) * desk.density >= WORTH * desk.context_limit


async def older(desk: Desk) -> AsyncGenerator[Record, None]:
    """Replace all but the newest turns. Raises CassError, and then nothing has changed."""
    room = int(KEPT * desk.context_limit / desk.density)
    async with aclosing(compact(desk, first_kept_id=context.recent(desk.records, room))) as found:
        async for record in found:
            yield record


async def compact(
    desk: Desk, focus: str | None = None, first_kept_id: str | None = None
) -> AsyncGenerator[Record, None]:
    """Replace the history before `first_kept_id`; None: all of it. Raises CassError, and then nothing has changed."""
    yield desk.status("thinking", "compacting")
    replaced = _before(desk.records, first_kept_id)
    text = _ASK + (f" Keep above all: {focus}" if focus else "")
    ask = User(id=jsonl.new_id(), content=text, created_at=jsonl.now())
    request = desk.request([*replaced, ask], desk.mode)
    summary = await _asked(desk, request, ask.id)
    if not summary.content.strip() and summary.tool_calls:  # told not to, and does it all the same
        summary = await _asked(desk, replace(request, tools=()), ask.id)
    if not summary.content.strip():
        raise CassError("the model gave no summary; the history stays as it is")
    lost = f"(The {request.left_out} oldest turns were too long to be part of this.)" if request.left_out else ""
    parts = [summary.content.strip(), lost, *([] if first_kept_id else _still_open(desk.records))]
    yield Compaction(
        summary="\n\n".join(filter(None, parts)),
        first_kept_id=first_kept_id,
        tokens_before=context.used(desk.records, desk.max_tool_output) or 0,
        usage=summary.usage,
        created_at=jsonl.now(),
    )


async def _asked(desk: Desk, request: Request, of: str) -> Assistant:
    """The whole answer, with its price."""
    desk.bill.check()
    async with aclosing(desk.provider.stream(request, of)) as answer:  # type: ignore[type-var]
        async for record in answer:
            if isinstance(record, Assistant):
                return desk.bill.charge(record)
    raise CassError("the model gave no answer; the history stays as it is")


def _before(records: list[Record], id: str | None) -> list[Record]:
    """What stands before the user message with this id; None: everything."""
    place = next((n for n, record in enumerate(records) if isinstance(record, User) and record.id == id), len(records))
    return records[:place]


def _still_open(records: list[Record]) -> list[str]:
    """What the user wants in the turn that runs, word for word: a summary must not blur it."""
    wanted = open_turn(records)
    said = [record.content for record in records if isinstance(record, User) and record.id in wanted]
    return [f"The user's message that is being worked on, word for word:\n\n{text}" for text in said]
