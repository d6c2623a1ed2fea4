"""A command in the foreground of the person's own terminal, while the composer stands aside.

It gets the terminal as a shell would give it: a process group of its own, in the foreground, so that Ctrl-C ends it and
nothing else.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

KEPT = 1 << 20
"""Bytes of output that are kept; the rest is shown and not kept."""


def run(command: Sequence[str], terminal: int, *, keep: bool = False, cwd: str | None = None) -> tuple[int, str]:
    """Run `command` to its end; return its exit status (128 + n after signal n) and, with `keep`, what it wrote.

    With `keep` its output and errors go through a pipe and are copied to `terminal` as they come. Raises OSError.
    """
    reading, writing = os.pipe() if keep else (None, None)
    gate, opener = os.pipe()
    waiting = ["bash", "-c", f'read -u {gate}; exec {gate}<&-; exec "$@"', "bash", *command]
    output_to = writing or terminal
    with _foreground_kept(terminal):
        process = subprocess.Popen(
            waiting, cwd=cwd, stdin=terminal, stdout=output_to, stderr=output_to, process_group=0, pass_fds=[gate]
        )
        os.tcsetpgrp(terminal, process.pid)
        # Only now may it begin: a Ctrl-C that came before would have missed it, a read would have stopped it.
        os.close(gate)
        os.close(opener)
        output = b""
        if reading is not None and writing is not None:
            os.close(writing)
            output = _copy(reading, terminal)
            os.close(reading)
        status = _wait(process.pid)
        process.returncode = status
    return status, output.decode("utf-8", "replace")


def _copy(reading: int, terminal: int) -> bytes:
    kept = b""
    while chunk := os.read(reading, 65536):
        os.write(terminal, chunk)
        kept += chunk[: max(KEPT - len(kept), 0)]
    return kept


def _wait(pid: int) -> int:
    """Exit status of `pid`. Ctrl-Z ends it: a composer is no shell that could bring it back."""
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.killpg(pid, signal.SIGHUP)
        os.killpg(pid, signal.SIGCONT)


@contextmanager
def _foreground_kept(terminal: int) -> Iterator[None]:
    """Take the terminal back afterwards: from the background, where the kernel would stop us with SIGTTOU."""
    mine = os.tcgetpgrp(terminal)
    try:
        yield
    finally:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        os.tcsetpgrp(terminal, mine)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
