import subprocess

import pytest

from cass.composer.git import branch


@pytest.fixture
def repository(tmp_path):
    place = tmp_path / "repository"
    (place / "below" / "deeper").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    return place


def test_a_branch_is_found_from_any_directory_below(repository):
    assert branch(str(repository)) == "feature/x"
    assert branch(str(repository / "below" / "deeper")) == "feature/x"


def test_without_a_branch_it_is_the_beginning_of_the_commit(repository):
    (repository / ".git" / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert branch(str(repository)) == "0123456"


def test_a_git_file_points_to_where_the_head_is(repository, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../repository/.git\n")
    assert branch(str(tree)) == "feature/x"


def test_git_agrees(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "trunk", tmp_path], check=True)
    assert branch(str(tmp_path)) == "trunk"


@pytest.mark.parametrize("cwd", ["/", "/nowhere/at/all"])
def test_elsewhere_there_is_none(cwd):
    assert branch(cwd) == ""
