"""A seat at a chat: what one person there knows of it, and what they may do. No terminal in it.

A seat keeps a worker needed as long as it is taken, and follows the chat by looking whenever it is told to.
"""

import os
import time
from collections.abc import Sequence
from typing import Any

from cass import chat, decisions, inbox, jsonl, presence
from cass.composer import mentions
from cass.errors import CassError
from cass.home import Files
from cass.inbox import Waiting
from cass.presence import Starting
from cass.records import Assistant, Record, ToolResult, TurnEnd, User
from cass.standing import Standing, step
from cass.tail import Tail
from cass.values import Attachment

PROGRAM = "cass-compose"
AT_ONCE = "at once: "
"""Before what the running turn is to hear."""


class Seat:
    def __init__(self, files: Files, worker_flags: Sequence[str] = ()) -> None:
        files.make()
        self.files = files
        self.id = jsonl.new_id()
        self.standing = Standing()
        self.is_running = False
        """Whether a worker holds the chat."""
        self.queue: list[Waiting] = []
        self._flags = worker_flags
        self._items: dict[str, dict[str, Any]] = {}
        """What waits, by name; {} for what is none of ours."""
        self._unseen: set[str] = set()
        self._unanswered: dict[str, dict[str, Any]] = {}
        self._attached = presence.attach(files)
        self._live = Tail(files.live)
        self._facts: Tail | None = None

    def close(self) -> None:
        self._live.close()
        if self._facts:
            self._facts.close()
        os.close(self._attached)

    # ---- looking

    def look(self) -> list[Record]:
        """Follow the chat; return what was new. The first look folds the chat's end and returns nothing.

        The live file is read first: what the chat has settled supersedes it.
        """
        first = self._facts is None
        if self._facts is None:
            self._facts = Tail.last(self.files.chat)
            # Where it lives, when its end alone is read.
            self._fold([meta] if (meta := chat.first(self.files)) is not None else [])
        self.is_running = presence.is_running(self.files)
        live = self._live.read()
        if not self.is_running:  # what a worker that is gone said of itself holds no more
            live = []
            self.standing = self.standing.left()
        found = [*live, *self._facts.read()]
        self._fold(found)
        self.queue = inbox.waiting(self.files)
        return [] if first else found

    def workspace(self, agent: str = "") -> str:
        """That of this chat, or of the chat of an agent of it."""
        meta = chat.first(self.files.home.files(agent)) if agent else None
        return meta.cwd if meta is not None else self.standing.cwd

    def _fold(self, found: list[Record]) -> None:
        for record in found:
            self.standing = step(self.standing, record)
            if isinstance(record, User):
                self._unseen.discard(record.id)
            elif isinstance(record, ToolResult) or (isinstance(record, Assistant) and record.stop != "error"):
                # What the model has begun to answer stays in later requests: it does not come back into the draft.
                self._unanswered = {id: item for id, item in self._unanswered.items() if id in self._unseen}

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, or is about to because something waits."""
        return self.is_running and (self.standing.is_busy or bool(self.queue))

    @property
    def needs_worker(self) -> bool:
        """Whether something waits that no worker will take: also what a dead one had claimed and not yet written."""
        return not self.is_running and bool(self.queue or self._unseen)

    # ---- messages

    def send(
        self, text: str, *, steer: bool = False, id: str | None = None, attached: Sequence[Attachment] = ()
    ) -> None:
        """Put a message in, under `id` or a new one. Raises CassError, naming the path, when the disk refuses."""
        item = inbox.message(text, ask=True, origin=self._origin, steer=steer, attached=attached)
        id = inbox.put(self.files, item, id)
        self._unseen.add(id)
        self._unanswered[id] = item
        self.queue = inbox.waiting(self.files)

    def order(self, kind: str, **more: str) -> None:
        """Put a command in, `kind` as the inbox names it."""
        inbox.put(self.files, {"type": kind, **more, "origin": self._origin})
        self.queue = inbox.waiting(self.files)

    @property
    def _origin(self) -> dict[str, str]:
        return {"by": "composer", "composer": self.id}

    def waiting(self, since_s: float = 0) -> list[str]:
        """What waits, `since_s` or longer, in its turn: messages as they are, commands as they are typed."""
        until = time.time_ns() - int(since_s * 1e9)
        found = [waiting for waiting in self._in_turn() if not since_s or waiting.at_ns <= until]
        return [f"{AT_ONCE if self._is_steering(waiting) else ''}{self._text(waiting)}" for waiting in found]

    def waiting_names(self) -> list[str]:
        """Their names, in the same order."""
        return [waiting.name for waiting in self._in_turn()]

    def _in_turn(self) -> list[Waiting]:
        """What waits, the next first: what the running turn is to hear, then the rest, oldest first."""
        found = [waiting for waiting in self.queue if self._text(waiting) is not None]
        return sorted(found, key=lambda waiting: not self._is_steering(waiting))

    def _is_steering(self, waiting: Waiting) -> bool:
        return self._item(waiting).get("steer") is True

    def take_back(self, *, mine: bool, newest: bool = False) -> list[str]:
        """Take what waits out of the queue again, oldest first: `mine`, or any composer's; or only the newest.

        What the worker claims first stays with it.
        """
        wanted = [name for name in self.queue if self._is_composed(name, mine)]
        return self._take(wanted[-1:] if newest else wanted)

    def take_one(self, name: str) -> list[str]:
        """Take one of what waits back, whoever sent it; none where the worker was faster."""
        return self._take([waiting for waiting in self.queue if waiting.name == name])

    def take_back_orders(self, kind: str) -> None:
        """Take the commands of this kind back that were given here and wait: another one takes their place."""
        self._take(
            [waiting for waiting in self.queue if self._kind(waiting) == kind and self._is_composed(waiting, True)]
        )

    def _take(self, wanted: Sequence[Waiting]) -> list[str]:
        texts = []
        for waiting in wanted:
            item = inbox.take_back(self.files, waiting.name)
            if item is not None:
                texts.append(self._draft_of(item))
                self._unseen.discard(waiting.id)
                self._unanswered.pop(waiting.id, None)
        self.queue = inbox.waiting(self.files)
        return texts

    def failed(self, end: TurnEnd) -> list[str]:
        """The texts of this seat that a turn took in and failed on; a turn that ended otherwise has none.

        None either where the person has gone on: a later message of theirs is on its way.
        """
        items = [item for id in end.answers if (item := self._unanswered.pop(id, None)) is not None]
        return [self._draft_of(item) for item in items] if end.outcome == "failed" and not self._unanswered else []

    def _draft_of(self, item: dict[str, Any]) -> str:
        """What was sent, as it can be sent again."""
        is_message = item.get("type") == "message" and isinstance(item.get("content"), str)
        return mentions.spelled(item, self.files.home, self.standing.cwd) if is_message else told(item) or ""

    def _item(self, waiting: Waiting) -> dict[str, Any]:
        if waiting.name not in self._items:
            self._items = {name: item for name, item in self._items.items() if any(w.name == name for w in self.queue)}
            self._items[waiting.name] = inbox.read(self.files, waiting.name) or {}
        return self._items[waiting.name]

    def _text(self, waiting: Waiting) -> str | None:
        return told(self._item(waiting))

    def _kind(self, waiting: Waiting) -> object:
        return self._item(waiting).get("type")

    def _is_composed(self, waiting: Waiting, mine: bool) -> bool:
        origin = self._item(waiting).get("origin") if self._text(waiting) is not None else None
        return isinstance(origin, dict) and (origin.get("composer") == self.id if mine else "composer" in origin)

    # ---- decisions and the worker

    def ask(self, request: dict[str, Any]) -> None:
        """Have the worker decide something for the person here. Blocks; raises CassError with the worker's reason."""
        answer = decisions.ask(self.files, request | {"program": PROGRAM})
        if not answer.get("ok"):
            raise CassError(str(answer.get("error", "the worker refused")))

    def start_worker(self) -> Starting:
        return presence.start(self.files, self._flags)


def told(item: dict[str, Any]) -> str | None:
    """What waits as the person would type it; None for what does not wait its turn, or cannot be read."""
    match item:
        case {"type": "message", "content": str(content)}:
            return content
        case {"type": "clear" | "compact" | "model" | "effort" as kind}:
            words = (item.get(field) for field in ("provider", "model", "focus", "effort"))
            return " ".join([f"/{kind}", *(word for word in words if isinstance(word, str))])
    return None
