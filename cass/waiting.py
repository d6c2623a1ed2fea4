"""Waiting for a chat: for news of it, for the answer to a message, until nothing of it is open."""

import time
from collections.abc import Callable, Collection, Iterator

from cass import inbox, outlook, presence, standing
from cass.errors import NoWorker, WaitedTooLong
from cass.home import Files
from cass.outlook import Outlook
from cass.records import Record, TurnEnd
from cass.tail import Tail

_SHORTEST_S = 0.0005
_LONGEST_S = 0.05


class Watch:
    """Waits for something in a chat: made before a message is sent, so that nothing is missed."""

    def __init__(self, files: Files, *, with_live: bool = False) -> None:
        """`with_live`: what is only true for now is news, too."""
        self._files = files
        self._tail = Tail(files.chat, -1)
        self._live = Tail(files.live, -1) if with_live else None
        self.outlook = Outlook()

    def news(self) -> Iterator[Record]:
        """What has come since it was last asked for. Whoever stops within it leaves out the rest."""
        facts = self._tail.read()
        yield from self._live.read() if self._live is not None else ()
        for record in facts:
            self.outlook.add(record)
            yield record

    def until(
        self,
        found: Callable[[Record], bool],
        timeout_s: float | None = None,
        on_silence: Callable[[], None] = lambda: None,
        tell: Callable[[Record], None] = lambda _: None,
    ) -> Record:
        """The first record that `found` accepts; `tell` is given all up to that one.

        `on_silence` is called while nothing comes, and may raise.

        Raises WaitedTooLong.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause = _SHORTEST_S
        while True:
            pause = min(pause * 1.5, _LONGEST_S)
            for record in self.news():
                pause = _SHORTEST_S
                tell(record)
                if found(record):
                    return record
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitedTooLong(f"nothing after {timeout_s:g} s; chat {self._files.chat_id} goes on")
            if pause == _LONGEST_S:
                on_silence()
            time.sleep(pause)

    def close(self) -> None:
        self._tail.close()
        if self._live is not None:
            self._live.close()


def answered(id: str) -> Callable[[Record], bool]:
    """Whether a record is the end of the turn that took in the message `id`."""
    return lambda record: isinstance(record, TurnEnd) and id in record.answers


def settle(files: Files, timeout_s: float | None = None) -> TurnEnd | None:
    """Wait until a chat has nothing more to do; return how its last turn ended, None where it had none.

    Raises NoWorker where something waits and nobody works on it, WaitedTooLong.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        running = presence.is_running(files)
        waits = not inbox.is_empty(files)  # before the chat: what is taken out of the inbox stands there already
        now = outlook.look(files)
        if not waits and not now.open:
            return now.end
        if not running and not presence.is_running(files):
            raise gone(files)
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitedTooLong(f"not done after {timeout_s:g} s; chat {files.chat_id} goes on")
        time.sleep(_LONGEST_S)


def first_of(files: Files, words: Collection[str], timeout_s: float | None = None) -> tuple[str, TurnEnd | None]:
    """Wait for the first of `words` that is true, and say which: ``approval`` (something waits for the person's),
    ``message`` (the model has said something since it was last spoken to), ``idle`` (there is nothing more to do),
    which ends the waiting in any case; and how the last turn ended. Raises as `settle` does.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    end, is_idle = None, False
    while True:
        if "approval" in words and standing.look(files).pending:
            return "approval", None
        if "message" in words and inbox.is_empty(files) and outlook.look(files).last:
            return "message", None
        if is_idle:
            return "idle", end
        try:
            end, is_idle = settle(files, _LONGEST_S), True  # and once more round: either may have come meanwhile
        except WaitedTooLong:
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitedTooLong(f"not done after {timeout_s:g} s; chat {files.chat_id} goes on") from None


def gone(files: Files) -> NoWorker:
    """The error of a chat whose worker died, with its last words where it had some."""
    words = presence.holder(files).get("error")
    return NoWorker(f"the worker of {files.chat_id} is gone" + (f": {words}" if words else ""))
