"""A cell: the sandbox of one command while it runs, and what it tells.

Bubblewrap ends as soon as the command does, and all that the command left in the background with it. It cannot say
whether there was any, and gives 128 + N for signal N as if that were an exit status; so a shell inside the sandbox,
around the command, says both. A command may forge what it says, but only about itself.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence

from cass.pattern import pattern
from cass.tools import guards, sandbox
from cass.tools.paths import Place

# Its standard input is the report, where it says, besides these words, that a signal ended the command: a bash only
# while it does not follow POSIX, a dash on the standard error of before, which is the command's only in the subshell.
# Bash adds to SHLVL, other shells do not. A signal to the group is for the command.
SHELL = """
trap : HUP INT TERM
exec 3>&2 2>&0 </dev/null
echo begun >&2
[ ! "$BASH_VERSION" ] || { set +o posix; SHLVL=$((SHLVL - 1)); }
(exec "$@" 2>&3 3>&-)
status=$?
for process in /proc/[0-9]*; do
    [ "$process" = /proc/1 ] || [ "$process" = "/proc/$$" ] || [ ! -e "$process/exe" ] || { echo left >&2; break; }
done
exit $status
"""
_REPORT_BYTES = 65_536
_NAME = pattern(r"[A-Za-z_]\w*", re.ASCII)
_STEP_S = 0.0005
"""Between two looks whether it has ended."""


class Cell:
    """Made for one command, which may run once. Close it."""

    def __init__(self, view: sandbox.View, words: str) -> None:
        """`words` say what the command may do."""
        self.words = words
        self._view = view
        self._arguments = os.memfd_create("bwrap")  # closed when a program is started, but where it is passed on
        os.write(self._arguments, b"".join(os.fsencode(argument) + b"\0" for argument in sandbox.arguments(view)))
        os.lseek(self._arguments, 0, os.SEEK_SET)
        self._report, self._told = os.pipe()
        os.set_blocking(self._report, False)
        self._info = os.dup(self._told)
        self._said = b""
        self._inner: int | None = None

    @classmethod
    async def make(cls, place: Place) -> "Cell":
        """The one for a command in `place`. Raises ToolError."""
        # In a thread: the workspace may lie on a slow disk.
        return cls(await asyncio.to_thread(sandbox.look, place), sandbox.words(place))

    async def news(self) -> list[str]:
        """What other programs run or trust, and is new or another since; relative to the workspace."""
        view = self._view
        return await asyncio.to_thread(guards.news, view.guards, view.workspace, view.repository)

    @property
    def has_begun(self) -> bool:
        """Whether the command was run at all."""
        return "begun" in self.lines

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What bubblewrap inherits; none of it reaches the command."""
        return (self._arguments, self._info)

    @property
    def report(self) -> int:
        """Its standard input; the command reads from ``/dev/null``."""
        return self._told

    def wrap(self, command: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
        """The program to run for `command` in `environ`, and its arguments."""
        # A `sh` begins in half the time of a bash, but may drop what is no variable to it, such as a function of bash.
        others = [f"{name}={value}" for name, value in environ.items() if not _NAME.fullmatch(name)]
        inner = ("env", "--", *others, *command) if others else command
        numbers = ("--args", str(self._arguments), "--info-fd", str(self._info))
        return (sandbox.program() or "bwrap", *numbers, "--", "/bin/sh", "-c", SHELL, "sh", *inner)

    def release(self) -> None:
        """Give up what is bubblewrap's alone, once it runs, or was not started."""
        for descriptor in (*self.descriptors, self._told):
            os.close(descriptor)

    @property
    def inner(self) -> int | None:
        """The first process of the sandbox, leader of the command's group; None until it is there."""
        with contextlib.suppress(ValueError, AttributeError):
            pid = json.loads(self._read().partition(b"}\n")[0] + b"}").get("child-pid")
            return pid if isinstance(pid, int) and pid > 1 else None
        return None

    @property
    def lines(self) -> list[str]:
        """What the shell around the command said: that it has ``begun``; in the end, whether processes are ``left``."""
        return self._read().partition(b"}\n")[2].decode("utf-8", "replace").split("\n")

    def status(self, status: int) -> int:
        """The status of the command, negative for a signal, where that of bubblewrap is `status`.

        Of SIGINT and SIGPIPE a shell does not speak, a bash not of SIGTERM: they remain what it makes of them.
        """
        number = status - 128
        is_told = any(line not in ("begun", "left", "") for line in self.lines)
        return -number if is_told and number in set(signal.Signals) else status

    def close(self) -> None:
        """Hear no more of it."""
        self._inner = self.inner
        if self._report >= 0:
            os.close(self._report)
            self._report = -1

    async def gone(self, patience_s: float) -> None:
        """Wait until nothing of it runs any more, so long at most; it is closed, and bubblewrap has ended."""
        if (inner := self._inner) is None:
            return
        for _ in range(int(patience_s / _STEP_S)):
            # With bubblewrap it became ours, if orphans do: then its end is known, and is that of all in there.
            try:
                if os.waitpid(inner, os.WNOHANG)[0]:
                    return
                os.kill(inner, signal.SIGKILL)
            except (ChildProcessError, ProcessLookupError):
                return
            await asyncio.sleep(_STEP_S)

    def _read(self) -> bytes:
        with contextlib.suppress(BlockingIOError, OSError):
            while len(self._said) < _REPORT_BYTES and (piece := os.read(self._report, _REPORT_BYTES)):
                self._said += piece
        return self._said
