"""An exchange: a message that is sent, and the answer that is waited for."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from cass import presence, send, status
from cass.home import Files
from cass.records import TurnEnd


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
    **how: Any,
) -> Answer:
    """Send `text` as `send.send` does, wait for the end of the turn that takes it in.

    Raises besides what `send.send` does: WaitedTooLong, and NoWorker when the worker died over it. A message that
    still waits then gets a new worker.
    """
    attached = presence.attach(files)
    watch = status.Watch(files)
    try:
        id = send.send(files, text, id=id, start=start, flags=flags, **how)
        end = watch.until(status.answered(id), timeout_s, lambda: _check(files, watch, id, start, flags))
        assert isinstance(end, TurnEnd)
        return Answer(id, end, watch.outlook.last)
    finally:
        watch.close()
        os.close(attached)


def _check(files: Files, watch: status.Watch, id: str, start: bool, flags: Sequence[str]) -> None:
    """While nothing comes: NoWorker for a turn whose worker died, a new worker for a message that still waits."""
    if presence.is_running(files):
        return
    if id in watch.outlook.open:
        raise status.gone(files)
    send.hire(files, id, start, flags)
