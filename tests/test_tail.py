"""Following a file: every whole line once, whatever is cut, replaced, missing or damaged."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import wait_for

from cass import records
from cass.records import Notice, System, Unknown
from cass.tail import Tail


def line(text: str) -> bytes:
    return records.encode(System(content=text))


def append(path, *pieces: bytes) -> None:
    with open(path, "ab") as file:
        for piece in pieces:
            file.write(piece)


def texts(found) -> list[str]:
    return [record.content if isinstance(record, System) else record.text for record in found]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chat.jsonl"


STREAM = b"".join(line(text) for text in ("中文😀", "", "a\u2028b\u0085c\x0bd", 'quote " and \\', "last"))


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_records_do_not_depend_on_where_the_bytes_are_cut(path, cut):
    tail = Tail(path)
    append(path, STREAM[:cut])
    first = tail.read()
    assert len(first) == STREAM[:cut].count(b"\n"), "no record before its line is whole"
    append(path, STREAM[cut:])
    assert texts(first + tail.read()) == ["中文😀", "", "a\u2028b\u0085c\x0bd", 'quote " and \\', "last"]
    assert tail.read() == []
    tail.close()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_any_records_in_any_pieces_arrive_once_and_whole(tmp_path_factory, contents, cuts):
    path = tmp_path_factory.mktemp("tail") / "chat.jsonl"
    stream = b"".join(map(line, contents))
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    tail, found = Tail(path), []
    for start, end in pairwise(places):
        append(path, stream[start:end])
        found += tail.read()
    tail.close()
    assert texts(found) == contents


def test_two_thousand_records_written_at_once_all_come(path):
    code = (
        "import sys; from cass import records; from cass.records import System\n"
        "with open(sys.argv[1], 'ab', buffering=0) as file:\n"
        "    for number in range(2000): file.write(records.encode(System(content=str(number))))"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as writer:
        tail, found = Tail(path), []
        wait_for(lambda: found.extend(tail.read()) or len(found) >= 2000)
        assert writer.wait(60) == 0
    assert texts(found + tail.read()) == [str(number) for number in range(2000)]
    tail.close()


def test_a_record_longer_than_one_read_is_whole(path):
    append(path, line("x" * 3_000_000), line("y"))
    tail = Tail(path)
    assert [len(text) for text in texts(tail.read())] == [3_000_000, 1]
    tail.close()


def test_a_missing_file_gives_nothing_until_it_is_there(path):
    tail = Tail(path)
    assert tail.read() == []
    append(path, line("a"))
    assert texts(tail.read()) == ["a"]
    tail.close()


def test_a_file_that_goes_away_is_no_error(path):
    append(path, line("a"))
    tail = Tail(path)
    assert texts(tail.read()) == ["a"]
    path.unlink()
    assert tail.read() == []
    append(path, line("b"))
    assert texts(tail.read()) == ["b"]
    tail.close()


@pytest.mark.parametrize("unread", [b"", line("late"), b'{"type":"system","content":"ha'])
def test_a_replaced_file_is_read_from_its_beginning_after_the_end_of_the_old_one(path, unread):
    append(path, line("old"))
    tail = Tail(path)
    assert texts(tail.read()) == ["old"]
    append(path, unread)
    new = path.with_name("new")
    append(new, line("new"))
    new.rename(path)
    assert texts(tail.read()) == [*(["late"] if unread.endswith(b"\n") else []), "new"]
    append(path, line("newer"))
    assert texts(tail.read()) == ["newer"]
    tail.close()


def test_lines_are_counted_in_the_file_that_they_stand_in(path):
    append(path, line("a"), line("b"))
    tail = Tail(path)
    tail.read()
    append(path, b"bad\n")
    new = path.with_name("new")
    append(new, line("c"), b"worse\n")
    new.rename(path)
    bad, _, worse = tail.read()
    assert "line 3 is damaged" in bad.text
    assert "line 2 is damaged" in worse.text
    tail.close()


@pytest.mark.parametrize("content", [b"", line("a"), line("a") + b"half"])
def test_from_the_end_only_what_comes_later_is_read(path, content):
    append(path, content)
    tail = Tail(path, -1)
    assert tail.read() == []
    append(path, b"\n" if content.endswith(b"half") else b"", line("b"))
    found = tail.read()
    assert texts(found)[-1] == "b"
    tail.close()


def test_from_the_end_of_a_missing_file_everything_is_later(path):
    tail = Tail(path, -1)
    append(path, line("a"))
    assert texts(tail.read()) == ["a"]
    tail.close()


def test_from_an_offset_what_stands_behind_it_is_read(path):
    append(path, line("a"), line("b"))
    tail = Tail(path, len(line("a")))
    assert texts(tail.read()) == ["b"]
    assert tail.offset == path.stat().st_size
    tail.close()


def test_a_damaged_line_is_named_by_its_number_and_ends_nothing(path):
    append(path, line("a"), b'{"secret": "tiger"\n', b"\n", line("b"), b"\xff\xfe\n", line("c"))
    tail = Tail(path)
    first, bad, second, worse, third = tail.read()
    assert texts([first, second, third]) == ["a", "b", "c"]
    assert all(isinstance(notice, Notice) and notice.level == "warning" for notice in (bad, worse))
    assert f"{path}: line 2 is damaged" in bad.text
    assert "tiger" not in bad.text
    assert "line 5 is damaged" in worse.text
    tail.close()


def test_a_line_of_an_unknown_kind_is_kept(path):
    append(path, b'{"type":"hologram"}\n')
    tail = Tail(path)
    assert tail.read() == [Unknown("hologram")]
    tail.close()


def test_the_rest_is_what_has_no_line_end_yet(path):
    append(path, line("a"), line("b")[:-1])
    tail = Tail(path)
    assert texts(tail.read()) == ["a"]
    assert tail.rest == line("b")[:-1]
    assert tail.decode_rest() == System(content="b")
    tail.close()


@pytest.mark.parametrize("size", range(1, 3 * len(line("a")) + 3))
def test_the_last_bytes_begin_with_a_whole_line(path, size):
    append(path, line("a"), line("b"), line("c"))
    tail = Tail.last(path, size)
    whole = min(3, max(0, (size - 1) // len(line("a")))) if size < 3 * len(line("a")) else 3
    assert texts(tail.read()) == ["a", "b", "c"][3 - whole :]
    append(path, line("d"))
    assert texts(tail.read()) == ["d"]
    tail.close()


@pytest.mark.parametrize("size", [1, 10, 100])
@pytest.mark.parametrize("length", [1000, 3 << 20])
def test_a_line_that_is_longer_than_the_last_bytes_is_whole_once_it_ends(path, size, length):
    append(path, line("a"), line("x" * length)[:-1])
    tail = Tail.last(path, size)
    assert tail.read() == []
    append(path, b"\n", line("b"))
    assert [len(text) for text in texts(tail.read())] == [length, 1]
    tail.close()


def test_the_only_line_of_a_file_is_whole_once_it_ends(path):
    append(path, line("x" * 1000)[:-1])
    tail = Tail.last(path, 10)
    append(path, b"\n", b"bad\n")
    found = tail.read()
    assert [len(text) for text in texts(found[:1])] == [1000]
    assert "line 2 is damaged" in found[1].text
    tail.close()


def test_the_end_of_a_missing_file_is_nothing(path):
    tail = Tail.last(path)
    assert tail.read() == []
    tail.close()


def test_it_holds_one_descriptor_and_gives_it_back(path):
    append(path, line("a"))
    before = len(os.listdir("/proc/self/fd"))
    tail = Tail(path)
    tail.read()
    new = path.with_name("new")
    append(new, line("b"))
    new.rename(path)
    tail.read()
    assert len(os.listdir("/proc/self/fd")) == before + 1
    tail.close()
    tail.close()
    assert len(os.listdir("/proc/self/fd")) == before
