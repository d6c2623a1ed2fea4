"""Diffs: `patch` makes the new file from the old one with them, in time that grows with the size."""

import random
import re
import shutil
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.tools.diff import KEPT, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "unique {}\n", "}\n", "d\r\n"]), max_size=40)


def patched(old: bytes, diff: str) -> bytes:
    """`old` as our own little reading of the format changes it."""
    lines = old.decode().split("\n")
    old_lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    made: list[str] = []
    last = ""
    at = 0
    for line in diff.split("\n")[:-1]:
        mark, text = line[:1], line[1:] + "\n"
        if mark == "@":
            first, count = map(int, line.split()[1][1:].split(","))
            start = first - 1 if count else first
            made += old_lines[at:start]
            at = start
        elif mark == "\\":
            made[-1:] = [made[-1].removesuffix("\n")] if made and last == "+" else made[-1:]
        elif mark == "+":
            made.append(text)
        else:
            assert old_lines[at].removesuffix("\n") == text.removesuffix("\n")
            made += [old_lines[at]] if mark == " " else []
            at += 1
        last = mark
    return "".join([*made, *old_lines[at:]]).encode()


@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_diff_turns_the_old_content_into_the_new(old, new, old_ends, new_ends):
    before = "".join(line.replace("{}", str(i)) for i, line in enumerate(old)).encode()
    after = "".join(line.replace("{}", str(i)) for i, line in enumerate(new)).encode()
    before, after = before + b"end" * old_ends, after + b"end" * new_ends
    diff = unified(before, after)
    if before == after:
        assert diff is None
    else:
        assert diff is not None
        assert patched(before, diff) == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch here")
def test_patch_takes_it(tmp_path):
    rng = random.Random(1)
    old = [f"line {rng.randrange(60)}\n" for _ in range(300)]
    new = [line for line in old if rng.random() > 0.1]
    for _ in range(20):
        new.insert(rng.randrange(len(new)), f"new {rng.randrange(9)}\n")
    before, after = "".join(old).encode(), "".join(new).encode() + b"no end"
    (tmp_path / "f").write_bytes(before)
    diff = unified(before, after)
    assert diff is not None
    subprocess.run(["patch", "-s", "f"], input=diff.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        (b"", b"a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
        (b"a\n", b"", "@@ -1,1 +0,0 @@\n-a\n"),
        (b"a\nb\nc\n", b"a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        (b"a", b"a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (b"x\n" * 9 + b"y\n", b"x\n" * 9 + b"z\n", "@@ -7,4 +7,4 @@\n x\n x\n x\n-y\n+z\n"),
        (b"same", b"same", None),
        (b"a\0", b"b", None),
        (b"a" * (5 << 20), b"b", None),
        (b"\xff\n", b"\xe9\n", None),  # bytes that are no UTF-8 look the same: there is nothing to show
    ],
)
def test_what_a_diff_says(old, new, diff):
    assert unified(old, new) == diff


def test_a_long_diff_is_cut_at_a_line_and_says_so():
    diff = unified(b"", b"word word\n" * 50_000)
    assert diff is not None
    assert KEPT - 100 < len(diff) < KEPT + 100
    assert re.search(r"\n\\ [\d,]+ more lines of this diff were not kept \(\+\d+ -0\)\n$", diff)
    left_out = int(diff.split("\\ ")[1].split(" ")[0].replace(",", ""))
    assert diff.count("+word word\n") + left_out == 50_000


@pytest.mark.parametrize("kinds", [1, 3, 300, 100_000])
def test_large_files_are_compared_in_time_that_grows_with_their_size(kinds):
    rng = random.Random(2)

    def cost(size: int) -> float:
        old = [f"{rng.randrange(kinds)}\n" for _ in range(size)]
        new = [line if rng.random() > 0.01 else "changed\n" for line in old] + ["more\n"] * 9
        started = time.process_time()
        unified("".join(old).encode(), "".join(new).encode())
        return time.process_time() - started

    small = min(cost(2_000) for _ in range(3))
    assert min(cost(40_000) for _ in range(2)) < 200 * small
