"""The outlook of a chat: what of it is open, messages without an end of their turn; a fold of its records."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cass.home import Files
from cass.records import Assistant, Record, TurnEnd, User
from cass.tail import Tail

EXITS = {"done": 0, "failed": 1, "blocked": 4, "cancelled": 130}
"""Exit status by how a turn ended; the others are those of `errors`."""


@dataclass
class Outlook:
    """A fold of a chat: enough to say whether it has more to do."""

    last: str = ""
    """The text of the last answer to the last message."""
    end: TurnEnd | None = None
    open: dict[str, User] = field(default_factory=dict)
    """Messages that no end of a turn answers yet."""

    def add(self, record: Record) -> None:
        match record:
            case User():
                self.open[record.id] = record
                self.last = ""
            case Assistant(content=content) if content.strip() and record.stop != "error":
                self.last = content
            case TurnEnd():
                self.end = record
                for id in record.answers:
                    self.open.pop(id, None)


def of(records: Iterable[Record]) -> Outlook:
    """What `records` come to."""
    found = Outlook()
    for record in records:
        found.add(record)
    return found


def look(files: Files) -> Outlook:
    """What the end of the chat says now."""
    facts = Tail.last(files.chat)
    found = of(facts.read())
    facts.close()
    return found
