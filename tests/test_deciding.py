"""Decisions: who may answer for the person, asked of the kernel, on real sockets and processes."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading

import pytest
from stage import end_worker, wait_for

from cass import chat, decisions, presence
from cass.decisions import Caller
from cass.errors import CassError, NoWorker
from cass.home import Home

PATIENT = 60
MODE = {"do": "mode", "mode": "workspace-edit"}

ASK = """
import json, os, sys
from pathlib import Path
from cass import decisions
from cass.home import Home
files = Home(Path(sys.argv[1])).files(sys.argv[2])
def ask():
    print(json.dumps(decisions.ask(files, {"do": "mode", "mode": "workspace-edit"})), flush=True)
"""
NAMED = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.prctl(15, b"cass-agent", 0, 0, 0)
"""
ORPHANED = """
libc.prctl(36, 1, 0, 0, 0)  # as a worker: its orphans come back to it
above = os.getpid()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    while os.getppid() != above:
        time.sleep(0.001)
    ask()
    os._exit(0)
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        break
"""
CONNECT = """
import socket
os.chdir(files.run)
s = socket.socket(socket.AF_UNIX)
s.connect("s")
"""
CHILD = """
if os.fork() == 0:
    ask()
    os._exit(0)
os.wait()
"""


@pytest.fixture
def worker(files):
    presence.start(files).wait()
    return files


def answer(files, code: str) -> dict:
    """What a new process that runs `code` is told."""
    command = [sys.executable, "-c", ASK + code, str(files.home.root), files.chat_id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_process_of_the_person_decides(worker):
    assert answer(worker, "ask()") == {"ok": True}
    assert presence.holder(worker)["mode"] == "workspace-edit"


def test_so_does_a_daemon_of_theirs(worker):
    code = "read, write = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    ask()\n    os._exit(0)\nos.wait()"
    assert answer(worker, code) == {"ok": True}


@pytest.mark.parametrize("code", [NAMED + "ask()", NAMED + CHILD, NAMED + ORPHANED], ids=["itself", "child", "orphan"])
def test_whatever_descends_from_any_worker_is_refused(worker, code):
    said = answer(worker, code)
    assert said["ok"] is False
    assert "a tool must not decide for the person" in said["error"]
    assert said["status"] == 4
    assert presence.holder(worker)["mode"] == "read-only"


def test_a_name_in_parentheses_hides_nobody(worker):
    odd = "\nlibc.prctl(15, b') S 1 (', 0, 0, 0)\n"
    assert answer(worker, f"import ctypes\nlibc = ctypes.CDLL(None){odd}ask()") == {"ok": True}
    below = CHILD.replace("    ask()", f"    {odd.strip()}\n    ask()")
    assert answer(worker, NAMED + below)["ok"] is False


def test_a_home_with_a_path_longer_than_a_socket_may_have_works(tmp_path, workspace):
    home = Home(tmp_path / ("d" * 120) / ("e" * 120))
    files = chat.create(home, cwd=workspace, provider="demo", model="demo", system="s")
    try:
        presence.start(files).wait()
        assert decisions.ask(files, MODE) == {"ok": True}
        assert os.getcwd() == str(workspace), "whoever asks stays where it was"
    finally:
        end_worker(files)


def test_the_socket_is_private_and_goes_with_its_worker(files):
    before = os.umask(0)
    try:
        listening = decisions.listen(files)
    finally:
        os.umask(before)
    with listening:
        assert stat.S_IMODE(files.socket.stat().st_mode) == 0o600
    decisions.listen(files).close()  # one that a dead worker left is replaced


def test_without_a_worker_there_is_nobody_to_ask(files):
    with pytest.raises(NoWorker, match=f"cass --resume {files.chat_id}"):
        decisions.ask(files, MODE)
    decisions.listen(files).close()
    with pytest.raises(NoWorker):
        decisions.ask(files, MODE)


def test_a_worker_that_does_not_answer_is_not_waited_for_for_ever(files):
    with decisions.listen(files), pytest.raises(CassError, match="did not answer"):
        decisions.ask(files, MODE, timeout_s=0.1)


@pytest.mark.parametrize("said", [b"", b"rubbish\n", b'{"ok": tr'])
def test_an_answer_that_is_none_is_as_no_worker(files, said):
    with decisions.listen(files) as listening:
        listening.setblocking(True)

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoWorker):
            decisions.ask(files, MODE)
        thread.join(PATIENT)


def test_the_caller_is_whom_the_kernel_names(files):
    """The kernel's word, taken by a process that is no parent of the caller."""
    listener = """
with decisions.listen(files) as listening:
    print("listening", flush=True)
    listening.settimeout(60)
    connection, _ = listening.accept()
    caller = decisions.caller(connection)
    connection.makefile().readline()  # one that closes before it has read breaks the asker's pipe
    connection.sendall(json.dumps({"ok": True, "caller": [caller.pid, caller.uid]}).encode() + b"\\n")
"""
    command = [sys.executable, "-c", ASK + listener, str(files.home.root), files.chat_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout.readline() == "listening\n"
        assert decisions.ask(files, MODE)["caller"] == [os.getpid(), os.geteuid()]
        assert listening.wait(PATIENT) == 0


def test_who_decided_is_written_in_words():
    assert Caller(42, os.geteuid()).words("cass approve").endswith(" by cass approve, pid 42")
    assert Caller(42, 4_000_000).words("a shell") == "uid 4000000 by a shell, pid 42"


def test_a_caller_that_is_gone_is_refused(files):
    code = CONNECT + "s.sendall(b'{}\\n')"
    command = [sys.executable, "-c", ASK + code, str(files.home.root), files.chat_id]
    with decisions.listen(files) as listening:
        listening.settimeout(PATIENT)
        subprocess.run(command, check=True, timeout=PATIENT)
        connection, _ = listening.accept()
        with connection, pytest.raises(decisions.Refused, match="gone"):
            decisions.caller(connection)


def test_a_worker_asked_by_itself_refuses(files):
    with decisions.listen(files) as listening:
        listening.settimeout(PATIENT)

        def ask() -> None:
            with contextlib.suppress(CassError):
                decisions.ask(files, MODE, 0.5)

        thread = threading.Thread(target=ask)
        thread.start()
        connection, _ = listening.accept()
        with connection, pytest.raises(decisions.Refused, match="a tool must not decide"):
            decisions.caller(connection)
        thread.join(PATIENT)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b'{"do":"stop"}', b'{"do":["approve"]}', b"\xff"])
def test_a_request_that_is_none_is_said_to_be_so(line):
    with pytest.raises(CassError, match="expected"):
        decisions.parse(line)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"do": "dance"}, "expected"),
        ({"do": "mode", "mode": "godlike"}, "no mode 'godlike'"),
        ({"do": "mode"}, "no mode ''"),
        ({"do": "approve", "request_id": "x"}, "no request 'x' is waiting"),
        ({"do": "deny"}, "no request '' is waiting"),
        ({"do": "approve", "request_id": "x" * 200_000}, ""),
    ],
)
def test_a_worker_answers_what_it_cannot_do_and_goes_on(worker, request_, says):
    said = decisions.ask(worker, request_)
    assert said["ok"] is False
    assert says in said["error"]
    assert decisions.ask(worker, MODE) == {"ok": True}


def test_a_caller_that_says_nothing_keeps_nobody_from_deciding(worker):
    code = CONNECT + "print('x', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", ASK + code, str(worker.home.root), worker.chat_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as silent:
        assert silent.stdout.readline() == "x\n"
        assert decisions.ask(worker, MODE) == {"ok": True}
        silent.communicate(timeout=PATIENT)
    assert wait_for(lambda: decisions.ask(worker, MODE)) == {"ok": True}


def test_who_asks_in_a_thread_leaves_its_process_where_it_stands(files, workspace):
    """A worker carries answers to its agents in threads; what its tools do meanwhile must happen in its own place."""

    def ask() -> None:
        with contextlib.suppress(CassError):
            decisions.ask(files, MODE, timeout_s=0.2)

    files.make()
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as first:
        busy.bind(str(files.socket))
        busy.listen(0)
        first.connect(str(files.socket))  # more must wait for a place
        asking = threading.Thread(target=ask)
        asking.start()
        places = set()
        while asking.is_alive():
            places.add(os.getcwd())
    assert places == {str(workspace)}
