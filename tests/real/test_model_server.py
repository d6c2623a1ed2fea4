"""The programs with a real model server: what it streams, what it saw before, and what a killed worker leaves."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("real")]

BIN = Path(__file__).parent.parent.parent / "bin"
TOOLS = ("ls", "read", "grep", "write", "edit", "shell")


class Person:
    """Somebody in a directory with a home of its own, whose provider is the model server."""

    def __init__(self, root: Path, url: str) -> None:
        self.home = root / "home" / ".cass"
        self.cwd = root / "work"
        self.cwd.mkdir(parents=True)
        (self.cwd / "notes.txt").write_text("A fox lives near the river.\n")
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ = kept | {"HOME": str(root / "home"), "CASS_PROVIDER": "here", "CASS_MAX_TOKENS": "120"}
        self.environ["CASS_MODE"] = "workspace-edit"  # all tools are offered; those that ask are denied
        self.url = url
        self.home.mkdir(parents=True, mode=0o700)
        provider = {"id": "here", "kind": "openai-compatible", "base_url": url}
        (self.home / "providers.json").write_text(json.dumps({"providers": [provider]}))

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[str]":
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        command = [BIN / program, *arguments]
        return subprocess.Popen(
            command, stdin=null, stdout=pipe, stderr=pipe, text=True, cwd=self.cwd, env=self.environ
        )

    def run(self, program: str, *arguments: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        process = self.start(program, *arguments)
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def chat(self) -> str:
        (path,) = (self.home / "conversations").glob("*.jsonl")
        return path.stem

    def records(self) -> list[dict[str, Any]]:
        return lines(self.home / "conversations" / f"{self.chat()}.jsonl")

    def answers(self) -> list[dict[str, Any]]:
        return [record for record in self.records() if record.get("role") == "assistant"]

    def deltas(self) -> list[dict[str, Any]]:
        """What has been streamed in this turn."""
        return [
            record for path in self.home.glob("run/*/live.jsonl") for record in lines(path) if record["type"] == "delta"
        ]

    def asked(self) -> str:
        """The last request as the server has it in its context: the very text that the model went on from."""
        with urllib.request.urlopen(f"{self.url}/slots") as answer:
            (slot,) = json.load(answer)
        assert 0 < slot["n_prompt_tokens"] <= slot["n_ctx"] == 8192
        prompt: str = slot["prompt"]
        return prompt


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def wait(claim: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.01)


@pytest.fixture
def person(tmp_path: Path, model_server: str) -> Iterator[Person]:
    somebody = Person(tmp_path, model_server)
    yield somebody
    somebody.run("cass", "stop", somebody.chat())


def test_an_answer_is_streamed_and_the_next_request_holds_the_one_before(person):
    first = person.start("cass", "-p", "Tell me a story about a fox.")
    wait(lambda: len(person.deltas()) >= 8 or first.poll() is not None)  # those that lie ready come as one
    assert person.answers() == [], "the answer was there before its deltas"
    out, err = first.communicate(timeout=240)
    (answer,) = person.answers()
    assert out.strip() == answer["content"].strip(), err
    assert "".join(delta.get("text", "") for delta in person.deltas()) == answer["content"]
    assert first.returncode == (
        0 if answer.get("stop", "stop") == "stop" else 1
    )  # a small model may go on to the output limit

    asked = person.asked()
    assert all(f'"name": "{tool}"' in asked for tool in TOOLS)
    person.run("cass-send", person.chat(), "--wait", "And then?")
    assert person.asked().startswith(asked + answer["content"])
    assert "And then?" in person.asked().removeprefix(asked)


def test_a_worker_killed_in_mid_stream_is_resumed_by_the_next_message(person):
    person.run("cass", "-p", "Say hello.")
    person.run("cass-send", person.chat(), "Tell me a story about a fox.")
    answered = len(person.answers())
    wait(lambda: len(person.deltas()) >= 5)
    os.kill(worker(person), signal.SIGKILL)

    person.run("cass-send", person.chat(), "--wait", "Please go on.")
    ends = [record for record in person.records() if record["type"] == "turn_end"]
    assert len(ends) == 3
    assert ends[1]["outcome"] == "failed"
    assert "interrupted" in ends[1]["error"]
    assert ends[2]["outcome"] == "done" or "limit" in ends[2]["error"]
    assert len(person.answers()) > answered
    assert "Say hello." in person.asked()
    assert "Please go on." in person.asked()


def test_a_context_that_overflows_is_summarised_and_the_turn_succeeds(tmp_path, small_server):
    person = Person(tmp_path, small_server)
    wrong = {"models": [{"id": "default", "provider": "here", "context_length": 100_000}]}
    (person.home / "models.json").write_text(json.dumps(wrong))
    person.environ["CASS_MODEL"] = "default"
    person.run("cass", "-p", "Say hello.")
    chat = person.home / "conversations" / f"{person.chat()}.jsonl"
    old = {"type": "message", "role": "user", "id": "old", "content": "fox river " * 600, "created_at": "2026-06-20"}
    answer = {"type": "message", "role": "assistant", "id": "answer", "content": "I see.", "created_at": "2026-06-20"}
    end = {"type": "turn_end", "turn": "old", "answers": ["old"], "outcome": "done", "created_at": "2026-06-20"}
    with chat.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in (old, answer, end))

    out, err = person.run("cass", "-p", "Say hello again.", "--resume", person.chat())[1:]
    (summary,) = [record for record in person.records() if record["type"] == "compaction"]
    assert summary["summary"].strip(), err
    assert summary["usage"]["input"] > 0
    ends = [record for record in person.records() if record["type"] == "turn_end"]
    assert ends[-1]["outcome"] == "done" or "limit" in ends[-1]["error"]
    assert out.strip() == person.answers()[-1]["content"].strip()


def test_one_chat_goes_on_through_each_api_of_the_server(person):
    kinds = ("openai-compatible", "openai-responses", "anthropic")
    entries = [{"id": f"by-{kind}", "kind": kind, "base_url": person.url} for kind in kinds]
    (person.home / "providers.json").write_text(json.dumps({"providers": entries}))
    person.environ |= {"CASS_MAX_TOKENS": "20", "CASS_MODE": "read-only"}
    chat: tuple[str, ...] = ()
    for kind in kinds:
        status, out, err = person.run("cass", "-P", f"by-{kind}", "-p", f"Say {kind}.", *chat)
        answer = person.answers()[-1]
        assert out.strip() == answer["content"].strip() != "", err
        assert "".join(delta.get("text", "") for delta in person.deltas()) == answer["content"]
        assert status == (0 if answer.get("stop", "stop") == "stop" else 1)
        assert answer["usage"]["input"] > 100
        assert 0 < answer["usage"]["output"] <= 20
        chat = ("--resume", person.chat())
        asked = person.asked()
        assert all(f"Say {one}." in asked for one in kinds[: kinds.index(kind) + 1])
        assert all(before["content"] in asked for before in person.answers()[:-1])
        assert '"name": "grep"' in asked
    assert answer["usage"]["cache_read"] > 0


def worker(person: Person) -> int:
    """Process id of the worker that holds the chat's lock."""
    text = (person.home / "run" / person.chat() / "lock").read_text()
    return int(json.loads(text)["pid"])
