import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.composer.pastes import CHARACTERS, LINES, LINES_BY_HAND, Pastes

LONG = "".join(f"line {n}\n" for n in range(10_000))


@pytest.mark.parametrize("text", ["", "short", "a\nb\nc", "x" * CHARACTERS, "\n" * (LINES - 1)])
def test_a_short_paste_is_itself(text):
    assert Pastes().hold(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (LONG, "[pasted 10,000 lines]"),
        (LONG + "end", "[pasted 10,001 lines]"),
        ("x" * (CHARACTERS + 1), "[pasted 4,001 characters]"),
    ],
)
def test_a_long_paste_is_one_character_that_says_what_it_stands_for(text, shown):
    pastes = Pastes()
    held = pastes.hold(text)
    assert len(held) == 1
    assert pastes.shown(held) == shown
    assert pastes.whole(f"before {held} after") == f"before {text} after"


def test_text_that_comes_back_is_held_as_before():
    pastes = Pastes()
    held = pastes.hold(LONG)
    assert pastes.held(f"see {LONG}!") == f"see {held}!"
    assert pastes.hold(LONG) == held


def test_a_very_long_text_from_elsewhere_is_held_whole():
    pastes = Pastes()
    text = "by hand\n" * LINES_BY_HAND
    assert pastes.whole(pastes.held(text)) == text
    assert len(pastes.held(text)) == 1
    assert pastes.held("by hand\n" * 100) == "by hand\n" * 100


PIECES = ["", "a", "two\nlines", "\U000f0000", "\U000f0001 x", "y" * 5000, "\U000f0000" * 5000, LONG]


@given(st.lists(st.sampled_from(range(len(PIECES)))))
def test_whole_is_what_was_typed_and_pasted(chosen):
    pastes = Pastes()
    parts = [PIECES[n] for n in chosen]
    held = [pastes.hold(part) for part in parts]
    whole = "".join(parts)
    assert pastes.whole("".join(held)) == whole
    assert pastes.whole(pastes.held(whole)) == whole
