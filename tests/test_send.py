"""Sending from a shell: what is said with it, whom it reaches, and what is left when it does not."""

import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from stage import argv, facts, run, wait_for

from cass import chat, inbox, presence, send
from cass.errors import NoWorker, UsageError, WaitedTooLong
from cass.records import Approval, Assistant, TurnEnd, User

PATIENT = 60


@contextmanager
def running(program: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A program of ours that goes on meanwhile; ended at the end, whatever happened."""
    process = subprocess.Popen(
        argv(program, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENT)


def said(files) -> list[str]:
    return [user.content for user in facts(files, User)]


# ---- text from an argument and standard input -----------------------------------------------------------------------

TEXT = "import sys; from cass import send; sys.stdout.write(send.text_from(sys.argv[1] if len(sys.argv) > 1 else None))"


def text_from(*argument: str, **more: object) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-c", TEXT, *argument]
    return subprocess.run(command, capture_output=True, timeout=PATIENT, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("argument", "given", "text"),
    [
        (["do it"], b"", "do it"),
        (["do it"], b"some context\n", "do it\n\nsome context"),
        (["do it"], b" \n", "do it"),
        (["-"], b"from a pipe\n", "from a pipe"),
        ([], b"from a pipe\n", "from a pipe"),
        ([], b"two\n\nlines\n\n", "two\n\nlines\n"),
        ([], b"", ""),
        ([], "é\u2028".encode() + b"\xff", "é\u2028\ufffd"),
        (["do it"], b"x" * 300_000, "do it\n\n" + "x" * 300_000),
    ],
)
def test_the_message_is_the_argument_and_what_is_given_besides(argument, given, text, tmp_path):
    assert text_from(*argument, input=given).stdout.decode() == text
    (tmp_path / "given").write_bytes(given)
    with open(tmp_path / "given", "rb") as file:
        assert text_from(*argument, stdin=file).stdout.decode() == text


def test_standard_input_that_is_nothing_adds_nothing():
    assert text_from("do it", stdin=subprocess.DEVNULL).stdout == b"do it"
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" "do it" <&-', sys.executable, TEXT], capture_output=True, timeout=PATIENT
    )
    assert closed.stdout == b"do it", closed.stderr


def test_without_an_argument_and_without_standard_input_it_says_what_is_missing():
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, TEXT], capture_output=True, timeout=PATIENT
    )
    assert closed.returncode != 0
    assert b"no message: give it as an argument or on standard input" in closed.stderr


def test_a_terminal_beside_an_argument_is_not_read():
    mine, theirs = pty.openpty()
    try:
        assert text_from("do it", stdin=theirs).stdout == b"do it"
    finally:
        os.close(mine)
        os.close(theirs)


@pytest.mark.parametrize("make", [os.pipe, socket.socketpair], ids=["pipe", "socket"])
def test_an_inherited_pipe_that_nobody_writes_to_is_left_alone(make):
    reading, writing = make()
    began = time.monotonic()
    try:
        done = text_from("do it", stdin=reading)
    finally:
        for end in (reading, writing):
            os.close(end) if isinstance(end, int) else end.close()
    assert done.stdout == b"do it"
    assert b"nothing came on standard input; going on without it" in done.stderr
    assert time.monotonic() - began >= send.SILENCE_S


def test_a_pipe_that_is_written_to_late_is_read_to_its_end():
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", TEXT, "do it"], stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(reading)
    for piece in (b"a", b"b\n"):
        os.write(writing, piece)
    os.close(writing)
    out, err = process.communicate(timeout=PATIENT)
    assert (out, err) == (b"do it\n\nab", b"")


# ---- sending --------------------------------------------------------------------------------------------------------


def test_a_message_is_accepted_and_a_worker_is_there(files):
    done = run("cass-send", files.chat_id, "hello")
    assert (done.returncode, done.stderr) == (0, "")
    id = done.stdout.strip()
    assert presence.is_running(files)
    wait_for(lambda: any(id in end.answers for end in facts(files, TurnEnd)))
    (user,) = facts(files, User)
    assert (user.id, user.content, user.ask, user.origin["by"]) == (id, "hello", False, "send")


def test_an_id_of_ones_own_is_the_id_of_the_message(files):
    assert run("cass-send", files.chat_id, "hello", "--id", "build-42").stdout == "build-42\n"
    wait_for(lambda: facts(files, TurnEnd))
    assert facts(files, User)[0].id == "build-42"
    assert run("cass-send", files.chat_id, "hello", "--id", "build-42").returncode == 0
    assert run("cass-send", files.chat_id, "after", "--wait").returncode == 0
    assert said(files) == ["hello", "after"], "an id that the chat has is not taken in again"


def test_waiting_prints_the_answer_alone(files, scripted):
    scripted({"text": "The answer.\nIn two lines."})
    done = run("cass-send", files.chat_id, "hello", "--wait")
    assert (done.returncode, done.stdout, done.stderr) == (0, "The answer.\nIn two lines.\n", "")


@pytest.mark.parametrize(
    ("step", "status", "says"),
    [
        ({"text": ""}, 1, "failed: the model ended its answer without any text"),
        ({"text": "par", "error": "on fire"}, 1, "failed: on fire"),
        ({"tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}]}, 4, "blocked: something was refused"),
    ],
)
def test_the_status_says_how_the_turn_ended(files, scripted, monkeypatch, step, status, says):
    scripted(step, {"text": "as you like"})
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    done = run("cass-send", files.chat_id, "hello", "--wait")
    assert done.returncode == status
    assert says in done.stderr
    assert f"chat: {files.chat_id}" in done.stderr


def test_without_a_worker_and_told_to_start_none_the_message_is_taken_back(files):
    done = run("cass-send", files.chat_id, "hello", "--no-start")
    assert done.returncode == 69
    assert f"no worker is running for {files.chat_id}; start one with: cass --resume {files.chat_id}" in done.stderr
    assert "the message was taken back" in done.stderr
    assert os.listdir(files.inbox) == []


def test_a_worker_that_cannot_start_gives_its_error_and_the_message_back(files, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "openai")
    for more in ([], ["--wait"]):
        done = run("cass-send", files.chat_id, "hello", *more)
        assert done.returncode == 2
        assert "set OPENAI_API_KEY" in done.stderr
        assert "the message was taken back" in done.stderr
        assert "Traceback" not in done.stderr
        assert os.listdir(files.inbox) == []


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["CHAT", ""], 2, "the message is empty"),
        (["CHAT", " \n"], 2, "the message is empty"),
        (["CHAT"], 2, "the message is empty"),
        (["CHAT", "hi", "--id", "a/b"], 2, "a message id is"),
        (["CHAT", "hi", "--timeout", "1"], 2, "--timeout goes with --wait"),
        (["zzz", "hi"], 69, "no chat 'zzz'"),
        (["CHAT", "hi", "--nonsense"], 2, "--nonsense"),
        ([], 2, "CHAT"),
    ],
)
def test_what_cannot_be_sent_says_why_and_starts_nothing(files, arguments, status, says):
    done = run("cass-send", *(files.chat_id if argument == "CHAT" else argument for argument in arguments))
    assert done.returncode == status
    assert says in done.stderr
    assert done.stdout == ""
    assert not presence.is_running(files)
    assert os.listdir(files.inbox) == []


def test_a_message_may_hold_anything_but_nothing(files):
    text = "line one\n  line two\u2028é\t\x01 ' \" $(id)"
    assert run("cass-send", files.chat_id, "-", "--wait", input=text + "\n").returncode == 0
    assert said(files) == [text]


def test_what_begins_with_a_slash_is_text(files):
    assert run("cass-send", files.chat_id, "/clear", "--wait").returncode == 0
    assert said(files) == ["/clear"]


def test_waiting_has_an_end_and_the_chat_goes_on(files, scripted):
    scripted({"text": "some words", "hang": True})
    done = run("cass-send", files.chat_id, "hello", "--wait", "--timeout", "0.5")
    assert done.returncode == 124
    assert f"chat {files.chat_id} goes on" in done.stderr
    assert presence.is_running(files)
    assert run("cass", "wait", files.chat_id, "--timeout", "0.1").returncode == 124
    assert run("cass", "cancel", files.chat_id).returncode == 0
    assert run("cass", "wait", files.chat_id).returncode == 130


def test_a_worker_that_is_killed_while_somebody_waits_is_said_to_be_gone(files, scripted):
    scripted({"text": "some words", "hang": True})
    with running("cass-send", files.chat_id, "hello", "--wait") as waiting:
        wait_for(lambda: facts(files, User))
        os.kill(presence.holder(files)["pid"], signal.SIGKILL)
        _, err = waiting.communicate(timeout=PATIENT)
    assert waiting.returncode == 69
    assert "is gone" in err
    assert run("cass", "wait", files.chat_id).returncode == 69


def test_a_message_that_waits_gets_a_new_worker_when_the_old_one_dies(files, scripted):
    scripted({"text": "some words", "hang": True})
    run("cass-send", files.chat_id, "first")
    wait_for(lambda: facts(files, User))
    with running("cass-send", files.chat_id, "second", "--wait") as waiting:
        wait_for(lambda: inbox.waiting(files))
        scripted({"text": "an answer"})
        os.kill(presence.holder(files)["pid"], signal.SIGKILL)
        out, _ = waiting.communicate(timeout=PATIENT)
    assert (waiting.returncode, out) == (0, "an answer\n")


def test_eight_senders_at_once_lose_nothing_and_start_one_worker(files):
    texts = [letter * 100_000 + "é\n" * 10 + "." for letter in "abcdefgh"]
    senders = [subprocess.Popen(argv("cass-send", files.chat_id, "-"), stdin=subprocess.PIPE, text=True) for _ in texts]
    for sender, text in zip(senders, texts, strict=True):
        sender.stdin.write(text)
        sender.stdin.close()
    for sender in senders:
        assert sender.wait(PATIENT) == 0
    wait_for(lambda: len(facts(files, TurnEnd)) == 8, 60)
    assert sorted(said(files)) == texts
    assert chat.damage(chat.read(files)) == []


def test_steering_is_heard_by_the_running_turn(files, scripted, workspace, monkeypatch):
    monkeypatch.setenv("CASS_MODE", "full-access")
    os.mkfifo(workspace / "gate")
    shell = [{"name": "shell", "arguments": {"command": command}} for command in ("cat gate", "touch never")]
    scripted({"tool_calls": shell}, {"text": "heard"})
    run("cass-send", files.chat_id, "first")
    wait_for(lambda: facts(files, Assistant))
    steering = run("cass-send", files.chat_id, "stop that", "--steer")
    assert steering.returncode == 0
    (workspace / "gate").write_text("go on")
    (end,) = wait_for(lambda: facts(files, TurnEnd))
    assert end.answers[1:] == (steering.stdout.strip(),)
    assert not (workspace / "never").exists()


def test_an_approval_that_was_asked_for_is_waited_for(files, scripted, workspace, monkeypatch):
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    scripted({"tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}, {"text": "done"})
    with running("cass-send", files.chat_id, "hello", "--ask", "--wait") as waiting:
        request = wait_for(
            lambda: run("cass", "approve", files.chat_id).stderr.partition(f"{files.chat_id} ")[2].strip()
        )
        assert run("cass", "approve", files.chat_id, request).returncode == 0
        out, _ = waiting.communicate(timeout=PATIENT)
    assert (waiting.returncode, out) == (0, "done\n")
    assert (workspace / "made").exists()
    assert "by cass approve, pid" in facts(files, Approval)[0].by


# ---- from Python ----------------------------------------------------------------------------------------------------


def test_a_blank_message_is_refused_before_anything_is_written(files):
    with pytest.raises(UsageError):
        send.send(files, " \n")
    assert os.listdir(files.inbox) == []


def test_a_command_needs_a_worker(files):
    for command in (lambda: send.command(files, {"type": "cancel"}), lambda: send.stop(files, 1)):
        with pytest.raises(NoWorker):
            command()
    assert os.listdir(files.inbox) == []


def test_a_worker_that_does_not_stop_in_time_is_said(files):
    presence.start(files).wait()
    pid = presence.holder(files)["pid"]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(WaitedTooLong, match="is still there"):
        send.stop(files, 0.1)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not presence.is_running(files))
