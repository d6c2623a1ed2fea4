"""Presence: one holder of a chat, whatever happens to it, and a worker for whoever needs one."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from stage import end_worker, facts, run, wait_for

from cass import chat, inbox, presence
from cass.errors import CassError, Held, NoWorker
from cass.home import Files
from cass.records import Assistant, TurnEnd

PATIENT = 60
HOLD = """
import sys, time
from pathlib import Path
from cass import presence
from cass.errors import Held
from cass.home import Home
files = Home(Path(sys.argv[1])).files(sys.argv[2])
sys.stdin.readline()
try:
    lock = presence.hold(files, 0.5)
    presence.sign(lock, "read-only")
    print("held", flush=True)
    time.sleep(600)
except Held as e:
    print(e, flush=True)
"""


def holder(files: Files) -> "subprocess.Popen[str]":
    """A process that takes the lock once it reads a line, and says how that went."""
    command = [sys.executable, "-c", HOLD, str(files.home.root), files.chat_id]
    return subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def go(*processes: "subprocess.Popen[str]") -> list[str]:
    """What each says, once all of them have been told to begin."""
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.stdout.readline().rstrip() for process in processes]


def kill(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        process.kill()
        process.communicate(timeout=PATIENT)


def test_of_ten_processes_that_start_at_once_exactly_one_wins_and_the_others_name_it(files):
    processes = [holder(files) for _ in range(10)]
    try:
        said = go(*processes)
        assert said.count("held") == 1
        winner = processes[said.index("held")]
        assert all(f"pid {winner.pid} " in text for text in said if text != "held")
        assert presence.is_running(files)
    finally:
        kill(*processes)


def test_a_lock_is_free_as_soon_as_its_holder_is_killed(files):
    process = holder(files)
    assert go(process) == ["held"]
    assert presence.is_running(files)
    assert presence.holder(files)["pid"] == process.pid
    kill(process)
    assert not presence.is_running(files)
    os.close(presence.hold(files, 0))


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\xff\x00", b"[1]", b'{"pid":"x"}', b'{"pid":1}', b"x" * 10_000])
def test_what_stands_in_the_lock_file_is_no_obstacle_and_signals_nobody(files, content):
    files.lock.write_bytes(content)
    assert not presence.is_running(files)
    lock = presence.hold(files, 0)
    try:
        assert presence.is_running(files)
        with pytest.raises(Held):
            presence.hold(files, 0)
        presence.sign(lock, "read-only")
        assert presence.holder(files)["pid"] == os.getpid()
    finally:
        os.close(lock)


def test_the_pid_of_an_unrelated_process_is_only_text(files):
    with subprocess.Popen(["sleep", "600"]) as stranger:
        files.lock.write_text(f'{{"pid": {stranger.pid}, "host": "here"}}')
        assert not presence.is_running(files)
        os.close(presence.hold(files, 0))
        assert stranger.poll() is None
        stranger.kill()


def test_a_question_whether_it_runs_does_not_make_a_starter_fail(files):
    """Whoever asks holds the lock for a moment; a starter is patient for longer."""
    with ThreadPoolExecutor(4) as threads:
        over = False

        def ask() -> None:
            while not over:
                presence.is_running(files)

        asking = [threads.submit(ask) for _ in range(4)]
        try:
            for _ in range(30):
                os.close(presence.hold(files, 30))
        finally:
            over = True
        for question in asking:
            question.result(PATIENT)


def test_there_is_no_worker_where_there_is_no_directory_for_one(home):
    assert not presence.is_running(home.files("2026-06-20-143012-a8f3"))
    assert presence.holder(home.files("2026-06-20-143012-a8f3")) == {}


def test_the_last_words_of_a_worker_replace_what_stood_there_before(files):
    lock = presence.hold(files)
    presence.sign(lock, "read-only", "x" * 500)
    presence.sign(lock, "full-access", "the disk is full")
    os.close(lock)
    said = presence.holder(files)
    assert said["mode"] == "full-access"
    assert said["error"] == "the disk is full"


def test_a_worker_is_needed_as_long_as_anybody_is_attached(files):
    assert not presence.is_needed(files)
    first, second = presence.attach(files), presence.attach(files)
    assert presence.is_needed(files)
    os.close(first)
    assert presence.is_needed(files)
    os.close(second)
    assert not presence.is_needed(files)


# ---- starting -------------------------------------------------------------------------------------------------------


def test_a_started_worker_is_detached_and_answers(files):
    starting = presence.start(files)
    assert starting.fileno() >= 0
    starting.wait()
    said = presence.holder(files)
    assert presence.is_running(files)
    assert os.getsid(said["pid"]) != os.getsid(0)
    assert os.getpgid(said["pid"]) != os.getpgid(0)
    assert files.log.exists()
    id = inbox.put(files, {"type": "message", "content": "hello", "ask": False, "origin": {}})
    wait_for(lambda: any(id in end.answers for end in facts(files, TurnEnd)))
    assert len(facts(files, Assistant)) == 1


def test_starting_twice_is_fine_and_gives_one_worker(files):
    starts = [presence.start(files) for _ in range(4)]
    for starting in starts:
        starting.wait()
    pid = presence.holder(files)["pid"]
    presence.start(files).wait()
    assert presence.holder(files)["pid"] == pid


def test_the_error_of_a_worker_that_cannot_start_is_its_own_with_its_status(files):
    with pytest.raises(CassError, match="set OPENAI_API_KEY") as error:
        presence.start(files, ["--provider", "openai"]).wait()
    assert error.value.status == 2
    assert not presence.is_running(files)


def test_a_foreign_file_in_place_of_the_bell_is_said_by_whoever_started_the_worker(files):
    files.bell.write_text("mine")
    with pytest.raises(CassError, match="is not a FIFO of yours"):
        presence.start(files).wait()
    wait_for(lambda: not presence.is_running(files))
    assert files.bell.read_text() == "mine"


def test_a_chat_held_by_something_that_is_no_worker_is_said_to_be_held(files):
    process = holder(files)
    assert go(process) == ["held"]
    try:
        with pytest.raises(CassError, match=f"pid {process.pid} ") as error:
            presence.start(files).wait()
        assert error.value.status == 69
    finally:
        kill(process)


def test_a_worker_that_dies_at_its_start_is_said_with_its_log(files):
    with pytest.raises(NoWorker, match="died at its start") as error:
        presence.start(files, ["--nonsense"]).wait()
    assert str(files.log) in str(error.value)
    assert "--nonsense" in files.log.read_text()


def test_a_worker_ends_when_nobody_needs_it_and_not_before(files):
    attached = presence.attach(files)
    presence.start(files, ["--idle", "0.2"]).wait()
    pid = presence.holder(files)["pid"]
    id = inbox.put(files, {"type": "message", "content": "hello", "ask": False, "origin": {}})
    wait_for(lambda: any(id in end.answers for end in facts(files, TurnEnd)))
    assert presence.is_running(files)
    os.close(attached)
    wait_for(lambda: not presence.is_running(files))
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
    assert not files.socket.exists()


def test_a_worker_is_found_again_after_kill_9_and_takes_what_waited(files):
    presence.start(files).wait()
    end_worker(files)
    id = inbox.put(files, {"type": "message", "content": "hello", "ask": False, "origin": {}})
    assert not presence.is_running(files)
    presence.start(files).wait()
    wait_for(lambda: any(id in end.answers for end in facts(files, TurnEnd)))


def test_ten_workers_started_at_the_same_instant_are_one(files):
    with ThreadPoolExecutor(10) as threads:
        ended = list(threads.map(lambda _: run("cass-agent", files.chat_id, "--idle", "1"), range(10)))
    assert sum(done.returncode == 0 for done in ended) >= 1
    assert {done.returncode for done in ended} <= {0, 69}
    assert all("is held by another process (pid" in done.stderr for done in ended if done.returncode)
    assert chat.damage(chat.read(files)) == []
