"""A question: an approval as a composer puts it to the person. Pure.

An answer is only taken from a quiet keyboard: who types when the question appears goes on typing into the draft.
"""

import json
from dataclasses import dataclass

from cass import lineage, warning
from cass.composer.rows import cells, fold, parted, wrap
from cass.records import ApprovalRequest
from cass.rules import FETCHES
from cass.visible import safe, safe_line
from cass.web import url

QUIET_S = 0.7
"""So long no key must have come, since the question stands there, before a key can be an answer."""

Fragments = list[tuple[str, str]]


FEWEST_ROWS = 2
"""Of the subject, however small the screen is."""
SCROLLED = ("  rows {} of {}, PageUp and PageDown scroll", "  rows {} of {}, PageUp", "  {} of {}")
"""Where a long subject is scrolled to, in the first of these that fits into a row."""


@dataclass(slots=True)
class Question:
    request: ApprovalRequest
    shown_at: float
    """Seconds on the monotonic clock."""
    stage: str = "ask"
    """``ask``, ``reason`` (why not?) or ``rule`` (always, like this?)."""
    is_sent: bool = False
    """This composer answered; the worker has not said so yet."""
    top: int = 0
    """The first row of the subject that stands on the screen."""

    def takes_keys(self, last_key: float, now: float) -> bool:
        """Whether a key is an answer. Once the person has asked for the rule, the next key is one at once."""
        is_quiet = self.stage == "rule" or now - max(self.shown_at, last_key) >= QUIET_S
        return not self.is_sent and is_quiet

    def fragments(self, takes_keys: bool, rows: int, columns: int) -> Fragments:
        """The question as it stands on the screen; of a long subject what fits into `rows`, from `top` on."""
        lines, room = self._wrapped(rows, columns), self._room(rows, columns)
        shown = lines[self.top : self.top + room]
        text: Fragments = [
            ("class:ask", f"{safe_line(self.request.name)}{lineage.of_agent(self.request.agent)} asks"),
            ("", "\n"),
        ]
        text += [(style, f"  {line}\n") for style, line in shown]
        if len(shown) < len(lines):
            place = f"{self.top + 1}-{self.top + len(shown)}"
            forms = [form.format(place, len(lines)) for form in SCROLLED]
            text.append(("class:ask", next((form for form in forms if cells(form) <= columns), forms[-1]) + "\n"))
        text += [("class:dim", f"{row}\n") for row in self._reason(rows, columns)[0]]
        if said := warning.of(self.request):
            text.append(("class:error", f"{fold(said, columns)}\n"))
        return text + self._answers(takes_keys, columns)

    def is_long(self, rows: int, columns: int) -> bool:
        """Whether `fragments` leaves rows of the subject out."""
        return len(self._wrapped(rows, columns)) > self._room(rows, columns)

    def scroll(self, screens: int, rows: int, columns: int) -> None:
        """Go on, or back, by so many times what stands on the screen."""
        room = self._room(rows, columns)
        last = max(len(self._wrapped(rows, columns)) - room, 0)
        self.top = min(max(self.top + screens * max(room - 1, 1), 0), last)

    def _room(self, rows: int, columns: int) -> int:
        """Rows for the subject: the others are the name, where it is scrolled to, the reason, the warning, answers."""
        return max(rows - 2 - self._taken(columns) - len(self._reason(rows, columns)[0]), FEWEST_ROWS)

    def _taken(self, columns: int) -> int:
        """Rows of the warning and the answers."""
        answers = "".join(text for _, text in self._answers(True, columns))
        below = [*fold(warning.of(self.request), columns).split("\n"), *answers.split("\n")]
        return sum(len(wrap(line, max(columns, 1))) for line in below if line)

    def _reason(self, rows: int, columns: int) -> tuple[list[str], str]:
        """Why it is asked, in rows, and what of it they have no room for: that stands below the subject.

        There is room for what leaves the subject whole, or else for a third of the screen.
        """
        spare = rows - 2 - self._taken(columns) - len(_rows(subject(self.request), columns))
        text = safe_line(self.request.reason)
        whole = parted(text, columns, max(rows // 3, spare, 1))
        return parted(text, columns, max(rows // 3, 1)) if whole[1] else whole

    def _wrapped(self, rows: int, columns: int) -> Fragments:
        rest = self._reason(rows, columns)[1]
        return _rows(subject(self.request) + (_styled("class:dim", f"because … {rest}") if rest else []), columns)

    def _answers(self, takes_keys: bool, columns: int) -> Fragments:
        if self.stage == "reason":
            return [("class:dim", fold("denied; Enter for no reason, Esc to go back", columns))]
        if self.stage == "rule":
            return [
                ("", f"always, until this worker ends:  {safe_line(self.request.rule or '')}\n"),
                *_keys(takes_keys, columns, ("y", "give this rule"), ("n", "back")),
            ]
        if self.is_sent:
            return [("class:dim", "answered")]
        always = [("a", f"always for this {'agent' if self.request.agent else 'chat'}")] if self.request.rule else []
        return _keys(takes_keys, columns, ("y", "approve"), ("n", "deny"), *always)


def subject(request: ApprovalRequest) -> Fragments:
    """Everything that would be done, as safe lines: a command as it is, a change as its diff, the rest by name."""
    arguments = dict(request.arguments)
    lines: Fragments = []
    if isinstance(command := arguments.get("command"), str):
        lines += _styled("class:subject", safe(command))
        del arguments["command"]
    if request.name in FETCHES and isinstance(address := arguments.get("url"), str):
        lines += _styled("class:subject", safe_line(url.shown(address)))
        del arguments["url"]
    if (diff := request.diff) is not None:
        lines += _styled("class:subject", safe_line(f"{request.name} {arguments.get('path', '')}"))
        return lines + [(_DIFF.get(line[:1], ""), line) for _, line in _styled("", safe(diff.removesuffix("\n")))]
    for name, value in arguments.items():
        text = safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2))
        whole = f"{safe_line(name)}: {text}" if "\n" not in text else f"{safe_line(name)}:\n{_indent(text)}"
        lines += _styled("class:subject", whole)
    return lines


_DIFF = {"+": "class:added", "-": "class:removed", "@": "class:dim", "\\": "class:dim"}


def _styled(style: str, text: str) -> Fragments:
    return [(style, line) for line in text.expandtabs(4).split("\n")]


def _rows(lines: Fragments, columns: int) -> Fragments:
    """The subject as it stands on the screen, two columns to the right."""
    return [(style, row) for style, line in lines for row in wrap(line, max(columns - 2, 1))]


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _keys(takes_keys: bool, columns: int, *answers: tuple[str, str]) -> Fragments:
    """The answers, in as many rows as they need."""
    style = "class:key" if takes_keys else "class:dim"
    text: Fragments = []
    used = 0
    for key, meaning in answers:
        taken = cells(f"{key} {meaning}")
        is_beside = bool(text) and used + 3 + taken <= columns
        if text:
            text.append(("class:dim", " · ") if is_beside else ("", "\n"))
        used = used + 3 + taken if is_beside else taken
        text += [(style, key), ("class:dim", f" {meaning}")]
    return text
