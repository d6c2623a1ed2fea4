"""The screen: follows one chat on a terminal, as frames or as a stream, until the person or the reader is gone.

With frames, standard input brings ``{"width": columns}``, ``{"key": "C-o"}`` or ``{"key": "C-t"}``, and with
``{"seen": [id]}`` the messages that stand on the screen already, one JSON object a line; its end ends the viewer.
"""

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Sequence
from types import FrameType

from cass import jsonl, presence
from cass.errors import CassError
from cass.home import Files
from cass.lineage import of_agent
from cass.records import Record, TurnEnd
from cass.tail import Tail
from cass.viewer import reading
from cass.viewer.attention import Attention
from cass.viewer.look import SPIN_S
from cass.viewer.page import Page
from cass.viewer.reading import Place
from cass.viewer.surface import STDIN, STDOUT, Frames, Stream, Surface, Terminal, write
from cass.viewer.watch import Watch

TICK_S = 1.0
"""How often the seconds that something takes are counted on, and the lock is asked for."""
SETTLING_S = 0.05
"""The same until the watch is surely up, within `SETTLED_S`: what is appended meanwhile wakes nobody."""
SETTLED_S = 0.5
STARTING_S = 1.5
"""A worker that is started together with us needs some time: only after that it is said that there is none."""
KEYS = "q leaves · Ctrl-O tool output · Ctrl-T reasoning"
NO_WORKER = "no worker runs; a message or cass --resume starts one"
FIRST_WORD_S = 0.2
"""Whoever reads frames is given so long to say how wide they are to be; it is sent while we start."""


class Screen:
    """One screen that follows one chat."""

    def __init__(
        self,
        files: Files,
        page: Page,
        surface: Surface,
        attention: Attention | None,
        *,
        has_own_width: bool,
        hints: bool,
    ) -> None:
        """`attention` where the terminal is our own, `hints` where a person has only us to tell of keys and worker."""
        self._files = files
        self._page = page
        self._surface = surface
        self._attention = attention
        self._asked: set[str] = set()
        """Id of the last request that was seen to wait."""
        self._has_own_width = has_own_width
        self._hints = hints
        self._watch = Watch(files.chat, files.live)
        self._chat: Tail | None = None
        self._live = Tail(files.live)
        self._expects_worker_until = time.monotonic() + STARTING_S
        self._heard = b""
        self._is_to_suspend = False

    def open(self, last: int | None, since: str = "", after: Place | None = None) -> None:
        """The first paint."""
        if self._attention is not None:
            write(self._attention.begin().encode())
        is_told = isinstance(self._surface, Frames) and self._has_own_width
        if is_told and select.select([STDIN], [], [], FIRST_WORD_S)[0]:
            self._hear()  # how wide to paint
        if after is not None:
            self._chat, found = reading.again(self._files, after)
            self._live, live = reading.again_live(self._files, after)
            self._page.resume([*found, *live], after.growing)
        else:
            self._chat, found = reading.newest(self._files, last, since)
            self._hear_now()
            self._show(self._page.begin(found, last, since), ())

    def follow(self) -> None:
        """Until the person, the terminal or the reader is gone."""
        for number in (signal.SIGWINCH, signal.SIGCONT):
            signal.signal(number, self._shaken)
        if self._attention is not None:
            signal.signal(signal.SIGTSTP, self._shaken)
        poll = waking(self._watch)
        if isinstance(self._surface, Frames) or (isinstance(self._surface, Terminal) and os.isatty(STDIN)):
            poll.register(STDIN, select.POLLIN)
        settled = time.monotonic() + SETTLED_S
        while True:
            self._update()
            wait = SETTLING_S if time.monotonic() < settled else self._step()
            ready = [fd for fd, _ in poll.poll(wait * 1000)]
            if STDOUT in ready or (STDIN in ready and not self._hear()):
                return
            self._watch.drain()
            if self._is_to_suspend:
                self._suspend()

    def _step(self) -> float:
        """Seconds until something is to be shown although nothing happened."""
        moves = self._page.is_busy and isinstance(self._surface, Terminal)
        return SPIN_S if moves else TICK_S

    def close(self) -> None:
        if self._attention is not None:
            with contextlib.suppress(OSError, CassError):  # the terminal is gone
                write(self._attention.end().encode())
        self._surface.close()
        self._watch.close()

    def _update(self) -> None:
        """Read what is new and show it."""
        assert self._chat is not None
        columns, height = self._surface.size()
        if columns and self._has_own_width and columns != self._page.look.width:
            self._page.look = self._page.look._replace(width=columns)
        # The live file first: what it says is about records that the chat then already holds.
        is_running = presence.is_running(self._files)
        found = self._live.read() if is_running else []
        facts = self._chat.read()
        self._hear_now()
        finished = self._page.take([*found, *facts], is_running)
        if is_running:
            self._expects_worker_until = 0.0
        elif time.monotonic() > self._expects_worker_until and isinstance(self._surface, Stream):
            self._expects_worker_until = math.inf  # said once, where it cannot be taken back
            finished += self._page.say(NO_WORKER)
        self._show(finished, self._bottom(height))
        if self._attention is not None:
            self._attend(self._attention, facts, is_running)

    def _bottom(self, height: int) -> list[str]:
        """What stands below the finished lines: what grows, and where nothing does, what the person can do."""
        growing = self._page.live(time.time(), height)
        if not self._hints or (self._page.is_running and growing):
            return growing
        is_missing = not self._page.is_running and time.monotonic() > self._expects_worker_until
        return [*growing, *self._page.hint(f"{NO_WORKER} · q leaves" if is_missing else KEYS)][-max(height, 1) :]

    def _attend(self, attention: Attention, facts: Sequence[Record], is_running: bool) -> None:
        """Tell the terminal what the chat does, and the person what they may be waiting for."""
        now = self._page.now
        said = attention.show(now.status.state if now.status is not None else "idle" if is_running else "stopped")
        said += "".join(attention.call(f"the turn is {end.outcome}") for end in facts if isinstance(end, TurnEnd))
        for request in (call.request for call in now.calls if call.request is not None):
            if request.request_id not in self._asked:
                self._asked.add(request.request_id)
                said += attention.call(f"{request.name}{of_agent(request.agent)} needs your approval")
        write(said.encode("utf-8", "replace"))

    def _show(self, finished: Sequence[str], live: Sequence[str]) -> None:
        assert self._chat is not None
        place = Place(self._chat.place, self._live.inode, self._live.place, self._page.growing)
        self._surface.show(finished, live, str(place))

    def _shaken(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._is_to_suspend = True
        if number == signal.SIGCONT:
            self._surface.resume()
        self._watch.wake()

    def _suspend(self) -> None:
        """Ctrl-Z: leave the terminal as it was until we go on."""
        self._is_to_suspend = False
        assert self._attention is not None
        write(self._attention.end().encode())
        self._surface.close()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._shaken)
        self._surface.resume()
        write(self._attention.begin().encode())

    # ---- keys

    def _hear_now(self) -> None:
        """Hear what was said before the records just read were written: which of them are seen."""
        if isinstance(self._surface, Frames) and select.select([STDIN], [], [], 0)[0]:
            self._hear()

    def _hear(self) -> bool:
        """Obey what came on standard input; False when it ended, or the person leaves."""
        data = os.read(STDIN, 65536)
        if not isinstance(self._surface, Frames):
            keys = self._attention.hear(data) if self._attention is not None else data
            for key in keys.decode("utf-8", "replace"):
                self._press({"\x0f": "C-o", "\x14": "C-t"}.get(key, ""))
            return bool(data) and b"q" not in keys
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._obey(line)
        return bool(data)

    def _obey(self, line: bytes) -> None:
        try:
            said = jsonl.load(line)
        except ValueError:
            return  # not for us
        if isinstance(said, dict):
            width = said.get("width")
            if isinstance(width, int) and width > 0:
                self._page.look = self._page.look._replace(width=width)
            if isinstance(seen := said.get("seen"), list):
                self._page.seen.update(map(str, seen))
            self._press(str(said.get("key", "")))

    def _press(self, key: str) -> None:
        look = self._page.look
        if key == "C-o":
            words = "tool output short" if look.full else "tool output in full"
            again = self._page.again(look._replace(full=not look.full), words)
        elif key == "C-t":
            words = "reasoning hidden" if look.reasoning else "reasoning shown"
            again = self._page.again(look._replace(reasoning=not look.reasoning), words)
        else:
            return
        self._show(again, self._bottom(self._surface.size()[1]))


def waking(watch: Watch) -> select.poll:
    """What tells that files changed, or that nobody reads us any more."""
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    poll.register(STDOUT, 0)  # tells when its reader is gone
    return poll
