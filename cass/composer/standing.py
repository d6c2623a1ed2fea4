"""The standing of a chat: a fold of its records into what a person at the keyboard must know. Pure.

Records of the chat and of its live file may be stepped through in any order between the two.
"""

from typing import NamedTuple

from cass.records import Approval, ApprovalRequest, Assistant, Meta, Record, Status, TurnEnd, Usage, User

IDLE = "idle"


class Standing(NamedTuple):
    provider: str = ""
    model: str = ""
    mode: str = ""
    cwd: str = ""
    state: str = ""
    """As `Status` has it; "" before any worker has spoken. Means nothing while no worker runs."""
    detail: str = ""
    since: str = ""
    """When the state was last idle, or when the worker was first seen busy."""
    used: int | None = None
    limit: int | None = None
    pending: tuple[ApprovalRequest, ...] = ()
    """Approvals that wait for an answer, oldest first."""
    answered: frozenset[str] = frozenset()
    """Ids of requests that were answered in the turn that runs."""
    effort: str = ""
    """How much the model reasons, as the last message had it; "" for the model's own way."""
    answer: str = ""
    """The model's last text."""
    usage: Usage | None = None
    """Of the last turn that told it."""

    @property
    def is_busy(self) -> bool:
        return self.state not in ("", IDLE)


def step(standing: Standing, record: Record) -> Standing:
    """Fold one record in."""
    match record:
        case Status():
            return _status(standing, record)
        case ApprovalRequest(request_id=id) if id not in standing.answered:
            return standing._replace(pending=(*(r for r in standing.pending if r.request_id != id), record))
        case Approval(request_id=id):
            pending = tuple(request for request in standing.pending if request.request_id != id)
            return standing._replace(pending=pending, answered=standing.answered | {id})
        case Assistant(content=content, stop=stop) if content and stop != "error":
            return standing._replace(answer=content)
        case User(effort=effort):
            return standing._replace(effort=effort or "")
        case TurnEnd(usage=usage):
            return standing._replace(usage=usage or standing.usage)
        case Meta(provider=provider, model=model, cwd=cwd):
            return standing._replace(
                provider=standing.provider if standing.state else provider,
                model=standing.model if standing.state else model,
                cwd=cwd or standing.cwd,
            )
        case _:
            return standing


def _status(standing: Standing, status: Status) -> Standing:
    was_busy = standing.is_busy
    now = standing._replace(
        provider=status.provider,
        model=status.model,
        mode=status.mode,
        state=status.state,
        detail=status.detail or "",
        used=status.used if status.used is not None else standing.used,
        limit=status.limit if status.limit is not None else standing.limit,
    )
    if not (was_busy and now.is_busy):
        now = now._replace(since=status.created_at)
    if status.state != "awaiting-approval":  # the worker goes on: whatever it asked is settled, also by a cancel
        now = now._replace(pending=(), answered=now.answered if now.is_busy else frozenset())
    return now
