"""Guards: what in a workspace other programs run, found anew before and after each command."""

import os
import shutil

import pytest

from cass.tools import guards


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "SETTLED_NS", -1 << 62)  # what was just made is remembered too
    for name in (".git/hooks", "src/deep", "node_modules/.vscode"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".envrc").touch()
    return tmp_path


def tick(directory):
    """Until the file system's clock has gone on: what comes then changes the time of the directory."""
    before, path = os.stat(directory).st_ctime_ns, directory / "x"
    while os.stat(directory).st_ctime_ns == before:
        path.touch()
        path.unlink()


def seen(workspace):
    found = guards.find(str(workspace))
    return {os.path.relpath(path, workspace) for path in found.files | found.fixed}


def test_a_second_look_at_the_same_finds_the_same(workspace):
    assert seen(workspace) == seen(workspace) == {".envrc", ".git", ".git/hooks"}


@pytest.mark.parametrize("name", [".envrc", "src/.envrc", "src/deep/.envrc", "src/deep/new/.envrc"])
def test_what_comes_after_a_look_is_found_by_the_next(workspace, name):
    (workspace / ".envrc").unlink()
    before = guards.find(str(workspace))
    for directory in (workspace, workspace / "src", workspace / "src/deep"):
        tick(directory)
    (workspace / name).parent.mkdir(exist_ok=True)
    (workspace / name).touch()
    assert name in seen(workspace)
    assert guards.news(before, str(workspace)) == [name]


def test_a_directory_in_the_place_of_another_is_looked_into(workspace):
    seen(workspace)
    tick(workspace)
    (workspace / "src").rename(workspace / "old")
    shutil.copytree(workspace / ".git", workspace / "src/.git")
    assert {"src/.git", "src/.git/hooks"} <= seen(workspace)
    tick(workspace)
    (workspace / "src").rename(workspace / "new")
    (workspace / "old").rename(workspace / "src")
    assert "src/.git" not in seen(workspace)
    assert "new/.git" in seen(workspace)


def test_what_changed_a_moment_ago_is_read_again_though_its_time_stays(workspace, monkeypatch):
    monkeypatch.undo()
    (workspace / "src/now").mkdir()
    assert guards.find(str(workspace)) == guards.find(str(workspace))
    assert not [directory for directory, _ in guards._known if directory.startswith(str(workspace))]
