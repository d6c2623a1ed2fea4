#!/usr/bin/env python3
"""What drawing costs: benchmarks/drawing.py [-n RUNS] [NAME ...]

`delta`: from a worker's write of a delta to its text on a terminal, at 100 a second. `answer`: what a delta of a long
answer costs beside one of a short answer. `idle`: CPU of a viewer to which nothing happens. `open`: from exec to the
last message on the screen, of a 100 MB chat beside an empty one. The viewer runs on a terminal of its own, beside a
worker as far as a viewer can see. Standard library only; Linux.
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
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from run import BIN, cpu_of, environment, fill

CHAT = "2026-06-20-120000-0000"
AT = "2026-06-20T12:00:00.000Z"
DELTAS = 500
STEP_S = 0.01
SHORT, LONG = 2_500, 20_000
PIECES = [*["some ", "words ", "and *more* ", "of `them` "] * 12, "\n\n", "- a remark\n", "- and one more\n", "\n"]
PIECES += [
    "```python\n",
    *["x = ", "'a string'", "\n"] * 8,
    "```\n\n",
    *["| a | b |\n", "|---|---|\n"],
    *["| 1 | two |\n"] * 25,
]
PIECES += ["\n"]
IDLE_S = 30.0
PATIENCE_S = 20.0
BIG = 100 << 20
ANSWER = (
    "Answer {} begins with a **paragraph** of some length, which has `code` in it and goes on for a few lines, as "
    "answers do, before it comes to the point that it wants to make.\n\n- a first remark, of a line\n- a second one\n\n"
    "```python\ndef answer(question):\n    return len(question)\n```\n\nAnd it ends.\n"
)


class Screen:
    """A viewer on a terminal."""

    def __init__(self, home: Path) -> None:
        self._environ = environment(home)
        command = [str(BIN / "cass-view"), CHAT]
        self.started = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, self._environ)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def until(self, sign: bytes) -> float:
        """The time when `sign` stood there."""
        seen, end = b"", time.perf_counter() + PATIENCE_S
        while sign not in seen:
            if not select.select([self._terminal], [], [], PATIENCE_S)[0] or time.perf_counter() > end:
                raise SystemExit(f"nothing like {sign!r} in {seen[-2000:]!r}")
            seen = seen[-100_000:] + os.read(self._terminal, 65536)
        return time.perf_counter()

    def drain(self, wait_s: float) -> None:
        """Read for so long what comes."""
        end = time.perf_counter() + wait_s
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                os.read(self._terminal, 65536)

    def cpu(self) -> float:
        return cpu_of(self._environ["CASS_HOME"])

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):  # EIO: the viewer has closed the terminal
            while os.read(self._terminal, 65536):
                pass
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@contextlib.contextmanager
def home_with(size: int = 0) -> Iterator[Path]:
    """A home with one chat of about `size` bytes."""
    with tempfile.TemporaryDirectory(prefix="cass-bench-") as place:
        home = Path(place)
        fill(home, 1)
        turn = [
            {"type": "message", "role": "user", "id": "u{}", "content": "question {} " * 20, "created_at": AT},
            {"type": "message", "role": "assistant", "id": "a{}", "content": ANSWER},
        ]
        text = "".join(json.dumps({"created_at": AT, "tool_calls": []} | record) + "\n" for record in turn)
        with open(home / ".cass" / "conversations" / f"{CHAT}.jsonl", "a") as chat:
            for number in range(size // len(text)):
                chat.write(text.replace("{}", str(number)))
            chat.write(json.dumps(turn[0] | {"id": "last", "content": "the last message"}) + "\n")
        yield home


@contextlib.contextmanager
def worker(home: Path) -> Iterator[Callable[[dict[str, object]], None]]:
    """Hold a chat's lock; what is called with a record writes it into the live file, in one write as a worker does."""
    run = home / ".cass" / "run" / CHAT
    run.mkdir(parents=True, mode=0o700)
    with open(run / "lock", "w") as lock, open(run / "live.jsonl", "wb", buffering=0) as live:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def write(record: dict[str, object]) -> None:
            live.write(json.dumps(record).encode() + b"\n")

        write(
            {
                "type": "status",
                "state": "thinking",
                "mode": "read-only",
                "provider": "p",
                "model": "m",
                "created_at": AT,
            }
        )
        yield write


def delta(runs: int) -> str:
    """Milliseconds from write to screen."""
    took: list[float] = []
    for _ in range(runs):
        with home_with() as home, worker(home) as write:
            screen = Screen(home)
            screen.until(b"thinking")
            screen.drain(1)
            next_at = time.perf_counter()
            for number in range(DELTAS):
                screen.drain(max(next_at - time.perf_counter(), 0))
                next_at += STEP_S
                written = time.perf_counter()
                write({"type": "delta", "of": "b", "text": f"w{number}. " if number % 20 else f"w{number}.\n\n"})
                took.append((screen.until(f"w{number}.".encode()) - written) * 1e3)
            screen.close()
    took.sort()
    return f"p50 {took[len(took) // 2]:.1f} ms, p95 {took[len(took) * 95 // 100]:.1f} ms, most {took[-1]:.1f} ms"


def answer(runs: int) -> str:
    """CPU of a viewer for each delta of a long answer, beside the same for a short one."""
    took: dict[int, list[float]] = {SHORT: [], LONG: []}
    for number in (SHORT, LONG) * max(runs // 2, 1):
        with home_with() as home, worker(home) as write:
            screen = Screen(home)
            screen.until(b"thinking")
            screen.drain(1)
            cpu = screen.cpu()
            for i in range(number):
                write({"type": "delta", "of": "b", "text": PIECES[i % len(PIECES)]})
                if i % 100 == 0:
                    screen.drain(0.01)
            write({"type": "delta", "of": "b", "text": "\n\nthatisall"})
            screen.until(b"thatisall")
            took[number].append((screen.cpu() - cpu) / number * 1e6)
            screen.close()
    short, long = (min(took[number]) for number in (SHORT, LONG))
    return f"{long / short:.2f} x ({short:.0f} us a delta of {SHORT:,}, {long:.0f} of {LONG:,})"


def idle(runs: int) -> str:
    """Percent of one CPU, from half a minute after the last thing happened."""
    shares: list[float] = []
    for _ in range(max(runs // 3, 1)):
        with home_with() as home:
            screen = Screen(home)
            screen.until(b"the last message")
            screen.drain(IDLE_S + 5)
            began, cpu = time.perf_counter(), screen.cpu()
            screen.drain(IDLE_S)
            shares.append((screen.cpu() - cpu) / (time.perf_counter() - began) * 100)
            screen.close()
    return f"{min(shares):.2f}% of a CPU"


def first_paint(runs: int) -> str:
    """Milliseconds from exec to the last message on the screen."""
    took: dict[int, list[float]] = {0: [], BIG: []}
    with home_with(0) as empty, home_with(BIG) as big:
        for _ in range(runs + 1):
            for size, home in ((0, empty), (BIG, big)):
                screen = Screen(home)
                took[size].append((screen.until(b"the last message") - screen.started) * 1e3)
                screen.close()
    least, most = (min(took[size][1:]) for size in (0, BIG))  # the first one fills the caches
    middle, middle_big = (statistics.median(took[size][1:]) for size in (0, BIG))
    return f"{most - least:+.0f} ms (minima {least:.0f} and {most:.0f}; medians {middle:.0f} and {middle_big:.0f})"


ROWS = {
    "delta": (delta, "p95 under 10 ms"),
    "answer": (answer, "under 1.2 x"),
    "idle": (idle, "under 0.5%"),
    "open": (first_paint, "under 150 ms more"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--runs", type=int, default=5)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(ROWS)}; default all")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ROWS):
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    subprocess.run(
        [BIN / "cass", "--version"], check=True, stdout=subprocess.DEVNULL
    )  # makes .venv where it is missing
    for name in given.names or ROWS:
        measure, reach = ROWS[name]
        print(f"{name:8}{measure(given.runs):70}  reach: {reach}", flush=True)


if __name__ == "__main__":
    main()
