"""Which chat began which: trees, whatever the files claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass import lineage

IDS = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(IDS, st.none() | IDS | st.just("gone"))


@pytest.mark.parametrize(
    ("parents", "rows"),
    [
        ({}, ""),
        ({"a": None, "b": "a", "c": "b", "d": "a"}, "0a 1b 2c 1d"),
        ({"c": "b", "b": "a", "d": "a", "a": None}, "0a 1b 2c 1d"),
        ({"b": "gone", "a": None}, "0b 0a"),
        ({"x": "y", "y": "x", "a": None}, "0a 0x 1y"),
        ({"a": "a", "b": "a"}, "0a 1b"),
    ],
)
def test_children_stand_below_their_parent_and_orphans_and_circles_are_still_there(parents, rows):
    assert " ".join(f"{level}{chat_id}" for level, chat_id in lineage.forest(parents)) == rows


@given(PARENTS)
def test_every_chat_stands_there_once_and_below_its_parent_or_at_the_left(parents):
    rows = lineage.forest(parents)
    assert sorted(chat_id for _, chat_id in rows) == sorted(parents)
    above = {}
    for level, chat_id in rows:
        assert level == 0 or above[level - 1] == parents[chat_id]
        above[level] = chat_id


@given(PARENTS)
def test_each_family_is_whole_and_named_by_its_root(parents):
    families = lineage.families(parents)
    assert sorted(chat_id for family in families.values() for chat_id in family) == sorted(parents)
    for root, family in families.items():
        assert family[0] == root
        assert all(parents[chat_id] in family for chat_id in family[1:])


def test_a_chain_of_any_length_is_no_burden():
    parents = {str(n): str(n - 1) for n in range(20_000)}
    assert lineage.forest(parents)[-1] == (19_999, "19999")


def test_a_name_that_a_file_claims_is_short_and_harmless():
    assert lineage.agent_of("2026-06-20-143012-a8f3") == "agent of a8f3"
    assert lineage.agent_of(None) == ""
    assert len(lineage.short("x" * 1000)) == 20
    assert "\x1b" not in lineage.short("\x1b[31m")
