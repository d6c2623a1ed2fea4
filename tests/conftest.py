"""What every test may need: a home of its own, and a chat in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from authority import authority, no_environment  # noqa: F401
from sessions import opened  # noqa: F401
from stage import argv, end_worker, facts, run, script, wait_for  # noqa: F401

from cass import chat
from cass.home import Files, Home

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
def scripted(home: Home, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives the model its steps."""
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    return lambda *steps: script(home, *steps)


@pytest.fixture
def files(home: Home, workspace: Path) -> Iterator[Files]:
    """A new chat in the workspace; its worker is ended after the test."""
    made = chat.create(home, cwd=workspace, provider="demo", model="demo", system="You are a test.")
    yield made
    end_worker(made)
