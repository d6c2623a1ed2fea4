"""Loose ends: what a chat has left open, and what closes it."""

from collections.abc import Iterable, Sequence

from cass.records import Assistant, Fact, Record, ToolCall, ToolResult, TurnEnd, User


def open_calls(records: Iterable[Record]) -> list[ToolCall]:
    """Calls without a result, in order. Of several with one id a result is that of the first."""
    calls: list[ToolCall] = []
    for record in records:
        if isinstance(record, Assistant) and record.stop != "error":
            calls += record.tool_calls
        elif isinstance(record, ToolResult):
            answered = next((call for call in calls if call.id == record.tool_call_id), None)
            if answered is not None:
                calls.remove(answered)
    return calls


def open_turn(records: Iterable[Record]) -> tuple[str, ...]:
    """Ids of the user messages that no `turn_end` answers yet, in order; the first one names the turn."""
    waiting: dict[str, None] = {}
    for record in records:
        if isinstance(record, User):
            waiting[record.id] = None
        elif isinstance(record, TurnEnd):
            for answered in record.answers:
                waiting.pop(answered, None)
    return tuple(waiting)


def closing(records: Sequence[Record], reason: str, at: str) -> list[Fact]:
    """What to append so that the next request is valid after a worker died: results, then the end of the turn."""
    content = f"Error: interrupted: {reason}; what the call had begun may have gone on"
    results: list[Fact] = [
        ToolResult(tool_call_id=call.id, name=call.name, content=content, ok=False, created_at=at)
        for call in open_calls(records)
    ]
    answers = open_turn(records)
    if answers:
        results.append(
            TurnEnd(turn=answers[0], answers=answers, outcome="failed", error=f"interrupted: {reason}", created_at=at)
        )
    return results
