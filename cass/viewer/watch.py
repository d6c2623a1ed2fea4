"""A watch over files: a descriptor that becomes readable when one of them may have changed.

The directories are watched, not the files: a watched file that is replaced by another would stay silent for ever, and
one that is still missing cannot be watched. What changed is not told; whoever is woken looks.
"""

import os
import threading
import time
from pathlib import Path

from watchfiles import watch

BUSY_STEP_MS = 2
"""The watcher looks so often; latency is about one and a half of it."""
IDLE_STEP_MS = 20
IDLE_AFTER_S = 30.0
DEBOUNCE_MS = 10
BACKSTOP_MS = {BUSY_STEP_MS: 200, IDLE_STEP_MS: 1000}
"""A wake without a change: what came between two watches is seen then at the latest."""
BUSY_POLL_S = 0.005
IDLE_POLL_S = 0.05


class Watch:
    """Starts at once; `close` ends it."""

    def __init__(self, *paths: Path, by_polling: bool = False) -> None:
        """`by_polling`: ask for sizes instead, as is also done where the system has no watches left to give."""
        self._paths = paths
        self._names = frozenset(map(str, paths))
        self._by_polling = by_polling
        self._stop = threading.Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        return self._reading

    def drain(self) -> None:
        """Take back all wakes so far; look at the files after that."""
        try:
            while os.read(self._reading, 4096):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * IDLE_STEP_MS / 1000 + 1)
        os.close(self._reading)
        os.close(self._writing)

    def wake(self) -> None:
        """Make it readable now, whatever the files do."""
        try:
            os.write(self._writing, b"\0")
        except BlockingIOError:  # thousands of wakes wait already
            return

    def _run(self) -> None:
        self._changed_at = time.monotonic()
        while not self._stop.is_set():
            directories = self._directories()
            if self._by_polling or not directories:
                self._poll(directories)
                continue
            try:
                self._watch(directories)
            except (OSError, RuntimeError):  # no watches left, a directory that is gone, a file system without them
                self._by_polling = True

    def _directories(self) -> list[Path]:
        return sorted({path.parent for path in self._paths if path.parent.is_dir()})

    def _is_busy(self) -> bool:
        return time.monotonic() - self._changed_at < IDLE_AFTER_S

    def _watch(self, directories: list[Path]) -> None:
        """Watch until other directories are to be watched, or at another pace."""
        step = BUSY_STEP_MS if self._is_busy() else IDLE_STEP_MS
        for changes in watch(
            *directories,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=step,
            stop_event=self._stop,
            rust_timeout=BACKSTOP_MS[step],
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,  # its polling compares whole seconds; ours below does not
            recursive=False,
        ):
            if any(name in self._names for _, name in changes):
                self._changed_at = time.monotonic()
            elif changes:
                continue  # another chat in the same directory
            self.wake()
            if self._is_busy() != (step == BUSY_STEP_MS) or self._directories() != directories:
                return

    def _poll(self, directories: list[Path]) -> None:
        """Ask for sizes until there is something to watch."""
        before = self._sizes()
        while not self._stop.wait(BUSY_POLL_S if self._is_busy() else IDLE_POLL_S):
            sizes = self._sizes()
            if sizes != before:
                before = sizes
                self._changed_at = time.monotonic()
                self.wake()
            if not self._by_polling and self._directories() != directories:
                return

    def _sizes(self) -> list[tuple[int, int]]:
        sizes = []
        for path in self._paths:
            try:
                found = os.stat(path)
                sizes.append((found.st_ino, found.st_size))
            except OSError:
                sizes.append((0, 0))
        return sizes
