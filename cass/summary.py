"""The summary: what takes the place of the older part of a history before the context is full.

It is the model's own, asked for with the tools and the beginning of the requests before it, so that a provider's cache
of prefixes serves it; the chat file keeps everything.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cass import budget, context, jsonl, tries
from cass.context import Request
from cass.desk import Desk
from cass.ends import open_turn
from cass.errors import CassError, ProviderError
from cass.headline import pictured
from cass.records import Assistant, Compaction, Record, User

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
_IMAGES = " The images will be gone: name each, and say what matters in it."


def share(desk: Desk) -> float:
    """How much of the context is in use, 0 to 1 and beyond."""
    return (desk.used() or 0) / max(desk.context_limit, 1)


def is_due(desk: Desk) -> bool:
    """Whether the older part should give way, and doing so would help."""
    return share(desk) >= DUE and _is_worth(desk) and can_help(desk)


def can_help(desk: Desk) -> bool:
    """Whether there is anything that a summary may replace: what the user has just said it repeats word for word."""
    return any(not isinstance(message, User) for message in context.kept(desk.records))


def _is_worth(desk: Desk) -> bool:
    return sum(map(budget.weight, context.kept(desk.records))) * desk.density >= WORTH * desk.context_limit


async def older(desk: Desk) -> AsyncGenerator[Record, None]:
    """Replace all but the newest turns. Raises CassError, and then nothing has changed."""
    room = int(KEPT * desk.context_limit / desk.density)
    async with aclosing(_replaced(desk, None, context.recent(desk.records, room))) as found:
        async for record in found:
            yield record


async def compact(desk: Desk, focus: str | None = None) -> AsyncGenerator[Record, None]:
    """Replace the whole history, for a person who wants it. Raises CassError, and then nothing has changed."""
    try:
        async with aclosing(_replaced(desk, focus, None)) as found:
            async for record in found:
                yield record
    except ProviderError as e:
        raise CassError(f"there is no summary, and the history stays as it is: {e}") from e


async def _replaced(desk: Desk, focus: str | None, first_kept_id: str | None) -> AsyncGenerator[Record, None]:
    """Replace the history before the message `first_kept_id`; None: all of it."""
    yield desk.status("thinking", "compacting")
    text = _ASK + (_IMAGES if _has_images(desk.records) else "") + (f" Keep above all: {focus}" if focus else "")
    ask = User(id=jsonl.new_id(), content=text, created_at=jsonl.now())
    asked: list[Record] = [*_before(desk.records, first_kept_id), ask]
    summary: Assistant | None = None
    for has_tools in (True, False):
        async with aclosing(_answer(desk, asked, has_tools=has_tools)) as found:
            async for record in found:
                if isinstance(record, Assistant):
                    summary = record
                else:
                    yield record
        if summary is None or summary.content.strip() or not summary.tool_calls:
            break  # else it was told to call no tool, and does it all the same
    if summary is None or not summary.content.strip():
        raise CassError("the model gave no summary; the history stays as it is")
    left_out = desk.request(asked, desk.mode).left_out
    lost = f"(The {left_out} oldest turns were too long to be part of this.)" if left_out else ""
    parts = [summary.content.strip(), lost, *([] if first_kept_id else _still_open(desk.records))]
    compaction = Compaction(
        summary="\n\n".join(filter(None, parts)),
        first_kept_id=first_kept_id,
        tokens_before=desk.used() or 0,
        usage=summary.usage,
        created_at=jsonl.now(),
    )
    if _size([*desk.records, compaction]) >= _size(desk.records):
        raise CassError("the summary is no shorter than what it would replace; the history stays as it is")
    yield compaction


async def _answer(desk: Desk, asked: list[Record], *, has_tools: bool) -> AsyncGenerator[Record, None]:
    """The whole answer, with its price; before it what is to be said where the request fails and is made again."""
    desk.bill.check()
    request = _request(desk, asked, has_tools=has_tools)
    retry = cuts = 0
    shortened = False
    while True:
        begun = False
        try:
            async with aclosing(desk.provider.stream(request, jsonl.new_id())) as answer:  # type: ignore[type-var]
                async for record in answer:
                    begun = True
                    if isinstance(record, Assistant):
                        yield desk.bill.charge(record)
                        return
            raise CassError("the model gave no answer; the history stays as it is")
        except ProviderError as e:
            cuts += begun
            if e.too_long:
                said, before = tries.shorten(desk, e, request.weight), request.weight
                request = _request(desk, asked, has_tools=has_tools)
                if shortened or request.weight >= before:
                    raise
                shortened = True
                yield said
                continue
            seconds, detail = tries.wait(e, retry, cuts)
        retry += 1
        yield desk.status("retrying", detail)
        await asyncio.sleep(seconds)


def _request(desk: Desk, asked: list[Record], *, has_tools: bool) -> Request:
    request = desk.request(asked, desk.mode)
    return request if has_tools else request._replace(tools=())


def _size(records: list[Record]) -> int:
    """An estimate of the tokens that a history takes in the next message's request."""
    return sum(map(budget.weight, context.kept([*records, User(id="next", content="", created_at=jsonl.now())])))


def _before(records: list[Record], id: str | None) -> list[Record]:
    """What stands before the user message with this id; None: everything."""
    place = next((n for n, record in enumerate(records) if isinstance(record, User) and record.id == id), len(records))
    return records[:place]


def _has_images(records: list[Record]) -> bool:
    return any(isinstance(message, User) and message.attachments for message in context.kept(records))


def _still_open(records: list[Record]) -> list[str]:
    """What the user wants in the turn that runs, word for word: a summary must not blur it."""
    wanted = open_turn(records)
    users = [record for record in records if isinstance(record, User) and record.id in wanted]
    said = ["\n\n".join([user.content, *map(pictured, user.attachments)]) for user in users]
    return [f"The user's message that is being worked on, word for word:\n\n{text}" for text in said]
