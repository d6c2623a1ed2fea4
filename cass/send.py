"""Sending from a shell: one message, or a command, into a chat, and a worker for it."""

import contextlib
import os
import select
import stat
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cass import inbox, presence
from cass.errors import CassError, NoWorker, UsageError, WaitedTooLong
from cass.home import Files

if TYPE_CHECKING:
    from cass.values import Attachment

SILENCE_S = 2.0
"""A pipe beside an argument that gives nothing for so long is one that was merely inherited."""


def send(
    files: Files,
    text: str,
    *,
    id: str | None = None,
    ask: bool = False,
    steer: bool = False,
    start: bool = True,
    flags: Sequence[str] = (),
    program: str = "cass-send",
    attached: "Sequence[Attachment]" = (),
) -> str:
    """Put one message in; return its id. Then it is accepted, and a worker is there (unless `start` is false).

    Raises UsageError for a blank message, NoWorker with `start` false and nobody there, and the start error of a
    worker; the message is taken back then.
    """
    if not text.strip():
        raise UsageError("the message is empty")
    item = inbox.message(text, ask=ask, origin={"by": "send", "program": program}, steer=steer, attached=attached)
    id = inbox.put(files, item, id)
    hire(files, id, start, flags)
    return id


def hire(files: Files, id: str, start: bool, flags: Sequence[str] = ()) -> None:
    """See to it that a worker hears of the message `id`; where none can be had it is taken back."""
    if inbox.ring(files):
        return
    try:
        if not start:
            raise NoWorker(f"no worker is running for {files.chat_id}; start one with: cass --resume {files.chat_id}")
        presence.start(files, flags).wait()
    except CassError as e:
        # Whoever took it meanwhile is a worker: then the message is heard, and nothing went wrong.
        if inbox.withdraw(files, id):
            e.add_note("the message was taken back")
            raise
        if presence.is_running(files):
            return
        raise


# ---- text from an argument and standard input -----------------------------------------------------------------------


def text_from(argument: str | None) -> str:
    """The message: the argument, standard input for ``-`` or none, both where a file or a pipe is given besides.

    With both the argument is the instruction and the input its context. An inherited pipe that nobody writes to is left
    alone after `SILENCE_S`, which is said. Raises UsageError where there is neither.
    """
    if argument is None or argument == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("no message: give it as an argument or on standard input")
        return _decode(_all_of(0))
    context = _beside(argument)
    return f"{argument}\n\n{context}" if context.strip() else argument


def _beside(argument: str) -> str:
    """What standard input gives beside an argument."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return _decode(_all_of(0))
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not select.select([0], [], [], SILENCE_S)[0]:
        print("nothing came on standard input; going on without it", file=sys.stderr)
        return ""
    return _decode(_all_of(0))


def _all_of(fd: int) -> bytes:
    pieces = []
    with contextlib.suppress(OSError):
        while chunk := os.read(fd, 1 << 16):
            pieces.append(chunk)
    return b"".join(pieces)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").removesuffix("\n")


def command(files: Files, item: dict[str, object]) -> str:
    """Put a command in for a worker that is there. Raises NoWorker, and Held where the chat is held by none."""
    presence.hear(files)
    return inbox.put(files, item)


def stop(files: Files, timeout_s: float) -> None:
    """Stop the worker of a chat and wait until it is gone. Raises NoWorker, WaitedTooLong."""
    command(files, {"type": "stop"})
    deadline = time.monotonic() + timeout_s
    while presence.is_running(files):
        if time.monotonic() > deadline:
            raise WaitedTooLong(f"the worker of {files.chat_id} is still there after {timeout_s:g} s")
        time.sleep(0.01)
