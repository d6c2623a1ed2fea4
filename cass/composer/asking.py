"""Asking: pending approvals, put to the person one after the other until each is answered, here or anywhere else."""

import time
from collections.abc import Callable
from typing import Any

from cass import decisions
from cass.callers import me, who
from cass.composer.console import Console
from cass.composer.question import QUIET_S, Fragments, Question
from cass.composer.seat import Seat
from cass.records import Approval
from cass.visible import safe_line

ROWS_BELOW = 6
"""Rows of the screen that a question leaves to the input and the lines below it."""


class Asking:
    def __init__(self, seat: Seat, console: Console, decide: Callable[[dict[str, Any]], None]) -> None:
        """`decide` carries a decision to the worker."""
        self._seat = seat
        self._console = console
        self._decide = decide
        self._last_key = 0.0
        self.question: Question | None = None

    def update(self) -> bool:
        """Put up the oldest pending approval, or take down the settled one; return whether there is a new one."""
        pending = self._seat.standing.pending if self._seat.is_running else ()
        shown = self.question.request.request_id if self.question else None
        if shown in [request.request_id for request in pending] or not (shown or pending):
            return False
        if self._console.in_reason:
            self._console.focus_reason(False)
        self.question = Question(pending[0], time.monotonic()) if pending else None
        return bool(pending)

    def answered_elsewhere(self, approval: Approval) -> str:
        """Who was faster with the question that stands here, in words; "" where it was answered here, or is another."""
        question = self.question
        if question is None or question.request.request_id != approval.request_id or question.is_sent:
            return ""
        return f"{safe_line(approval.decision)} elsewhere, by {who(approval.by, me())}"

    def key_came(self) -> None:
        self._last_key = time.monotonic()

    def is_quiet(self) -> bool:
        """Whether nobody is in the middle of typing."""
        return time.monotonic() - self._last_key >= QUIET_S

    def takes_answers(self) -> bool:
        """Whether the next key can be an answer."""
        return self.question is not None and self.question.stage != "reason" and self._is_quiet()

    def fragments(self) -> Fragments:
        return self.question.fragments(self._is_quiet(), *self._room) if self.question else []

    def is_long(self) -> bool:
        """Whether there is more of what is asked than stands on the screen."""
        return self.question is not None and self.question.stage != "reason" and self.question.is_long(*self._room)

    def scroll(self, screens: int) -> None:
        if self.question:
            self.question.scroll(screens, *self._room)

    def answer(self, key: str) -> None:
        """One of the answers' keys, from a quiet keyboard."""
        question = self.question
        assert question is not None
        match question.stage, key:
            case "ask", "y":
                self._send({"do": "approve"})
            case "rule", "y":
                self._send({"do": "approve", "always": True})
            case "ask", "n":
                question.stage = "reason"
                self._console.focus_reason(True)
            case "ask", "a" if question.request.rule:
                question.stage = "rule"
            case "rule", _:
                question.stage = "ask"

    def give_reason(self) -> None:
        """Deny, with what was typed as the reason."""
        reason = self._console.reason.text.strip()
        self._console.focus_reason(False)
        self._send({"do": "deny"} | ({"reason": reason} if reason else {}))

    def go_back(self) -> bool:
        """From the reason or the rule to the question; False where it stands at the question, or there is none."""
        if self.question is None or self.question.stage == "ask":
            return False
        self.question.stage = "ask"
        self._console.focus_reason(False)
        return True

    def not_taken(self) -> None:
        """The worker refused the answer: the question stands again."""
        if self.question:
            self.question.is_sent = False

    def _send(self, decision: dict[str, Any]) -> None:
        assert self.question is not None
        self.question.is_sent = True
        self.question.stage = "ask"
        request = self.question.request
        seen = {"digest": decisions.digest(request)} if decision["do"] == "approve" else {}
        self._decide(decision | {"request_id": request.request_id} | seen)

    def _is_quiet(self) -> bool:
        return bool(self.question and self.question.takes_keys(self._last_key, time.monotonic()))

    @property
    def _room(self) -> tuple[int, int]:
        size = self._console.size
        return size.rows - ROWS_BELOW, size.columns
