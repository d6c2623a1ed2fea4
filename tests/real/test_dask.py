"""`cass batch --dask`: a real scheduler, two of its workers, and one of them killed in the middle."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from stage import argv, end_worker, facts, run, script, wait_for

from cass import catalogue, standing
from cass.records import TurnEnd, User

pytest.importorskip("distributed")
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("real")]

QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5"}


@pytest.fixture
def cluster(tmp_path, monkeypatch, home):
    """The scheduler's address, and its two workers, each of which does one task at a time."""
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    place = tmp_path / "scheduler.json"
    started = []

    def start(program, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(place), *arguments]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        started.append(process)
        return process

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter")
    more = ("--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--no-dashboard")
    workers = [start("dask_worker", *more, "--local-directory", str(tmp_path / f"w{n}")) for n in range(2)]
    wait_for(lambda: place.exists() and place.read_text().endswith("}"), 60)
    yield json.loads(place.read_text())["address"], workers
    for process in reversed(started):
        process.kill()
        process.wait()
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


def test_a_task_whose_worker_is_killed_goes_on_in_its_chat_on_the_other(cluster, home, workspace):
    address, workers = cluster
    script(home, {"text": "word " * 60, "deltas": 60, "delay_ms": 25})
    path = workspace / "tasks.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"task {n}", "id": f"t{n}"}) + "\n" for n in range(3)))
    process = subprocess.Popen(
        argv("cass", "batch", str(path), "--dask", address), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with contextlib.closing(process.stdout), contextlib.closing(process.stderr):
        chats = wait_for(lambda: busy if len(busy := thinking(home)) == 2 else None, 60)
        workers[0].send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = {result["task"]: result for result in map(json.loads, out.splitlines())}
    assert sorted(found) == ["t0", "t1", "t2"]
    assert {len(result["answer"]) for result in found.values()} == {300}
    assert sorted(said(home)) == [["task 0"], ["task 1"], ["task 2"]]
    assert {result["chat_id"] for result in found.values()} > {files.chat_id for files in chats}
    assert [len(facts(home.files(chat_id), TurnEnd)) for chat_id in catalogue.ids(home)] == [1, 1, 1]
    again = run("cass", "batch", str(path))
    assert (again.returncode, len(catalogue.ids(home))) == (0, 3)


def thinking(home):
    return [files for files in map(home.files, catalogue.ids(home)) if standing.look(files).is_busy]


def said(home):
    return [[record.content for record in facts(home.files(chat_id), User)] for chat_id in catalogue.ids(home)]


def test_a_scheduler_that_is_not_there_is_said(workspace, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    (workspace / "tasks.jsonl").write_text('{"prompt": "list ."}\n')
    done = run("cass", "batch", "tasks.jsonl", "--dask", "tcp://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no dask scheduler at tcp://127.0.0.1:9" in done.stderr
