import pytest

from cass.composer.completion import candidates


@pytest.fixture
def place(tmp_path):
    for name in ("alpha.py", "Alphabet.md", ".hidden", "bad\x1bname"):
        (tmp_path / name).write_text("")
    (tmp_path / "alps").mkdir()
    (tmp_path / "alps" / "inner.txt").write_text("")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("/tok", ["/tokens"]),
        ("/mo", ["/model", "/mode"]),
        ("/mode wo", ["workspace-edit"]),
        ("/tokens ", []),
        ("see @al", ["alps/", "Alphabet.md", "alpha.py"]),
        ("@alps/", ["alps/inner.txt"]),
        ("@.h", [".hidden"]),
        ("@bad", []),
        ("@nowhere/x", []),
        ("mail ann@al", []),
        ("plain", []),
    ],
)
def test_what_fits_the_word_before_the_cursor_is_offered(place, before, offered):
    assert [candidate.text for candidate in candidates(before, place)] == offered


def test_a_candidate_replaces_what_was_typed_of_it(place):
    (found,) = candidates("see @alps/inn", place)
    assert (found.text, found.typed) == ("alps/inner.txt", len("alps/inn"))
