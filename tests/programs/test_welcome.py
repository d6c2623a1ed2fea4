"""A first start, and setting up from within a chat."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, wait_for
from terminal import Tmux

from cass import catalogue
from cass.config import Options, load
from cass.home import Home
from cass.records import TurnEnd, User
from cass.welcome import welcome
from tests import scripted

CASS = " ".join(argv("cass"))
GOOD = "sk-good-0123456789"


@pytest.fixture(autouse=True)
def _workers_end(home: Home) -> Iterator[None]:
    yield
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


@pytest.fixture
def shell(tmp_path: Path, workspace: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    """Where nothing is configured and nothing chosen."""
    monkeypatch.delenv("CASS_PROVIDER")
    environ = {"HOME": str(tmp_path / "person"), "CASS_HOME": str(home.root), "WORK_KEY": GOOD}
    made = Tmux(tmp_path / "tmux", environ=environ, inside=False, size=(100, 40))
    try:
        made.until("$")
        yield made
    finally:
        made.close()


def enter(shell: Tmux, line: str) -> None:
    shell.type(line)
    shell.press("Enter")


def answered(home: Home, text: str) -> bool:
    """Whether one message was taken in, once and whole, and its turn is over."""
    found = [facts(home.files(chat_id), User, TurnEnd) for chat_id in catalogue.ids(home)]
    return any([getattr(record, "content", "") for record in records] == [text, ""] for records in found)


def test_a_first_start_shows_the_choices_and_keeps_what_is_typed_meanwhile(shell, home):
    enter(shell, CASS)
    enter(shell, "where is main?")
    wait_for(lambda: answered(home, "where is main?"))
    shown = shell.until("app.py:1", history=True)
    assert "/login demo" in shown
    assert shown.index("Welcome to Cassady") < shown.index("app.py:1")
    enter(shell, "/login demo")
    shell.until("Write this?")
    enter(shell, "1")
    wait_for(home.config.exists)
    shell.until("demo: demo, from the next message on")
    enter(shell, "/exit")
    shell.until("Resume this chat with")
    enter(shell, f"clear; {CASS}")
    shell.until("idle")
    assert "Welcome" not in shell.screen()


def test_a_provider_that_is_set_up_from_a_chat_answers_in_it(shell, home):
    with scripted.Server([scripted.step({"text": "It works."})], models=("alpha",), key=GOOD) as server:
        enter(shell, CASS)
        shell.until("Welcome to Cassady")
        entry = {"id": "work", "base_url": server.base_url, "api_key_env": "WORK_KEY"}
        home.providers.write_text(json.dumps({"providers": [entry]}))
        enter(shell, "/login work")
        shell.until("Which one?")
        enter(shell, "alpha")
        shell.until("Write this?")
        enter(shell, "yes")
        shell.until("work: alpha, from the next message on")
        enter(shell, "hello")
        shell.until("It works.")
        enter(shell, "/logout work")
        shell.until("WORK_KEY is still set")
    assert json.loads(home.providers.read_text())["providers"] == [{"id": "work", "base_url": server.base_url}]


# ---- what it says ---------------------------------------------------------------------------------------------------


def said(home: Home, options: Options | None = None, **environ: str) -> str:
    given = options or Options()
    return welcome(home, load(home, given, environ, probe=False), given, environ)


def test_keys_that_are_set_are_offered_and_the_one_in_use_is_named(home):
    shown = said(home, MISTRAL_API_KEY="k", GROQ_API_KEY="k")
    assert "GROQ_API_KEY is set" in shown
    assert "/login mistral" in shown
    assert "This chat goes on with groq: openai/gpt-oss-120b" in shown
    assert "server" not in shown
    assert max(map(len, shown.split("\n"))) <= 80


def test_without_any_it_says_what_there_is_to_do(home):
    shown = said(home)
    for words in ("no key is set", "no model server answers", "/login demo", "the demo answers: no language model"):
        assert words in shown
    assert max(map(len, shown.split("\n"))) <= 80


def test_it_is_not_shown_where_something_is_configured_named_or_in_use(home, files):
    assert said(home, GROQ_API_KEY="k") == "", "there is a chat, and a key that works"
    assert said(home), "there is a chat, but only the demo"
    assert said(home, CASS_PROVIDER="demo") == ""
    assert said(home, Options(provider="demo")) == ""
    home.providers.write_text("{}")
    assert said(home) == ""
