"""What every test may need: a home of its own, chats in it, programs to run, and conditions to wait for."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cass import chat, presence, records
from cass.home import Files, Home
from cass.records import Record

ROOT = Path(__file__).parents[1]
KEYS = [name for name in os.environ if name.endswith("_API_KEY")]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the home, the keys or the chat of whoever runs it."""
    for name in [*KEYS, "CASS_CHAT", "CASS_MODEL", "CASS_MODE", "CASS_MAX_TOKENS", "CASS_LAYOUT", "TMUX", "TMUX_PANE"]:
        monkeypatch.delenv(name, raising=False)
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("CASS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CASS_PROVIDER", "demo")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two files, and the place where the test stands."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "app.py").write_text("def main():\n    return 1\n")
    (root / "notes.txt").write_text("nothing here\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def files(home: Home, workspace: Path) -> Iterator[Files]:
    """A new chat in the workspace; its worker is ended after the test."""
    made = chat.create(home, cwd=workspace, provider="demo", model="demo", system="You are a test.")
    yield made
    end_worker(made)


def end_worker(files: Files) -> None:
    if presence.is_running(files) and (pid := presence.holder(files).get("pid")) and pid != os.getpid():
        with_children = subprocess.run(["pkill", "-KILL", "-P", str(pid)], check=False)
        del with_children
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            return
        wait_for(lambda: not presence.is_running(files))


def wait_for(found: Callable[[], Any], timeout_s: float = 20.0, what: str = "") -> Any:
    """The first true answer of `found`; fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        if answer := found():
            return answer
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain{': ' + what if what else ''}"
        time.sleep(0.005)


def run(program: str, *arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run one of our programs to its end; standard input is empty unless it is given."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("timeout", 60)
    return subprocess.run(argv(program, *arguments), capture_output=True, text=True, check=False, **more)


def argv(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-m", "cass.cli", program, *arguments]


def facts(files: Files, *kinds: type) -> list[Record]:
    """The records of a chat, those of the given kinds only where there are some."""
    return [record for record in chat.read(files) if not kinds or isinstance(record, kinds)]


def script(home: Home, *steps: dict[str, Any], name: str = "scripted") -> None:
    """Configure the provider `scripted`: the demo, answering with `steps`."""
    home.make()
    path = home.root / f"{name}.json"
    path.write_bytes(records.dump(list(steps)))
    entry = {"id": name, "kind": "demo", "script": str(path), "default_model": "scripted"}
    home.providers.write_bytes(records.dump({"providers": [entry]}))
