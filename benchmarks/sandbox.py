#!/usr/bin/env python3
"""What the sandbox costs a command: benchmarks/sandbox.py [-n COMMANDS]

The tool `shell` runs `true` in this checkout, in turn without and with the sandbox; milliseconds from the call to its
result, and CPU of all that it starts. To stay under 8 ms. Needs the packages of the environment: run it with
.venv/bin/python.
"""

import argparse
import asyncio
import ctypes
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cass import tools  # noqa: E402
from cass.tools import sandbox  # noqa: E402
from cass.tools.paths import Place  # noqa: E402

REACH_MS = 8.0


async def one(place: Place) -> tuple[float, float]:
    """Wall and CPU time of one command, in milliseconds."""
    began, used = time.perf_counter(), cpu()
    async with aclosing(tools.find("shell").run({"command": "true"}, place)) as pieces:
        async for _ in pieces:
            pass
    return (time.perf_counter() - began) * 1e3, (cpu() - used) * 1e3


def cpu() -> float:
    """Seconds of this process and of the children it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


async def measure(place: Place, count: int) -> dict[bool, list[tuple[float, float]]]:
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(count + 3):
        for sandboxed, costs in found.items():
            cost = await one(replace(place, sandboxed=sandboxed))
            if number >= 3:  # the first bring files into the cache
                costs.append(cost)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--commands", type=int, default=100)
    given = parser.parse_args()
    if problem := sandbox.problem():
        sys.exit(problem)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, as a worker does
    with tempfile.TemporaryDirectory(prefix="cass-bench-") as directory:
        home = Path(directory)
        place = Place(ROOT, home, home / "run/chat/out", "call", "chat", {}, dict(os.environ))
        began = time.perf_counter()
        for _ in range(20):
            sandbox.arguments(sandbox.look(place))
        looking = (time.perf_counter() - began) / 20 * 1e3
        found = asyncio.run(measure(place, given.commands))
    print(
        f"milliseconds a command, {given.commands} each, in turn; {looking:.2f} of the sandbox to see what there is\n"
    )
    print(f"{'':12}{'plain':>8}{'sandboxed':>11}{'more':>8}")
    for at, unit in enumerate(("wall", "cpu")):
        for name, pick in (("min", min), ("median", statistics.median)):
            plain, held = (pick(cost[at] for cost in found[sandboxed]) for sandboxed in (False, True))
            reach = f"   < {REACH_MS:.0f}" if unit == "wall" else ""
            print(f"{unit + ' ' + name:12}{plain:8.1f}{held:11.1f}{held - plain:8.1f}{reach}")


if __name__ == "__main__":
    main()
