"""The viewer in a tmux pane of its own, above the composer's.

Nothing of the person's is touched: no binding, no option, no other pane. The pane ends with the composer, however that
ends, because its command watches the composer's process. The composer's own pane is low, and grows with what it shows.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from cass.errors import CassError

COMPOSER_ROWS = 7
"""What stays for the composer at first: some lines of input or of a menu, status and help."""
SMALLEST_VIEWER = 5

_WHILE = """p=$1; shift
(while kill -0 "$p"; do sleep 1; done; kill -HUP -$$) 2>/dev/null &
for run in 1 2 3; do
    "$@" && exit
    status=$?
    [ $status -gt 128 ] && kill -0 "$p" || exit $status
    printf '\\033[H\\033[2J\\033[3Jthe viewer was killed (status %s) and is started again\\n' $status
done 2>/dev/null"""
"""A viewer that a signal ended is started again, on an empty screen: nothing is shown twice. Any other has left."""


def is_possible(environ: Mapping[str, str]) -> bool:
    """Whether this terminal is a pane of tmux. A popup has `TMUX` but no `TMUX_PANE`: it cannot be split."""
    return bool(environ.get("TMUX") and environ.get("TMUX_PANE")) and shutil.which("tmux") is not None


class Pane:
    """The viewer's pane."""

    def __init__(self, id: str, own: str) -> None:
        self.id = id
        self._own = own
        self._sizes: tuple[int, int, int] | None = None
        """Rows of the viewer's pane, the composer's and the window, as we left them."""
        self._is_theirs = False
        """The person has given the panes a size of their own."""

    @classmethod
    def open(cls, command: Sequence[str], environ: Mapping[str, str]) -> "Pane":
        """Split the composer's pane and run `command` in the upper half. Raises CassError in tmux's words."""
        own = environ["TMUX_PANE"]
        rows = int(_tmux("display-message", "-p", "-t", own, "#{pane_height}").strip() or 0)
        size = max(rows - COMPOSER_ROWS - 1, SMALLEST_VIEWER)
        guarded = shlex.join(["sh", "-c", _WHILE, "sh", str(os.getpid()), *command])
        split = [
            "split-window",
            "-d",
            "-b",
            "-v",
            "-l",
            str(size),
            "-t",
            own,
            "-P",
            "-F",
            "#{pane_id}",
            *_passed(environ),
        ]
        return cls(_tmux(*split, guarded).strip(), own)

    def fit(self, rows: int) -> None:
        """Give the composer's pane so many rows, at most half of what both have; leave sizes that the person chose."""
        try:
            sizes = self._measure()
            if self._is_theirs or sizes is None:
                return
            viewer, composer, window = sizes
            # In another window all panes have other sizes, and nobody chose them.
            if self._sizes is not None and sizes != self._sizes and window == self._sizes[2]:
                self._is_theirs = True
                return
            wanted = max(min(rows, (viewer + composer) // 2), min(COMPOSER_ROWS, composer))
            if wanted != composer:
                _tmux("resize-pane", "-t", self.id, "-y", str(viewer + composer - wanted))
            # As they are to be, not as they are found: the person may have sized them meanwhile.
            self._sizes = viewer + composer - wanted, wanted, window
        except CassError:
            return  # the pane is gone, which is seen elsewhere

    def _measure(self) -> tuple[int, int, int] | None:
        """`_sizes` as they are now; None while one pane is zoomed to the whole window."""
        asked = "#{pane_height} #{window_height} #{window_zoomed_flag}"
        viewer, window, zoomed = map(int, _tmux("display-message", "-p", "-t", self.id, asked).split())
        composer = int(_tmux("display-message", "-p", "-t", self._own, "#{pane_height}"))
        return None if zoomed else (viewer, composer, window)

    def press(self, key: str) -> bool:
        """Send one key to the viewer, also out of copy mode; False where the pane is gone."""
        return self._do("if-shell", "-F", "-t", self.id, "#{pane_in_mode}", f"send-keys -X -t {self.id} cancel") and (
            self._do("send-keys", "-t", self.id, key)
        )

    def scroll(self, direction: str) -> bool:
        """Half a page ``up`` or ``down`` in copy mode, which ends by itself at the lower end."""
        if direction == "up" and not self._do("copy-mode", "-e", "-t", self.id):
            return False
        return self._do(
            "if-shell", "-F", "-t", self.id, "#{pane_in_mode}", f"send-keys -X -t {self.id} halfpage-{direction}"
        )

    def is_open(self) -> bool:
        try:
            return self.id in _tmux("list-panes", "-a", "-F", "#D").split()
        except CassError:
            return False

    def close(self) -> None:
        self._do("kill-pane", "-t", self.id)

    def _do(self, *command: str) -> bool:
        try:
            _tmux(*command)
        except CassError:
            return False
        return True


_STAYS = """"$@" || { printf '\\nstatus %s; Enter closes this pane\\n' $?; read -r _; }"""
"""What went wrong is read before its pane is gone."""


def beside(command: Sequence[str], environ: Mapping[str, str], viewer: str | None) -> None:
    """Run `command` in a pane that ends with it and has the keyboard. Raises CassError in tmux's words.

    It takes half the width of a viewer's pane, else half the height of our own: below a viewer no height would be ours
    to share.
    """
    place = ["-h", "-t", viewer] if viewer else ["-v", "-t", environ["TMUX_PANE"]]
    _tmux("split-window", *place, *_passed(environ), shlex.join(["sh", "-c", _STAYS, "sh", *command]))


_PASSED = ("CASS_HOME", "HOME", "NO_COLOR", "CLICOLOR", "FORCE_COLOR", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE")
"""A new pane has the environment of tmux's server, not ours."""


def _passed(environ: Mapping[str, str]) -> list[str]:
    return [f"-e{name}={environ[name]}" for name in _PASSED if name in environ]


def _tmux(*command: str) -> str:
    done = subprocess.run(["tmux", *command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CassError(f"tmux {command[0]}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout
