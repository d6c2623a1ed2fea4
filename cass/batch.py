"""A batch: many tasks, each an ordinary chat with a worker of its own, so many at a time; a result each, never two.

What has a result is not run again. A chat that was begun is waited for, or told to go on where its turn was cut off:
the ids of its messages are made of the task's, so that none is taken in twice.
"""

import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from cass import attachments, chat, config, exchange, opening, outlook, presence, send, waiting, worktree
from cass.config import Options
from cass.errors import CassError, Interrupted, NoWorker
from cass.exchange import Answer
from cass.flags import flags
from cass.home import Files, Home
from cass.ledger import Ledger
from cass.records import TurnEnd
from cass.tasks import Task
from cass.values import Attachment

GO_ON = "Your turn was interrupted before it was done. Go on with the task where you were."
TRIES = 5
"""Turns that a task is given where each is cut off; beyond that something is wrong with it, or with the machine."""
IDLE_S = 1
"""A worker ends so soon after its task: hundreds of them would take all memory."""
LEAVE_S = 10.0
"""So long the turns that are being cancelled are waited for."""

Result = dict[str, Any]
"""``{"task","chat_id"?,"cwd","outcome","status","answer","error"?,"usage"?}``, the outcome as of `TurnEnd`."""


class Watched:
    """What a batch does now; several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Files] = {}
        self.is_over = threading.Event()
        """Set: nothing more is begun, and what is cancelled has no result."""

    @contextmanager
    def chat(self, task: Task, files: Files) -> Iterator[None]:
        """While the task is worked on."""
        with self._lock:
            self._running[task.id] = files
        try:
            yield
        finally:
            with self._lock:
                del self._running[task.id]

    def running(self) -> dict[str, Files]:
        """The chats of the tasks that are worked on, by id of the task."""
        with self._lock:
            return dict(self._running)


def run(home: Home, key: str, tasks: Sequence[Task], jobs: int, watched: Watched) -> Generator[Result, None, None]:
    """Run tasks, `jobs` at a time, and yield the result of each as it comes.

    Where it is interrupted, or closed before its end, what runs is cancelled; a later run goes on.
    """
    pool = ThreadPoolExecutor(jobs)
    try:
        futures: list[Future[Result]] = [pool.submit(work, key, task, home, watched) for task in tasks]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        watched.is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)
        _cancel(watched)
        raise
    pool.shutdown()


def _cancel(watched: Watched) -> None:
    """Cancel every running turn, and wait for their ends. A second Ctrl-C leaves at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for files in watched.running().values():
        with suppress(CassError):
            send.command(files, {"type": "cancel"})
    for files in watched.running().values():
        with suppress(CassError):
            waiting.settle(files, LEAVE_S)


def work(key: str, task: Task, home: Home | None = None, watched: Watched | None = None) -> Result:
    """Do one task, or wait for what does it already; return its result. Of the batch `key`, in `home`."""
    home, watched = home or Home.find(), watched or Watched()
    if watched.is_over.is_set():
        raise Interrupted("not begun")
    ledger = Ledger(home, key)
    entry = ledger.entries().get(task.id)
    if entry is not None and entry.result is not None:
        return entry.result
    try:
        attached = attachments.every(home, task.attach)
        files, _ = ledger.chat(task.id, task.digest, lambda: _begin(home, task))
        with watched.chat(task, files):
            answer = _answer(files, task, attached, watched)
    except Interrupted:
        raise
    except CassError as e:
        # Nothing was answered: what stood in the way may be gone next time, so it is not written down.
        return {"task": task.id, "cwd": str(task.cwd), "outcome": "failed", "status": e.status, "error": str(e)}
    result = _result(task, files, answer)
    ledger.done(result)
    return result


def _begin(home: Home, task: Task) -> Files:
    """A new chat for a task, in a worktree where it wants one."""
    options = Options(**task.options)
    settings = config.load(home, options, os.environ)
    config.require_key(settings)
    root = opening.workspace(str(task.cwd))
    if task.worktree is not None:
        root = worktree.make(root, task.worktree)
    return opening.new(home, root, settings, options)


def _answer(files: Files, task: Task, attached: Sequence[Attachment], watched: Watched) -> Answer:
    """What came of the task in its chat; a turn that was cut off is gone on with in another one."""
    for number in range(1, TRIES + 1):
        id, text = f"batch-{task.id}-{number}", task.prompt if number == 1 else GO_ON
        before = exchange.repeated(files, text, id)
        answer = before or _say(files, text, id, task, attached if number == 1 else ())
        if watched.is_over.is_set() and answer.end.outcome == "cancelled":
            raise Interrupted("the batch was interrupted")
        was_cut = answer.end.outcome == "cancelled" and before is not None
        if not was_cut and not _is_interrupted(answer.end):
            return answer
    return answer


def _is_interrupted(end: TurnEnd) -> bool:
    """Whether the worker died in the turn, as `ends.closing` writes it down."""
    return (end.error or "").startswith("interrupted:")


def _say(files: Files, text: str, id: str, task: Task, attached: Sequence[Attachment]) -> Answer:
    """Send the message, unless the chat has it, and wait; a worker that dies is followed by another, which mends."""
    given = ["--idle", str(IDLE_S), *flags(task.options)]
    for _ in range(TRIES - 1):
        try:
            return exchange.say(files, text, id=id, flags=given, program="cass batch", attached=attached)
        except NoWorker:
            if not presence.is_running(files) and not chat.read(files):
                raise  # the chat is gone, not its worker
    return exchange.say(files, text, id=id, flags=given, program="cass batch", attached=attached)


def _result(task: Task, files: Files, answer: Answer) -> Result:
    end = answer.end
    meta = chat.meta(chat.read(files))
    result: Result = {
        "task": task.id,
        "chat_id": files.chat_id,
        "cwd": meta.cwd if meta else str(task.cwd),
        "outcome": end.outcome,
        "status": outlook.EXITS[end.outcome],
        "answer": answer.text,
    }
    result |= {"error": end.error} if end.error else {}
    return result | ({"usage": asdict(end.usage)} if end.usage is not None else {})


def plan(home: Home, key: str, tasks: Sequence[Task], *, again: bool) -> tuple[list[Result], list[Task]]:
    """The results that there are, in the order of the tasks, and the tasks that have none.

    `again`: what failed has none. Raises UsageError where an id stands for another prompt than before.
    """
    ledger = Ledger(home, key)
    entries = ledger.entries()
    results, left = [], []
    for task in tasks:
        entry = entries.get(task.id)
        result = entry.result if entry is not None else None
        if result is not None and again and result.get("outcome") != "done":
            ledger.again(task.id)
            result = None
        if result is None:
            left.append(task)
        else:
            results.append(result)
    return results, left


def digests(home: Home, key: str) -> dict[str, str]:
    """What was asked under each id before."""
    return {task: entry.digest for task, entry in Ledger(home, key).entries().items() if entry.digest}
