"""What a block looks like: lines of a width, and the escape sequences that colour them.

    ❯ what a person says
    ● read src/app.py 35-60        a tool call: what it is about, what came of it, how it ended
      │    35  def main() -> None:
      ╰ ok · … 25 more lines (Ctrl-O)

Whatever a line quotes is made `safe` first, so that the only escape sequences are those made in `ansi`.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text

from cass import prose
from cass.blocks import Answer, Block, Call, Moved, Now, headline, safe, safe_line
from cass.markdown import Code, Fence, Piece, Prose, split
from cass.records import Approval, Assistant, Compaction, Meta, Notice, Status, ToolResult, TurnEnd, User

SHORT_LINES = 12
SHORT_CHARACTERS = 2_000
LONGEST_MESSAGE = 60
"""Lines of a user's message in the short view: enough for what is written, too few for what is pasted."""
LAST_OUTPUT = 6
"""Lines of a running call's output."""

DIM = prose.DIM
BOLD = prose.BOLD
GOOD = Style(color="green")
BAD = Style(color="red")
WARN = Style(color="yellow")
MARK = Style(color="cyan", bold=True)


@dataclass(frozen=True, slots=True)
class Look:
    """How one screen shows everything; never stored."""

    width: int = 80
    escapes: bool = True
    """Whether escape sequences may be written at all."""
    color: bool = True
    """Whether they may be colours."""
    full: bool = False
    """Tool calls and results whole."""
    reasoning: bool = False
    plain: bool = False
    """Markdown as its source, nothing wrapped."""
    short_characters: int = SHORT_CHARACTERS


def look_for(environ: Mapping[str, str], is_terminal: bool, color: str = "auto", **fields: Any) -> Look:
    """The look for an output, from ``--color`` (``auto``, ``always`` or ``never``) and what the environment says.

    Source: https://no-color.org, https://bixense.com/clicolors/, https://force-color.org
    """
    forced = any(environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    dumb = environ.get("TERM", "") in ("dumb", "unknown")
    escapes = {"always": True, "never": False}.get(color, forced or (is_terminal and not dumb))
    quiet = bool(environ.get("NO_COLOR")) or (environ.get("CLICOLOR") == "0" and not forced)
    return Look(escapes=escapes, color=escapes and (color == "always" or not quiet), **fields)


def ansi(lines: Iterable[Text], look: Look) -> list[str]:
    """Each line as what is written for it, without a newline."""
    return [_ansi(line, look) for line in lines]


def _ansi(line: Text, look: Look) -> str:
    if not look.escapes:
        return line.plain
    system = ColorSystem.STANDARD
    parts = ((part.text, part.style) for part in line.render(prose.console()) if part.text)
    return "".join(
        (style if look.color else style.without_color).render(text, color_system=system) if style else text
        for text, style in parts
    )


# ---- blocks ---------------------------------------------------------------------------------------------------------


def lines(block: Block, look: Look) -> list[Text]:
    """A finished block. Empty where there is nothing to see."""
    match block:
        case Meta():
            return header(block, look)
        case User():
            return user(block, look)
        case Assistant():
            return [*thoughts(block.reasoning or "", look), *answer(block.content, look), *ending(block, look)]
        case Call():
            return call(block, look)
        case Approval():
            return [Text("  ").append_text(_decision(block))]
        case TurnEnd():
            return turn_end(block, look)
        case Compaction(summary=""):
            return [rule("cleared: the model starts afresh", look)]
        case Compaction():
            said = [] if not look.full else prose.indent(answer(block.summary, look), Text("  "))
            return [rule(f"compacted: {block.tokens_before:,} tokens became a summary", look), *said]
        case Moved():
            return [rule(f"the workspace is now {safe_line(block.cwd)}", look)]
        case Notice():
            return notice(block, look)


def header(meta: Meta, look: Look, mode: str = "") -> list[Text]:
    """What stands above a chat: program, chat, model, access mode, workspace."""
    model = f"{meta.provider}: {meta.model}" if meta.provider and meta.model else meta.model or meta.provider
    facts = [safe_line(fact) for fact in (model, mode, meta.cwd) if fact]
    made = [Text.assemble(("cass", MARK), "  ", (safe_line(meta.chat_id), BOLD)), Text(" · ".join(facts), DIM)]
    if meta.provider == "demo":
        offline = "demo: offline and no language model. Set FIREWORKS_API_KEY, or run: cass setup"
        made.append(Text(offline, WARN))
    return [part for line in made for part in _wrapped(line, look)]


def user(message: User, look: Look) -> list[Text]:
    body = safe(message.content).strip("\n").split("\n")
    hidden = len(body) - LONGEST_MESSAGE
    if hidden > 0 and not look.full:
        body = [*body[:LONGEST_MESSAGE], _more(hidden, "line")]
    made = [part for line in body for part in _wrapped(Text(line, BOLD), look, 2)]
    by = message.origin.get("by", "composer")
    if by != "composer":
        made.append(Text(f"by {safe_line(str(by))}", DIM))
    return prose.indent(made, Text("  "), first=Text("❯ ", MARK))


def answer(text: str, look: Look) -> list[Text]:
    """An answer that is complete."""
    made: list[Text] = []
    info = ""
    for piece in split(text):
        made += _blank_before(piece, made) + piece_lines(piece, info, look)
        info = piece.info if isinstance(piece, Fence) else info
    return made


def _blank_before(piece: Piece, above: list[Text]) -> list[Text]:
    return [Text()] if above and sets_apart(piece) else []


def sets_apart(piece: Piece) -> bool:
    """Whether an empty line stands before `piece` when something is above it."""
    return isinstance(piece, Fence) or (isinstance(piece, Prose) and not piece.continues)


def piece_lines(piece: Piece, info: str, look: Look) -> list[Text]:
    """Lines of one piece of an answer. `info` is that of the fence which a `Code` is inside.

    A line of code in a fence is not wrapped: the terminal does that, and who copies it gets it whole.
    """
    match piece:
        case Prose(source) if look.plain:
            return [Text(line) for line in source.strip("\n").split("\n")]
        case Prose(source):
            return prose.lines(source, look.width)
        case Code(line):
            return prose.indent(prose.highlight(line, "" if look.plain else info), Text("  "))
        case Fence(info) if look.plain and info:
            return [Text(f"  {info}:")]
        case Fence():
            return []


def thoughts(reasoning: str, look: Look) -> list[Text]:
    """A model's reasoning, or one line that says there was some."""
    text = safe(reasoning).strip()
    if not text:
        return []
    if not look.reasoning:
        return [Text(f"∴ thought, {_many(text.count(chr(10)) + 1, 'line')} (Ctrl-T)", DIM)]
    return thought_lines(text.split("\n"), look)


def thought_lines(reasoning: Iterable[str], look: Look) -> list[Text]:
    """Whole lines of reasoning."""
    made = [part for line in reasoning for part in _wrapped(Text(safe(line), Style(dim=True, italic=True)), look, 2)]
    return prose.indent(made, Text("┆ ", DIM))


def ending(message: Assistant, look: Look) -> list[Text]:
    """Why an answer is not whole; nothing where it is."""
    said = {
        "length": ("cut at the output limit", WARN),
        "cancelled": ("cut: cancelled", WARN),
        "error": ("broken off: this try failed", BAD),
    }.get(message.stop)
    return [Text(f"… {said[0]}", said[1])] if said else []


def turn_end(end: TurnEnd, look: Look) -> list[Text]:
    """How a turn ended, where it did not simply get done."""
    error = f": {safe(end.error)}" if end.error else ""
    match end.outcome:
        case "done":
            used = end.usage
            counts = f"{used.input:,} tokens in ({used.cache_read:,} cached) · {used.output:,} out" if used else ""
            return [Text(counts, DIM)] if look.full and counts else []
        case "cancelled":
            text = Text(f"■ cancelled{error}", WARN)
        case "blocked":
            text = Text(f"■ blocked{error}", WARN)
        case outcome:
            text = Text(f"✗ {safe_line(outcome)}{error}", BAD)
    return [part for line in text.split("\n") for part in _wrapped(line, look)]


def notice(said: Notice, look: Look) -> list[Text]:
    mark, style = {"error": ("✗", BAD), "warning": ("!", WARN)}.get(said.level, ("·", DIM))
    return [part for line in safe(said.text).split("\n") for part in _wrapped(Text(f"{mark} {line}", style), look)]


def rule(text: str, look: Look) -> Text:
    line = Text(f"── {text} ", DIM)
    return line.append("─" * max(0, min(look.width, 80) - line.cell_len), DIM)


# ---- tool calls -----------------------------------------------------------------------------------------------------

_BAR = Text("  │ ", DIM)
_FOOT = Text("  ╰ ", DIM)
_UNDER = Text("    ")


def call(block: Call, look: Look) -> list[Text]:
    """A call, how it was decided, and its result beneath it."""
    made = _head(block, look)
    if look.full:
        made += _barred(_json_lines(block), look)
    elif block.call.name == "edit":
        made += _short(_changes(block.call.arguments), look)[0]
    approval = block.approval
    if approval is not None and approval.decision == "approved":
        made += [Text.assemble(_BAR, part) for part in _wrapped(_decision(approval), look, 4)]
    if block.result is None:
        return [*made, *_foot(Text("no result", WARN), look)]
    return made + _result(block.result, approval, look)


def _head(block: Call, look: Look) -> list[Text]:
    if block.result is None:
        style = WARN if block.request else DIM
    else:
        style = GOOD if block.result.ok else BAD
    name = Text.assemble((safe_line(block.call.name), BOLD), " ")
    first, *more = headline(block.call).split("\n")
    if not look.full and block.request is None and len(more) > SHORT_LINES:
        more = [*more[:SHORT_LINES], _more(len(more) - SHORT_LINES, "line")]
    made = [part for text in (name + Text(first), *map(Text, more)) for part in _wrapped(text, look, 4)]
    return prose.indent(made, _UNDER, first=Text("● ", style))


def _result(result: ToolResult, approval: Approval | None, look: Look) -> list[Text]:
    if approval is not None and approval.decision == "denied":
        return _foot(_decision(approval), look)
    content = safe(result.content).strip("\n")
    state = Text("ok", GOOD) if result.ok else Text("failed", BAD)
    if not result.ok:
        content = content.removeprefix("Error: ")
    body = content.split("\n") if content else []
    if len(body) <= 1 and len(content) < 200:
        return _foot(state.append(f" · {content}" if content else "", None if result.ok else BAD), look)
    made, hidden = _short([Text(line) for line in body], look)
    return made + _foot(state.append(f" · {hidden}" if hidden else "", DIM), look)


def _short(body: Sequence[Text], look: Look) -> tuple[list[Text], str]:
    """`body` behind a bar, as much of it as the look has room for, and what to say of the rest."""
    if look.full:
        return _barred(body, look), ""
    shown: list[Text] = []
    room = look.short_characters
    for line in body[:SHORT_LINES]:
        if room <= 0:
            break
        shown.append(line[:room])
        room -= len(line.plain) + 1
    cut = len(shown[-1]) < len(body[len(shown) - 1]) if shown else False
    hidden = len(body) - len(shown)
    said = _more(hidden, "line") if hidden else _more(len(body[len(shown) - 1]) - len(shown[-1]), "character") * cut
    return _barred(shown, look), said


def _more(number: int, noun: str) -> str:
    return f"… {_many(number, f'more {noun}')} (Ctrl-O)"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _barred(body: Iterable[Text], look: Look) -> list[Text]:
    return [Text.assemble(_BAR, part) for line in body for part in _folded(line, look, 4)]


def _foot(text: Text, look: Look) -> list[Text]:
    return prose.indent(_wrapped(text, look, 4), _UNDER, first=_FOOT)


def _decision(approval: Approval) -> Text:
    """Who allowed or denied it, and why."""
    text = Text(f"{safe_line(approval.decision)} by {safe_line(approval.by)}")
    if approval.rule:
        text.append(f", always for {safe_line(approval.rule)}")
    if approval.reason:
        text.append(f": {safe_line(approval.reason)}")
    text.stylize(WARN if approval.decision == "denied" else DIM)
    return text


def _json_lines(block: Call) -> list[Text]:
    if block.call.arguments_raw is not None:
        return [Text(line) for line in safe(block.call.arguments_raw).split("\n")]
    return prose.highlight(json.dumps(block.call.arguments, indent=2, ensure_ascii=False), "json")


def _changes(arguments: Mapping[str, Any]) -> list[Text]:
    """What an edit takes away and puts in its place; nothing for arguments that the tool would refuse."""
    edits = arguments.get("edits")
    made: list[Text] = []
    for edit in edits if isinstance(edits, list) else []:
        old, new = (edit.get("old_text"), edit.get("new_text")) if isinstance(edit, dict) else (None, None)
        if isinstance(old, str) and isinstance(new, str):
            diff = list(difflib.unified_diff(safe(old).split("\n"), safe(new).split("\n"), lineterm="", n=1))[2:]
            made += [Text(line, {"-": BAD, "+": GOOD}.get(line[0], DIM)) for line in diff if line[0] != "@"]
    return made


# ---- what is only true for now --------------------------------------------------------------------------------------


def now(what: Now, rest: list[Text], look: Look, at: float) -> list[Text]:
    """What is still growing. `rest` is the part of the answer that is not final, `at` the time in epoch seconds."""
    if what.call is not None:
        return running(what.call, look, at)
    made = list(rest)
    if what.answer is not None:
        made += [line for name, arguments in what.answer.calls for line in _begun(name, arguments, look)]
    if what.status is not None and (said := state(what.status, at)) is not None:
        made += [Text()] * bool(made) + _wrapped(said, look)
    return made


def running(block: Call, look: Look, at: float) -> list[Text]:
    """A call that waits for the person, or runs."""
    made = _head(block, look)
    if block.request is not None:
        asked = Text(f"waits for approval: {safe_line(block.request.reason)}", WARN)
        if not block.request.sandboxed and block.call.name == "shell":
            asked.append("\nnot sandboxed: this command can do anything you can", WARN)
        return [*made, *_foot(asked, look)]
    tail = safe(block.output[-look.width * LAST_OUTPUT * 2 :]).rstrip("\n").split("\n")[-LAST_OUTPUT:]
    made += _barred([Text(line, DIM) for line in tail if line or len(tail) > 1], look)[-LAST_OUTPUT:]
    return [*made, *_foot(Text(f"running{_elapsed(block.started_at, at)}", DIM), look)]


def state(status: Status, at: float) -> Text | None:
    """What the worker does, in words; None while it does nothing."""
    if status.state == "idle":
        return None
    detail = f": {safe_line(status.detail)}" if status.detail else ""
    style = WARN if status.state == "retrying" else DIM
    return Text(f"∙ {safe_line(status.state)}{detail}{_elapsed(status.created_at, at)}", style)


def growing_thought(message: Answer, look: Look) -> list[Text]:
    """The line of reasoning that is being written."""
    last = message.reasoning.rpartition("\n")[2]
    return thought_lines([last[-4 * look.width :]], look) if look.reasoning and last.strip() else []


def _begun(name: str, arguments: str, look: Look) -> list[Text]:
    text = Text.assemble(("● ", DIM), (safe_line(name), BOLD), (f" … {_many(len(arguments), 'character')}", DIM))
    return _wrapped(text, look)


def _elapsed(since: str | None, at: float) -> str:
    """`` · 12 s`` since a record's time; nothing for the first second, or where the time cannot be read."""
    try:
        seconds = int(at - datetime.fromisoformat(since or "").timestamp())
    except ValueError:
        return ""
    if seconds < 1:
        return ""
    return f" · {seconds} s" if seconds < 60 else f" · {seconds // 60} min {seconds % 60} s"


# ---- widths ---------------------------------------------------------------------------------------------------------


def _wrapped(text: Text, look: Look, taken: int = 0) -> list[Text]:
    return list(text.split("\n")) if look.plain else prose.wrap(text, max(look.width - taken, prose.NARROWEST))


def _folded(text: Text, look: Look, taken: int) -> list[Text]:
    return [text] if look.plain else prose.fold(text, max(look.width - taken, prose.NARROWEST))
