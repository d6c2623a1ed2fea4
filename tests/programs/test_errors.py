"""What a person can act on is said in one clear message, never with the key, and nothing is lost."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import scripted
import spoken
from stage import argv, facts, run, wait_for

from cass import catalogue, chat, exchange, inbox, jsonl, presence, send
from cass.home import Files, Home
from cass.records import TurnEnd, User

KEY = "sk-very-secret-7"
TOO_LONG = {"error": {"code": "context_length_exceeded", "message": "prompt is too long: 9 tokens > 8 maximum"}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            scripted.fails(401, {"error": {"message": "Incorrect API key provided"}}),
            ["401", "Incorrect API key", "TEST_KEY"],
        ),
        (scripted.fails(404, {"error": {"message": "no such model"}}), ["404", "no such model"]),
        (scripted.fails(400, TOO_LONG), ["too long"]),
        (scripted.fails(400, {"error": {"message": "bad field 'x'"}}), ["400", "bad field 'x'"]),
        (scripted.fails(500, {"error": {"message": "on fire"}}), ["500", "on fire", "given up after 5 tries"]),
    ],
    ids=["401", "404", "too long", "400", "500 for ever"],
)
def test_what_the_server_refuses_is_said_with_its_words_and_the_address(
    answer: scripted.Answer, words: list[str], home: Home, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    with scripted.Server(lambda asked: answer) as server:
        options = ["--base-url", server.base_url, "--api-key-env", "TEST_KEY", "-m", "m"]
        done = run("cass", "-p", "hello", *options)
        assert done.returncode == 1
        assert done.stdout == ""
        for word in [*words, f"{server.base_url}/chat/completions"]:
            assert word in done.stderr
        assert server.asked[0].header("authorization") == f"Bearer {KEY}"
    assert len([line for line in done.stderr.splitlines() if "failed" in line]) == 1
    assert KEY not in done.stderr
    assert not any(KEY in path.read_text() for path in home.root.rglob("*") if path.is_file())


OVERFLOWS = {
    "openai-compatible": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: 9000 tokens > 4096 maximum",
    "gemini": "The input token count (9000) exceeds the maximum number of tokens allowed (4096).",
}


@pytest.mark.parametrize("kind", spoken.PATHS)
def test_what_is_too_long_is_summarised_and_asked_again_once_and_all_of_it_is_said(
    kind: str, home: Home, workspace: Path
) -> None:
    step = {"id": "call_1", "name": "ls", "arguments": {"path": "."}}
    texts = ["We looked.", "the answer"]
    answers = [spoken.answer(kind, "I look.", step), scripted.fails(429, Retry_After="0")]
    answers += [scripted.fails(400, {"error": {"message": OVERFLOWS[kind]}})]
    with scripted.Server([*answers, *(spoken.answer(kind, text) for text in texts)], path=spoken.PATHS[kind]) as server:
        home.make()
        entry = {"id": "asked", "kind": kind, "base_url": server.url, "default_model": "m"}
        home.providers.write_bytes(jsonl.dump({"providers": [entry]}))
        done = run("cass", "-P", "asked", "-p", "look around " * 20)
    assert (done.returncode, done.stdout) == (0, "the answer\n"), done.stderr
    retried, refused, compacted = done.stderr.splitlines()
    assert retried.startswith("retrying: again in 0.")
    assert OVERFLOWS[kind] in refused
    assert "from now on m is taken to have a context of" in refused
    assert compacted.endswith("tokens became a summary")
    asked = server.asked[-1].raw.decode()
    assert "We looked." in asked
    assert "I look." not in asked


def test_a_refused_connection_says_the_address_and_the_chat_stays_usable(home: Home, workspace: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    failed = run("cass", "-p", "hello", "--base-url", url, "-m", "m")
    assert failed.returncode == 1
    assert url in failed.stderr
    (chat_id,) = catalogue.ids(home)
    with scripted.Server([scripted.says("here I am")]) as server:
        again = run("cass", "-p", "and now?", "--resume", chat_id[-4:], "--base-url", server.base_url, "-m", "m")
        asked = [m["content"] for m in server.asked[0].body["messages"] if m["role"] == "user"]
    assert (again.returncode, again.stdout) == (0, "here I am\n")
    assert len(asked) == 1
    assert asked[0].endswith("and now?")
    assert server.problems == []


@pytest.mark.parametrize("program", ["cass -p", "cass-send --wait"])
def test_a_missing_key_names_its_variable_and_ends_with_2(program: str, files: Files) -> None:
    options = {"env": os.environ | {"CASS_PROVIDER": "openai"}}
    if program == "cass -p":
        done = run("cass", "-p", "hello", **options)
    else:
        done = run("cass-send", files.chat_id, "hello", "--wait", **options)
    assert done.returncode == 2
    assert "set OPENAI_API_KEY" in done.stderr
    assert inbox.is_empty(files)
    assert not facts(files, User)


@pytest.mark.parametrize(
    "arguments",
    [
        ["cass-send", "nope", "hello"],
        ["cass", "-p", "hello", "--resume", "nope"],
        ["cass", "wait", "nope"],
        ["cass", "approve", "nope", "r"],
        ["cass-view", "nope", "--no-follow"],
        ["cass-agent", "nope"],
        ["cass", "status", "nope"],
    ],
    ids=" ".join,
)
def test_an_unknown_chat_is_69(arguments: list[str], home: Home, workspace: Path) -> None:
    done = run(*arguments)
    assert done.returncode == 69
    assert "nope" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_inherited_pipe_never_hangs_anything(files: Files) -> None:
    reading, writing = os.pipe()
    try:
        for program in (["cass-send", files.chat_id, "hello"], ["cass", "-p", "hello"], ["cass", "ls"]):
            done = run(*program, stdin=reading, timeout=20)
            assert done.returncode == 0, done.stderr
    finally:
        os.close(reading)
        os.close(writing)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path) -> Path:
    ballast = place / "ballast"
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 512)
    os.close(fd)
    return ballast


def test_a_full_disk_is_said_with_the_path_and_loses_nothing(
    small_disk: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASS_HOME", str(small_disk / "home"))
    home = Home(small_disk / "home")
    files = chat.create(home, cwd=workspace, provider="demo", model="demo", system="You are a test.")
    assert exchange.say(files, "before", timeout_s=30).end is not None
    ballast = fill(small_disk)

    refused = run("cass-send", files.chat_id, "x" * 5000)
    assert refused.returncode == 1
    assert str(files.inbox) in refused.stderr
    assert "No space left" in refused.stderr
    assert inbox.is_empty(files)

    made = run("cass", "-p", "hello")
    assert made.returncode == 1
    assert "No space left" in made.stderr

    # A message that was accepted in the last free bytes, and an answer that has no room.
    os.truncate(ballast, ballast.stat().st_size - 4096)
    fill_to = small_disk / "more"
    sent = run("cass-send", files.chat_id, "list .")
    fill_to.write_bytes(b"")
    if sent.returncode == 0:
        wait_for(lambda: not presence.is_running(files) or sent.stdout.strip() in answered(files), 30)
    ballast.unlink()
    assert exchange.say(files, "after", timeout_s=30).end is not None
    wait_for(lambda: inbox.is_empty(files))
    said = [record.content for record in facts(files, User) if isinstance(record, User)]
    assert said == (["before", "list .", "after"] if sent.returncode == 0 else ["before", "after"])
    send.stop(files, 10)


def answered(files: Files) -> list[str]:
    return [id for end in facts(files, TurnEnd) if isinstance(end, TurnEnd) for id in end.answers]


def test_a_home_that_cannot_be_written_is_said_with_its_path(
    small_disk: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASS_HOME", str(small_disk / "home"))
    home = Home(small_disk / "home")
    files = chat.create(home, cwd=workspace, provider="demo", model="demo", system="You are a test.")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for program in (["cass", "-p", "hello"], ["cass-send", files.chat_id, "hello"], ["cass-agent", files.chat_id]):
        done = run(*program)
        assert done.returncode == 1, program
        assert str(home.root) in done.stderr
        assert "Read-only file system" in done.stderr
        assert "Traceback" not in done.stderr
    assert run("cass", "ls").returncode == 0
    assert run("cass-view", files.chat_id, "--no-follow").returncode == 0


def test_a_worker_whose_chat_was_replaced_stops_and_says_so(files: Files) -> None:
    assert exchange.say(files, "hello", timeout_s=30).end is not None
    copy = files.chat.read_bytes()
    files.chat.unlink()
    files.chat.write_bytes(copy)
    done = run("cass-send", files.chat_id, "are you there?", "--wait", "--timeout", "30")
    assert done.returncode == 0  # the next worker took up what this one had accepted
    assert "was replaced" in files.log.read_text()
    assert [user.content for user in facts(files, User) if isinstance(user, User)] == ["hello", "are you there?"]


def test_a_program_that_is_interrupted_while_it_waits_ends_with_130(files: Files) -> None:
    with scripted.Server([scripted.raw(scripted.HANG)] * 2) as server:
        flags = ["--base-url", server.base_url, "-m", "m"]
        process = subprocess.Popen(
            argv("cass", "-p", "hello", *flags), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        server.wait(1)
        process.send_signal(2)
        assert process.wait(20) == 130
        assert process.stderr is not None
        process.stderr.close()
