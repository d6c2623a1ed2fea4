"""What a block looks like, as lines.

    ❯ what a person says

    What the model answers, laid out from its **Markdown**.

    ● read src/app.py 35-60        a tool call, see `calls`

Whatever a line quotes is made `safe` first.
"""

from collections.abc import Iterable

from rich.style import Style
from rich.text import Text

from cass.amounts import many
from cass.blocks import Answer, Block, Call, Moved, Now
from cass.callers import sent
from cass.headline import pictured
from cass.markdown import Code, Fence, Piece, Prose, split
from cass.records import Approval, Assistant, Compaction, Meta, Notice, Status, TurnEnd, User
from cass.viewer import calls, code, prose, table, wrapping
from cass.viewer.look import BAD, BOLD, DIM, MARK, WARN, Look, cut, elapsed, spinner, wrapped
from cass.visible import safe, safe_line

MESSAGE_LINES = 60
MESSAGE_CHARACTERS = 10_000
"""Of a user's message in the short view: enough for what is written, too little for what is pasted."""
CHARACTERS_PER_TOKEN = 4
"""About so many, of English and of code."""


# ---- blocks ---------------------------------------------------------------------------------------------------------


def lines(block: Block, look: Look) -> list[Text]:
    """A finished block. Empty where there is nothing to see."""
    match block:
        case Meta():
            return header(block, look)
        case User():
            return user(block, look)
        case Assistant():
            return assistant(block, look)
        case Call():
            return calls.finished(block, look)
        case Approval():
            return wrapping.indent(wrapped(calls.decision(block, look), look, 2), Text("  "))
        case TurnEnd():
            return turn_end(block, look)
        case Compaction(summary=""):
            return rule("cleared: the model starts afresh", look)
        case Compaction():
            said = wrapping.indent(answer(block.summary, look), Text("  ")) if look.full else []
            return rule(f"compacted: {block.tokens_before:,} tokens became a summary", look) + said
        case Moved():
            return rule(f"the workspace is now {safe_line(block.cwd)}", look)
        case Notice():
            return notice(block, look)


def header(meta: Meta, look: Look, last: User | None = None) -> list[Text]:
    """What stands above a chat: program, chat, what answers in it, or what answered the `last` message, workspace.

    What is going to answer in a chat that is gone on with only its worker knows.
    """
    by, words = (last, "last with ") if last and last.model else (meta, "")
    model = f"{by.provider}: {by.model}" if by.provider and by.model else by.model or by.provider
    facts = [safe_line(fact) for fact in (model and words + model, meta.cwd) if fact]
    made = [Text.assemble(("cass", MARK), "  ", (safe_line(meta.chat_id), BOLD)), Text(" · ".join(facts), DIM)]
    if meta.provider == "demo" and last is None:
        made.append(Text("offline, no language model; for a real one set FIREWORKS_API_KEY, or run: cass setup", WARN))
    return [part for line in made for part in wrapped(line, look)]


def user(message: User, look: Look) -> list[Text]:
    body = safe(message.content).strip("\n").split("\n")
    shown, said = cut(body, MESSAGE_LINES, MESSAGE_CHARACTERS, look)
    made = [part for line in shown for part in wrapped(Text(line, BOLD), look, 2)]
    made += wrapped(Text(said, DIM), look, 2) if said else []
    made += [part for image in message.attachments for part in wrapped(Text(pictured(image), DIM), look, 2)]
    if way := sent(message.origin):
        made += wrapped(Text(way, DIM), look, 2)
    return wrapping.indent(made, Text("  "), first=Text("❯ ", MARK))


def assistant(message: Assistant, look: Look) -> list[Text]:
    parts = (thoughts(message.reasoning or "", look), answer(message.content, look), ending(message, look))
    made: list[Text] = []
    for part in parts:
        made += [Text()] * bool(made and part) + part
    return made


def answer(text: str, look: Look) -> list[Text]:
    """An answer that is complete."""
    made: list[Text] = []
    sheet = Sheet()
    for piece in split(text):
        lines = sheet.lines(piece, look)
        made += [Text()] * bool(made and sets_apart(piece)) + lines
    return made


def sets_apart(piece: Piece) -> bool:
    """Whether an empty line stands before `piece` when something is above it."""
    return isinstance(piece, Fence) or (isinstance(piece, Prose) and not piece.continues)


class Sheet:
    """The pieces of one answer as lines, in their order; each is laid out as those before it demand.

    A line of code in a fence is not wrapped: the terminal does that, and who copies it gets it whole.
    """

    def __init__(self) -> None:
        self._listing = code.Listing("")
        self._table = ""
        """Source of the last table, as far as it was given at first."""
        self._form: table.Form | None = None
        """That of its rows, once more of them have come."""

    def lines(self, piece: Piece, look: Look) -> list[Text]:
        match piece:
            case Fence(info):
                self._listing = code.Listing("" if look.plain else info)
                return []
            case Code(line):
                return wrapping.indent([self._listing.line(line)], Text("  "))
            case Prose(source, head=head) if look.plain:
                return [Text(line) for line in source.strip("\n").split("\n")[head:]]
            case Prose(source, head=0):
                self._table, self._form = source, None
                return prose.lines(source, look.width)
            case Prose(source):
                if self._form is None or self._form.screen != look.width:
                    self._form = prose.form(self._table, look.width)
                return prose.more_rows(source, self._form)

    def rest(self, source: str, in_fence: bool, look: Look) -> list[Text]:
        """What is not final yet, as lines."""
        if in_fence:
            return wrapping.indent([self._listing.peek(source)], Text("  ")) if source else []
        return prose.lines(source, look.width) if source.strip() else []


def thoughts(reasoning: str, look: Look) -> list[Text]:
    """A model's reasoning, or one line that says there was some."""
    text = safe(reasoning).strip()
    if not text:
        return []
    if not look.reasoning:
        return wrapped(Text(f"∴ thought, {many(text.count(chr(10)) + 1, 'line')} (Ctrl-T)", DIM), look)
    return thought_lines(text.split("\n"), look)


def thought_lines(reasoning: Iterable[str], look: Look) -> list[Text]:
    """Whole lines of reasoning, the empty ones left out."""
    style = Style(dim=True, italic=True)
    made = [part for line in reasoning if line.strip() for part in wrapped(Text(safe_line(line), style), look, 2)]
    return wrapping.indent(made, Text("┆ ", DIM))


def ending(message: Assistant, look: Look) -> list[Text]:
    """Why an answer is not whole; nothing where it is."""
    said = {
        "length": ("cut at the output limit", WARN),
        "cancelled": ("cut: cancelled", WARN),
        "error": ("broken off: this try failed", BAD),
    }.get(message.stop)
    return wrapped(Text(f"… {said[0]}", said[1]), look) if said else []


def turn_end(end: TurnEnd, look: Look) -> list[Text]:
    """How a turn ended, where it did not simply get done."""
    error = f": {safe(end.error)}" if end.error else ""
    match end.outcome:
        case "done":
            used = end.usage
            counts = f"{used.input:,} tokens in ({used.cache_read:,} cached) · {used.output:,} out" if used else ""
            return wrapped(Text(counts, DIM), look) if look.full and counts else []
        case "cancelled":
            text = Text(f"■ cancelled{error}", WARN)
        case "blocked":
            text = Text(f"■ blocked{error}", WARN)
        case outcome:
            is_interrupted = (end.error or "").startswith("interrupted")
            text = Text(f"✗ {safe(end.error or '') if is_interrupted else safe_line(outcome) + error}", BAD)
    return [part for line in text.split("\n") for part in wrapped(line, look)]


def notice(said: Notice, look: Look) -> list[Text]:
    mark, style = {"error": ("✗", BAD), "warning": ("!", WARN)}.get(said.level, ("·", DIM))
    return [part for line in safe(said.text).split("\n") for part in wrapped(Text(f"{mark} {line}", style), look)]


def rule(text: str, look: Look) -> list[Text]:
    line = Text(f"── {text} ", DIM)
    return wrapped(line.append("─" * max(0, min(look.width, 80) - line.cell_len), DIM), look)


# ---- what is only true for now --------------------------------------------------------------------------------------


def now(what: Now, rest: list[Text], look: Look, at: float) -> list[Text]:
    """What is still growing. `rest` is the part of the answer that is not final, `at` the time in epoch seconds."""
    if what.calls:
        return calls.running(what.calls, look, at)
    made = list(rest)
    if what.answer is not None:
        made += [line for name, arguments in what.answer.calls for line in calls.begun(name, arguments, look)]
    if what.status is not None and what.status.state != "idle" and not look.is_framed:
        made += [Text()] * bool(made) + wrapped(state(what, what.status, at), look)
    return made


def state(what: Now, status: Status, at: float) -> Text:
    """What the worker does, in words, since when, and what the turn has brought."""
    detail = f": {safe_line(status.detail)}" if status.detail else ""
    style = WARN if status.state == "retrying" else DIM
    took = elapsed(what.since or status.created_at, at)
    return Text(f"{spinner(at)} {safe_line(status.state)}{detail}{took}{_tokens(what)}", style)


def _tokens(what: Now) -> str:
    """Of an answer that grows nobody has counted them yet."""
    growing = 0
    if what.answer is not None:
        growing = len(what.answer.text) + len(what.answer.reasoning) + sum(len(text) for _, text in what.answer.calls)
    tokens = what.output + growing // CHARACTERS_PER_TOKEN
    return f" · {'≈ ' if growing else ''}{many(tokens, 'token')}" if tokens else ""


def growing_thought(message: Answer, look: Look) -> list[Text]:
    """The line of reasoning that is being written."""
    last = message.reasoning.rpartition("\n")[2]
    return thought_lines([last[-4 * look.width :]], look) if look.reasoning and last.strip() else []
