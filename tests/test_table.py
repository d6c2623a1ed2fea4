"""Tables: no cell is cut, at any width; one that goes on keeps its columns."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from cass.viewer import prose, render
from cass.viewer.look import Look, ansi
from cass.viewer.wrapping import NARROWEST

BARE = Look(escapes=False, color=False)
SOURCE = (
    "| name | what it does | size |\n|---|:--|--:|\n| cass | an **agent** | 1,234 |\n| 漢字 | emoji 👩‍👩‍👧 here | 3 |\n"
)


def laid_out(source: str, width: int) -> list[str]:
    return [line.plain for line in prose.lines(source, width)]


def test_a_table_has_columns_where_there_is_room() -> None:
    assert laid_out(SOURCE, 60) == [
        "name   what it does     size",
        "─" * 28,
        "cass   an agent        1,234",
        "漢字   emoji 👩‍👩‍👧 here       3",
    ]


def test_a_cell_that_is_too_long_goes_on_below_itself() -> None:
    assert laid_out(SOURCE, 24) == [
        "name   what it      size",
        "       does",
        "─" * 24,
        "cass   an agent    1,234",
        "漢字   emoji 👩‍👩‍👧        3",
        "       here",
    ]


def test_where_columns_have_no_room_each_row_is_a_list_of_its_cells() -> None:
    assert laid_out(SOURCE, 19) == [
        "name: cass",
        "what it does: an",
        "  agent",
        "size: 1,234",
        "",
        "name: 漢字",
        "what it does:",
        "  emoji 👩‍👩‍👧 here",
        "size: 3",
    ]


words = st.text(st.sampled_from("ab漢é-"), min_size=1, max_size=30)
cells = st.lists(words, max_size=4).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 100),
    st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=2)),
)
def test_every_character_of_every_cell_is_there_and_fits(width: int, rows: list[list[str]]) -> None:
    head, *body = rows
    source = "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *body])
    lines = laid_out(source, width)
    assert all(cell_len(line) <= max(width, NARROWEST) for line in lines)
    shown = "".join(lines)
    for char in "ab漢é":
        assert shown.count(char) >= sum(cell.count(char) for row in body for cell in row)


def test_a_long_table_comes_row_by_row_in_the_columns_of_its_beginning() -> None:
    rows = "".join(f"| {i} | row {i} |\n" for i in range(40))
    lines = ansi(render.answer(f"| n | what |\n|---|---|\n{rows}| 40 | {'much ' * 20}|\n\nend", BARE), BARE)
    assert lines[:3] == ["n    what", "─" * 11, "0    row 0"]
    assert lines[41] == "39   row 39"
    assert lines[42:44] == ["40   " + "much " * 14 + "much", "     much much much much much"]
    assert lines[44:] == ["", "end"]


def test_a_long_table_on_a_narrow_screen_comes_row_by_row_too() -> None:
    rows = "".join(f"| {i} | looooooooong{i} | x |\n" for i in range(30))
    look = Look(width=20, escapes=False, color=False)
    text = "\n".join(ansi(render.answer(f"| n | what | more |\n|---|---|---|\n{rows}", look), look))
    assert re.findall(r"(?:^|\n\n)n: (\d+)\nwhat:", text) == [str(i) for i in range(30)]


@pytest.mark.parametrize("look", [BARE, Look(plain=True, escapes=False, color=False)])
def test_the_head_of_a_long_table_is_shown_once(look: Look) -> None:
    source = "| HEAD | what |\n|---|---|\n" + "".join(f"| {i} | row |\n" for i in range(60))
    lines = ansi(render.answer(source, look), look)
    assert sum("HEAD" in line for line in lines) == 1
    assert len(lines) == 62
