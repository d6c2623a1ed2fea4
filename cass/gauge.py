"""The gauge: how far a batch is, as a bar on standard error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cass.visible import safe_line

NAMED = 3
"""So many of the running tasks are named."""


class Gauge:
    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=total, said="")

    def show(self, done: int, failed: int, running: Sequence[str]) -> None:
        """`running`: ids of tasks."""
        more = f" +{len(running) - NAMED}" if len(running) > NAMED else ""
        names = " ".join(map(safe_line, running[:NAMED])) + more
        said = f"{failed} failed  {names}" if failed else names
        self._progress.update(self._bar, completed=done, said=said)


@contextmanager
def gauge(total: int) -> Iterator[Gauge]:
    """The gauge of a batch of so many tasks; it stays on the screen as it was at the end."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[said]}", markup=False))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Gauge(progress, total)
