"""A helper of the composer: what it says comes back, and it does not outlive whoever waits for it."""

import asyncio
import os
import sys

import pytest
from stage import wait_for

from cass.composer import helper


def test_what_a_program_says_comes_back():
    program = "import sys; print(sys.stdin.read().upper()); sys.exit(3)"
    told = asyncio.run(helper.told([sys.executable, "-c", program], b"given"))
    assert told == (3, b"GIVEN\n", b"")


def test_a_program_that_nobody_waits_for_any_more_is_ended(tmp_path):
    pid = tmp_path / "pid"
    program = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    async def play() -> None:
        task = asyncio.create_task(helper.told([sys.executable, "-c", program]))
        await asyncio.to_thread(wait_for, lambda: pid.exists() and pid.read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    asyncio.run(play())
