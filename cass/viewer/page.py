"""A page: what one screen has been given of a chat, and what still grows below it.

Finished lines are given once, in order. An answer is given piece by piece as its Markdown becomes final, so that the
part which is drawn again and again stays small however long the answer gets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from cass.blocks import Answer, Block, Call, Fold, Now
from cass.markdown import Piece, Splitter
from cass.records import Assistant, Meta, Notice, Record, TurnEnd, User
from cass.viewer import attention, calls, render
from cass.viewer.look import DIM, SHORT_CHARACTERS, WARN, Look, Marked, ansi, wrapped
from cass.viewer.reading import Growing, moment
from cass.viewer.render import Sheet

FIRST_PAINT = 12_000
"""Characters of a chat that are shown when it is opened: some screens, laid out in less time than one notices."""
EARLIER = "earlier messages are not shown; cass-view --no-follow shows all"
REST_LINES = 40
REST_CHARACTERS = 2_000
"""Of an open block, so much is laid out anew each time it grows."""


@dataclass(slots=True)
class _Stream:
    """The answer that is being given piece by piece."""

    of: str
    text: str = ""
    """What the splitter has been fed."""
    splitter: Splitter = field(default_factory=Splitter)
    sheet: Sheet = field(default_factory=Sheet)
    thought: int = 0
    """Characters of its reasoning that were given."""
    has_thought: bool = False
    """Whether all of its reasoning was given."""
    begun: bool = False
    """Whether any of its text was."""


class Page:
    """Records in, lines out."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.now = Now()
        self._fold = Fold()
        self._turn: list[Block] = []
        """Finished blocks of the last turn."""
        self._above = ""
        """Kind of what was given last."""
        self._last: Block | None = None
        """What was given last, but for notices."""
        self._unsaid: list[Text] = []
        """Why the last answer is not whole, unless the end of its turn says so."""
        self._ended = ""
        """The mark of the end of a turn, until there is a line to put it before."""
        self._stream: _Stream | None = None
        self._resumed: Growing | None = None
        """What another page gave of an answer."""
        self._is_running = False
        self.seen: set[str] = set()
        """Ids of messages that stand on the screen already, put there by who sent them."""

    @property
    def is_running(self) -> bool:
        """Whether a worker runs."""
        return self._is_running

    @property
    def is_busy(self) -> bool:
        """Whether a worker does anything now."""
        return self._is_running and self.now.status is not None and self.now.status.state != "idle"

    # ---- finished lines

    def begin(
        self, records: Iterable[Record], last: int | None, since: str = "", budget: int = FIRST_PAINT
    ) -> list[str]:
        """The newest blocks of a chat just opened: `last` messages, those `since` a time, or as many as fit the budget.

        With 0 nothing is given, not even the header: the screen has it all, and goes on.
        """
        blocks, first = self._open(records, since)
        if last == 0:
            return []
        self._above = ""
        head = [block for block in blocks[:1] if isinstance(block, Meta)]
        start = newest(blocks, last, budget) if last is not None or not since else 0
        start = max(start, first, len(head))
        made = []
        if head:
            said = next((block for block in reversed(blocks) if isinstance(block, User)), None)
            made = self._below(render.header(head[0], self.look, said), _kind(head[0]))
        if start > len(head):
            made += self._apart("line") + render.rule(EARLIER, self.look)
        made += [line for block in blocks[start:] for line in self._once(block)]
        return self._ansi(made)

    def resume(self, records: Iterable[Record], growing: Growing | None) -> None:
        """Go on below what another page gave: all of these records, and so much of the answer that grows."""
        blocks, _ = self._open(records)
        self._resumed = growing
        self._last = next((block for block in reversed(blocks) if not isinstance(block, Notice)), None)
        if isinstance(self._last, Assistant) and growing is None:
            self._unsaid = render.ending(self._last, self.look)

    @property
    def growing(self) -> Growing | None:
        """How far the growing answer was given."""
        stream = self._stream
        if stream is None:
            return None
        return Growing(stream.of, len(stream.text), stream.thought, stream.has_thought)

    def _open(self, records: Iterable[Record], since: str = "") -> tuple[list[Block], int]:
        """Take records in and give nothing; return their blocks, and the index of the first one `since` a time."""
        blocks: list[Block] = []
        first = None
        for record in records:
            if first is None and moment(record) >= since and not isinstance(record, Meta):
                first = len(blocks)
            blocks += self._fold.step(record)
        self._turn = _last_turn(blocks)
        self._above = _kind(blocks[-1]) if blocks else ""
        return blocks, len(blocks) if first is None else first

    def take(self, records: Iterable[Record], is_running: bool) -> list[str]:
        """Lines that are finished now."""
        made: list[Text] = []
        for record in records:
            for block in self._fold.step(record):
                if isinstance(block, User):
                    self._turn = []
                self._turn.append(block)
                made += self._once(block)
        self._is_running = is_running
        self.now = self._fold.now() if is_running else Now(calls=self._fold.now().calls)
        made += self._grow()
        return self._ansi(made)

    def again(self, look: Look, why: str) -> list[str]:
        """The last turn once more, in another look, which holds from now on."""
        self.look = look
        made = [Text(), *render.rule(why, look)]
        self._above, self._stream, self._unsaid = "line", None, []
        made += [line for block in self._turn for line in self._put(block)]
        made += self._grow()
        return self._ansi(made)

    def hint(self, text: str) -> list[str]:
        """A line for the bottom of the screen, while nothing else stands there, with an empty one above it."""
        return self._ansi([Text(), *wrapped(Text(text, DIM), self.look)])

    def say(self, text: str, level: str = "info") -> list[str]:
        """A line about the screen itself, not the chat."""
        return self._ansi(self._put(Notice(level=level, text=text)))

    def _once(self, block: Block) -> list[Text]:
        """`_put`, but for what stands on the screen."""
        if not (isinstance(block, User) and block.id in self.seen):
            return self._put(block)
        made, self._last = self._say_unsaid(True), block
        self._above = _kind(block)
        return made

    def _put(self, block: Block) -> list[Text]:
        if isinstance(block, Notice):
            return self._below(render.lines(block, self.look), _kind(block))
        last, self._last = self._last, block
        is_bad_end = isinstance(block, TurnEnd) and block.outcome != "done"
        made = self._say_unsaid(not is_bad_end)
        if isinstance(block, Assistant):
            made += [] if self._stream is not None and self._stream.of == block.id else self._break_off()
            return made + self._settle(self._stream or self._begun(block.id, block.content), block)
        made += self._break_off(says=not is_bad_end)
        lines = [] if isinstance(block, TurnEnd) and _is_said(block, last) else render.lines(block, self.look)
        return made + self._below(self._marked(block, lines) if self.look.marks else lines, _kind(block))

    def _below(self, lines: list[Text], kind: str) -> list[Text]:
        return self._apart(kind) + lines if lines else []

    def _say_unsaid(self, is_needed: bool) -> list[Text]:
        """Why the last answer is not whole, now that something follows it: once, there or at the end of the turn."""
        unsaid, self._unsaid = self._unsaid, []
        return self._below(unsaid, "line") if is_needed else []

    def _marked(self, block: Block, lines: list[Text]) -> list[Text]:
        """A user's message between the marks of a prompt; how the turn before it ended is said with the first one."""
        if isinstance(block, TurnEnd):
            self._ended = attention.done(block.outcome == "done")
        if not isinstance(block, User) or not lines:
            return lines
        before, self._ended = self._ended + attention.PROMPT, ""
        if len(lines) == 1:
            return [Marked(lines[0], before, attention.OUTPUT)]
        return [Marked(lines[0], before), *lines[1:-1], Marked(lines[-1], after=attention.OUTPUT)]

    def _apart(self, kind: str) -> list[Text]:
        """The empty line between two blocks; calls stand together, and so do lines about what happened."""
        above, self._above = self._above, kind
        return [Text()] if above and not (above == kind and kind in ("call", "line")) else []

    # ---- the growing answer

    def _grow(self) -> list[Text]:
        answer = self.now.answer
        if answer is None:
            return self._break_off(says=self._is_running)  # a worker that ended is spoken of when its turn is closed
        made: list[Text] = []
        if self._stream is None or self._stream.of != answer.of:
            made += self._say_unsaid(True) + self._break_off()
            self._stream = self._begun(answer.of, answer.text)
        made += self._think(self._stream, answer.reasoning, bool(answer.text or answer.calls))
        return made + self._feed(self._stream, answer.text)

    def _begun(self, of: str, text: str) -> _Stream:
        """A stream at its beginning, or where another page left it."""
        stream, given = _Stream(of), self._resumed
        if given is None or given.of != of:
            return stream
        self._resumed = None
        stream.text, stream.thought, stream.has_thought = text[: given.text], given.thought, given.has_thought
        pieces = stream.splitter.feed(stream.text)
        stream.begun = bool(pieces)
        for piece in pieces:
            stream.sheet.lines(piece, self.look)
        if pieces or stream.thought or stream.has_thought:
            self._above = "text" if pieces else "thought"
        return stream

    def _think(self, stream: _Stream, reasoning: str, is_whole: bool) -> list[Text]:
        """Whole lines of reasoning where it is shown, else one line when it is over."""
        if stream.has_thought or not (self.look.reasoning or is_whole):
            return []
        stream.has_thought = is_whole
        if not self.look.reasoning:
            lines = render.thoughts(reasoning, self.look)
        else:
            end = len(reasoning) if is_whole else reasoning.rfind("\n") + 1
            new, stream.thought = reasoning[stream.thought : end], max(stream.thought, end)
            lines = render.thought_lines(new.split("\n"), self.look)
        return self._apart("thought") + lines if lines and self._above != "thought" else lines

    def _feed(self, stream: _Stream, text: str) -> list[Text]:
        new, stream.text = text[len(stream.text) :], text
        return self._pieces(stream, stream.splitter.feed(new)) if new else []

    def _pieces(self, stream: _Stream, pieces: Sequence[Piece]) -> list[Text]:
        made: list[Text] = []
        for piece in pieces:
            apart = self._apart("text") if not stream.begun else [Text()] * render.sets_apart(piece)
            stream.begun = True
            made += apart + stream.sheet.lines(piece, self.look)
        return made

    def _settle(self, stream: _Stream, whole: Assistant) -> list[Text]:
        """The end of an answer, now that the chat holds all of it."""
        self._stream = None
        if not whole.content.startswith(stream.text):  # what came is not what the provider calls its answer
            made = self._abandon(stream)
            return made + self._settle(_Stream(whole.id), whole)
        made = self._think(stream, whole.reasoning or "", True)
        made += self._feed(stream, whole.content) + self._pieces(stream, stream.splitter.finish())
        self._unsaid = render.ending(whole, self.look)
        return made

    def _break_off(self, says: bool = True) -> list[Text]:
        """Give the rest of an answer that will not go on, if one was growing, and say so."""
        stream, self._stream = self._stream, None
        return self._abandon(stream, says) if stream is not None and (stream.text or stream.thought) else []

    def _abandon(self, stream: _Stream, says: bool = True) -> list[Text]:
        made = self._pieces(stream, stream.splitter.finish())
        return made + (self._below([Text("… broken off", WARN)], "line") if says else [])

    # ---- what still grows

    def live(self, at: float, height: int) -> list[str]:
        """What still grows, at most `height` lines that each fit the width; `at` is the time in epoch seconds."""
        if self._is_running:
            rest = self._rest(self.now.answer) if self.now.answer is not None else []
            lines = render.now(self.now, rest, self.look, at)
        else:  # of what was live, only that a call of the chat still has no result
            lines = [line for call in self.now.calls for line in calls.finished(call, self.look)]
        lines = self._unsaid + [Text()] * bool(self._unsaid and lines) + lines
        if not lines:
            return []
        lines = self._before(lines[0]) + lines
        if len(lines) > height:
            lines = [Text("…", DIM), *lines[len(lines) - height + 1 :]]
        for line in lines:
            line.truncate(max(self.look.width, 1), overflow="ellipsis")
        return ansi(lines, self.look._replace(links=False))  # a link has another id each time: all would change

    def _before(self, first: Text) -> list[Text]:
        """The empty line that will stand there once the block is finished, so that nothing jumps then."""
        stream = self._stream
        is_call = bool(self.now.calls) or first.plain.startswith("●")
        in_fence = stream is not None and stream.begun and stream.splitter.in_fence
        together = in_fence or not self._above or (self._above == "call" and is_call)
        return [] if together or not first.plain else [Text()]

    def _rest(self, answer: Answer) -> list[Text]:
        stream = self._stream
        if stream is None:
            return []
        rest = stream.splitter.rest(REST_LINES, REST_CHARACTERS)
        if made := stream.sheet.rest(rest, stream.splitter.in_fence, self.look):
            return made
        return [] if stream.has_thought else render.growing_thought(answer, self.look)

    def _ansi(self, lines: Iterable[Text]) -> list[str]:
        return ansi(lines, self.look)


def newest(blocks: Sequence[Block], last: int | None, budget: int = FIRST_PAINT) -> int:
    """Index of the first block to show: that of the `last`-th message from the end, or else what fits the budget."""
    if last is not None:
        messages = [i for i, block in enumerate(blocks) if isinstance(block, (User, Assistant))]
        return 0 if last >= len(messages) else messages[-last] if last > 0 else len(blocks)
    for i in range(len(blocks) - 1, -1, -1):
        budget -= _characters(blocks[i])
        if budget < 0:
            return min(i + 1, len(blocks) - 1)
    return 0


def _characters(block: Block) -> int:
    """About what a block costs to lay out."""
    match block:
        case User(content=content) | Assistant(content=content):
            return len(content)
        case Call(result=result) if result is not None:
            return min(len(result.content), SHORT_CHARACTERS)
        case _:
            return 100


def _last_turn(blocks: Sequence[Block]) -> list[Block]:
    start = next((i for i in range(len(blocks) - 1, -1, -1) if isinstance(blocks[i], User)), 0)
    return list(blocks[start:])


def _is_said(end: TurnEnd, last: Block | None) -> bool:
    """Whether the result of the last call has said already how the turn ended."""
    if not isinstance(last, Call) or last.result is None:
        return False
    if end.outcome == "cancelled":
        return calls.is_cancel(last.result)
    return bool(end.error) and str(end.error) in last.result.content.partition("\n")[0]


def _kind(block: Block) -> str:
    match block:
        case Call():
            return "call"
        case User() | Assistant() | Meta():
            return "text"
        case TurnEnd():
            return "end"
        case _:
            return "line"
