"""A question: an approval as a composer puts it to the person. Pure.

An answer is only taken from a quiet keyboard: who types when the question appears goes on typing into the draft.
"""

import json
from dataclasses import dataclass

from cass.access import READS, WRITES
from cass.records import ApprovalRequest
from cass.visible import safe, safe_line

QUIET_S = 0.7
"""So long no key must have come, since the question stands there, before a key can be an answer."""

Fragments = list[tuple[str, str]]


@dataclass(slots=True)
class Question:
    request: ApprovalRequest
    shown_at: float
    """Seconds on the monotonic clock."""
    stage: str = "ask"
    """``ask``, ``reason`` (why not?) or ``rule`` (always, like this?)."""
    is_sent: bool = False
    """This composer answered; the worker has not said so yet."""

    def takes_keys(self, last_key: float, now: float) -> bool:
        return not self.is_sent and now - max(self.shown_at, last_key) >= QUIET_S

    def fragments(self, takes_keys: bool, rows: int) -> Fragments:
        """The question as it stands on the screen; of a long subject only what leaves the rest within `rows` lines."""
        lines = subject(self.request).split("\n")
        room = max(rows - 4, 3)
        shown = lines if len(lines) <= room else lines[: room - 1]
        text: Fragments = [("class:ask", f"{safe_line(self.request.name)} asks"), ("", "\n")]
        text += [("class:subject", f"  {line}\n") for line in shown]
        if len(shown) < len(lines):
            text.append(("class:ask", f"  … {len(lines) - len(shown)} more lines, printed whole above\n"))
        text.append(("class:dim", safe_line(self.request.reason) + "\n"))
        if is_unbounded(self.request):
            text.append(("class:error", "not sandboxed: this command can do anything you can\n"))
        return text + self._answers(takes_keys)

    def is_long(self, rows: int) -> bool:
        """Whether `fragments` leaves lines of the subject out."""
        return subject(self.request).count("\n") + 1 > max(rows - 4, 3)

    def _answers(self, takes_keys: bool) -> Fragments:
        if self.stage == "reason":
            return [("class:dim", "denied, because (Enter for no reason, Esc to go back):")]
        if self.stage == "rule":
            return [
                ("", f"always, until this worker ends:  {safe_line(self.request.rule or '')}\n"),
                *_keys(takes_keys, ("y", "give this rule"), ("n", "back")),
            ]
        if self.is_sent:
            return [("class:dim", "answered")]
        always = [("a", "always for this chat")] if self.request.rule else []
        return _keys(takes_keys, ("y", "approve"), ("n", "deny"), *always)


def subject(request: ApprovalRequest) -> str:
    """Everything that would be done, as safe lines: a command as it is, other arguments by name."""
    arguments = dict(request.arguments)
    lines = []
    if isinstance(command := arguments.get("command"), str):
        lines.append(safe(command).expandtabs(4))
        del arguments["command"]
    for name, value in arguments.items():
        text = safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2))
        text = text.expandtabs(4)
        lines.append(f"{safe_line(name)}: {text}" if "\n" not in text else f"{safe_line(name)}:\n{_indent(text)}")
    return "\n".join(lines)


def is_unbounded(request: ApprovalRequest) -> bool:
    """Whether it asks for a program that nothing holds back."""
    return not request.sandboxed and request.name not in READS | WRITES


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _keys(takes_keys: bool, *answers: tuple[str, str]) -> Fragments:
    style = "class:key" if takes_keys else "class:dim"
    text: Fragments = []
    for key, meaning in answers:
        text += [("class:dim", " · ")] if text else []
        text += [(style, key), ("class:dim", f" {meaning}")]
    return text
