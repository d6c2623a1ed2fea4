"""A scheduler: the tasks of a batch on the workers of dask, on as many machines as it has.

Every machine needs cass, a configuration and keys of its own. Where they share a home, a task whose dask worker is lost
goes on in its chat; where they do not, another machine begins it anew. https://distributed.dask.org
"""

from collections.abc import Generator, Sequence
from typing import Any

from distributed import Client, as_completed

from cass import batch
from cass.batch import Result, Watched
from cass.errors import CassError
from cass.fleet import Runner
from cass.home import Home
from cass.ledger import Ledger
from cass.tasks import Task


def runner(home: Home, address: str) -> Runner:
    """Runs tasks on the workers of the scheduler at `address`, such as ``tcp://host:8786``.

    How many at a time is theirs to say. Ctrl-C begins nothing more, and leaves what runs.
    """

    def run(key: str, left: Sequence[Task], _: Watched) -> Generator[Result, None, None]:
        with _connected(address) as client:
            futures = {client.submit(batch.work, key, task, key=f"cass-{key}-{task.id}"): task for task in left}
            try:
                for future in as_completed(futures):
                    result = _result(future, futures[future])
                    if "chat_id" in result:
                        Ledger(home, key).done(result)  # the worker's home may be another machine's
                    yield result
            except BaseException:
                client.cancel(list(futures))
                raise

    return run


def _connected(address: str) -> Any:
    try:
        return Client(address)
    except (OSError, ValueError) as e:
        raise CassError(f"no dask scheduler at {address} ({e}); start one with: dask scheduler") from e


def _result(future: Any, task: Task) -> Result:
    """The result of a task, also where dask gave it up."""
    error = future.exception()
    if error is None:
        found: Result = future.result()
        return found
    said = str(error) or type(error).__name__
    return {"task": task.id, "cwd": str(task.cwd), "outcome": "failed", "status": 1, "error": said}
