"""The paths below a directory that a person may mean, as ignore files leave them; for completion.

They are found by a process of its own, that of `tree`: a walk of 50,000 files beside the keyboard would make every key
wait for the interpreter.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from cass.visible import safe_line

MOST = 200
"""Offered at once; nobody reads further."""
FRESH_S = 5.0
"""A list older than this is made anew when it is asked for; the old one answers meanwhile."""
FIRST_S = 1.0
"""The first question waits so long; it is asked beside the keyboard."""


class Paths:
    """The paths below one directory, known as of a moment ago. `matching` may be called from any thread."""

    def __init__(self) -> None:
        self._top = ""
        self._known: list[str] = []
        self._lower: list[str] = []
        self._made_at = float("-inf")
        self._is_known = threading.Event()
        self._lock = threading.Lock()

    def matching(self, top: str, typed: str) -> list[str] | None:
        """What `typed` may be the beginning of, best first; directories end in a slash. None: nobody can say yet."""
        with self._lock:
            if top != self._top:
                self._top, self._known, self._lower, self._made_at = top, [], [], float("-inf")
                self._is_known = threading.Event()
            if time.monotonic() - self._made_at > FRESH_S:
                self._made_at = time.monotonic()
                threading.Thread(target=self._list, args=(top, self._is_known), daemon=True).start()
        if not self._is_known.wait(FIRST_S):
            return None
        return best(self._known, self._lower, typed)

    def _list(self, top: str, done: threading.Event) -> None:
        command = [sys.executable, "-I", "-m", "cass.composer.tree", top]
        found = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).stdout
        known = os.fsdecode(found).split("\0")[:-1]
        lower = [path.lower() for path in known]
        with self._lock:
            if top == self._top:
                self._known, self._lower = known, lower
        done.set()


def best(known: Sequence[str], lower: Sequence[str], typed: str) -> list[str]:
    """Of `known`, with `lower` the same in lower case: what begins like `typed`, one level deep; then names that begin
    like it anywhere, then paths that hold it. Hidden ones only where a dot is typed."""
    wanted = typed.lower()
    beginning: dict[str, None] = {}
    named: list[str] = []
    holding: list[str] = []
    for path, low in zip(known, lower, strict=True):
        if wanted not in low or _is_hidden(low, wanted):
            continue
        level = path
        if low.startswith(wanted):
            end = low.find("/", len(wanted))
            level = path[: end + 1] if end >= 0 else path
            beginning[level] = None
        if level == path and low.startswith(wanted):
            continue
        if wanted and low.rstrip("/").rpartition("/")[2].startswith(wanted):
            named.append(path)
        elif len(wanted) > 1 and level == path:
            holding.append(path)
    beginning.pop(typed, None)
    first = sorted(beginning, key=lambda path: (not path.endswith("/"), path))
    rest = [path for path in [*sorted(named, key=len), *sorted(holding, key=len)] if path not in beginning]
    return [path for path in first + rest if path and safe_line(path) == path][:MOST]


def _is_hidden(low: str, wanted: str) -> bool:
    """Whether a part of a path begins with a dot that nobody typed."""
    return (low.startswith(".") or "/." in low) and "." not in wanted[:1] and "/." not in wanted
