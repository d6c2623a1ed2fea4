"""The heavy part of a call runs aside: the loop goes on, and a cancelled call says right what it has done."""

import asyncio
import threading
import time
from contextlib import aclosing

import pytest

from cass import tools
from cass.errors import ToolError
from cass.tools.aside import Stop, aside
from cass.tools.tool import Outcome


async def outcomes(found, got: list[Outcome]) -> None:
    async with aclosing(found) as pieces:
        async for piece in pieces:
            got.append(piece)


@pytest.mark.parametrize("changes", [False, True])
def test_the_outcome_of_the_work_and_its_errors_come_out(changes):
    def fail(_: Stop) -> Outcome:
        raise ToolError("no")

    got: list[Outcome] = []
    asyncio.run(outcomes(aside(lambda _: Outcome(threading.current_thread().name), changes=changes), got))
    assert got == [Outcome("cass-tool")]
    with pytest.raises(ToolError, match=r"^no$"):
        asyncio.run(outcomes(aside(fail, changes=changes), got))


@pytest.mark.parametrize("times", [1, 3])
def test_work_that_changes_something_is_waited_for_and_told_before_the_cancellation(times):
    begun, go, got = threading.Event(), threading.Event(), []

    def work(_: Stop) -> Outcome:
        begun.set()
        go.wait()
        return Outcome("done")

    async def main() -> bool:
        task = asyncio.create_task(outcomes(aside(work, changes=True), got))
        await asyncio.to_thread(begun.wait)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go.set()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())
    assert got == [Outcome("done")]


def test_work_that_hears_the_word_to_stop_has_done_nothing():
    begun, got = threading.Event(), []

    def work(stop: Stop) -> Outcome:
        begun.set()
        while True:
            stop.check()
            time.sleep(0.001)

    async def main() -> bool:
        task = asyncio.create_task(outcomes(aside(work, changes=True), got))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())
    assert got == []


def test_reading_that_no_disk_answers_is_left_behind():
    begun, go, got = threading.Event(), threading.Event(), []

    def work(_: Stop) -> Outcome:
        begun.set()
        go.wait()
        return Outcome("late")

    async def main() -> bool:
        task = asyncio.create_task(outcomes(aside(work), got))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.wait([task], timeout=20)
        return task.cancelled()

    assert asyncio.run(main())
    assert got == []
    go.set()


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_a_cancelled_change_has_happened_wholly_or_not_at_all_and_is_told_right(workspace, tool):
    path, size = workspace.root / "f", 8_000_000
    arguments = {
        "write": {"path": "f", "content": "new" + "x" * size},
        "edit": {"path": "f", "edits": [{"old_text": "old", "new_text": "new"}]},
    }[tool]

    async def cancelled_after(delay: float) -> list[Outcome]:
        got: list[Outcome] = []
        path.write_text("old" + "x" * size)
        task = asyncio.create_task(outcomes(tools.find(tool).run(arguments, workspace.place), got))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait([task])
        return got

    for step in range(12):
        got = asyncio.run(cancelled_after(step * 0.004))
        assert path.read_text()[:3] == ("new" if got else "old")
        assert path.stat().st_size == size + 3
        assert [entry.name for entry in workspace.root.iterdir()] == ["f"]


def test_what_else_there_is_to_do_gets_done_during_a_long_read_and_a_cancel_ends_it(workspace):
    with open(workspace.root / "huge", "wb") as file:
        file.write(b"x" * 9_000 + b"\n")
        file.truncate(50 << 30)  # sparse: minutes to its end

    async def main() -> tuple[int, float]:
        arguments = {"files": [{"path": "huge", "lines": "3-"}]}
        task = asyncio.create_task(outcomes(tools.find("read").run(arguments, workspace.place), []))
        ticks, until = 0, time.monotonic() + 0.3
        while time.monotonic() < until:
            await asyncio.sleep(0.001)
            ticks += 1
        task.cancel()
        begun = time.monotonic()
        await asyncio.wait([task])
        assert task.cancelled()
        return ticks, time.monotonic() - begun

    ticks, took = asyncio.run(main())
    assert ticks > 5
    assert took < 5
