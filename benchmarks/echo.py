#!/usr/bin/env python3
"""What a person at the keyboard waits for: benchmarks/echo.py [-n KEYS]

prompt            from exec to the prompt on the terminal
echo, idle        from a key to its character on the terminal, nothing else going on
echo, streaming   the same while an answer of 1,000 lines a second comes in and is printed above the prompt

Milliseconds on a pty of 100 columns: median, 95th percentile, worst. The floor beside them is a bare prompt_toolkit
prompt, typed at in the same way. Standard library only.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [str(ROOT / ".venv/bin/python"), "-I"]
BARE = "from prompt_toolkit import PromptSession; PromptSession(multiline=True).prompt('> ')"
DRAWN = b"\x1b[?2004h"  # prompt_toolkit asks for bracketed paste when it draws for the first time
REACH_MS = 20
KEY_EVERY_S = 0.11
"""Not a multiple of any interval in the program: keys then come at all moments of it."""
LINES, LINES_A_SECOND = 20_000, 1_000
FIRST_LETTER = 0x400
"""Cyrillic: neither in what is shown nor in what controls a terminal."""


class Terminal:
    """A program on a pty."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environ)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def until(self, sign: bytes, timeout_s: float = 30) -> bytes:
        """Read until `sign` has come; return all that was read."""
        seen = b""
        deadline = time.perf_counter() + timeout_s
        while sign not in seen:
            if not select.select([self.fd], [], [], max(deadline - time.perf_counter(), 0))[0]:
                sys.exit(f"nothing like {sign!r} in {seen[-500:]!r}")
            seen += os.read(self.fd, 65536)
        return seen

    def drain(self, for_s: float) -> bytes:
        """All that comes meanwhile."""
        seen = b""
        deadline = time.perf_counter() + for_s
        while (left := deadline - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                seen += os.read(self.fd, 65536)
        return seen

    def echo(self, keys: int) -> list[float]:
        """Milliseconds from each key until its character is drawn: one that comes nowhere else, and never again."""
        found = []
        for number in range(keys):
            self.drain(KEY_EVERY_S)
            letter = chr(FIRST_LETTER + number).encode()
            began = time.perf_counter()
            os.write(self.fd, letter)
            self.until(letter)
            found.append((time.perf_counter() - began) * 1e3)
        return found

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            while os.read(self.fd, 65536):
                pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def home() -> Iterator[dict[str, str]]:
    """An environment with a home of its own, whose provider streams lines for as long as keys come."""
    with tempfile.TemporaryDirectory(prefix="cass-bench-", ignore_cleanup_errors=True) as place:
        directory = Path(place) / ".cass"
        directory.mkdir(mode=0o700)
        lines = "\n\n".join(f"{number} is a line of some length, as answers have them" for number in range(LINES))
        step = {"text": lines, "deltas": LINES, "delay_ms": 1000 / LINES_A_SECOND}
        (directory / "steps.json").write_text(json.dumps([step]))
        entry = {"id": "bench", "kind": "demo", "script": str(directory / "steps.json"), "default_model": "bench"}
        (directory / "providers.json").write_text(json.dumps({"providers": [entry]}))
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        with contextlib.chdir(place):
            environ = {"HOME": place, "CASS_HOME": str(directory), "TERM": "xterm-256color", "NO_COLOR": "1"}
            yield kept | environ
            for chat in (directory / "run").glob("*"):
                subprocess.run([ROOT / "bin/cass", "stop", chat.name], env=kept | environ, capture_output=True)


def show(name: str, found: list[float], floor: list[float] | None = None, reach: str = "") -> None:
    def words(figures: list[float]) -> str:
        ordered = sorted(figures)
        late = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
        return f"{statistics.median(ordered):8.1f}{late:8.1f}{ordered[-1]:8.1f}"

    print(f"{name:18}{words(found)}   {words(floor) if floor else '':24}  {reach}", flush=True)


def typed_at(command: list[str], environ: dict[str, str], keys: int, say: str = "") -> tuple[float, list[float]]:
    """Milliseconds to the prompt, and of each key, once what was said has begun to stream."""
    terminal = Terminal(command, environ)
    terminal.until(DRAWN)
    prompt = (time.perf_counter() - terminal.began) * 1e3
    terminal.drain(1.5)
    if say:
        os.write(terminal.fd, say.encode())
        terminal.until(b"is a line")
        lines = terminal.drain(2).count(b"is a line") / 2
        print(f"streaming {lines:.0f} lines a second")
    found = terminal.echo(keys)
    terminal.close()
    return prompt, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--keys", type=int, default=60, help="typed at each program")
    parser.add_argument("--starts", type=int, default=7, help="of each program, for the time to the prompt")
    given = parser.parse_args()
    subprocess.run([ROOT / "bin/cass", "--version"], check=True, stdout=subprocess.DEVNULL)
    with home() as environ:
        cass = [str(ROOT / "bin/cass"), "-P", "bench"]
        bare = [*PYTHON, "-c", BARE]
        prompts, floors = [], []
        for _ in range(given.starts):
            floors.append(typed_at(bare, environ, 0)[0])
            prompts.append(typed_at(cass, environ, 0)[0])
        print(f"{'':18}{'median':>8}{'p95':>8}{'worst':>8}   {'floor':>8}{'p95':>8}{'worst':>8}")
        show("prompt", prompts, floors)
        floor = typed_at(bare, environ, given.keys)[1]
        show("echo, idle", typed_at(cass, environ, given.keys)[1], floor, f"< {REACH_MS}")
        show("echo, streaming", typed_at(cass, environ, given.keys, "go on\r")[1], floor, f"< {REACH_MS}")


if __name__ == "__main__":
    main()
