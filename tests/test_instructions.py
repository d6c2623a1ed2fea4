"""Instructions: which files are read, in which order, and how much of them."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from cass.home import Home
from cass.instructions import LIMIT, instructions


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "inner" / "most").mkdir(parents=True)
    return root


def test_without_files_there_is_nothing(home, project):
    found = instructions(home, project)
    assert (found.global_text, found.text, found.files, found.notices) == ("", "", [], ())


def test_files_stand_from_the_git_root_down_to_the_workspace(home, project):
    home.instructions.write_text("be kind\n")
    (project.parent / "AGENTS.md").write_text("of nobody")
    (project / "AGENTS.md").write_text("outer\n")
    (project / "inner" / "most" / "AGENTS.md").write_bytes(b"\xef\xbb\xbfinner\r\n")
    found = instructions(home, project / "inner" / "most")
    assert found.global_text == "be kind"
    paths = [project / "AGENTS.md", project / "inner" / "most" / "AGENTS.md"]
    assert found.text == f"{paths[0]}:\n\nouter\n\n{paths[1]}:\n\ninner"
    assert found.files == [{"path": str(p), "sha256": sha256(p.read_bytes()).hexdigest()} for p in paths]
    assert found.notices == ()


def test_claude_md_counts_only_where_there_is_no_agents_md(home, project):
    (project / "AGENTS.md").write_text("agents")
    (project / "CLAUDE.md").write_text("claude outside")
    (project / "inner" / "CLAUDE.md").write_text("claude inside")
    text = instructions(home, project / "inner").text
    assert "agents" in text
    assert "claude inside" in text
    assert "claude outside" not in text


def test_outside_a_repository_only_the_workspace_counts(home, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "a" / "AGENTS.md").write_text("here")
    assert instructions(home, tmp_path / "a").text.endswith("here")
    assert "above" not in instructions(home, tmp_path / "a").text


def test_a_worktree_has_a_git_file(home, project):
    (project / ".git").rmdir()
    (project / ".git").write_text("gitdir: elsewhere")
    (project / "AGENTS.md").write_text("outer")
    assert "outer" in instructions(home, project / "inner").text


def test_what_does_not_fit_is_cut_and_said_and_the_nearest_file_is_kept(home, project):
    home.instructions.write_text("g" * 1000)
    (project / "AGENTS.md").write_text("o" * LIMIT)
    (project / "inner" / "AGENTS.md").write_text("i" * 20_000)
    found = instructions(home, project / "inner")
    assert found.global_text == "g" * 1000
    assert found.text.count("i" * 20_000) == 1
    assert len((found.global_text + found.text).encode()) < LIMIT + 500
    [notice] = found.notices
    assert str(project / "AGENTS.md") in notice
    assert str(LIMIT - 21_000) in notice
    whole = sha256(b"o" * LIMIT).hexdigest()
    assert found.files[0]["sha256"] == whole


def test_a_cut_splits_no_character(home, project):
    (project / "AGENTS.md").write_text("é" * LIMIT)
    assert set(instructions(home, project).text.partition("\n\n")[2]) == {"é"}


def test_bytes_that_are_no_utf8_are_no_fault(home, project):
    (project / "AGENTS.md").write_bytes(b"caf\xe9")
    assert instructions(home, project).text.endswith("caf\ufffd")


def test_a_link_out_of_the_project_is_left_out_and_said(home, project, tmp_path):
    (tmp_path / "secret").write_text("private")
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    found = instructions(home, project)
    assert (found.text, found.files) == ("", [])
    assert "leads out of the project" in found.notices[0]


def test_a_link_inside_the_project_is_followed(home, project):
    (project / "inner" / "rules.md").write_text("rules")
    (project / "AGENTS.md").symlink_to("inner/rules.md")
    assert instructions(home, project).text.endswith("rules")


def test_a_fifo_or_directory_of_that_name_is_passed_over(home, project):
    os.mkfifo(project / "AGENTS.md")
    (project / "CLAUDE.md").mkdir()
    assert instructions(home, project).text == ""


def test_of_a_huge_file_only_the_beginning_is_read(home, project):
    with open(project / "AGENTS.md", "wb") as file:
        file.write(b"be kind\n")
        file.truncate(1 << 40)
    found = instructions(home, project)
    assert found.text.startswith(f"{project / 'AGENTS.md'}:\n\nbe kind")
    assert len(found.notices) == 1


def test_an_empty_file_is_listed_and_says_nothing(home, project):
    (project / "AGENTS.md").write_text("\n")
    found = instructions(home, project)
    assert (found.text, len(found.files)) == ("", 1)
