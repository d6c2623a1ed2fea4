"""The calls of one answer: each is decided about, asked about, run; calls that may run side by side do."""

import asyncio
import dataclasses
import re
import sys
import traceback
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import chain, groupby
from typing import Any

from cass import access, jsonl, tools
from cass.abreast import abreast
from cass.access import Allow, Ask, Deny
from cass.decisions import Answer
from cass.desk import Desk
from cass.errors import CassError, ToolError
from cass.progress import RESULT_LIMIT, Progress
from cass.providers import veil
from cass.records import (
    Approval,
    ApprovalRequest,
    Notice,
    Record,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
)
from cass.relay import Relay
from cass.rules import RUNS
from cass.tools import Outcome, sandbox
from cass.tools.paths import Place
from cass.tools.tool import Spent
from cass.walk import identity

RESULT_TOLD = 100_000
"""Characters of a tool result that a hook is told."""


async def every(desk: Desk, progress: Progress) -> AsyncGenerator[Record, None]:
    """Run the calls of `progress.last`; those that the person's word comes before get a result that says so."""
    assert progress.last is not None
    steered = False
    for group in _groups(desk, progress.last.tool_calls):
        if steered:
            for _, call in group:
                yield result(call, "Error: not run: the user wrote")
            continue
        runs = [_call_and_tell(desk, progress, call, number) for number, call in group]
        async with aclosing(abreast(runs) if len(runs) > 1 else runs[0]) as found:
            async for record in found:
                yield record
        steered = desk.is_steered()


def _groups(desk: Desk, asked: Sequence[ToolCall]) -> Iterator[list[tuple[int, ToolCall]]]:
    """The calls with their numbers: each alone, but for neighbours that run side by side."""
    for is_apart, found in groupby(enumerate(asked), lambda one: desk.toolbox.is_apart(one[1].name)):
        if is_apart:
            yield list(found)
        else:
            yield from ([one] for one in found)


async def _call_and_tell(desk: Desk, progress: Progress, call: ToolCall, number: int) -> AsyncGenerator[Record, None]:
    """Run one call, if it may; hooks hear of one that was run."""
    told: dict[str, Any] | None = None
    async with aclosing(_call(desk, progress, call, number)) as found:
        async for record in found:
            if isinstance(record, ToolResult):
                record = dataclasses.replace(record, spent=progress.spent.pop(call.id, None))
            yield record
            if isinstance(record, ToolStarted):
                told = {"arguments": call.arguments}
            elif isinstance(record, ToolResult) and told is not None:
                told |= {"ok": record.ok, "result": record.content[:RESULT_TOLD]}
    if told is not None:
        for notice in (await desk.hook("after-tool", desk.place, call.name, **told)).notices:
            yield notice


async def _call(desk: Desk, progress: Progress, call: ToolCall, number: int) -> AsyncGenerator[Record, None]:
    """Run one call, the `number`-th of its answer, if it may; its result is the last record."""
    if call.arguments_raw is not None:
        yield result(call, f"Error: the arguments of {call.name} are not a JSON object: {call.arguments_raw[:200]}")
        return
    place = _place(desk, progress, call, number)
    try:
        tool = desk.toolbox.find(call.name)
        decision: access.Decision | None = None
        async with aclosing(_decided(desk, progress, call, tool, place)) as found:
            async for said in found:
                if isinstance(said, access.Decision):
                    decision = said
                else:
                    yield said
        if not isinstance(decision, Allow):
            assert decision is not None
            yield result(call, f"Error: {decision.reason}")
            return
        async with aclosing(_run(desk, progress, call, tool, place)) as records:
            async for record in records:
                yield record
    except ToolError as e:
        yield result(call, veil.Output(desk.secrets).whole(f"Error: {e}"))
    except CassError:
        raise
    except Exception as e:
        yield _bug(call, e, veil.Output(desk.secrets))


def _place(desk: Desk, progress: Progress, call: ToolCall, number: int) -> Place:
    """Where the call is at work: what it may, by the mode of now, and the directory that stands there now."""
    assert progress.last is not None
    mode = progress.width(desk)
    return dataclasses.replace(
        desk.place,
        call_id=re.sub(r"\W", "-", call.id)[:64] or "call",
        decided={},
        sandboxed=sandbox.holds(mode, desk.sandbox),
        decide=lambda action: access.decide(progress.width(desk), desk.rules, action),
        mode=mode,
        asks=progress.asks,
        keep=desk.keeping((progress.last.id, number)),
        ground=identity(str(desk.place.root)),
        asked={},
    )


async def _decided(
    desk: Desk, progress: Progress, call: ToolCall, tool: tools.Tool, place: Place
) -> AsyncGenerator[Record | access.Decision, None]:
    """What is said and asked about a call, then what was decided. The mode may be narrowed meanwhile."""
    if call.name not in desk.toolbox.names(place.mode, desk.rules):
        yield place.decide(access.Action(call.name))
        return
    action = tool.action(call.arguments, place)
    decision = place.decide(action)
    if not isinstance(decision, Deny):
        asks = isinstance(decision, Ask)
        verdict = await desk.hook("before-tool", place, call.name, arguments=call.arguments, asks=asks)
        for notice in verdict.notices:
            yield notice
        decision = Deny(verdict.denied) if verdict.denied is not None else place.decide(action)
    if isinstance(decision, Ask):
        diff = await _proposal(call, tool, place, desk.secrets) if progress.asks else None
        request = _question(call, decision, action, place, progress.of, tool, diff)
        async with aclosing(_asked(desk, progress, request)) as found:
            async for record in found:
                yield record
                if isinstance(record, Approval):
                    decision = _after(record, place.decide(action))
    elif isinstance(decision, Allow) and decision.rule:
        yield _approval(call.id, jsonl.new_id(), Answer(True, f"the rule {decision.rule}"))
    yield decision


def _bug(call: ToolCall, error: Exception, shown: veil.Output) -> ToolResult:
    """A bug in a tool: its traceback goes to the log, the model and the person hear of it."""
    print(shown.whole("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    text = shown.whole(str(error))
    return result(call, f"Error: {call.name} has a bug: {type(error).__name__}: {text[:200]}")


async def _proposal(call: ToolCall, tool: tools.Tool, place: Place, secrets: tuple[str, ...]) -> str | None:
    """What the call would change, for who is asked. In a thread: the file may be large, or on a slow disk."""
    if tool.propose is None:
        return None
    diff = await asyncio.to_thread(tool.propose, call.arguments, place)
    return veil.Output(secrets).whole(diff or "") or None


def _question(
    call: ToolCall, ask: Ask, action: access.Action, place: Place, of: str, tool: tools.Tool, diff: str | None
) -> ApprovalRequest:
    is_held = place.sandboxed and (action.command is not None or tool.is_program)
    return ApprovalRequest(
        request_id=jsonl.new_id(),
        tool_call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        reason=f"{ask.reason}; {sandbox.words(place)}" if is_held else ask.reason,
        sandboxed=is_held,
        rule=access.rule_for(action),
        of=of,
        diff=diff,
        created_at=jsonl.now(),
    )


async def _asked(desk: Desk, progress: Progress, request: ApprovalRequest) -> AsyncGenerator[Record, None]:
    """The request, as long as it takes, and the decision."""
    if not progress.asks:
        progress.blocked = True
        answer = Answer(False, "nobody: the message came without --ask", "nobody could be asked")
    else:
        progress.asking.add(request.request_id)
        yield progress.status(desk)
        yield request
        told = {"arguments": request.arguments, "reason": request.reason, "request": request.request_id}
        calling = asyncio.ensure_future(desk.hook("approval-needed", desk.place, request.name, **told))
        try:
            answer = await desk.answer(request.request_id)
        finally:
            progress.asking.discard(request.request_id)
            calling.cancel()  # who is told of a question that is answered?
            await asyncio.wait([calling])
        for notice in () if calling.cancelled() else calling.result().notices:
            yield notice
    yield _approval(request.tool_call_id, request.request_id, answer)


def _approval(tool_call_id: str, request_id: str, answer: Answer) -> Approval:
    return Approval(
        request_id=request_id,
        tool_call_id=tool_call_id,
        decision="approved" if answer.approved else "denied",
        reason=answer.reason,
        rule=answer.rule,
        by=answer.by,
        created_at=jsonl.now(),
    )


def _after(given: Approval, now: access.Decision) -> access.Decision:
    """What an answer comes to, given what the mode and the rules say by now: it may have been narrowed meanwhile."""
    if isinstance(now, Deny):
        return now
    if given.decision == "approved":
        return Allow()
    return Deny("the user denied it" + (f": {given.reason}" if given.reason else ""))


async def _run(
    desk: Desk, progress: Progress, call: ToolCall, tool: tools.Tool, place: Place
) -> AsyncGenerator[Record, None]:
    yield progress.status(desk)
    yield ToolStarted(tool_call_id=call.id, of=progress.of, created_at=jsonl.now())
    shown = veil.Output(desk.secrets)
    relay = Relay(desk, progress, call)
    try:
        async with aclosing(tool.run(call.arguments, place)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    if text := shown.piece(piece):
                        progress.say(call.id, text)
                        yield ToolOutput(tool_call_id=call.id, text=text)
                elif isinstance(piece, Outcome):
                    for record in chain(relay.lapse(), _came_of(desk, call, tool, place, piece, shown)):
                        yield record
                elif isinstance(piece, Spent):
                    desk.bill.add(piece.usd)
                    progress.spent[call.id] = progress.spent.get(call.id, 0) + piece.usd
                else:
                    for record in relay.take(piece):
                        yield record
    except ToolError:
        for record in relay.lapse():
            yield record
        raise
    finally:
        await relay.close()
    progress.said(call.id)


def _came_of(
    desk: Desk, call: ToolCall, tool: tools.Tool, place: Place, outcome: Outcome, shown: veil.Output
) -> Iterator[Record]:
    desk.place.seen.update(outcome.seen)
    content, diff = shown.whole(outcome.content), shown.whole(outcome.diff or "") or None
    held = place.sandboxed if call.name in RUNS or tool.is_program else None
    if outcome.notice:
        yield Notice(level="warning", text=outcome.notice)
    yield result(call, content, ok=outcome.ok, seen=outcome.seen, diff=diff, sandboxed=held)


def result(
    call: ToolCall,
    content: str,
    *,
    ok: bool = False,
    seen: dict[str, str] | None = None,
    diff: str | None = None,
    sandboxed: bool | None = None,
) -> ToolResult:
    if len(content) > RESULT_LIMIT:
        content = f"{content[:RESULT_LIMIT]}\n… {len(content) - RESULT_LIMIT:,} more characters were not kept"
    return ToolResult(
        tool_call_id=call.id,
        name=call.name,
        content=content,
        ok=ok,
        seen=seen or None,
        diff=diff,
        sandboxed=sandboxed,
        created_at=jsonl.now(),
    )
