"""Opening a chat: what it begins with, and what it goes on with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stage import ROOT

from cass import chat, config, opening
from cass.access import Mode
from cass.config import Options
from cass.errors import CassError, UsageError
from cass.home import Home
from cass.records import Meta, System, User, dump

AT = "2026-06-20T14:30:12.345Z"


def meta(**more: str) -> Meta:
    return Meta(chat_id="c", created_at=AT, **more)


def user(provider: str, model: str) -> User:
    return User(id="1", content="x", created_at=AT, provider=provider, model=model)


@pytest.fixture
def two(home):
    """Two providers that need no key."""
    home.make()
    entries = [{"id": id, "base_url": "http://127.0.0.1:9/v1", "default_model": f"{id}-m"} for id in ("one", "two")]
    home.providers.write_bytes(dump({"providers": entries}))
    home.config.write_bytes(dump({"default_provider": "one"}))


@pytest.mark.parametrize(
    ("found", "options", "environ", "provider", "model"),
    [
        ([], {}, {}, "one", "one-m"),
        ([meta(provider="two", model="x")], {}, {}, "two", "x"),
        ([meta(provider="two", model="x"), user("two", "y")], {}, {}, "two", "y"),
        ([meta(provider="two", model="x"), user("one", "z")], {}, {}, "one", "z"),
        ([meta(provider="two", model="x")], {"provider": "one"}, {}, "one", "one-m"),
        ([meta(provider="two", model="x")], {"model": "q"}, {}, "two", "q"),
        ([meta(provider="two", model="x")], {}, {"CASS_MODEL": "q"}, "one", "q"),
        ([meta(provider="two", model="x")], {}, {"CASS_PROVIDER": "one"}, "one", "one-m"),
        ([meta(provider="gone", model="x")], {}, {}, "one", "one-m"),
        ([meta(provider="demo", model="demo")], {}, {}, "one", "one-m"),
    ],
)
def test_a_chat_goes_on_with_its_own_model_unless_another_is_named(home, two, found, options, environ, provider, model):
    settings = opening.settings_of(found, home, Options(**options), environ)
    assert (settings.connection.provider, settings.model) == (provider, model)


def test_a_chat_begun_at_an_address_goes_on_there_but_its_file_names_no_key_to_send(home):
    found = [meta(provider="openai-compatible", model="x", base_url="http://127.0.0.1:9/v1")]
    environ = {"MY_KEY": "k", "OPENAI_API_KEY": "k"}
    settings = opening.settings_of(found, home, Options(), environ)
    assert (settings.connection.base_url, settings.connection.api_key) == ("http://127.0.0.1:9/v1", None)
    flagged = opening.settings_of(found, home, Options(api_key_env="MY_KEY"), environ)
    assert (flagged.connection.base_url, flagged.connection.api_key) == ("http://127.0.0.1:9/v1", "k")


def test_a_mode_is_never_read_from_a_chat(home, two):
    said = User(id="1", content="x", created_at=AT, provider="two", model="x", mode="full-access")
    assert opening.settings_of([meta(provider="two", model="x"), said], home, Options(), {}).mode is Mode.READ_ONLY


def test_a_new_chat_holds_its_instructions_with_their_hashes(home, workspace):
    (workspace / "AGENTS.md").write_text("Use tabs.")
    settings = config.load(home, Options(), os.environ)
    first, system = chat.read(opening.new(home, workspace, settings, Options()))
    assert first.agents_files[0]["path"] == str(workspace / "AGENTS.md")
    assert isinstance(system, System)
    assert "Use tabs." in system.content


def test_instructions_that_are_not_what_the_chat_was_told_are_said(home, workspace):
    kept, changed, gone = (workspace / name / "AGENTS.md" for name in ("", "a", "a/b"))
    gone.parent.mkdir(parents=True)
    for path in (kept, changed, gone):
        path.write_text(str(path))
    (workspace / ".git").mkdir()
    files = opening.new(home, gone.parent, config.load(home, Options(), os.environ), Options())
    found = chat.read(files)
    assert opening.news(found, config.instructions(home, gone.parent)) == ()
    changed.write_text("other")
    gone.unlink()
    (said,) = opening.news(found, config.instructions(home, gone.parent))
    assert f"{changed} (changed), {gone} (gone)" in said
    kept.write_text("x" * 40_000)
    cut, said = opening.news(found, config.instructions(home, gone.parent))
    assert cut.startswith(f"{kept}: only ")
    assert f"{kept} (changed)" in said


def test_a_workspace_is_resolved_and_must_be_a_directory(tmp_path, workspace):
    (tmp_path / "link").symlink_to(workspace)
    assert opening.workspace(str(tmp_path / "link")) == workspace.resolve()
    assert opening.workspace("~") == Path.home().resolve()
    with pytest.raises(UsageError, match="is not a directory"):
        opening.workspace(str(workspace / "app.py"))
    with pytest.raises(CassError, match="is gone; name another one with --cwd"):
        opening.workspace(str(tmp_path / "none"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("where", ["/", "~", "above ~", "below"])
def test_the_home_and_what_it_lies_in_are_too_much_for_workspace_edit(tmp_path, mode, where):
    root = {
        "/": Path("/"),
        "~": Path.home().resolve(),
        "above ~": Path.home().resolve().parent,
        "below": tmp_path / "w",
    }[where]
    if mode is Mode.WORKSPACE_EDIT and where != "below":
        with pytest.raises(UsageError, match="--cwd"):
            opening.check_mode(mode, root, Home(tmp_path / "home"))
    else:
        opening.check_mode(mode, root, Home(tmp_path / "home"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("where", ["", "conversations", "elsewhere"])
def test_what_cass_keeps_is_no_workspace_to_change(tmp_path, mode, where):
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for home in (Home(tmp_path / "home"), Home(tmp_path / "link")):
        root = Home.find({}).root.resolve() if where == "elsewhere" else tmp_path.resolve() / "home" / where
        if mode is Mode.READ_ONLY:
            opening.check_mode(mode, root, home)
        else:
            with pytest.raises(UsageError, match="closed to tools: name another directory with --cwd"):
                opening.check_mode(mode, root, home)


def test_another_workspace_is_recorded_and_the_same_one_is_not(home, workspace, tmp_path):
    settings = config.load(home, Options(), os.environ)
    found = chat.read(opening.new(home, workspace, settings, Options()))
    assert opening.move(found, str(workspace), settings) is None
    moved = opening.move(found, str(tmp_path), settings)
    assert (moved.cwd, moved.chat_id) == (str(tmp_path), found[0].chat_id)
    with pytest.raises(CassError, match="no meta record"):
        opening.move([], str(tmp_path), settings)


READS = """
import asyncio, collections, sys
seen = collections.Counter()
sys.addaudithook(lambda event, given: seen.update([str(given[0])]) if event == "open" else None)
from cass import Session
async def main():
    async with await Session.new(provider="demo"):
        pass
asyncio.run(main())
print(sum(count for path, count in seen.items() if path.endswith("AGENTS.md")))
"""


def test_instructions_are_read_once_for_a_chat_that_begins_at_once(home, workspace):
    (workspace / "AGENTS.md").write_text("be kind")
    argv = [sys.executable, "-c", READS]
    done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=30)
    assert done.stdout == "1\n", done.stderr
