"""The lines a query finds are those that a plain loop over the lines finds."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.query import BadQuery, Query

PATTERNS = r"""
    ab a.b a\.b a+b (ab)+ (?:ab)?c a b$ ^a ^ab$ ^$ ab|cd (ab|cd)e (a|)b [ab]c [^a]b \bab\b \w+b \d\d \s \S+\s\S
    a{2,3} a{0}b (?i:ab)c (?i)ab (?s)a.b (?m)^b (?x)a\ b (a)\1 a(?=b) a(?!b) (?<=a)b (?<!a)b \Aab ab\Z a*?b a++b
    (?>a|ab)c . .* $ ^ x* é [é] [а-я] \u00e9b a\tb [\n]a \n a\nb (a\n)?b [\x00-\x20]a \x0d [^b]$ (?P<n>a)b(?P=n)
    (?:a|b){2}c ß k İ
""".split()

texts = st.lists(st.sampled_from([*"abcAB de\tк", "é", "\n", "\r\n", "ß", "12", "\u2028"]), max_size=40).map("".join)


def expected(pattern: str, text: str, flags: int) -> list[tuple[int, str]]:
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    shown = [line.removesuffix("\r") for line in lines]
    return [(n, line) for n, line in enumerate(shown) if re.search(pattern, line, flags)]


@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(PATTERNS) | st.tuples(*[st.sampled_from(PATTERNS)] * 2).map("".join), texts, st.booleans())
def test_any_pattern_finds_the_lines_that_it_matches_alone(pattern, text, case_sensitive):
    flags = 0 if case_sensitive else re.IGNORECASE
    try:
        re.compile(pattern, flags)
        query = Query(pattern, regex=True, case_sensitive=case_sensitive)
    except (re.error, BadQuery):
        return
    assert [(number, line) for number, line, _ in query.lines(text.encode())] == expected(pattern, text, flags)


@settings(max_examples=300, deadline=None)
@given(st.text("abAB. *\u00e9\u00c9", min_size=1, max_size=3), texts, st.booleans())
def test_a_literal_finds_the_lines_that_hold_it(literal, text, case_sensitive):
    flags = 0 if case_sensitive else re.IGNORECASE
    found = Query(literal, case_sensitive=case_sensitive).lines(text.encode())
    assert [(number, line) for number, line, _ in found] == expected(re.escape(literal), text, flags)


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "(?P<a>x)(?P<a>y)", "a{9999999999999}", r"\q", "needle\nthread"])
def test_what_cannot_be_searched_for_is_refused(pattern):
    with pytest.raises(BadQuery):
        Query(pattern, regex=True)


def test_the_match_is_given_with_its_line():
    [(number, line, match)] = Query("b+", regex=True).lines(b"\xff\nxabb\r\n")
    assert (number, line, match.span()) == (1, "xabb", (2, 4))
