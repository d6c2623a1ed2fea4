"""The standing of a chat: what it does now, and what it asks; a fold of its records, for all who show that.

Records of the chat and of its live file may be stepped through in any order between the two.
"""

from functools import reduce
from typing import NamedTuple

from cass import presence
from cass.home import Files
from cass.records import Approval, ApprovalRequest, Assistant, Meta, Record, Status, ToolResult, TurnEnd, Usage, User
from cass.tail import Tail

IDLE, AWAITING, RETRYING = "idle", "awaiting-approval", "retrying"
STARTING, STOPPED = "starting", "stopped"
"""What a worker cannot say of itself: it is on its way, or there is none. The others are those of `Status`."""


class Standing(NamedTuple):
    provider: str = ""
    model: str = ""
    mode: str = ""
    cwd: str = ""
    state: str = ""
    """As `Status` has it; "" before any worker has spoken. Means nothing while no worker runs."""
    detail: str = ""
    since: str = ""
    """Since when the worker does what it does: since it is idle; while busy, since the turn began."""
    used: int | None = None
    limit: int | None = None
    assumed: bool = False
    """Whether `limit` is a guess."""
    cost: float | None = None
    """USD that the chat has cost, as far as it is known."""
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

    def left(self) -> "Standing":
        """What still stands when the worker is gone."""
        return (
            self if not self.state else self._replace(state="", detail="", since="", pending=(), answered=frozenset())
        )


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
        case ToolResult(tool_call_id=call, created_at=at):
            # Ids of calls may come again in a later answer: only a result from after the question settles it.
            pending = tuple(r for r in standing.pending if r.tool_call_id != call or r.created_at > at)
            return standing._replace(pending=pending)
        case Assistant(content=content, stop=stop) if content and stop != "error":
            return standing._replace(answer=content)
        case User(effort=effort):
            return standing._replace(effort=effort or "")
        case TurnEnd(usage=usage, spent=spent, created_at=at):
            cost = standing.cost if spent is None else max(spent, standing.cost or 0)
            # A worker with more to do goes on without being idle, also one that mends what another left.
            return standing._replace(usage=usage or standing.usage, since=max(standing.since, at), cost=cost)
        case Meta(cwd=cwd):
            return standing._replace(cwd=cwd or standing.cwd)
        case _:
            return standing


def look(files: Files) -> Standing:
    """The standing of a chat as its files have it now; of what is live nothing where no worker runs."""
    live = Tail(files.live)
    facts = Tail.last(files.chat)
    # Live first: what the chat has settled supersedes it.
    records = [*(live.read() if presence.is_running(files) else []), *facts.read()]
    live.close()
    facts.close()
    return reduce(step, records, Standing())


def words(state: str) -> str:
    """A state as people read it, in every list and line."""
    return state.replace("-", " ")


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
        assumed=status.assumed,
        cost=status.cost if status.cost is not None else standing.cost,
    )
    if not (was_busy and now.is_busy):
        now = now._replace(since=status.created_at)
    if status.state != AWAITING:  # the worker goes on: whatever it asked is settled, also by a cancel
        now = now._replace(pending=(), answered=now.answered if now.is_busy else frozenset())
    return now
