"""read shows the lines asked for, says what it left out, and waits for nothing."""

import contextlib
import hashlib
import os
import re
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cass.errors import ToolError
from cass.tools import read


def body(content: str) -> list[str]:
    """The numbered lines of a result about one file."""
    return [line.partition("\t")[2] for line in content.split("\n")[1:] if "\t" in line]


@pytest.fixture
def ten(workspace):
    (workspace.root / "ten.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    return workspace


def test_a_file_is_shown_with_a_header_and_numbers(ten):
    (ten.root / "ten.txt").write_text("one\ntwo\n")
    assert ten("read", path="ten.txt") == "ten.txt (lines 1-2 of 2)\n     1\tone\n     2\ttwo"


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [("3-5", 3, 5), ("8-", 8, 10), ("-2", 1, 2), ("4", 4, 4), ("9-99", 9, 10), ("0-1", 1, 1)],
)
def test_a_range_counts_from_1_and_includes_both_ends(ten, lines, first, last):
    content = ten("read", files=[{"path": "ten.txt", "lines": lines}])
    assert content.startswith(f"ten.txt (lines {first}-{last} of 10)\n")
    assert body(content) == [f"line {n}" for n in range(first, last + 1)]


def test_offset_and_limit_are_another_way_to_give_a_range(ten):
    assert ten("read", path="ten.txt", offset=3, limit=2) == ten("read", files=[{"path": "ten.txt", "lines": "3-4"}])


def test_several_files_come_in_one_result_and_a_missing_one_spoils_nothing(ten):
    content = ten(
        "read", files=[{"path": "ten.txt", "lines": "1"}, {"path": "tne.txt"}, {"path": "ten.txt", "lines": "2"}]
    )
    assert content.split("\n\n") == [
        "ten.txt (lines 1-1 of 10)\n     1\tline 1",
        "tne.txt: Error: tne.txt does not exist; there is ten.txt",
        "ten.txt (lines 2-2 of 10)\n     2\tline 2",
    ]


def test_if_no_file_can_be_read_the_call_fails(workspace):
    with pytest.raises(ToolError, match=r"^a: a does not exist\nb: b does not exist$"):
        workspace("read", files=["a", "b"])


def test_two_thousand_lines_are_shown_unless_a_range_is_given(workspace):
    (workspace.root / "long").write_text("x\n" * 5_000)
    content = workspace("read", path="long")
    assert content.startswith("long (lines 1-2000 of 5,000)")
    assert content.endswith('[cut after line 2000; go on with lines "2001-", or grep for what you need]')
    assert len(body(workspace("read", files=[{"path": "long", "lines": "1-2500"}]))) == 2_500
    assert "go on" not in workspace("read", files=[{"path": "long", "lines": "4000-5000"}])


def test_all_files_together_are_bounded_and_each_cut_is_said(workspace):
    for name in "abc":
        (workspace.root / name).write_text(("x" * 99 + "\n") * 600)
    content = workspace("read", files=["a", "b", "c"])
    assert len(content) < 100_000
    assert "a (lines 1-600 of 600)" in content
    assert re.search(r'\[cut after line \d+; go on with lines "\d+-"', content)
    assert content.endswith("c: not read, the result is full; read it in another call")


def test_a_huge_line_is_cut_between_characters_with_what_is_left_out(workspace):  # C-03
    (workspace.root / "app.min.js").write_text("é" * 1_000_000)
    content = workspace("read", path="app.min.js")
    assert len(content) < 3_000
    assert "[1,996,000 more bytes in this line; grep shows parts]" in content
    assert "�" not in content


def test_a_file_too_large_costs_only_the_lines_asked_for(workspace):
    with open(workspace.root / "huge", "wb") as file:
        file.write(b"first\nsecond\n" + b"x" * 9_000 + b"\n")
        file.truncate(5 << 30)  # sparse
    content = workspace("read", files=[{"path": "huge", "lines": "1-2"}])
    assert content.startswith("huge (lines 1-2 of more)")
    assert body(content) == ["first", "second"]


def test_a_line_without_end_costs_no_more_than_a_file_that_is_read_whole(workspace):
    with open(workspace.root / "huge", "wb") as file:
        file.write(b"x" * 9_000 + b"\nsecond")
        file.truncate(5 << 30)  # sparse
    content = workspace("read", path="huge")
    assert re.search(r"second\0+ \[more than [\d,]+ more bytes in this line; grep shows parts\]\n\[cut after", content)


@pytest.mark.parametrize("last", ["", "\n"])
def test_a_last_line_counts_with_and_without_its_end(workspace, last):
    (workspace.root / "f").write_text("a\nb" + last)
    assert workspace("read", path="f").startswith("f (lines 1-2 of 2)")


def test_an_empty_file_says_so(workspace):
    (workspace.root / "f").touch()
    assert workspace("read", path="f") == "f (empty)"


def test_a_range_behind_the_end_names_the_length(ten):
    with pytest.raises(ToolError, match=r"ten\.txt has 10 lines; line 11 was asked for"):
        ten("read", files=[{"path": "ten.txt", "lines": "11-20"}])


@pytest.mark.parametrize(("codec", "name"), [("utf-16", "UTF-16-LE"), ("utf-16-be", "UTF-16-BE")])
def test_utf_16_is_read_and_named(workspace, codec, name):  # C-01
    text = "hello\r\nwörld\r\n"
    (workspace.root / "n.txt").write_bytes((text if codec == "utf-16" else "\ufeff" + text).encode(codec))
    content = workspace("read", path="n.txt")
    assert content.split("\n")[0] == f"n.txt (lines 1-2 of 2; {name}; CRLF line ends)"
    assert body(content) == ["hello", "wörld"]


def test_bytes_that_are_not_utf_8_are_shown_as_what_they_are(workspace):  # B-02
    (workspace.root / "s.js").write_bytes(b"const x = 1;\n// caf\xe9 note\n")
    content = workspace("read", path="s.js")
    assert "not UTF-8" in content.split("\n")[0]
    assert body(content) == ["const x = 1;", r"// caf\xe9 note"]


@pytest.mark.parametrize(
    "first",
    [b"# -*- coding: latin-1 -*-", b'<?xml version="1.0" encoding="latin-1"?>', b"<meta charset=latin-1>"],
)
def test_an_encoding_that_a_file_names_itself_is_told(workspace, first):
    (workspace.root / "f").write_bytes(first + b"\ncaf\xe9\n")
    assert "not UTF-8 but latin-1, as it says, other bytes shown as \\xNN" in workspace("read", path="f").split("\n")[0]
    (workspace.root / "f").write_bytes(first + b"\ncafe\n")
    assert workspace("read", path="f").split("\n")[0] == "f (lines 1-2 of 2)"


def test_a_byte_order_mark_is_told_and_not_part_of_the_first_line(workspace):
    (workspace.root / "f").write_bytes(b"\xef\xbb\xbfabc\n")
    content = workspace("read", path="f")
    assert content.startswith("f (lines 1-1 of 1; UTF-8 with a byte order mark)\n")
    assert body(content) == ["abc"]


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("utf-32", "f is a binary file (28 bytes, UTF-32 text)"),
        ("utf-16-le", "f is a binary file (12 bytes, which looks like UTF-16 text without a byte order mark)"),
        ("utf-16-be", "f is a binary file (12 bytes, which looks like UTF-16 text without a byte order mark)"),
    ],
)
def test_text_in_an_encoding_that_is_not_read_is_named(workspace, codec, message):
    (workspace.root / "f").write_bytes("hello\n".encode(codec))
    with pytest.raises(ToolError, match=re.escape(message)):
        workspace("read", path="f")


@pytest.mark.skipif(not os.path.exists("/proc/kmsg"), reason="no /proc here")
@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/kcore", "/proc/kpageflags", "/proc/cpuinfo", "/proc/self/mem"])
def test_what_the_system_makes_up_is_read_or_refused_and_never_waited_for(workspace, path):  # C-02
    begun = time.monotonic()
    with contextlib.suppress(ToolError):
        workspace("read", path=path)
    assert time.monotonic() - begun < 10


def test_separators_other_than_the_line_feed_stay_in_their_line(workspace):
    (workspace.root / "f").write_text("a\u2028b\x0cc\x85d\n")
    assert body(workspace("read", path="f")) == ["a\u2028b\x0cc\x85d"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p", "p is not a regular file (fifo)"),
        ("z", "/dev/zero is not a regular file (character device)"),
        ("s", "s is not a regular file (socket)"),
        ("d", "d is a directory; use ls"),
        ("b", "b is a binary file (9 bytes)"),
        ("loop", "the path loop leads through more than 40 links"),
    ],
)
def test_what_is_no_text_file_is_refused_at_once(workspace, monkeypatch, name, message):  # C-02
    os.mkfifo(workspace.root / "p")
    (workspace.root / "z").symlink_to("/dev/zero")
    (workspace.root / "loop").symlink_to("loop")
    (workspace.root / "d").mkdir()
    (workspace.root / "b").write_bytes(b"\x7fELF\0\0\0\0\n")
    monkeypatch.chdir(workspace.root)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        with pytest.raises(ToolError, match=re.escape(message)):
            workspace("read", path=name)


def test_a_fifo_loses_nothing_to_a_read(workspace):  # C-02
    os.mkfifo(workspace.root / "p")
    end = os.open(workspace.root / "p", os.O_RDWR | os.O_NONBLOCK)
    os.write(end, b"message\n")
    with pytest.raises(ToolError):
        workspace("read", path="p")
    assert os.read(end, 100) == b"message\n"
    os.close(end)


def test_what_was_read_is_remembered_by_its_hash(workspace):
    (workspace.root / "f").write_text("a\nb\n" * 1_000)
    seen = workspace.outcome("read", files=[{"path": "f", "lines": "1-1"}]).seen
    assert seen == {str(workspace.root / "f"): hashlib.sha256(b"a\nb\n" * 1_000).hexdigest()}


def test_an_ignored_file_that_is_named_is_read(workspace):  # C-04
    (workspace.root / ".gitignore").write_text("secret\n")
    (workspace.root / "secret").write_text("readable\n")
    assert "readable" in workspace("read", path="secret")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["", "a", "bc", "\r", "é" * 3]), max_size=12),
    st.booleans(),
    st.integers(1, 14),
    st.integers(0, 14),
    st.sampled_from([1, 2, 3, 7, 1 << 20]),
)
def test_any_range_of_any_file_is_what_split_says_however_it_is_read(workspace, lines, ended, first, more, block):
    data = "\n".join(lines) + ("\n" if ended and lines else "")
    every = data.split("\n")[: -1 if data.endswith("\n") or not data else None]
    (workspace.root / "f").write_bytes(data.encode())
    before, read.BLOCK_BYTES = read.BLOCK_BYTES, block
    try:
        if first > len(every) and first > 1:
            with pytest.raises(ToolError, match=f"f has {len(every)} lines"):
                workspace("read", files=[{"path": "f", "lines": f"{first}-{first + more}"}])
            return
        content = workspace("read", files=[{"path": "f", "lines": f"{first}-{first + more}"}])
    finally:
        read.BLOCK_BYTES = before
    assert body(content) == [line.removesuffix("\r") for line in every[first - 1 : first + more]]
    assert f"of {len(every)}" in content or content == "f (empty)"
