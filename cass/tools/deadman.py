"""The dead man's switch: what ends a command whose worker is gone without a word.

A worker ends what it began, unless it is killed. Then the system closes its end of a pipe, and a shell that waits at
the other end kills the whole group. PR_SET_PDEATHSIG of Linux would reach bash alone, and not what bash runs.
"""

import asyncio
import contextlib
import os

_DEVNULL = asyncio.subprocess.DEVNULL
_SCRIPT = """
read -r group && [ "$group" ] || exit
read -r over || { kill -s TERM -- "-$group"; sleep 1; kill -s KILL -- "-$group"; }
"""


class Switch:
    """A process that waits: for the group that it is to kill, and then for the word not to."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: int) -> None:
        self.exit = asyncio.ensure_future(process.wait())
        self._pipe = pipe

    @classmethod
    async def start(cls) -> "Switch":
        """Raises OSError."""
        theirs, pipe = os.pipe()
        command = ("/bin/sh", "-c", _SCRIPT)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=theirs, stdout=_DEVNULL, stderr=_DEVNULL, cwd="/", env={}, start_new_session=True
            )
        except BaseException:
            os.close(pipe)
            raise
        finally:
            os.close(theirs)
        return cls(process, pipe)

    def arm(self, group: int) -> None:
        """From now on the end of this process is the end of that group."""
        self._say(f"{group}\n")

    def release(self) -> None:
        """From now on nothing is killed, and `exit` is near."""
        self._say("\n")
        os.close(self._pipe)

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            os.write(self._pipe, line.encode())
