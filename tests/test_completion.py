import time

import pytest
from stage import wait_for

from cass.composer import models, tree
from cass.composer.completion import candidates, is_begun
from cass.composer.paths import Paths


@pytest.fixture
def place(tmp_path):
    for name in ("alpha.py", "Alphabet.md", ".hidden", "bad\x1bname", "ignored.log"):
        (tmp_path / name).write_text("")
    (tmp_path / "alps" / "deep").mkdir(parents=True)
    (tmp_path / "alps" / "inner.txt").write_text("")
    (tmp_path / "alps" / "deep" / "alpine.rs").write_text("")
    (tmp_path / "my papers").mkdir()
    (tmp_path / "my papers" / "my plan.md").write_text("")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".git").mkdir()
    return str(tmp_path)


def offered(before, place):
    paths = Paths()
    wait_for(lambda: paths.matching(place, "") is not None)
    return [candidate.text for candidate in candidates(before, place, paths.matching)]


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("/tok", ["/tokens"]),
        ("/mo", ["/model", "/mode"]),
        ("/mode wo", ["workspace-edit"]),
        ("/effort h", ["high"]),
        ("/tokens ", []),
        ("see @al", ["alps/", "Alphabet.md", "alpha.py", "alps/deep/alpine.rs"]),
        ("@inn", ["alps/inner.txt"]),
        ("@ep/al", ["alps/deep/alpine.rs"]),
        ("@ign", []),
        ("@../nowhere/", []),
        ("@alps/", ["alps/deep/", "alps/inner.txt"]),
        ("@.h", [".hidden"]),
        ("@bad", []),
        ("@my", ['"my papers/', '"my papers/my plan.md"']),
        ('see @"my papers/', ['"my papers/my plan.md"']),
        ('@"al', ["alps/", "Alphabet.md", "alpha.py", "alps/deep/alpine.rs"]),
        ('@"my plan.md" al', []),
        ("@nowhere/x", []),
        ("mail ann@al", []),
        ("plain", []),
    ],
)
def test_what_fits_the_word_before_the_cursor_is_offered(place, before, texts):
    assert offered(before, place) == texts


def test_what_can_be_set_up_is_offered(home):
    home.make()
    home.providers.write_text('{"providers": [{"id": "work", "base_url": "http://127.0.0.1:1/v1"}]}')
    for command in ("/login", "/logout"):
        found = candidates(f"{command} gro", "/", lambda *_: None, providers=lambda: models.providers(home))
        assert [candidate.text for candidate in found] == ["groq"]
    assert models.providers(home)[0] == "work"


def test_a_candidate_replaces_what_was_typed_of_it(place):
    (found,) = candidates("see @alps/inn", place, Paths().matching)
    assert (found.text, found.typed) == ("alps/inner.txt", len("alps/inn"))


def test_a_path_elsewhere_is_looked_up_where_it_is(place, tmp_path):
    assert offered(f"@{tmp_path}/alps/i", "/") == [f"{tmp_path}/alps/inner.txt"]
    assert offered("@../alps/i", f"{place}/alps") == ["../alps/inner.txt"]


def test_a_command_is_offered_with_its_arguments_and_what_it_does(place):
    found = next(c for c in candidates("/comp", place, Paths().matching))
    assert (found.text, found.shown) == ("/compact", "/compact [FOCUS]")
    assert "summary" in found.help


@pytest.mark.parametrize(
    ("before", "is_so"),
    [("/he", True), ("see @", True), ("see @a/b", True), ("a@b", False), ("see @a ", False), ("", False)],
)
def test_completion_goes_on_while_a_command_or_a_path_is_typed(before, is_so):
    assert is_begun(before) is is_so


def test_the_walk_leaves_out_what_ignore_files_do(place):
    assert "ignored.log" not in tree.paths(place)
    assert {"alpha.py", "alps/", "alps/deep/alpine.rs"} <= set(tree.paths(place))


def test_fifty_thousand_files_are_matched_at_once(tmp_path):
    for folder in range(50):
        (tmp_path / f"folder{folder}").mkdir()
        for number in range(1000):
            (tmp_path / f"folder{folder}" / f"file{number}.py").touch()
    paths = Paths()
    wait_for(lambda: len(paths.matching(str(tmp_path), "file999") or ()) == 50)
    assert paths.matching(str(tmp_path), "folder7/file1")[0] == "folder7/file1.py"
    began = time.process_time()
    paths.matching(str(tmp_path), "file42")
    assert time.process_time() - began < 1  # no measurement: a walk would take longer
