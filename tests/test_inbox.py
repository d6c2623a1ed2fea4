"""The inbox and the bell: every message in exactly one hand, and nobody who only rings ever waits."""

import contextlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import wait_for

from cass import inbox
from cass.errors import CassError, UsageError
from cass.home import Files, Home
from cass.inbox import Bell

HI = {"type": "message", "content": "hi"}
PATIENT = 60


def python(files: Files, code: str, **more: object) -> "subprocess.Popen[str]":
    """A process that knows `files` and `inbox` and runs `code`."""
    head = (
        "import json, os, sys, time; from pathlib import Path; from cass import inbox; from cass.home import Home;"
        "files = Home(Path(sys.argv[1])).files(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", head + code, str(files.home.root), files.chat_id]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload, no-any-return]


def said(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=PATIENT)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def bell(files):
    made = Bell(files)
    yield made
    made.retire()


# ---- the queue ------------------------------------------------------------------------------------------------------


def test_a_message_put_without_a_worker_waits(files):
    id = inbox.put(files, HI)
    (waiting,) = inbox.waiting(files)
    assert waiting.id == id
    assert inbox.read(files, waiting.name) == HI
    assert not inbox.is_empty(files)


def test_messages_wait_in_the_order_they_were_put_in(files):
    ids = [inbox.put(files, HI) for _ in range(50)]
    assert [item.id for item in inbox.waiting(files)] == ids


def test_an_id_may_be_given_and_may_hold_dashes(files):
    assert inbox.put(files, HI, "build-42_x") == "build-42_x"
    assert [item.id for item in inbox.waiting(files)] == ["build-42_x"]


@pytest.mark.parametrize("id", ["", "a" * 65, "a/b", "..", "a b", "ä", "a\n", ".taken-x"])
def test_an_id_that_could_be_something_else_is_refused(files, id):
    with pytest.raises(UsageError, match="id"):
        inbox.put(files, HI, id)
    assert os.listdir(files.inbox) == []


def test_a_claimed_message_is_gone_for_its_sender_and_there_until_it_is_done(files):
    inbox.put(files, HI, "1")
    (waiting,) = inbox.waiting(files)
    assert inbox.claim(files, waiting.name)
    assert inbox.taken(files, waiting.name) == HI
    assert inbox.waiting(files) == []
    assert inbox.take_back(files, waiting.name) is None
    assert not inbox.claim(files, waiting.name)
    assert inbox.claimed(files) == [waiting.name]
    assert not inbox.is_empty(files)
    inbox.done(files, waiting.name)
    inbox.done(files, waiting.name)
    assert inbox.is_empty(files)


def test_a_message_taken_back_is_returned_and_leaves_nothing(files):
    inbox.put(files, HI)
    (waiting,) = inbox.waiting(files)
    assert inbox.take_back(files, waiting.name) == HI
    assert not inbox.claim(files, waiting.name)
    assert inbox.take_back(files, waiting.name) is None
    assert os.listdir(files.inbox) == []


def test_what_makes_no_sense_is_put_aside_where_a_person_can_see_it(files):
    (files.inbox / "0-x").write_text("{")
    assert inbox.read(files, "0-x") is None
    assert inbox.claim(files, "0-x")
    inbox.reject(files, "0-x")
    inbox.reject(files, "0-x")
    assert os.listdir(files.inbox) == [".bad-0-x"]
    assert inbox.is_empty(files)


def test_a_directory_among_the_messages_is_no_message(files):
    (files.inbox / "0-x").mkdir()
    assert inbox.read(files, "0-x") is None
    assert inbox.claim(files, "0-x")
    with pytest.raises(ValueError, match=r"."):
        inbox.taken(files, "0-x")


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b'{"content":"x"}', b'{"type":1}', b"\xff"])
def test_an_item_without_a_type_is_none(data):
    with pytest.raises(ValueError, match=r"."):
        inbox.parse(data)


def test_what_dead_senders_left_is_swept_and_nothing_else(files):
    kept = [".1-young", ".taken-1-x", ".bad-1-x", "1-x"]
    for name in [".1-old", *kept]:
        (files.inbox / name).write_text("{}")
    for name in [".1-old", *kept[1:]]:
        os.utime(files.inbox / name, (1, 1))
    inbox.sweep(files)
    assert sorted(os.listdir(files.inbox)) == sorted(kept)


def test_a_message_of_any_size_arrives_whole(files):
    item = {"type": "message", "content": "é\n" * 1_000_000}
    inbox.put(files, item)
    (waiting,) = inbox.waiting(files)
    assert inbox.read(files, waiting.name) == item


def test_where_it_cannot_be_written_the_path_is_said_and_nothing_is_left(files):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # as a full disk: a write stops short, then fails
    try:
        with pytest.raises(CassError, match="not sent") as error:
            inbox.put(files, {"type": "message", "content": "x" * 100_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(files.inbox) in str(error.value)
    assert os.listdir(files.inbox) == []


# ---- races ----------------------------------------------------------------------------------------------------------

_HANDS = {
    "claim": "inbox.taken(files, item.name) if inbox.claim(files, item.name) else None",
    "take back": "inbox.take_back(files, item.name)",
}
_HAND = """
over = files.run / "over"
mine = []
print("ready", flush=True)
while True:
    last = over.exists()
    waiting = inbox.waiting(files)
    for item in waiting:
        found = {take}
        if found is not None:
            assert found["content"] == item.id * 500, "torn"
            mine.append(item.id)
    if last and not waiting:
        break
print(json.dumps(mine))
"""


def test_of_four_processes_each_message_is_in_exactly_one_hand(files):
    takers = [python(files, _HAND.format(take=_HANDS[name])) for name in ("claim", "claim", "take back", "take back")]
    for taker in takers:
        assert taker.stdout.readline() == "ready\n"
    sent = [f"{number}-{'x' * (number % 20)}" for number in range(300)]
    for id in sent:
        inbox.put(files, {"type": "message", "content": id * 500}, id)
    (files.run / "over").touch()
    found = [id for taker in takers for id in json.loads(said(taker))]
    assert Counter(found) == Counter(sent)


def test_whoever_lists_sees_no_message_that_is_not_whole(files):
    writers = [
        python(files, f"for n in range(40): inbox.put(files, {{'type': 'message', 'content': '{letter}' * 200_000}})")
        for letter in "abc"
    ]
    seen: set[str] = set()
    while len(seen) < 120:
        for item in inbox.waiting(files):
            if item.name not in seen:
                content = inbox.read(files, item.name)["content"]
                assert content == content[0] * 200_000
                seen.add(item.name)
        assert len(seen) == 120 or any(writer.poll() in (None, 0) for writer in writers)
    for writer in writers:
        said(writer)


def test_a_sender_killed_half_way_spoils_nothing(files):
    code = "print('go', flush=True)\nwhile True: inbox.put(files, {'type': 'message', 'content': 'x' * 3_000_000})"
    sender = python(files, code)
    assert sender.stdout.readline() == "go\n"
    wait_for(lambda: len(os.listdir(files.inbox)) > 3)
    sender.kill()
    sender.communicate(timeout=PATIENT)
    inbox.put(files, HI)
    *whole, last = [inbox.read(files, item.name) for item in inbox.waiting(files)]
    assert last == HI
    assert all(item is not None and len(item["content"]) == 3_000_000 for item in whole)


# ---- ringing --------------------------------------------------------------------------------------------------------


def test_nobody_hears_a_ring_where_there_is_no_worker(files):
    assert inbox.ring(files) is False
    os.mkfifo(files.bell)
    assert inbox.ring(files) is False


def test_a_worker_hears_a_ring_and_it_is_no_message(files, bell):
    assert inbox.ring(files) is True
    assert wait_for(lambda: os.read(bell.fd, 10)) == b"\n"
    inbox.ring(files)
    assert bell.lines() == []


def _plain(path: Path) -> None:
    path.write_text("mine\n")


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_text("mine\n")
    path.symlink_to(path.with_name("elsewhere"))


def _socket(path: Path) -> None:
    # Bound by a short name: the path of a socket is limited.
    before = os.getcwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)
    os.chdir(before)


FOREIGN = {"a file": _plain, "a link": _link, "a directory": Path.mkdir, "a socket": _socket}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_nothing_is_written_into_what_is_no_bell_of_ours(files, make):
    make(files.bell)
    assert inbox.ring(files) is False
    inbox.put(files, HI)
    assert len(inbox.waiting(files)) == 1
    assert not files.bell.is_file() or files.bell.read_text() == "mine\n"


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_worker_takes_no_foreign_file_for_its_bell(files, make):
    make(files.bell)
    with pytest.raises(CassError, match="is not a FIFO of yours") as error:
        Bell(files)
    assert str(files.bell) in str(error.value)


def test_a_pipe_full_of_rings_is_no_reason_to_wait(files, bell):
    writing = os.open(files.bell, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, b"\n" * 4096):
            pass
    os.close(writing)
    assert inbox.ring(files) is True
    inbox.put(files, {"type": "message", "content": "x" * 200_000})
    assert bell.lines() == []


def test_a_worker_that_is_stopped_makes_nobody_wait(files):
    worker = python(files, "bell = inbox.Bell(files); print('open', flush=True); time.sleep(600)")
    try:
        assert worker.stdout.readline() == "open\n"
        worker.send_signal(signal.SIGSTOP)
        said(python(files, f"[inbox.put(files, {HI}) for _ in range(100)]; [inbox.ring(files) for _ in range(70_000)]"))
        assert len(inbox.waiting(files)) == 100
    finally:
        worker.kill()
        worker.communicate(timeout=PATIENT)


def test_a_worker_that_died_is_nobody(files):
    worker = python(files, "bell = inbox.Bell(files); print('open', flush=True); time.sleep(600)")
    assert worker.stdout.readline() == "open\n"
    assert inbox.ring(files) is True
    worker.kill()
    worker.communicate(timeout=PATIENT)
    assert inbox.ring(files) is False


# ---- the bell -------------------------------------------------------------------------------------------------------


def shell(files: Files, command: str, **more: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh", "-c", command], cwd=files.run, **more)  # type: ignore[call-overload, no-any-return]


def test_lines_that_a_shell_writes_are_messages(files, bell):
    done = shell(files, "echo hi > in; printf 'two\\n\\n  \\nthrée ü\\n' > in")
    assert done.wait(PATIENT) == 0
    assert bell.lines() == ["hi", "two", "thrée ü"]
    assert bell.lines() == []


TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1)


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXT, max_size=5), st.data())
def test_lines_do_not_depend_on_where_the_bytes_are_cut(lines, data):
    stream = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    found = []
    with tempfile.TemporaryDirectory() as directory:
        files = Home(Path(directory)).files("c")
        files.make()
        bell = Bell(files)
        writing = os.open(files.bell, os.O_WRONLY)
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            os.write(writing, stream[start:end])
            found += bell.lines()
        os.close(writing)
        found += bell.retire()
    assert found == [line for line in lines if line.strip()]


def test_text_without_its_line_end_becomes_a_line_after_a_while(files, bell):
    writing = os.open(files.bell, os.O_WRONLY)
    os.write(writing, b"unfinished")
    began = time.monotonic()
    assert bell.lines() == []
    assert wait_for(bell.lines) == ["unfinished"]
    assert time.monotonic() - began >= inbox.UNFINISHED_LINE_S
    os.write(writing, b"next\n")
    os.close(writing)
    assert bell.lines() == ["next"]


def test_a_line_that_goes_on_in_time_stays_one(files, bell):
    writing = os.open(files.bell, os.O_WRONLY)
    os.write(writing, b"half ")
    assert bell.lines() == []
    os.write(writing, b"and half\n")
    os.close(writing)
    assert bell.lines() == ["half and half"]


def test_a_bell_without_writers_stays_quiet(files, bell):
    shell(files, "echo hi > in").wait(PATIENT)
    assert bell.lines() == ["hi"]
    assert bell._read() == b"", "at the end of file it would be readable for ever"
    with pytest.raises(BlockingIOError):
        os.read(bell.fd, 1)


def test_a_shell_that_waits_at_the_bell_is_heard_by_the_next_worker(files):
    os.mkfifo(files.bell, 0o600)
    waiting = shell(files, "echo hi > in")
    bell = Bell(files)
    try:
        assert wait_for(bell.lines) == ["hi"]
        assert waiting.wait(PATIENT) == 0
    finally:
        bell.retire()


def test_a_retired_bell_hears_who_holds_it_to_the_end(files):
    bell = Bell(files)
    code = """
bell = os.open(files.bell, os.O_WRONLY)
old = os.stat(files.bell).st_ino
os.write(bell, b"first\\nsec")
print("written", flush=True)
while os.stat(files.bell).st_ino == old:
    time.sleep(0.001)
os.write(bell, b"ond\\n")
"""
    writer = python(files, code)
    assert writer.stdout.readline() == "written\n"
    assert bell.retire() == ["first", "second"]
    said(writer)
    assert stat.S_ISFIFO(files.bell.stat().st_mode)
    assert inbox.ring(files) is False


def test_what_is_half_written_when_the_bell_retires_is_a_line_as_well(files):
    bell = Bell(files)
    writing = os.open(files.bell, os.O_WRONLY)
    os.write(writing, b"half")
    os.close(writing)
    assert bell.retire() == ["half"]


def test_no_line_of_a_shell_is_lost_while_bells_come_and_go(files):
    os.mkfifo(files.bell, 0o600)
    loop = "i=0; while [ $i -lt 60 ]; do echo $0-$i > in; i=$((i+1)); done"
    writers = [subprocess.Popen(["sh", "-c", loop, str(number)], cwd=files.run) for number in range(6)]
    found: list[str] = []
    deadline = time.monotonic() + PATIENT
    while any(writer.poll() is None for writer in writers):
        assert time.monotonic() < deadline, f"{len(found)} lines came"
        bell = Bell(files)
        for _ in range(20):
            found += bell.lines()
        found += bell.retire()
    bell = Bell(files)
    found += bell.retire()
    assert Counter(found) == Counter(f"{number}-{line}" for number in range(6) for line in range(60))


def test_everything_is_private_whatever_the_umask(files):
    before = os.umask(0)
    try:
        inbox.put(files, HI)
        Bell(files).retire()
    finally:
        os.umask(before)
    (waiting,) = inbox.waiting(files)
    found = {path.name: oct(path.lstat().st_mode) for path in files.run.iterdir()}
    assert found["in"] == oct(stat.S_IFIFO | 0o600)
    assert found["inbox"] == oct(stat.S_IFDIR | 0o700)
    assert oct((files.inbox / waiting.name).stat().st_mode) == oct(stat.S_IFREG | 0o600)
