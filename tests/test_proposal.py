import pytest

from cass.composer.proposal import proposed

EDIT = {"path": "a.py", "edits": [{"old_text": "two", "new_text": "2"}]}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    return str(tmp_path)


def test_an_edit_is_proposed_as_the_diff_of_the_file_as_it_is(place):
    assert proposed("edit", EDIT, place) == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_an_edit_may_be_spelled_as_other_agents_do(place):
    given = {"path": "a.py", "old_string": "two", "new_string": "2"}
    assert "-two\n+2\n" in proposed("edit", given, place)


def test_a_new_file_is_all_new(place):
    assert proposed("write", {"path": "b.py", "content": "x\ny\n"}, place) == "@@ -0,0 +1,2 @@\n+x\n+y\n"


def test_a_file_that_is_replaced_shows_what_goes(place):
    found = proposed("write", {"path": "a.py", "content": "one\n"}, place)
    assert "-two\n-three\n" in found


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit", {"path": "a.py", "edits": [{"old_text": "nowhere", "new_text": "2"}]}),
        ("edit", {"path": "none.py", "edits": [{"old_text": "x", "new_text": "2"}]}),
        ("write", {"path": ".", "content": "x"}),
        ("write", {"path": "/dev/null", "content": "x"}),
        ("write", {"path": "a.py", "content": "one\ntwo\nthree\n"}),
        ("write", {"path": "a.py"}),
        ("edit", {}),
    ],
)
def test_where_nothing_can_be_told_there_is_no_diff(place, name, arguments):
    assert proposed(name, arguments, place) is None
