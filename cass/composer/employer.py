"""The employer: starts the worker of a chat when one is needed, and again when it died, but not for ever."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from cass.composer.seat import Seat
from cass.errors import CassError
from cass.visible import safe, safe_line

NEW_WORKERS = 3
"""Workers that are started in a row for one message: one that dies of it each time would go on for ever."""


class Speaker(Protocol):
    """How it speaks to the person."""

    def hint(self, text: str) -> None: ...
    def notice(self, style: str, text: str) -> None: ...


class Employer:
    def __init__(self, seat: Seat, speaker: Speaker, put_back: Callable[[list[str]], object]) -> None:
        """`put_back` takes messages that no worker will serve."""
        self._seat = seat
        self._speaker = speaker
        self._put_back = put_back
        self._started = 0
        self.is_starting = True
        """Also before anybody has looked whether one runs."""

    def begin(self) -> None:
        """The first look was taken."""
        self.is_starting = False
        if not self._seat.is_running:
            self._start("")

    def look(self, was_running: bool) -> None:
        """Start one where that is needed now."""
        if was_running and not self._seat.is_running:
            self._ended()
        elif self._seat.needs_worker and not self.is_starting:
            self._start("no worker was running; one is started")

    def try_again(self) -> None:
        """The person wants something of it: what has failed before may go well now."""
        self._started = 0

    def _ended(self) -> None:
        if self._seat.needs_worker:
            self._start("the worker ended; it is started again")
        else:
            self._speaker.notice("warning", "the worker ended; the next message starts it again")

    def _start(self, why: str) -> None:
        if self._started > NEW_WORKERS:
            return
        self._started += 1
        if self._started > NEW_WORKERS:
            log = safe_line(str(self._seat.files.log))
            words = f"the worker ended {NEW_WORKERS} times in a row (see {log}); the next message starts it again"
            self._speaker.notice("warning", words)
            return
        self.is_starting = True
        if why:
            self._speaker.hint(why)
        try:
            starting = self._seat.start_worker()
        except (OSError, CassError) as e:
            self._failed(str(e))
            return
        loop = asyncio.get_running_loop()

        def spoke() -> None:
            loop.remove_reader(starting.fileno())
            self.is_starting = False
            try:
                starting.wait(1)
                self._seat.is_running = True
            except CassError as e:
                self._failed(str(e))

        loop.add_reader(starting.fileno(), spoke)

    def _failed(self, why: str) -> None:
        """Say why; what waits for a worker that cannot start comes back to where it can be sent from again."""
        self.is_starting = False
        self._started = NEW_WORKERS + 1
        self._speaker.notice("error", safe(why))
        self._put_back(self._seat.take_back(mine=True))
