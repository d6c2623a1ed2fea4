"""One turn: from a user message to the answer, as an async generator of records.

Nothing is appended or printed here. Whoever iterates writes each fact into the chat, and into `Desk.records`, before it
asks for the next record; the request that follows is built from them. Cancelling is a CancelledError inside the
generator: it yields what is known so far, so that the chat stays valid, then the end of the turn.
"""

import asyncio
import dataclasses
import re
import traceback
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from cass import access, context, jsonl, records, summary, tools, tries
from cass.access import Allow, Ask, Deny, Mode
from cass.desk import Answer, Desk
from cass.errors import CassError, ProviderError, ToolError
from cass.providers import veil
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Delta,
    Notice,
    Record,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
)
from cass.rules import RUNS
from cass.tools import sandbox
from cass.tools.paths import Place

RESULT_TOLD = 100_000
"""Characters of a tool result that a hook is told."""
RESULT_LIMIT = 1 << 20
"""Characters of a tool result that the chat keeps."""


@dataclass
class _State:
    """What one turn has come to."""

    mode: Mode
    asks: bool
    answers: list[str]
    requests: int = 0
    usage: Usage = Usage()
    last: Assistant | None = None
    blocked: bool = False
    told: bool = False
    """Whether the person was told that the context is full."""
    weight: int = 0
    """Tokens of the last request, as an estimate."""
    refitted: bool = False
    """Whether a request was too long for the provider, and a shorter one was made."""
    unsummarised: bool = False
    """Whether a summary failed: it is not tried again with every request."""
    growing: str | None = None
    """Id of the answer that is being streamed."""
    begun: bool = False
    """Whether anything of it has come."""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    """What the running tool has said."""

    @property
    def of(self) -> str:
        """Id of the last whole answer."""
        return self.last.id if self.last is not None else ""

    def begin(self, of: str) -> None:
        self.growing, self.begun = of, False
        self.text.clear()
        self.reasoning.clear()

    def grow(self, delta: Delta) -> None:
        self.begun = True
        if delta.text:
            self.text.append(delta.text)
        if delta.reasoning:
            self.reasoning.append(delta.reasoning)

    def say(self, piece: str) -> None:
        """Keep what a tool says, of a flood the newest."""
        self.output.append(piece)
        if len(self.output) >= 4096 or len(piece) > RESULT_LIMIT:
            self.output[:] = ["".join(self.output)[-RESULT_LIMIT:]]

    def partial(self, model: str, stop: str) -> list[Assistant]:
        """What was streamed of an answer that will not be finished; its calls are left out: they may be half."""
        of, self.growing = self.growing, None
        text, reasoning = "".join(self.text), "".join(self.reasoning) or None
        if of is None or not (text or reasoning):
            return []
        return [Assistant(id=of, content=text, reasoning=reasoning, model=model, stop=stop, created_at=jsonl.now())]

    def outcome(self) -> tuple[str, str | None]:
        if self.blocked:
            return "blocked", "something was refused because nobody could be asked"
        if self.last is None or not self.last.content.strip():
            return "failed", "the model ended its answer without any text"
        if self.last.stop == "length":
            return "failed", "the answer was cut off at the output limit (--max-tokens)"
        return "done", None


async def turn(desk: Desk, user: User) -> AsyncGenerator[Record, None]:
    """Yield `user` first and the end of the turn last. Only bugs and a full disk are raised."""
    state = _State(mode=desk.mode, asks=user.ask, answers=[user.id])
    error: str | None
    try:
        yield user
        for notice in await _begins(desk):
            yield notice
        async with aclosing(_rounds(desk, state)) as rounds:
            async for record in rounds:
                yield record
        outcome, error = state.outcome()
    except asyncio.CancelledError:
        outcome, error = "cancelled", None
        for record in _cut_short(desk, state, "cancelled", "cancelled by the user"):
            yield record
    except CassError as e:
        outcome, error = "failed", str(e)
        for record in _cut_short(desk, state, "error", "not run: the turn failed"):
            yield record
    yield TurnEnd(
        turn=user.id,
        answers=tuple(state.answers),
        outcome=outcome,
        error=error,
        usage=state.usage,
        spent=context.spent(desk.records),
        created_at=jsonl.now(),
    )
    for notice in await _ends(desk, state, outcome, error):
        yield notice


async def _begins(desk: Desk) -> tuple[Notice, ...]:
    """Call the hooks of the start, once for each time that the chat is opened."""
    if desk.begun:
        return ()
    desk.begun = True
    is_new = not any(isinstance(record, TurnEnd) for record in desk.records)
    return (await desk.hook("chat-start", desk.place, new=is_new)).notices


async def _ends(desk: Desk, state: _State, outcome: str, error: str | None) -> tuple[Notice, ...]:
    answer = state.last.content if state.last is not None else ""
    try:
        return (await desk.hook("turn-end", desk.place, outcome=outcome, error=error, answer=answer)).notices
    except asyncio.CancelledError:  # the turn has its end already
        return (Notice(level="warning", text="the hooks of the turn's end were cancelled"),)


async def _rounds(desk: Desk, state: _State) -> AsyncGenerator[Record, None]:
    """Ask, run what is asked for, ask again, until an answer without calls and nothing more from the person.

    Every generator below is closed here and now, not when it is collected: a cancelled turn ends after its tool did.
    """
    while True:
        if summary.is_due(desk):
            async with aclosing(_summarised(desk, state)) as found:
                async for record in found:
                    yield record
        async with aclosing(_answer(desk, state)) as answer:
            async for record in answer:
                yield record
        assert state.last is not None
        if news := _filling(desk):
            yield news
        steered = False
        for number, call in enumerate(state.last.tool_calls):
            if steered:
                yield _result(call, "Error: not run: the user wrote")
                continue
            async with aclosing(_call_and_tell(desk, state, call, number)) as found:
                async for record in found:
                    yield record
            steered = desk.is_steered()
        is_over = not state.last.tool_calls
        while user := desk.steering():
            is_over = False
            state.answers.append(user.id)
            yield user
        if is_over:
            return


# ---- asking the model -----------------------------------------------------------------------------------------------


async def _answer(desk: Desk, state: _State) -> AsyncGenerator[Record, None]:
    """Deltas, then the whole answer, which `state.last` holds afterwards. Failed tries come out marked, never sent."""
    if desk.max_turns is not None and state.requests >= desk.max_turns:
        raise CassError(f"stopped after {desk.max_turns} requests (--max-turns)")
    desk.bill.check()
    state.requests += 1
    retry = cuts = 0
    while True:
        try:
            async with aclosing(_stream(desk, state)) as answer:
                async for record in answer:
                    yield record
            return
        except ProviderError as e:
            cuts += state.begun
            for partial in state.partial(desk.model, "error"):
                yield partial
            if e.too_long:
                async with aclosing(_refitted(desk, state, e)) as found:
                    async for record in found:
                        yield record
                continue
            wait, detail = tries.wait(e, retry, cuts)
            retry += 1
        yield desk.status("retrying", detail)
        await asyncio.sleep(wait)


async def _stream(desk: Desk, state: _State) -> AsyncGenerator[Record, None]:
    yield desk.status("thinking")
    request = desk.request(desk.records, _mode(desk, state))
    state.weight = request.weight
    if news := _left_out(request, state):
        yield Notice(level="warning", text=news)
    of = jsonl.new_id()
    state.begin(of)
    async with aclosing(desk.provider.stream(request, of)) as answer:  # type: ignore[type-var]
        async for record in answer:
            if isinstance(record, Delta):
                state.grow(record)
            else:
                state.growing = None
                record = state.last = desk.bill.charge(record)
                state.usage += record.usage or Usage()
            yield record
    if state.growing is not None:  # a provider of the host program: nothing may be taken for an answer that is none
        raise ProviderError(f"the provider {desk.provider_name} ended without an answer")


def _left_out(request: context.Request, state: _State) -> str | None:
    """What the person should know about a request that does not hold everything; said once a turn."""
    if not (request.left_out or request.shortened) or state.told:
        return None
    state.told = True
    return (
        f"the context is full: {request.left_out} older turns and parts of {request.shortened} tool results are not "
        "sent to the model any more; the chat keeps them (/compact, or a new chat)"
    )


async def _summarised(desk: Desk, state: _State) -> AsyncGenerator[Record, None]:
    """Replace the older turns by a summary. Where that fails it is said once, and the turn goes on without one."""
    if state.unsummarised or not summary.can_help(desk):
        return
    try:
        async with aclosing(summary.older(desk)) as found:
            async for record in found:
                if isinstance(record, Compaction):
                    state.usage += record.usage or Usage()
                    desk.told_full = False
                yield record
    except CassError as e:
        state.unsummarised = True
        text = f"the older turns could not be summarised ({e}); what does not fit is left out of the requests"
        yield Notice(level="warning", text=text)


async def _refitted(desk: Desk, state: _State, error: ProviderError) -> AsyncGenerator[Record, None]:
    """Learn from a request that was too long, so that the next one is shorter. Raises `error` the second time."""
    if state.refitted:
        text = f"context too large, and nothing more can be left out: {error.message}"
        raise dataclasses.replace(error, message=text) from error
    state.refitted = True
    yield tries.shorten(desk, error, state.weight)
    async with aclosing(_summarised(desk, state)) as found:
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


def _mode(desk: Desk, state: _State) -> Mode:
    """A narrower mode holds at once, a wider one from the next turn."""
    return min(desk.mode, state.mode, key=lambda mode: mode.width)


# ---- running a tool -------------------------------------------------------------------------------------------------


async def _call_and_tell(desk: Desk, state: _State, call: ToolCall, number: int) -> AsyncGenerator[Record, None]:
    """Run one call, if it may; hooks hear of one that was run."""
    told: dict[str, Any] | None = None
    async with aclosing(_call(desk, state, call, number)) as found:
        async for record in found:
            yield record
            if isinstance(record, ToolStarted):
                told = {"arguments": call.arguments}
            elif isinstance(record, ToolResult) and told is not None:
                told |= {"ok": record.ok, "result": record.content[:RESULT_TOLD]}
    if told is not None:
        for notice in (await desk.hook("after-tool", desk.place, call.name, **told)).notices:
            yield notice


async def _call(desk: Desk, state: _State, call: ToolCall, number: int) -> AsyncGenerator[Record, None]:
    """Run one call, the `number`-th of its answer, if it may; its result is the last record."""
    if call.arguments_raw is not None:
        yield _result(call, f"Error: the arguments of {call.name} are not a JSON object: {call.arguments_raw[:200]}")
        return
    assert state.last is not None
    place = dataclasses.replace(
        desk.place,
        call_id=re.sub(r"\W", "-", call.id)[:64] or "call",
        decided={},
        sandboxed=sandbox.holds(_mode(desk, state), desk.sandbox),
        keep=desk.keeping((state.last.id, number)),
    )
    try:
        tool = desk.toolbox.find(call.name)
        if call.name not in desk.toolbox.names(_mode(desk, state), desk.rules):
            decision: access.Decision = access.decide(_mode(desk, state), desk.rules, access.Action(call.name))
        else:
            action = tool.action(call.arguments, place)
            decision = access.decide(_mode(desk, state), desk.rules, action)
            if not isinstance(decision, Deny):
                asks = isinstance(decision, Ask)
                verdict = await desk.hook("before-tool", place, call.name, arguments=call.arguments, asks=asks)
                for notice in verdict.notices:
                    yield notice
                # Asked again: the mode may have been narrowed while a hook ran.
                now = access.decide(_mode(desk, state), desk.rules, action)
                decision = Deny(verdict.denied) if verdict.denied is not None else now
            if isinstance(decision, Ask):
                request = _question(call, decision, action, place, state.of, tool)
                async for record in _asked(desk, state, request):
                    yield record
                    if isinstance(record, Approval):
                        decision = _after(record, access.decide(_mode(desk, state), desk.rules, action))
            elif isinstance(decision, Allow) and decision.rule:
                yield _approval(call.id, jsonl.new_id(), Answer(True, f"the rule {decision.rule}"))
        if not isinstance(decision, Allow):
            yield _result(call, f"Error: {decision.reason}")
            return
        async with aclosing(_run(desk, state, call, tool, place)) as found:
            async for record in found:
                yield record
    except ToolError as e:
        yield _result(call, f"Error: {e}")
    except CassError:
        raise
    except Exception as e:
        yield _bug(call, e)


def _bug(call: ToolCall, error: Exception) -> ToolResult:
    """A bug in a tool: its traceback goes to the log, the model and the person hear of it."""
    traceback.print_exception(error)
    return _result(call, f"Error: {call.name} has a bug: {type(error).__name__}: {str(error)[:200]}")


def _question(
    call: ToolCall, ask: Ask, action: access.Action, place: Place, of: str, tool: tools.Tool
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
        created_at=jsonl.now(),
    )


async def _asked(desk: Desk, state: _State, request: ApprovalRequest) -> AsyncGenerator[Record, None]:
    """The request, as long as it takes, and the decision."""
    if not state.asks:
        state.blocked = True
        answer = Answer(False, "nobody: the message came without --ask", "nobody could be asked")
    else:
        yield desk.status("awaiting-approval")
        yield request
        told = {"arguments": request.arguments, "reason": request.reason, "request": request.request_id}
        calling = asyncio.ensure_future(desk.hook("approval-needed", desk.place, request.name, **told))
        try:
            answer = await desk.answer(request.request_id)
        finally:
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
    desk: Desk, state: _State, call: ToolCall, tool: tools.Tool, place: Place
) -> AsyncGenerator[Record, None]:
    yield desk.status("running")
    yield ToolStarted(tool_call_id=call.id, of=state.of, created_at=jsonl.now())
    state.output.clear()
    shown = veil.Output(desk.secrets)
    async with aclosing(tool.run(call.arguments, place)) as pieces:
        async for piece in pieces:
            if isinstance(piece, str):
                if text := shown.piece(piece):
                    state.say(text)
                    yield ToolOutput(tool_call_id=call.id, text=text)
            else:
                desk.place.seen.update(piece.seen)
                content, diff = shown.whole(piece.content), shown.whole(piece.diff or "") or None
                held = place.sandboxed if call.name in RUNS or tool.is_program else None
                if piece.notice:
                    yield Notice(level="warning", text=piece.notice)
                yield _result(call, content, ok=piece.ok, seen=piece.seen, diff=diff, sandboxed=held)
    state.output.clear()


def _result(
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


def _cut_short(desk: Desk, state: _State, stop: str, reason: str) -> list[Record]:
    """What keeps the chat valid after a turn was broken off."""
    output = "".join(state.output)
    found: list[Record] = list(state.partial(desk.model, stop))
    for call in records.open_calls(desk.records):
        found.append(_result(call, f"Error: {reason}" + (f"\n{output[-RESULT_LIMIT:]}" if output else "")))
        output = ""
    return found
