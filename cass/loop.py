"""The loop: ask the model, run what it asks for, ask again; one turn of that, as an async generator of records.

Nothing is appended or printed here. Whoever iterates writes each fact into the chat, and into `Desk.records`, before it
asks for the next record; the request that follows is built from them. Cancelling is a CancelledError inside the
generator: it yields what is known so far, so that the chat stays valid, then the end of the turn.
"""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cass import calls, context, ends, jsonl, summary, tries
from cass.desk import Desk
from cass.errors import CassError, ProviderError
from cass.progress import Progress
from cass.records import Compaction, Delta, Notice, Record, TurnEnd, Usage, User


async def turn(desk: Desk, user: User) -> AsyncGenerator[Record, None]:
    """Yield `user` first and the end of the turn last. Only bugs and a full disk are raised."""
    progress = Progress(mode=desk.mode, asks=user.ask, answers=[user.id])
    error: str | None
    try:
        yield user
        for notice in await _begins(desk):
            yield notice
        async with aclosing(_rounds(desk, progress)) as rounds:
            async for record in rounds:
                yield record
        outcome, error = progress.outcome()
    except asyncio.CancelledError:
        outcome, error = "cancelled", None
        for record in _cut_short(desk, progress, "cancelled", "cancelled by the user"):
            yield record
    except CassError as e:
        outcome, error = "failed", str(e)
        for record in _cut_short(desk, progress, "error", "not run: the turn failed"):
            yield record
    yield TurnEnd(
        turn=user.id,
        answers=tuple(progress.answers),
        outcome=outcome,
        error=error,
        usage=progress.usage,
        spent=context.spent(desk.records),
        created_at=jsonl.now(),
    )
    for notice in await _ends(desk, progress, outcome, error):
        yield notice


async def _begins(desk: Desk) -> tuple[Notice, ...]:
    """Call the hooks of the start, once for each time that the chat is opened."""
    if desk.begun:
        return ()
    desk.begun = True
    is_new = not any(isinstance(record, TurnEnd) for record in desk.records)
    return (await desk.hook("chat-start", desk.place, new=is_new)).notices


async def _ends(desk: Desk, progress: Progress, outcome: str, error: str | None) -> tuple[Notice, ...]:
    answer = progress.last.content if progress.last is not None else ""
    try:
        return (await desk.hook("turn-end", desk.place, outcome=outcome, error=error, answer=answer)).notices
    except asyncio.CancelledError:  # the turn has its end already
        return (Notice(level="warning", text="the hooks of the turn's end were cancelled"),)


async def _rounds(desk: Desk, progress: Progress) -> AsyncGenerator[Record, None]:
    """Ask, run what is asked for, ask again, until an answer without calls and nothing more from the person.

    Every generator below is closed here and now, not when it is collected: a cancelled turn ends after its tool did.
    """
    while True:
        if summary.is_due(desk):
            async with aclosing(_summarised(desk, progress)) as found:
                async for record in found:
                    yield record
        async with aclosing(_answer(desk, progress)) as answer:
            async for record in answer:
                yield record
        assert progress.last is not None
        if news := _filling(desk):
            yield news
        async with aclosing(calls.every(desk, progress)) as found:
            async for record in found:
                yield record
        is_over = not progress.last.tool_calls
        while user := desk.steering():
            is_over = False
            progress.answers.append(user.id)
            yield user
        if is_over:
            return


# ---- asking the model -----------------------------------------------------------------------------------------------


async def _answer(desk: Desk, progress: Progress) -> AsyncGenerator[Record, None]:
    """Deltas, then the whole answer, afterwards `progress.last`. Failed tries come out marked, never sent."""
    if desk.max_turns is not None and progress.requests >= desk.max_turns:
        raise CassError(f"stopped after {desk.max_turns} requests (--max-turns)")
    desk.bill.check()
    progress.requests += 1
    retry = cuts = 0
    while True:
        try:
            async with aclosing(_stream(desk, progress)) as answer:
                async for record in answer:
                    yield record
            return
        except ProviderError as e:
            cuts += progress.begun
            for partial in progress.partial(desk.model, "error"):
                yield partial
            if e.too_long:
                async with aclosing(_refitted(desk, progress, e)) as found:
                    async for record in found:
                        yield record
                continue
            wait, detail = tries.wait(e, retry, cuts)
            retry += 1
        yield desk.status("retrying", detail)
        await asyncio.sleep(wait)


async def _stream(desk: Desk, progress: Progress) -> AsyncGenerator[Record, None]:
    yield desk.status("thinking")
    request = desk.request(desk.records, progress.width(desk))
    progress.weight = request.weight
    if news := _left_out(request, progress):
        yield Notice(level="warning", text=news)
    for words in progress.news_of(request.unseen):
        yield Notice(level="warning", text=words)
    of = jsonl.new_id()
    progress.begin(of)
    async with aclosing(desk.provider.stream(request, of)) as answer:  # type: ignore[type-var]
        async for record in answer:
            if isinstance(record, Delta):
                progress.grow(record)
            else:
                progress.growing = None
                record = progress.last = desk.bill.charge(record)
                progress.usage += record.usage or Usage()
            yield record
    if progress.growing is not None:  # a provider of the host program: nothing may be taken for an answer that is none
        raise ProviderError(f"the provider {desk.provider_name} ended without an answer")


def _left_out(request: context.Request, progress: Progress) -> str | None:
    """What the person should know about a request that does not hold everything; said once a turn."""
    if not (request.left_out or request.shortened) or progress.told:
        return None
    progress.told = True
    return (
        f"the context is full: {request.left_out} older turns and parts of {request.shortened} tool results are not "
        "sent to the model any more; the chat keeps them (/compact, or a new chat)"
    )


async def _summarised(desk: Desk, progress: Progress) -> AsyncGenerator[Record, None]:
    """Replace the older turns by a summary. Where that fails it is said once, and the turn goes on without one."""
    if progress.unsummarised or not summary.can_help(desk):
        return
    try:
        async with aclosing(summary.older(desk)) as found:
            async for record in found:
                if isinstance(record, Compaction):
                    progress.usage += record.usage or Usage()
                    desk.told_full = False
                yield record
    except CassError as e:
        progress.unsummarised = True
        text = f"the older turns could not be summarised ({e}); what does not fit is left out of the requests"
        yield Notice(level="warning", text=text)


async def _refitted(desk: Desk, progress: Progress, error: ProviderError) -> AsyncGenerator[Record, None]:
    """Learn from a request that was too long, so that the next one is shorter. Raises `error` the second time."""
    if progress.refitted:
        text = f"context too large, and nothing more can be left out: {error.message}"
        raise dataclasses.replace(error, message=text) from error
    progress.refitted = True
    yield tries.shorten(desk, error, progress.weight)
    async with aclosing(_summarised(desk, progress)) as found:
        async for record in found:
            yield record


def _filling(desk: Desk) -> Notice | None:
    """Said once, before the context is full."""
    share = summary.share(desk)
    if desk.told_full or not summary.WARN <= share < summary.DUE:
        return None
    desk.told_full = True
    text = f"the context is {share:.0%} full; at {summary.DUE:.0%} its older part is summarised (/compact does it now)"
    return Notice(level="info", text=text)


def _cut_short(desk: Desk, progress: Progress, stop: str, reason: str) -> list[Record]:
    """What keeps the chat valid after a turn was broken off."""
    found: list[Record] = list(progress.partial(desk.model, stop))
    for call in ends.open_calls(desk.records):
        output = progress.said(call.id)
        given = calls.result(call, f"Error: {reason}" + (f"\n{output}" if output else ""))
        found.append(dataclasses.replace(given, spent=progress.spent.pop(call.id, None)))
    return found
