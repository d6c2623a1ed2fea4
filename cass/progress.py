"""Progress: what one turn has come to."""

from dataclasses import dataclass, field

from cass import jsonl
from cass.access import Mode
from cass.desk import Desk
from cass.gallery import Unseen
from cass.records import Assistant, Delta, Status, Usage

RESULT_LIMIT = 1 << 20
"""Characters of a tool result that the chat keeps."""


@dataclass
class Progress:
    mode: Mode
    """That of the turn's beginning."""
    asks: bool
    answers: list[str]
    requests: int = 0
    usage: Usage = Usage()
    last: Assistant | None = None
    blocked: bool = False
    told: bool = False
    """Whether the person was told that the context is full."""
    unseen: set[Unseen] = field(default_factory=set)
    """Images of its messages that the model is not shown, as far as that was said."""
    weight: int = 0
    """Tokens of the last request, as an estimate."""
    refitted: bool = False
    """Whether a request was too long for the provider, and a shorter one was made."""
    unsummarised: bool = False
    """Whether a summary failed: it is not tried again with every request."""
    growing: str | None = None
    """Id of the answer that is being streamed."""
    begun: bool = False
    """Whether anything of it has come."""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    output: dict[str, list[str]] = field(default_factory=dict)
    """What each running call has said, by its id."""
    spent: dict[str, float] = field(default_factory=dict)
    """USD that the agents of each running call have cost so far, by its id."""
    asking: set[str] = field(default_factory=set)
    """Ids of the requests that wait for the person."""

    @property
    def of(self) -> str:
        """Id of the last whole answer."""
        return self.last.id if self.last is not None else ""

    def width(self, desk: Desk) -> Mode:
        """The mode that holds now: a narrower one does at once, a wider one from the next turn."""
        return min(desk.mode, self.mode, desk.ceiling(), key=lambda mode: mode.width)

    def status(self, desk: Desk) -> Status:
        """What is going on while calls run: one of them may wait for the person."""
        return desk.status("awaiting-approval" if self.asking else "running")

    def news_of(self, unseen: tuple[Unseen, ...]) -> list[str]:
        """What the person should know of images that they have just sent; once each."""
        new = [one for one in unseen if one.of in self.answers and one not in self.unseen]
        self.unseen.update(new)
        return [one.words.strip("[]") for one in new]

    def begin(self, of: str) -> None:
        self.growing, self.begun = of, False
        self.text.clear()
        self.reasoning.clear()

    def grow(self, delta: Delta) -> None:
        self.begun = True
        if delta.text:
            self.text.append(delta.text)
        if delta.reasoning:
            self.reasoning.append(delta.reasoning)

    def say(self, call_id: str, piece: str) -> None:
        """Keep what a call says, of a flood the newest."""
        output = self.output.setdefault(call_id, [])
        output.append(piece)
        if len(output) >= 4096 or len(piece) > RESULT_LIMIT:
            output[:] = ["".join(output)[-RESULT_LIMIT:]]

    def said(self, call_id: str) -> str:
        """What a call has said that came to no result; said once."""
        return "".join(self.output.pop(call_id, ()))[-RESULT_LIMIT:]

    def partial(self, model: str, stop: str) -> list[Assistant]:
        """What was streamed of an answer that will not be finished; its calls are left out: they may be half."""
        of, self.growing = self.growing, None
        text, reasoning = "".join(self.text), "".join(self.reasoning) or None
        if of is None or not (text or reasoning):
            return []
        return [Assistant(id=of, content=text, reasoning=reasoning, model=model, stop=stop, created_at=jsonl.now())]

    def outcome(self) -> tuple[str, str | None]:
        if self.blocked:
            return "blocked", "something was refused because nobody could be asked"
        if self.last is None or not self.last.content.strip():
            return "failed", "the model ended its answer without any text"
        if self.last.stop == "length":
            return "failed", "the answer was cut off at the output limit (--max-tokens)"
        return "done", None
