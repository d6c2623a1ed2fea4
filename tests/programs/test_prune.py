"""`cass prune`: what it says, what it removes, and what it never does."""

import os
import time

import pytest
from stage import run

from cass import chat, presence, snapshots
from cass.snapshots import Journal

LONG_AGO = time.time() - 100 * 86_400


@pytest.fixture
def kept(files, workspace):
    """A chat with a journal, a content and a long output, and the directory of a chat that is gone."""
    folder = os.open(workspace, os.O_RDONLY)
    Journal(files, files.chat_id).keep(str(workspace / "app.py"), folder, None)
    os.close(folder)
    files.out.mkdir()
    (files.out / "call").write_text("x" * 5000)
    (files.home.root / "run" / "gone" / "inbox").mkdir(parents=True)
    return files


def names(files) -> set[str]:
    return {path.name for path in files.home.root.rglob("*") if path.is_file()}


def age(*paths) -> None:
    for path in paths:
        os.utime(path, (LONG_AGO, LONG_AGO))


def test_what_is_not_old_stays_and_only_what_is_left_of_a_chat_that_is_gone_goes(kept):
    before = names(kept)
    done = run("cass", "prune", "--yes")
    assert (done.returncode, names(kept)) == (0, before)
    assert "what is left of chats that are gone" in done.stdout
    assert not (kept.home.root / "run" / "gone").exists()
    assert run("cass", "prune", "--yes").stdout == "nothing to remove\n"


def test_old_journals_contents_and_outputs_go_and_the_chat_stays(kept):
    age(kept.edits, kept.out / "call", kept.chat, *kept.home.blobs.iterdir())
    looked = run("cass", "prune", "--dry-run")
    assert "contents of files, for restoring" in looked.stdout
    assert kept.edits.exists()
    assert run("cass", "prune").returncode == 4
    assert kept.edits.exists()
    assert run("cass", "prune", "--yes").returncode == 0
    left = (kept.chat.exists(), kept.edits.exists(), list(kept.home.blobs.iterdir()), (kept.out / "call").exists())
    assert left == (True, False, [], False)


def test_an_old_chat_goes_only_when_that_is_asked_for_and_its_family_keeps_the_journal(kept, workspace):
    branch = chat.create(kept.home, cwd=workspace, provider="p", model="m", system="s", family=kept.chat_id)
    age(kept.chat)
    assert run("cass", "prune", "--yes", "--chats", "--older-than", "10d").returncode == 0
    assert (kept.chat.exists(), kept.edits.exists(), branch.chat.exists()) == (False, True, True)
    branch.chat.unlink()
    assert run("cass", "prune", "--yes").returncode == 0
    assert snapshots.journals(kept.home) == []


def test_a_chat_that_a_worker_holds_keeps_everything(kept):
    age(kept.edits, kept.out / "call", kept.chat)
    lock = presence.hold(kept)
    try:
        before = names(kept)
        assert run("cass", "prune", "--yes", "--chats").returncode == 0
        assert names(kept) == before
    finally:
        os.close(lock)
