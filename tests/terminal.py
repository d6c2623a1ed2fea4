"""Terminals that tests sit at: a pty whose bytes are read, and a tmux of our own whose screen is looked at."""

import contextlib
import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

WAIT_S = 30.0


class Pty:
    """A program on a terminal of its own, as its session's leader."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None, *, rows: int = 24, columns: int = 80
    ) -> None:
        self.said = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(OSError):
                os.execvpe(command[0], list(command), {"TERM": "xterm-256color"} | dict(environ or os.environ))
            os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.status: int | None = None

    def type(self, text: str | bytes) -> None:
        os.write(self._fd, text.encode() if isinstance(text, str) else text)

    def until(self, found: str | bytes | Callable[[], Any], timeout_s: float = WAIT_S) -> None:
        """Read until some text was written, or a condition holds."""
        if isinstance(found, str):
            found = found.encode()
        deadline = time.monotonic() + timeout_s
        while not (found in self.said if isinstance(found, bytes) else found()):
            assert time.monotonic() < deadline, f"waited in vain for {found!r}; the terminal got {self.said[-2000:]!r}"
            self._read(0.02)

    def end(self, timeout_s: float = WAIT_S) -> int:
        """Read until the program ends; return its exit status, negative after a signal."""

        def ended() -> bool:
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.status = os.waitstatus_to_exitcode(status) if pid else None
            return self.status is not None

        self.until(ended, timeout_s)
        while self._read(0.05):
            pass
        assert self.status is not None
        return self.status

    @property
    def is_asleep(self) -> bool:
        """Whether it waits, as for a key; not whether there is a prompt, which stands there a moment before."""
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(self.pid)], capture_output=True, text=True, check=False)
        return done.stdout.startswith("S")

    @property
    def mode(self) -> list[Any]:
        """The terminal's settings."""
        return termios.tcgetattr(self._fd)

    def hang_up(self) -> None:
        """Close the other end, as a window that is closed."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)

    def _read(self, wait_s: float) -> bool:
        if self._fd < 0 or not select.select([self._fd], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.said += data
        return bool(data)


class Tmux:
    """A tmux server of our own, without anybody's configuration; its first pane runs `command`."""

    def __init__(
        self,
        socket: Path,
        command: Sequence[str] = ("bash", "--norc"),
        *,
        environ: Mapping[str, str] | None = None,
        inside: bool = True,
        size: tuple[int, int] = (100, 30),
    ) -> None:
        """`inside`: whether the command may know that it runs in tmux; else tmux is only the screen we look at."""
        self._socket = str(socket)
        forget = [] if inside else ["env", "-u", "TMUX", "-u", "TMUX_PANE"]
        line = shlex.join(["env", *(f"{k}={v}" for k, v in (environ or {}).items()), "PS1=$ ", *forget, *command])
        columns, rows = size
        self.do("new-session", "-d", "-x", str(columns), "-y", str(rows), line)
        self.pane = self.do("display-message", "-p", "#{pane_id}").strip()

    def do(self, *command: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *command], capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def type(self, text: str) -> None:
        self.do("send-keys", "-t", self.pane, "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: ``Enter``, ``C-c``, ``BTab``."""
        self.do("send-keys", "-t", self.pane, *keys)

    def screen(self, pane: str | None = None, *, history: bool = False) -> str:
        """What stands on the screen of a pane; with `history` also what has scrolled out of it."""
        back = ["-S", "-"] if history else []
        return self.do("capture-pane", "-p", *back, "-t", pane or self.pane)

    def until(self, found: str | Callable[[], Any], *, pane: str | None = None, history: bool = False) -> str:
        """Look until some text stands on the screen, or a condition holds; return the screen."""
        deadline = time.monotonic() + WAIT_S
        while True:
            screen = self.screen(pane, history=history)
            if found in screen if isinstance(found, str) else found():
                return screen
            assert time.monotonic() < deadline, f"waited in vain for {found!r}; the screen:\n{screen}"
            time.sleep(0.02)

    def panes(self) -> list[str]:
        """Ids from top to bottom."""
        return self.do("list-panes", "-F", "#D").split()

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)
