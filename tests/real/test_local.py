"""A model from a file: its server runs as long as the worker does, and no longer."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cass import catalogue, presence
from cass.home import Home
from cass.records import Assistant
from tests.stage import argv, facts, run, wait_for

pytestmark = pytest.mark.real


def servers(model: Path) -> list[int]:
    """Processes that have the model's file on their command line, but for those of cass itself."""
    found = subprocess.run(["pgrep", "-af", "providers/llama.py"], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in found.splitlines() if str(model) in line]


@pytest.fixture
def model(fetched: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model under a name of its own, so that no other test's server is taken for ours."""
    packages, weights = fetched
    monkeypatch.setenv("PYTHONPATH", str(packages))
    (tmp_path / "small.gguf").symlink_to(weights)
    return tmp_path / "small.gguf"


def test_a_file_answers_without_key_or_account_and_its_server_ends_with_the_turn(model, home, workspace):
    link = str(model)
    home.make()
    home.models.write_text(json.dumps({"models": [{"id": link, "supports_tools": False}]}))  # a shorter prompt
    done = run("cass", "-P", "local", "-m", link, "--max-tokens", "8", "-p", "Say hello.", timeout=300)
    (chat_id,) = catalogue.ids(home)
    (answer,) = facts(home.files(chat_id), Assistant)
    assert done.stdout.strip() == answer.content.strip() != ""
    assert not done.stderr or "output limit" in done.stderr  # a small model may end before it
    assert answer.usage.input > 0
    assert answer.usage.cost == 0
    assert servers(model) == []


def test_a_killed_worker_takes_the_server_along(model, home, workspace):
    command = [*argv("cass"), "-P", "local", "-m", str(model), "-p", "Tell a long story."]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: servers(model), 120)
        (server,) = servers(model)
        os.kill(worker.pid, signal.SIGKILL)
        wait_for(lambda: servers(model) == [], 20, f"the server {server} lives on")
    finally:
        worker.kill()
        worker.wait()
    (chat_id,) = catalogue.ids(home)
    assert not presence.is_running(Home(home.root).files(chat_id))


def test_what_is_no_model_is_said_in_the_words_of_the_server(model, home, workspace):
    (workspace / "bad.gguf").write_text("not a model")
    done = run("cass", "local", "bad.gguf", "-p", "hello", timeout=120)
    assert done.returncode == 1
    assert "llama.cpp's server did not start" in done.stderr
    assert run("cass", "local", "missing.gguf").returncode == 2
