"""A fleet: a batch from the command line; results go to standard output or a file, a count to standard error."""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TextIO

from cass import batch, config, jsonl, tasks
from cass.batch import Result, Watched
from cass.config import Options
from cass.errors import CassError, UsageError
from cass.home import Home
from cass.program import err
from cass.tasks import Task

STDIN = "-"


class Gauge(Protocol):
    """Shows on a terminal how far a batch is."""

    def show(self, done: int, failed: int) -> None: ...


Runner = Callable[[str, Sequence[Task], Watched], Generator[Result, None, None]]
"""Runs tasks of the batch that a key names, and yields their results: here, or on other machines. Closed, it ends."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for."""

    tasks: str
    """Path of the file, or ``-``."""
    output: Path | None
    again: bool


def run(
    home: Home,
    wanted: Wanted,
    cwd: Path,
    options: dict[str, Any],
    runner: Runner,
    gauge: Callable[[int, Callable[[], Sequence[str]]], AbstractContextManager[Gauge]] | None,
) -> int:
    """Run a file of tasks; print every task's result, those that are there already first. Return the exit status.

    Raises UsageError for a file that is none, before anything is begun, and KeyboardInterrupt for Ctrl-C, when what
    runs was cancelled.
    """
    key, found = _read(wanted.tasks, cwd, options)
    tasks.same(found, batch.digests(home, key))
    before, left = batch.plan(home, key, found, again=wanted.again)
    if left:
        config.require_key(config.load(home, Options(**left[0].options), os.environ))
    results: list[Result] = []
    watched = Watched()
    bar = gauge(len(found), lambda: list(watched.running())) if gauge else nullcontext(None)
    with _opened(wanted.output) as output, bar as shown:
        try:
            with closing(runner(key, left, watched)) as running:
                for result in chain(before, running):
                    results.append(result)
                    output.write(jsonl.dump(result).decode("utf-8", "surrogateescape") + "\n")
                    output.flush()
                    if shown is not None:
                        shown.show(len(results), sum(r["outcome"] != "done" for r in results))
        except KeyboardInterrupt:
            err(f"interrupted with {len(results)} of {len(found)} results; the same command goes on")
            raise
    return _tell(results, len(before))


def _read(name: str, cwd: Path, options: dict[str, Any]) -> tuple[str, list[Task]]:
    """The name that a batch is known by, and its tasks."""
    if name == STDIN:
        data, path = sys.stdin.buffer.read(), None
    else:
        path = Path(name)
        try:
            data = path.read_bytes()
        except OSError as e:
            raise UsageError(f"{name}: {e.strerror}") from None
    return tasks.key(path, data), tasks.read(data, name, cwd, options)


def _opened(path: Path | None) -> AbstractContextManager[TextIO]:
    if path is None:
        return nullcontext(sys.stdout)
    try:
        return open(path, "w", encoding="utf-8", errors="surrogateescape")
    except OSError as e:
        raise CassError(f"{path}: {e.strerror}") from e


def _tell(results: Sequence[Result], earlier: int) -> int:
    """Say how it went; return the exit status: 0 only where everything is done."""
    failed = [result for result in results if result["outcome"] != "done"]
    for result in failed:
        where = f" in {result['chat_id']}" if "chat_id" in result else ""
        err(f"{result['task']}: {result['outcome']}{where}: {result.get('error') or 'see there'}")
    words = [f"{len(results) - len(failed)} of {len(results)} tasks done"]
    words += [f"{earlier} of them had results before"] if earlier else []
    words += ["what failed is run once more with --again"] if failed else []
    err("; ".join(words))
    return 1 if failed else 0


def local(home: Home, jobs: int) -> Runner:
    """Runs tasks on this machine, `jobs` at a time."""

    def run(key: str, left: Sequence[Task], watched: Watched) -> Generator[Result, None, None]:
        return batch.run(home, key, left, jobs, watched)

    return run
