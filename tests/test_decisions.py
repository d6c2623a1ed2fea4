"""Decisions: who may answer for the person, asked of the kernel, on real sockets and processes."""

import json
import os
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
    code = "import ctypes\nctypes.CDLL(None).prctl(15, b') S 1 (', 0, 0, 0)\nask()"
    assert answer(worker, code) == {"ok": True}
    assert answer(worker, NAMED + "if os.fork() == 0:\n    libc.prctl(15, b') S 1 (', 0, 0, 0)\n    ask()\n    os._exit(0)\nos.wait()")["ok"] is False


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
    code = "print(os.getpid(), flush=True)\nask()"
    command = [sys.executable, "-c", ASK + code, str(files.home.root), files.chat_id]
    with decisions.listen(files) as listening, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        listening.settimeout(PATIENT)
        connection, _ = listening.accept()
        with connection:
            caller = decisions.caller(connection)
            connection.sendall(b'{"ok": true}\n')
        pid, _ = process.communicate(timeout=PATIENT)[0].splitlines()
    assert caller == Caller(int(pid), os.geteuid())
    assert caller.words("cass approve").endswith(f" by cass approve, pid {pid}")


def test_a_caller_that_is_gone_is_refused(files):
    code = "import socket\nos.chdir(files.run)\nwith socket.socket(socket.AF_UNIX) as s: s.connect('s'); s.sendall(b'{}\\n')"
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
        thread = threading.Thread(target=lambda: pytest.raises(CassError, decisions.ask, files, MODE, 0.5))
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
        ({"do": "mode"}, "no mode None"),
        ({"do": "approve", "request_id": "x"}, "no request 'x' is waiting"),
        ({"do": "deny"}, "no request 'None' is waiting"),
        ({"do": "approve", "request_id": "x" * 200_000}, ""),
    ],
)
def test_a_worker_answers_what_it_cannot_do_and_goes_on(worker, request_, says):
    said = decisions.ask(worker, request_)
    assert said["ok"] is False
    assert says in said["error"]
    assert decisions.ask(worker, MODE) == {"ok": True}


def test_a_caller_that_says_nothing_keeps_nobody_from_deciding(worker):
    code = "import socket\nos.chdir(files.run)\ns = socket.socket(socket.AF_UNIX); s.connect('s')\nprint('x', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", ASK + code, str(worker.home.root), worker.chat_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as silent:
        assert silent.stdout.readline() == "x\n"
        assert decisions.ask(worker, MODE) == {"ok": True}
        silent.communicate(timeout=PATIENT)
    assert wait_for(lambda: decisions.ask(worker, MODE)) == {"ok": True}
