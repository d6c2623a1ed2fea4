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

from cass import inbox
from cass.home import Home

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("real")]

BIN = Path(__file__).parent.parent.parent / "bin"
KINDS = ("openai-compatible", "openai-responses", "anthropic")
"""The APIs that the server speaks."""
TOOLS = ("ls", "read", "grep", "write", "edit", "shell", "fetch")


class Person:
    """Somebody in a directory with a home of its own, whose provider is the model server."""

    def __init__(self, root: Path, url: str, kind: str = "openai-compatible") -> None:
        self.home = root / "home" / ".cass"
        self.cwd = root / "work"
        self.cwd.mkdir(parents=True)
        (self.cwd / "notes.txt").write_text("A fox lives near the river.\n")
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ = kept | {"HOME": str(root / "home"), "CASS_PROVIDER": "here", "CASS_MAX_TOKENS": "120"}
        self.environ["CASS_MODE"] = "workspace-edit"  # all tools are offered; those that ask are denied
        self.url = url
        self.home.mkdir(parents=True, mode=0o700)
        provider = {"id": "here", "kind": kind, "base_url": url}
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

    def write(self, *records: dict[str, Any]) -> None:
        """Put records at the end of the chat."""
        with (self.home / "conversations" / f"{self.chat()}.jsonl").open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

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
        return context(self.url, 8192)


def context(url: str, tokens: int) -> str:
    """The text that a server of so many tokens has in its context."""
    with urllib.request.urlopen(f"{url}/slots") as answer:
        (slot,) = json.load(answer)
    assert 0 < slot["n_prompt_tokens"] <= slot["n_ctx"] == tokens
    prompt: str = slot["prompt"]
    return prompt


def said(role: str, id: str, content: str, **more: Any) -> dict[str, Any]:
    """The record of a message."""
    return {"type": "message", "role": role, "id": id, "content": content, "created_at": AT, **more}


AT = "2026-06-20"
END = {"type": "turn_end", "turn": "old", "answers": ["old"], "outcome": "done", "created_at": AT}


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_context_that_overflows_is_summarised_and_the_turn_succeeds(tmp_path, small_server, kind):
    person = Person(tmp_path, small_server, kind)
    wrong = {"models": [{"id": "default", "provider": "here", "context_length": 100_000}]}
    (person.home / "models.json").write_text(json.dumps(wrong))
    person.environ |= {"CASS_MODEL": "default", "CASS_MAX_TOKENS": "20", "CASS_MODE": "read-only"}
    person.run("cass", "-P", "demo", "-p", "Say hello.")
    person.write(said("user", "old", "fox river " * 600), said("assistant", "answer", "I see."), END)

    out, err = person.run("cass", "-p", "Say hello again.", "-P", "here", "--resume", person.chat())[1:]
    (summary,) = [record for record in person.records() if record["type"] == "compaction"]
    assert "exceeds the available context size (2048 tokens)" in err
    assert "from now on default is taken to have a context of 2,048 tokens" in err
    assert summary["summary"].strip(), err
    assert summary["usage"]["input"] > 0
    ends = [record for record in person.records() if record["type"] == "turn_end"]
    assert ends[-1]["outcome"] == "done" or "limit" in ends[-1]["error"]
    assert out.strip() == person.answers()[-1]["content"].strip()


def test_one_chat_goes_on_through_each_api_of_the_server(person):
    entries = [{"id": f"by-{kind}", "kind": kind, "base_url": person.url} for kind in KINDS]
    (person.home / "providers.json").write_text(json.dumps({"providers": entries}))
    person.environ |= {"CASS_MAX_TOKENS": "20", "CASS_MODE": "read-only"}
    chat: tuple[str, ...] = ()
    for kind in KINDS:
        status, out, err = person.run("cass", "-P", f"by-{kind}", "-p", f"Say {kind}.", *chat)
        answer = person.answers()[-1]
        assert out.strip() == answer["content"].strip() != "", err
        assert "".join(delta.get("text", "") for delta in person.deltas()) == answer["content"]
        assert status == (0 if answer.get("stop", "stop") == "stop" else 1)
        assert answer["usage"]["input"] > 100
        assert 0 < answer["usage"]["output"] <= 20
        chat = ("--resume", person.chat())
        asked = person.asked()
        assert all(f"Say {one}." in asked for one in KINDS[: KINDS.index(kind) + 1])
        assert all(before["content"] in asked for before in person.answers()[:-1])
        assert '"name": "grep"' in asked
    assert answer["usage"]["cache_read"] > 0


def test_one_worker_goes_between_two_servers_with_a_call_and_thoughts_in_the_history(person, small_server):
    urls = {"large": (person.url, 8192), "small": (small_server, 2048)}
    kinds = {"large": "openai-compatible", "small": "anthropic"}
    entries = [{"id": id, "kind": kinds[id], "base_url": url} for id, (url, _) in urls.items()]
    (person.home / "providers.json").write_text(json.dumps({"providers": entries}))
    person.environ |= {"CASS_PROVIDER": "large", "CASS_MAX_TOKENS": "20", "CASS_MODE": "read-only"}
    person.run("cass", "-P", "demo", "-p", "Say one.")
    call = {"id": "c1", "name": "read", "arguments": {"path": "notes.txt"}}
    result = {"type": "tool_result", "tool_call_id": "c1", "name": "read", "content": "A fox.", "ok": True}
    asked = said("assistant", "asked", "I read it.", reasoning="A thought.", tool_calls=[call])
    person.write(said("user", "old", "Read it."), asked, result | {"created_at": AT})
    person.write(said("assistant", "told", "It lives near the river."), END)

    files = Home(person.home).files(person.chat())
    workers = set()
    for number, id in enumerate(("large", "small", "large")):
        inbox.put(files, {"type": "model", "provider": id, "model": "default"})
        out, err = person.run("cass-send", person.chat(), "--wait", f"Say it {number} times.")[1:]
        assert out.strip() == person.answers()[-1]["content"].strip() != "", err
        text = context(*urls[id])
        for words in ("Say one.", "I read it.", '"notes.txt', "A fox.", "near the river"):
            assert words in text
        assert all(f"Say it {n} times." in text for n in range(number + 1))
        assert "A thought." not in text
        workers.add(worker(person))
    assert len(workers) == 1


def worker(person: Person) -> int:
    """Process id of the worker that holds the chat's lock."""
    text = (person.home / "run" / person.chat() / "lock").read_text()
    return int(json.loads(text)["pid"])
