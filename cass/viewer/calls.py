"""Tool calls as lines: what a call is about, how it was decided, what came of it, how it ended.

● read src/app.py 35-60
  │    35  def main() -> None:
  ╰ ok · … 25 more lines (Ctrl-O)

● edit src/app.py (1 edit)
  │ 36 -    run()
  │ 36 +    sys.exit(run())
  ╰ ok · +1 -1 · Applied 1 edit to src/app.py

● shell make test
  │ … 212 more lines (Ctrl-O)
  │ 3 failed, 109 passed
  ╰ failed · exit status 2 · 12 s
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from cass import warning
from cass.amounts import many
from cass.blocks import Call
from cass.callers import who
from cass.headline import as_json, headline
from cass.lineage import short
from cass.pattern import pattern
from cass.records import Approval, ToolCall, ToolResult
from cass.viewer import changes, code, wrapping
from cass.viewer.look import (
    BAD,
    BOLD,
    DIM,
    GOOD,
    SHORT_LINES,
    WARN,
    Look,
    cut,
    duration,
    elapsed,
    ends,
    epoch,
    folded,
    spinner,
    wrapped,
)
from cass.visible import safe, safe_line

LAST_OUTPUT = 6
"""Lines of a running call's output."""

_NO_OUTPUT = "(no output)"
_ENDINGS = pattern(r"exit status \d+|killed by .+|timed out after .+|cancelled .+")
"""First line of the result of a command that ran and failed."""

_BAR = Text("  │ ", DIM)
_FOOT = Text("  ╰ ", DIM)
_UNDER = Text("    ")


def finished(block: Call, look: Look) -> list[Text]:
    """A call, how it was decided, and its result beneath it."""
    made = _head(block, look)
    if look.full:
        made += _barred(_json_lines(block), look)
    made += _changed(block, look)
    approval = block.approval
    if approval is not None and approval.decision == "approved":
        made += [Text.assemble(_BAR, part) for part in wrapped(decision(approval, look), look, 4)]
    if block.result is None:
        return [*made, *_foot(Text("no result", WARN), look)]
    return made + _result(block, block.result, look)


def _head(block: Call, look: Look, mark: str = "●", most: int = SHORT_LINES) -> list[Text]:
    if block.result is None:
        style = WARN if block.request else DIM
    else:
        style = GOOD if block.result.ok else BAD
    name = Text.assemble((safe_line(block.call.name), BOLD), " ")
    shown, said = headline(block.call).split("\n"), ""
    if block.request is None or look.is_framed:  # what is to be approved is never cut where it is asked
        shown, said = cut(shown, most, look.short_characters, look)
    first, *more = map(Text, shown)
    made = [part for line in (name + first, *more) for part in folded(line, look, 4)]
    made += [Text(said, DIM)] if said and most > 1 else []
    return wrapping.indent(made, _UNDER, first=Text(f"{mark} ", style))


def _result(block: Call, result: ToolResult, look: Look) -> list[Text]:
    if block.approval is not None and block.approval.decision == "denied":
        return _foot(decision(block.approval, look), look)
    content = safe(result.content).strip("\n")
    if not result.ok:
        content = content.removeprefix("Error: ")
    is_cancelled = not result.ok and is_cancel(result)
    style = GOOD if result.ok else WARN if is_cancelled else BAD
    state = [] if is_cancelled else [("ok" if result.ok else "failed", style)]
    if result.diff:
        state.append((f" · {changes.counts(result.diff)}", DIM))
    if result.name == "shell":
        ending, content = _ending(block, result, content)
        state.append((ending if state else ending.removeprefix(" · "), DIM if result.ok else style))
    elif is_cancelled:
        said, _, content = content.partition("\n")
        state.append((said, style))
    body = content.split("\n") if content else []
    if len(body) <= 1 and len(content) < 200:
        return _foot(Text.assemble(*state, f" · {content}" if content else ""), look)
    if result.name == "shell":
        made, hidden = _barred(ends(body, look), look), ""
    else:
        shown, hidden = cut(body, SHORT_LINES, look.short_characters, look)
        made = _barred(map(Text, wrapping.abreast(shown) if result.name == "ls" else shown), look)
    return made + _foot(Text.assemble(*state, (f" · {hidden}" if hidden else "", DIM)), look)


def is_cancel(result: ToolResult) -> bool:
    """Whether a result says that the turn was cancelled while the call ran, or before it did."""
    return not result.ok and result.content.startswith("Error: cancelled by ")


def _ending(block: Call, result: ToolResult, content: str) -> tuple[str, str]:
    """How a command ended and how long it took, and its output alone."""
    said, _, output = content.partition("\n")
    if result.ok:
        said, output = "exit status 0", "" if content == _NO_OUTPUT else content
    elif not _ENDINGS.fullmatch(said):  # it did not run, or nobody knows how it ended
        return "", content
    began, ended = epoch(block.started_at), epoch(result.created_at)
    took = f" · {duration(round(ended - began, 1))}" if began and ended and ended >= began else ""
    held = " · sandboxed" if result.sandboxed else ""
    return f" · {said}{took}{held}", output


def _barred(body: Iterable[Text], look: Look) -> list[Text]:
    return [Text.assemble(_BAR, part) for line in body for part in folded(line, look, 4)]


def _foot(text: Text, look: Look) -> list[Text]:
    return wrapping.indent(wrapped(text, look, 4), _UNDER, first=_FOOT)


def decision(approval: Approval, look: Look) -> Text:
    """Who allowed or denied it, and why."""
    of = f"agent {short(approval.agent)}: " if approval.agent else ""
    text = Text(f"{of}{safe_line(approval.decision)} by {who(approval.by, look.user, with_pid=look.full)}")
    if approval.rule:
        text.append(f", always for {safe_line(approval.rule)}")
    if approval.reason:
        text.append(f": {safe_line(approval.reason)}")
    text.stylize(WARN if approval.decision == "denied" else DIM)
    return text


def _json_lines(block: Call) -> list[Text]:
    if block.call.arguments_raw is not None:
        return [Text(line) for line in safe(str(block.call.arguments_raw)).split("\n")]
    return code.highlight(as_json(block.call.arguments, indent=2), "json")


def _changed(block: Call, look: Look) -> list[Text]:
    """What a call changed in a file; where only its arguments tell, what an edit means to change."""
    told = block.result or block.request
    if told is not None and told.diff:
        return [Text.assemble(_BAR, line) for line in changes.lines(told.diff, look, 4)]
    if block.call.name != "edit":
        return []
    shown, said = cut(_meant(block.call.arguments), SHORT_LINES, look.short_characters, look)
    lines = [Text(line, {"-": BAD, "+": GOOD}.get(line[0], DIM)) for line in shown]
    return _barred([*lines, *([Text(said, DIM)] if said else [])], look)


def _meant(arguments: Mapping[str, Any]) -> list[str]:
    """What an edit takes away and puts in its place; nothing for arguments that the tool would refuse."""
    edits = arguments.get("edits")
    made: list[str] = []
    for edit in edits if isinstance(edits, list) else []:
        old, new = (edit.get("old_text"), edit.get("new_text")) if isinstance(edit, dict) else (None, None)
        if isinstance(old, str) and isinstance(new, str):
            diff = list(difflib.unified_diff(safe(old).splitlines(), safe(new).splitlines(), lineterm="", n=1))[2:]
            made += [line for line in diff if line[0] != "@"]
    return made


# ---- while it runs --------------------------------------------------------------------------------------------------


def running(blocks: Sequence[Call], look: Look, at: float) -> list[Text]:
    """Calls that wait for the person, or run, and those of their neighbours that are done: of several less each."""
    most = SHORT_LINES if len(blocks) == 1 else 1
    return [line for block in blocks for line in _running(block, look, at, most, LAST_OUTPUT // len(blocks) or 1)]


def _running(block: Call, look: Look, at: float, most: int, last: int) -> list[Text]:
    """`most`: lines of its head; `last`: of its output."""
    runs = block.request is None and block.result is None and not look.is_framed
    made = _head(block, look, spinner(at) if runs else "●", most)
    if block.result is not None:
        return [*made, *_foot(Text("ok" if block.result.ok else "failed", GOOD if block.result.ok else BAD), look)]
    if block.request is not None and look.is_framed:
        return [*made, *_foot(Text("waits for your answer", WARN), look)]
    if block.request is not None:
        if block.request.agent:
            asks = ToolCall(block.call.id, block.request.name, block.request.arguments)
            made += _barred(map(Text, f"{safe_line(asks.name)} {headline(asks)}".split("\n")), look)
        made += _changed(block, look)
        asked = Text(f"waits for approval: {safe_line(block.request.reason)}", WARN)
        if said := warning.of(block.request):
            asked.append(f"\n{said}", WARN)
        return [*made, *_foot(asked, look)]
    tail = safe(block.output[-look.width * last * 2 :]).rstrip("\n").split("\n")[-last:]
    made += _barred([Text(line, DIM) for line in tail if line or len(tail) > 1], look)[-last:]
    return [*made, *_foot(Text(f"running{elapsed(block.started_at, at)}", DIM), look)]


def begun(name: str, arguments: str, look: Look) -> list[Text]:
    text = Text.assemble(("● ", DIM), (safe_line(name), BOLD), (f" … {many(len(arguments), 'character')}", DIM))
    return wrapped(text, look)
