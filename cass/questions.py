"""Questions: what waits for the person's decision, and what was decided."""

import asyncio

from cass.decisions import Answer
from cass.records import Approval, ApprovalRequest


class Questions:
    """Those of one turn; the first answer to each wins."""

    def __init__(self) -> None:
        self._pending: dict[str, ApprovalRequest] = {}
        self._answers: dict[str, asyncio.Future[Answer]] = {}
        self._decided: dict[str, str] = {}

    def clear(self) -> None:
        """A turn begins or ends. What was decided is still known, for those who come late."""
        self._pending.clear()
        self._answers.clear()

    def put(self, request: ApprovalRequest) -> None:
        """It can be answered from now on, before the turn waits for it."""
        self._pending[request.request_id] = request
        self.answer_to(request.request_id)

    def pending(self, request_id: str) -> ApprovalRequest | None:
        """The request, if it waits for a decision."""
        return self._pending.get(request_id)

    def answer_to(self, request_id: str) -> "asyncio.Future[Answer]":
        """What the turn waits for."""
        if request_id not in self._answers:
            self._answers[request_id] = asyncio.get_running_loop().create_future()
        return self._answers[request_id]

    def answer(self, request_id: str, answer: Answer) -> str | None:
        """Hand a decision to the turn; the first wins. Return why it came to nothing, else None."""
        if request_id in self._decided:
            return f"already decided: {self._decided[request_id]}"
        waiting = self._answers.get(request_id)
        if waiting is None or waiting.done():
            return f"no request {request_id!r} is waiting"
        self._decided[request_id] = f"{'approved' if answer.approved else 'denied'} by {answer.by}"
        waiting.set_result(answer)
        return None

    def settle(self, approval: Approval) -> None:
        """The decision stands in the chat; it may have been made elsewhere."""
        self._pending.pop(approval.request_id, None)
        self._decided.setdefault(approval.request_id, f"{approval.decision} by {approval.by}")
