"""Markdown: pieces given while it streams say the same as the whole document."""

import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.markdown import PARSER, Code, Fence, Piece, Prose, Splitter, split
from cass.visible import safe

NEVER = 10**9

LINES = (
    ["", "", "text", "more *text* here", "  indented", "    four", "        eight", "\ttab", "> quote", ">", "> > deep"]
    + ["# one", "## two", "===", "---", "***", "- item", "- other", "* star", "+ plus", "1. first", "2. second", "7) x"]
    + [
        "  - nested",
        "   continued",
        "```",
        "```python",
        "~~~",
        "````",
        "  ```",
        "    ```",
        "~~~ info `",
        "- ```",
        "> ```",
    ]
    + ["| a | b |", "|---|---|", "| 1 | 2 |", "a | b", "-|-", "[x]: http://a.test", "<div>", "</div>", "<!-- c", "-->"]
    + ["&amp; [/INST] list[int]", "\\", "text  ", "-", "1.", "- - -", "+", "12345678901. x", "``` a`b", "    - four"]
)
documents = st.lists(st.sampled_from(LINES), max_size=24).map("\n".join)


def shape(source: str) -> list[tuple[str, str, str]]:
    """What a document says: its tokens without line numbers; a top-level fence by its lines."""
    return [(token.type, token.content, token.info) for token in PARSER.parse(source)]


def ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def shape_of(pieces: list[Piece]) -> list[tuple[str, str, str]]:
    shapes: list[tuple[str, str, str]] = []
    for piece in pieces:
        match piece:
            case Prose(source):
                shapes += shape(source)
            case Fence(info):
                shapes.append(("fence", "", info))
            case Code(line):
                kind, content, info = shapes[-1]
                shapes[-1] = (kind, content + line + "\n", info)
    return shapes


def same(shapes: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(kind, content, info.strip()) for kind, content, info in shapes]


def pieces_of(text: str, cuts: list[int], long: int = NEVER) -> list[Piece]:
    splitter = Splitter(long)
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    parts = [text[a:b] for a, b in itertools.pairwise(edges)]
    return [piece for part in parts for piece in splitter.feed(part)] + splitter.finish()


@settings(max_examples=200, deadline=None)
@given(documents, st.lists(st.integers(0, 10**6), max_size=6))
def test_pieces_say_what_the_whole_document_says_wherever_it_is_cut(text: str, cuts: list[int]) -> None:
    assert same(shape_of(pieces_of(text, cuts))) == same(shape(ended(text)))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="`~-*+#>|=_ \t\n1.)ab[]:<&\\\r\x1b\u2028", max_size=60))
def test_pieces_say_what_the_whole_document_says_for_any_text(text: str) -> None:
    assert same(shape_of(pieces_of(text, []))) == same(shape(ended(safe(text))))


def test_random_documents_say_the_same_line_by_line() -> None:
    rng = random.Random(7)
    for _ in range(600):
        text = "\n".join(rng.choice(LINES) for _ in range(rng.randrange(1, 30)))
        splitter = Splitter(NEVER)
        pieces = [p for line in text.splitlines(keepends=True) for p in splitter.feed(line)] + splitter.finish()
        assert same(shape_of(pieces)) == same(shape(ended(text))), text


def text_of(pieces: list[Piece]) -> list[str]:
    return [content for kind, content, _ in shape_of(pieces) if kind in ("inline", "fence", "code_block")]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["- a", "- b", "  more", "  - sub", "", "1. x", "2. y", "text"]), max_size=60))
def test_a_long_list_given_item_by_item_keeps_every_text_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert text_of(pieces_of(text, [], long=5)) == text_of(pieces_of(text, []))


def test_a_long_list_is_not_held_back() -> None:
    splitter = Splitter()
    given = [piece for i in range(100) for piece in splitter.feed(f"- item {i}\n")]
    assert "item 80" in "".join(piece.source for piece in given if isinstance(piece, Prose))
    assert [piece.continues for piece in given if isinstance(piece, Prose)][:2] == [False, True]


def test_a_long_table_is_given_row_by_row_with_its_head_as_a_reminder() -> None:
    splitter = Splitter(3)
    head = "| a | b |\n|---|---|\n"
    assert splitter.feed(head + "| 1 | 2 |\n") == []
    assert splitter.feed("| 3 | 4 |\n") == [Prose(head + "| 1 | 2 |\n| 3 | 4 |\n")]
    assert splitter.feed("| 5 | ") == []
    assert splitter.rest(9, 99) == "| 5 | "
    assert splitter.feed("6 |\n") == [Prose(head + "| 5 | 6 |\n", True, 2)]
    assert splitter.feed("\n") == []
    assert splitter.feed("text\n\n") == [Prose("text\n\n")]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["| a | b |", "|---|---|", "| 1 | 2 |", "x | y", "", "text", "- a", "# h"]), max_size=40)
)
def test_a_long_table_in_pieces_keeps_every_row_in_order(lines: list[str]) -> None:
    def rows_of(pieces: list[Piece]) -> list[str]:
        return [line for p in pieces if isinstance(p, Prose) for line in p.source.split("\n")[p.head :] if line]

    text = "\n".join(lines)
    pieces = pieces_of(text, [], long=3)
    assert rows_of(pieces) == rows_of(pieces_of(text, []))
    assert all(shape(piece.source)[0][0] == "table_open" for piece in pieces if isinstance(piece, Prose) and piece.head)


def test_a_list_that_says_one_for_every_item_is_kept_whole() -> None:
    pieces = split("1. item\n" * 60)
    assert len(pieces) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a paragraph\n\n", [Prose("a paragraph\n\n")]),
        ("# heading\n", [Prose("# heading\n")]),
        ("---\n", [Prose("---\n")]),
        ("- item\n", []),
        ("half a line", []),
        ("```python\nx = 1\n", [Fence("python"), Code("x = 1")]),
        ("text\n```\nx\n```\nnext\n\n", [Prose("text\n"), Fence(""), Code("x"), Prose("next\n\n")]),
        ("  ~~~~\n    x\n  ~~~\n  ~~~~\n", [Fence(""), Code("  x"), Code("~~~")]),
        ("| a |\n|---|\n| 1 |\n", []),
        ("| a |\n|---|\n| 1 |\n\n", [Prose("| a |\n|---|\n| 1 |\n\n")]),
    ],
)
def test_a_block_is_given_as_soon_as_it_is_final(source: str, expected: list[Piece]) -> None:
    assert Splitter().feed(source) == expected


def test_what_is_not_final_can_be_seen_and_is_safe() -> None:
    splitter = Splitter()
    splitter.feed("done\n\n- open\n- \x1b[2J")
    assert splitter.rest(9, 99) == "- open\n- ␛[2J"


@pytest.mark.parametrize("line", ["word " * 8, "- item", "> quote", "| a | b |", "    code", "1. one"])
def test_time_grows_with_the_length_of_a_block_and_not_with_its_square(line: str) -> None:
    def cost(lines: int) -> float:
        started = time.process_time()
        split("| a | b |\n|---|---|\n" * line.startswith("|") + f"{line}\n" * lines)
        return time.process_time() - started

    cost(50)
    assert min(cost(2000) for _ in range(2)) < 24 * min(cost(250) for _ in range(3)) + 0.05  # its square: 64
