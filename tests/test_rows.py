import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from cass.composer.rows import fold, parted, wrap


@pytest.mark.parametrize("line", ["", "short", "x" * 100, "漢字" * 20, "e\u0301" * 50, "a" * 40 + "漢"])
@pytest.mark.parametrize("columns", [1, 2, 20, 41])
def test_a_wrapped_line_loses_no_character_and_fits(line, columns):
    rows = wrap(line, columns)
    assert "".join(rows) == line
    assert all(get_cwidth(row) <= max(columns, 2) for row in rows)


@pytest.mark.parametrize(
    ("text", "columns", "folded"),
    [
        ("short", 20, "short"),
        ("one two three", 8, "one two\nthree"),
        ("  one two three", 9, "  one two\n  three"),
        ("  key    what the key does", 20, "  key    what the\n         key does"),
        ("  a long key  what it does", 14, "  a long key\n  what it does"),
        ("see /a/path/that/is/long now", 10, "see\n/a/path/that/is/long\nnow"),
        ("漢字 漢字 漢字", 9, "漢字 漢字\n漢字"),
        ("first line\n\n  second line", 9, "first\nline\n\n  second\n  line"),
    ],
)
def test_our_own_words_are_broken_between_words_and_stay_in_their_column(text, columns, folded):
    assert fold(text, columns) == folded


@given(st.text("ab漢 \n", max_size=80), st.integers(2, 40))
def test_folding_loses_nothing_but_spaces_and_fits(text, columns):
    folded = fold(text, columns)
    assert folded.split() == text.split()
    assert all(get_cwidth(row) <= columns or " " not in row.strip() for row in folded.split("\n"))


@given(st.text("ab -漢\u0301\u3000"), st.integers(1, 12), st.integers(1, 5))
def test_of_a_text_that_is_parted_every_character_stands_once_and_the_rows_fit(text, columns, most):
    rows, rest = parted(text, columns, most)
    assert len(rows) <= most
    assert all(get_cwidth(row) <= max(columns, 3 if rest else 2) for row in rows)
    assert rows[-1].endswith("…") or not rest
    shown = "".join(rows).removesuffix("…")
    assert "".join((shown + rest).split()) == "".join(text.split())
