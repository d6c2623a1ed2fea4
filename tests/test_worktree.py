import subprocess

import pytest

from cass import worktree
from cass.errors import CassError, UsageError


def git(at, *arguments):
    named = ["-c", "user.name=me", "-c", "user.email=me@example.org", *arguments]
    done = subprocess.run(["git", "-C", str(at), *named], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    at = tmp_path / "project"
    (at / "inner").mkdir(parents=True)
    (at / "inner" / "app.py").write_text("pass\n")
    git(at, "init", "-q")
    git(at, "add", ".")
    git(at, "commit", "-qm", "begin")
    return at


def test_it_stands_beside_the_repository_on_a_branch_of_its_name(repository, tmp_path):
    place = worktree.make(repository, "one")
    assert place == tmp_path / "project-worktrees" / "one"
    assert (place / "inner" / "app.py").read_text() == "pass\n"
    assert git(place, "branch", "--show-current") == "cass/one"


def test_the_same_name_is_the_same_worktree_with_the_work_in_it(repository):
    place = worktree.make(repository, "one")
    (place / "new").write_text("work")
    assert worktree.make(repository, "one") == place
    assert (place / "new").read_text() == "work"


def test_a_directory_of_the_repository_is_the_same_directory_there(repository, tmp_path):
    assert worktree.make(repository / "inner", "one") == tmp_path / "project-worktrees" / "one" / "inner"


def test_one_that_is_asked_for_in_a_worktree_stands_beside_it(repository, tmp_path):
    first = worktree.make(repository, "one")
    assert worktree.make(first, "two") == tmp_path / "project-worktrees" / "two"


def test_after_git_removed_it_the_branch_is_checked_out_again(repository):
    place = worktree.make(repository, "one")
    git(place, "commit", "-q", "--allow-empty", "-m", "work")
    git(repository, "worktree", "remove", str(place))
    assert git(worktree.make(repository, "one"), "log", "-1", "--format=%s") == "work"


def test_in_a_git_hook_the_directory_counts(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert worktree.make(repository, "one").is_dir()


@pytest.mark.parametrize("name", ["", "..", "a/b", "-b", "a..b", "a.lock", "a b", ".a", "a."])
def test_a_name_is_one_that_git_takes_for_a_branch(repository, name):
    with pytest.raises(UsageError, match="no name for a worktree"):
        worktree.make(repository, name)


def test_outside_of_a_repository_and_before_the_first_commit_it_says_why(tmp_path):
    with pytest.raises(UsageError, match="in no git repository"):
        worktree.make(tmp_path, "one")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(CassError, match="git worktree add: "):
        worktree.make(tmp_path, "one")


def test_names_that_are_made_are_names():
    assert worktree.new_name() != worktree.new_name()
