"""Verdicts: what each access mode would decide about a call, and which rule says so, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cass import access, rules
from cass.access import Action, Allow, Decision, Mode
from cass.compound import Uncertain
from cass.errors import UsageError
from cass.home import Home
from cass.rules import FETCHES, READS, RUNS, WRITES, Rules
from cass.tools.paths import Place, reach
from cass.web import url

_OUTCOMES = {"Allow": "allowed", "Ask": "asked", "Deny": "denied"}


@dataclass(frozen=True, slots=True)
class Explained:
    tool: str
    subject: str
    means: str
    """Where a path leads, what a URL means; "" for a command."""
    parts: tuple[tuple[str, str], ...]
    """The parts of a command, each with what the rules say of it."""
    uncertain: str
    """Why it cannot be taken apart; "" where it can."""
    decisions: dict[Mode, Decision]

    def as_json(self) -> dict[str, object]:
        return {
            "tool": self.tool,
            "subject": self.subject,
            "means": self.means or None,
            "parts": [{"text": text, "rules": said} for text, said in self.parts],
            "uncertain": self.uncertain or None,
            "decisions": {
                mode: {"outcome": _OUTCOMES[type(found).__name__], "reason": _reason(found)}
                for mode, found in self.decisions.items()
            },
        }

    def lines(self) -> Iterator[str]:
        yield f"{self.tool}: {self.subject}"
        if self.means:
            yield f"  {self.means}"
        width = max((len(text) for text, _ in self.parts), default=0)
        for text, said in self.parts:
            yield f"  {text:{width}}  {said}"
        if self.uncertain:
            yield f"  it cannot be taken apart for certain: {self.uncertain}"
            yield "  so only a rule for exactly this text, or for the whole tool, allows it"
        for mode, found in self.decisions.items():
            reason = _reason(found)
            yield f"{mode:16}{_OUTCOMES[type(found).__name__]:9}{reason}".rstrip()


def _reason(found: Decision) -> str:
    if isinstance(found, Allow):
        return f"by {found.rule}" if found.rule else ""
    return found.reason


def explain(question: str, given: Rules, home: Home, cwd: Path) -> Explained:
    """What would be decided about ``TOOL: COMMAND, PATH OR URL`` in `cwd`. Raises UsageError, ToolError."""
    tool, colon, subject = question.partition(":")
    tool, subject = tool.strip(), subject.strip()
    known = READS | WRITES | RUNS | FETCHES
    if not colon or tool not in known or not subject:
        names = ", ".join(sorted(known))
        raise UsageError(f"--rules: expected 'TOOL: COMMAND, PATH OR URL', with one of {names}; not {question!r}")
    action = _action(tool, subject, home, cwd)
    parts: tuple[tuple[str, str], ...] = ()
    uncertain = ""
    if action.command is not None:
        try:
            found = rules.allowing(given.allow, tool, subject)
            parts = tuple((text, _said(text, rule, tool, given)) for text, rule in found)
        except Uncertain as e:
            uncertain = str(e)
    decisions = {mode: access.decide(mode, given, action) for mode in Mode}
    return Explained(tool, subject, _means(action), parts, uncertain, decisions)


def _said(part: str, allowing: str | None, tool: str, given: Rules) -> str:
    """Which rule speaks of a part of a command, the strongest first."""
    if rule := rules.mentioning(given.deny, tool, part):
        return f"denied by {rule}"
    if rule := rules.mentioning(given.ask, tool, part):
        return f"asked by {rule}"
    return f"allowed by {allowing}" if allowing else "no rule allows it"


def _action(tool: str, subject: str, home: Home, cwd: Path) -> Action:
    if tool in RUNS:
        return Action(tool, command=subject)
    if tool in FETCHES:
        return Action(tool, url=str(url.parse(subject)))
    place = Place(cwd, home.root, home.root / "run", "check", "check", {}, {})
    return Action(tool, (reach(subject, place, write=tool in WRITES),))


def _means(action: Action) -> str:
    words = [action.url] if action.url else []
    for found in action.reaches:
        words.append(found.path)
        words.append("in the workspace" if found.inside else "outside the workspace")
        words += ["which other programs run or trust"] * found.guarded
        words += ["closed to tools"] * found.private
    return ", ".join(words)
