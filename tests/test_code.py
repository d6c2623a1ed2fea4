"""Code that comes line by line has the colours of code that is whole, strings and comments over lines included."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.viewer.code import Listing, highlight
from cass.viewer.look import Look, ansi
from cass.visible import safe

GREEN, GREY, MAGENTA = "\x1b[32m", "\x1b[90m", "\x1b[35m"
SOURCE = (Path(__file__).parent.parent / "cass" / "blocks.py").read_text()


def coloured(language: str, source: str) -> list[str]:
    listing = Listing(language)
    return ansi([listing.line(line) for line in source.split("\n")], Look())


@pytest.mark.parametrize(
    ("language", "source", "inside", "after"),
    [
        ("python", 'x = """one\nimport "two"\n"""\nimport x', GREEN, MAGENTA),
        ("python", "x = '''one\nimport\n'''\nimport x", GREEN, MAGENTA),
        ("c", "int a; /* it's\nreturn\n*/\nreturn 1;", GREY, MAGENTA),
        ("javascript", "/* one\nreturn\n*/\nreturn 1;", GREY, MAGENTA),
        ("javascript", "let a = `one\nreturn\n`;\nreturn 1;", GREEN, MAGENTA),
        ("go", "/* one\nreturn\n*/\nreturn 1", GREY, MAGENTA),
        ("rust", "/* one\nreturn\n*/\nreturn 1;", GREY, MAGENTA),
        ("sql", "select 'one\nselect\n';\nselect 1", GREEN, MAGENTA),
        ("bash", 'echo "one\nfor\n"\nfor x in 1; do', GREEN, MAGENTA),
        ("html", "<!-- one\nreturn\n-->\n<b>", GREY, "\x1b[34m"),
        ("lua", "--[[ one\nreturn\n]]\nreturn 1", GREY, MAGENTA),
        ("haskell", "{- one\nlet\n-}\nlet x = 1", GREY, MAGENTA),
    ],
)
def test_a_string_or_comment_of_several_lines_keeps_its_colour(
    language: str, source: str, inside: str, after: str
) -> None:
    first, second, third, fourth = coloured(language, source)
    assert inside in first
    assert second.startswith(inside)
    assert MAGENTA not in second
    assert third.startswith(inside)
    assert fourth.startswith((after, f"<{after}"))


@pytest.mark.parametrize("line", ["# it's", 'x = "it\'s"', 's = "abc', "// /* no", "# `", 'print(\'"""\')'])
def test_a_quote_that_opens_nothing_colours_nothing_after_it(line: str) -> None:
    language = "c" if line.startswith("//") else "python"
    assert coloured(language, f"{line}\nreturn 1")[1].startswith(f"{MAGENTA}return")


def test_line_by_line_every_character_of_a_file_is_there_with_the_colour_it_has_in_the_whole() -> None:
    listing = Listing("python")
    made = [listing.line(line) for line in SOURCE.rstrip("\n").split("\n")]
    whole = highlight(SOURCE, "python")
    assert [line.plain for line in made] == [line.plain for line in whole]
    quoted = [line.plain for line in whole if '"""' not in line.plain and "\x1b[32m" in ansi([line], Look())[0]]
    assert quoted  # within docstrings
    assert [line.plain for line in made if '"""' not in line.plain and GREEN in ansi([line], Look())[0]] == quoted


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["python", "c", "js", "html", "bash", "no such"]),
    st.lists(st.text(st.sampled_from("ab'\"`/*<!->#{}()[]\\ \t\x1b\u2028\r漢"), max_size=12), max_size=8),
)
def test_no_line_loses_a_character_and_none_controls_the_terminal(language: str, lines: list[str]) -> None:
    listing = Listing(language)
    for line in lines:
        ahead = listing.peek(line).plain
        made = listing.line(line).plain
        assert made == ahead
        assert made.replace(" ", "") == safe(line).replace("\t", "").replace(" ", "")


def test_a_listing_costs_time_in_proportion_to_its_length_whatever_is_open() -> None:
    def cost(lines: int) -> float:
        started = time.process_time()
        coloured("javascript", "/* open\n" + "it's `one` \"line\n" * lines)
        return time.process_time() - started

    cost(20)
    assert cost(1600) < 24 * min(cost(200) for _ in range(2)) + 0.05  # its square: 64
