"""The gauge: how far a batch is, as a bar on standard error."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from cass.visible import safe_line

NAMED = 3
"""So many of the running tasks are named."""


class _Said(ProgressColumn):
    """How many failed, and what runs, as it is when the bar is drawn."""

    def __init__(self, running: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._running = running

    def render(self, task: Task) -> Text:
        names = [safe_line(name) for name in self._running()]
        shown = [*names[:NAMED], *([f"+{len(names) - NAMED}"] if len(names) > NAMED else [])]
        failed = task.fields["failed"]
        return Text("  ".join([*([f"{failed} failed"] if failed else []), " ".join(shown)]))


class Gauge:
    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=total, failed=0)

    def show(self, done: int, failed: int) -> None:
        self._progress.update(self._bar, completed=done, failed=failed)


@contextmanager
def gauge(total: int, running: Callable[[], Sequence[str]]) -> Iterator[Gauge]:
    """The gauge of a batch of so many tasks; `running` gives the ids of those at work. It stays on the screen."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _Said(running))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Gauge(progress, total)
