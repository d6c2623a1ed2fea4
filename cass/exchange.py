"""An exchange: a message that is sent, and the answer that is waited for."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cass import chat, presence, send, waiting
from cass.errors import UsageError
from cass.home import Files
from cass.outlook import Outlook
from cass.records import Record, TurnEnd, User


class Answer(NamedTuple):
    """What came of a message."""

    id: str
    end: TurnEnd
    text: str
    """The last text of the turn; "" where there was none."""


def say(
    files: Files,
    text: str,
    *,
    timeout_s: float | None = None,
    id: str | None = None,
    start: bool = True,
    flags: Sequence[str] = (),
    tell: Callable[[Record], None] = lambda _: None,
    with_live: bool = False,
    **how: Any,
) -> Answer:
    """Send `text` as `send.send` does, wait for the end of the turn that takes it in; `tell` is given what comes, with
    `with_live` what is only true for now as well.

    Raises besides what `send.send` does: WaitedTooLong, and NoWorker when the worker died over it. A message that
    still waits then gets a new worker.
    """
    attached = presence.attach(files)
    # First of all: what ends from now on is seen, what ended before is in the chat.
    watch = waiting.Watch(files, with_live=with_live)
    try:
        if id is not None and (before := repeated(files, text, id)) is not None:
            return before
        is_known = id is not None
        id = send.send(files, text, id=id, start=start, flags=flags, **how)
        end = watch.until(waiting.answered(id), timeout_s, lambda: _check(files, watch, id, start, flags), tell)
        assert isinstance(end, TurnEnd)
        # Of a turn that had begun before, the text may have come before as well.
        return (repeated(files, text, id) if is_known else None) or Answer(id, end, watch.outlook.last)
    finally:
        watch.close()
        os.close(attached)


def repeated(files: Files, text: str, id: str) -> Answer | None:
    """What came of a message that was sent before under the same id; None where none was, or its turn goes on.

    Raises UsageError where the id belongs to another message.
    """
    outlook = Outlook()
    for record in chat.read(files):
        if isinstance(record, User) and record.id == id and record.content != text:
            raise UsageError(f"the id {id} belongs to another message of this chat")
        outlook.add(record)
        if isinstance(record, TurnEnd) and id in record.answers:
            return Answer(id, record, outlook.last)
    return None


def _check(files: Files, watch: waiting.Watch, id: str, start: bool, flags: Sequence[str]) -> None:
    """While nothing comes: NoWorker for a turn whose worker died, a new worker for a message that still waits."""
    if presence.is_running(files):
        return
    if id in watch.outlook.open:
        raise waiting.gone(files)
    send.hire(files, id, start, flags)
