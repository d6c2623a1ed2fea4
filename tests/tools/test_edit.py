"""edit changes exactly the bytes that it names, or none."""

import os
import random
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.errors import ToolError
from cass.tools.edit import Change, Edit, apply, find


def edit(workspace, old, new, path="f", **more):
    return workspace("edit", path=path, edits=[{"old_text": old, "new_text": new, **more}])


@pytest.fixture
def f(workspace):
    """The file that is edited."""
    return workspace.root / "f"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a = 1\nb = 2\n", "b = 2", "b = 3", b"a = 1\nb = 3\n"),
        (b"a\n", "a\n", "", b""),
        (b"no end", "end", "more", b"no more"),
        # B-01: the file's line ends stay, whatever the call uses
        (
            b"a = 1\r\nb = 2\r\nc = 3\r\n",
            "a = 1\nb = 2\n",
            "a = 1\nb = 20\nb2 = 21\n",
            b"a = 1\r\nb = 20\r\nb2 = 21\r\nc = 3\r\n",
        ),
        (b"a\r\nb\r\n", "a", "a\na2", b"a\r\na2\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\r\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\nd", b"c\r\nd\r\n"),
        (b"a\nb\n", "a\r\nb", "c\r\nd", b"c\nd\n"),
        (b"a\nb\n", "a\nb", "c\r\nd", b"c\r\nd\n"),  # found exactly: written exactly
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        # B-02: bytes that are not spoken of stay
        (b"const x = 1;\n// caf\xe9 note\n", "const x = 1;", "const x = 2;", b"const x = 2;\n// caf\xe9 note\n"),
        (b"x = 1 # \xd6\xd0\xce\xc4\n", "x = 1", "x = 2", b"x = 2 # \xd6\xd0\xce\xc4\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"a\0b\n", "b", "c", b"a\0c\n"),
        ("é ü\n".encode(), "ü", "ö", "é ö\n".encode()),
        # C-01
        ("hello\r\nwörld\r\n".encode("utf-16"), "hello", "HELLO", "HELLO\r\nwörld\r\n".encode("utf-16")),
        ("\ufeffa\r\nb".encode("utf-16-be"), "a\nb", "c\nd", "\ufeffc\r\nd".encode("utf-16-be")),
    ],
)
def test_exactly_what_is_named_is_replaced(workspace, f, before, old, new, after):
    f.write_bytes(before)
    assert edit(workspace, old, new) == "Applied 1 edit to f"
    assert f.read_bytes() == after


def test_several_edits_are_found_in_the_original_and_applied_together(workspace, f):
    f.write_text("one\ntwo\nthree\n")
    edits = [{"old_text": "three", "new_text": "one"}, {"old_text": "one\n", "new_text": "two\n"}]
    assert workspace("edit", path="f", edits=edits) == "Applied 2 edits to f"
    assert f.read_text() == "two\ntwo\none\n"


def test_replace_all_replaces_each_place_once(workspace, f):
    f.write_text("aaa b aa")
    assert edit(workspace, "aa", "x", replace_all=True) == "Applied 1 edit in 2 places to f"
    assert f.read_text() == "xa b x"


PEAK = """
import asyncio, re, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cass import tools
from cass.tools.paths import Place
root, begun = Path(sys.argv[2]), time.monotonic()
place = Place(root, root / "home", root / "out", "call", "chat", {}, {})
edit = {"old_text": "a", "new_text": "bb", "replace_all": sys.argv[3] == "all"}
edits = [edit] if sys.argv[4] == "alone" else [edit, {"old_text": "end", "new_text": "END"}]
async def main():
    async for piece in tools.find("edit").run({"path": "f", "edits": edits}, place):
        print(piece.content)
try:
    asyncio.run(main())
except tools.ToolError as e:
    print(e)
# Not ru_maxrss: that begins with what the process that started this one had.
print(time.monotonic() - begun, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], sep="\\n")
"""


@pytest.mark.parametrize(
    ("how", "company", "said"),
    [
        ("all", "alone", "Applied 1 edit in 30,000,000 places to f"),
        ("all", "with another", "edit 1: old_text occurs too often for one call in f; make it the only edit of a call"),
        ("once", "alone", "old_text occurs more than 1,000 times in f (lines 1, 1, 1, 1, 1, ...)"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process stands in /proc")
def test_a_text_that_stands_everywhere_costs_little_time_and_memory(workspace, f, how, company, said):
    f.write_bytes(b"a" * 30_000_000 + b"end\n")
    command = [sys.executable, "-c", PEAK, str(Path(__file__).parents[2]), str(workspace.root), how, company]
    content, *_, seconds, kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:-1]
    assert content.startswith(said)
    assert float(seconds) < 5
    assert int(kilobytes) < 400_000
    assert f.stat().st_size == (60_000_004 if said.startswith("Applied") else 30_000_004)


def test_a_replacement_never_makes_a_file_that_could_not_be_edited_again(workspace, f):
    f.write_bytes(b"a" * 90_000 + b"\r\nend\r\n")
    every = {"old_text": "a", "new_text": "b\n" * 5_000, "replace_all": True}
    for edits in ([every], [every, {"old_text": "end", "new_text": "END"}]):
        with pytest.raises(ToolError, match=r"^f would become too large \([\d,]+ bytes\)\nNothing was changed.$"):
            workspace("edit", path="f", edits=edits)
    assert f.stat().st_size == 90_007


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("aaa b aa", "aa", "x", "xa b x"),
        ("a\r\nb\r\na\r\n", "a", "c\nd", "c\r\nd\r\nb\r\nc\r\nd\r\n"),
        ("a\r\nb\r\na\r\nb", "a\nb", "c\nd", "c\r\nd\r\nc\r\nd"),
        ("a\r\nb\na\nb\n", "a\nb", "c\nd", "a\r\nb\nc\nd\n"),
        ("a\r\nb\r\na\r\nb", "a\r\nb", "c\nd", "c\r\nd\r\nc\r\nd"),
    ],
)
def test_replace_all_means_the_same_alone_and_with_another_edit(workspace, f, text, old, new, after):
    for others, tail in (([], ""), ([{"old_text": "END", "new_text": "end"}], "END")):
        f.write_bytes((text + tail).encode())
        workspace("edit", path="f", edits=[{"old_text": old, "new_text": new, "replace_all": True}, *others])
        assert f.read_bytes() == (after + tail.lower()).encode()


def test_many_faults_are_told_in_a_few_lines_and_quickly(workspace, f):
    f.write_bytes(b"ab " * 60 + b"\n" + bytes(random.Random(1).choices(b"ab \n", (49, 49, 49, 1), k=500_000)))
    edits = [{"old_text": "abba " * 30 + f"#{n}", "new_text": "x"} for n in range(500)]
    begun = time.monotonic()
    with pytest.raises(ToolError) as failed:
        workspace("edit", path="f", edits=edits)
    assert time.monotonic() - begun < 15
    assert str(failed.value).endswith("\n490 more like these\nNothing was changed.")
    assert len(str(failed.value)) < 10_000


def test_an_edit_without_a_list_and_with_the_names_of_others_is_taken(workspace, f):
    f.write_text("a")
    workspace("edit", path="f", old_string="a", new_string="b")
    assert f.read_text() == "b"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        # B-04
        ([("", "X")], "old_text is empty; give the text to replace, or use write for the whole file"),
        ([("abc", "abc")], "old_text and new_text are the same; nothing would change"),
        ([("zzz", "X")], "old_text not found in f"),
        ([("a", "X"), ("zzz", "X")], "edit 2: old_text not found in f"),
        ([("b", "X")], "old_text occurs 2 times in f (lines 1, 2); add lines around it, or set replace_all"),
        ([("abc\nb", "X"), ("b\nd", "X")], "edits 1 and 2 overlap at line 2; join them into one"),
        ([("d", "X"), ("d", "Y")], "edits 1 and 2 overlap at line 3; join them into one"),
        ([("bb", "X")], "old_text occurs 2 times in f (lines 4, 4)"),
    ],
)
def test_one_fault_and_nothing_is_written(workspace, f, edits, message):
    text = "abc\nb\nd\nebbb\n" if edits[0][0] == "bb" else "abc\nb\nd\n"
    f.write_text(text)
    with pytest.raises(ToolError, match=re.escape(message)):
        workspace("edit", path="f", edits=[{"old_text": old, "new_text": new} for old, new in edits])
    assert f.read_text() == text


@pytest.mark.parametrize("replace_all", [False, True])
def test_an_empty_old_text_never_shreds_the_file(workspace, f, replace_all):  # B-04
    f.write_text("abc")
    with pytest.raises(ToolError, match="old_text is empty"):
        edit(workspace, "", "X", replace_all=replace_all)
    assert f.read_text() == "abc"


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("return  compute(a,b)\n", "line 2:     return compute(a, b)  (white space differs)"),
        ("return compute(a, b)\n    more", 'line 3: print("done")'),
        ("print(“done”)", 'line 3: print("done")  (quotes or dashes differ)'),
        ("Print( 'done' )", 'line 3: print("done")  (white space, quotes, dashes or case differ)'),
        ("PRINT", 'line 3: print("done")  (case differs)'),
        ("return compute(a, c)", "line 2:     return compute(a, b)"),
        ("def f(a, b):\n\treturn compute(a, b)\n", "  (indentation: 4 spaces, old_text has 1 tab)"),
        ("def f(a, b):\n  return compute(a, b)\n", "  (indentation: 4 spaces, old_text has 2 spaces)"),
        ("def f(a, b):  \n    return", "line 1: def f(a, b):  (white space at its end differs)"),
        ('print("done")\nlast\nmore', "line 4: last  (the file ends after it)"),
        ('print("done")\n\nlast', "line 4: last"),
    ],
)
@pytest.mark.parametrize("above", [0, 60_000], ids=["at the top", "far below"])
def test_a_miss_names_the_nearest_lines_and_what_differs(workspace, f, old, hint, above):
    f.write_text("#\n" * above + 'def f(a, b):\n    return compute(a, b)\nprint("done")\nlast')
    hint = re.sub(r"(?<=^line )\d", lambda found: str(int(found[0]) + above), hint)
    if above and old.endswith("(a, c)"):
        hint = "read the file again"  # what is merely like it is looked for near the top
    with pytest.raises(ToolError, match=re.escape(hint)):
        edit(workspace, old, "X")


def test_line_ends_that_no_line_break_of_a_call_can_mean_are_named(workspace, f):
    f.write_bytes(b"one\rtwo\r")
    with pytest.raises(ToolError, match="the lines of this file end in CR alone"):
        edit(workspace, "one\ntwo", "X")


def test_the_place_that_is_most_like_the_text_comes_first(workspace, f):
    f.write_text("begin\nx = compute()\nend\n\n" * 5 + "begin\nx = compute()\nstop\n")
    with pytest.raises(ToolError, match=r"nearest lines:\n  line 21: begin  \(case differs\)\n"):
        edit(workspace, "BEGIN\nx = compute()\nstop\n", "X")


def test_at_most_three_nearest_lines_are_named(workspace, f):
    f.write_text("value = 1\n" * 10)
    with pytest.raises(ToolError) as failed:
        edit(workspace, "value = 2", "X")
    assert str(failed.value).count("\n  line ") == 3


def test_mode_link_and_directory_stay_as_they_were(workspace):  # B-03
    (workspace.root / "real").mkdir()
    script = workspace.root / "real" / "run.sh"
    script.write_text("echo old\n")
    script.chmod(0o755)
    (workspace.root / "run.sh").symlink_to("real/run.sh")
    edit(workspace, "old", "new", path="run.sh")
    assert os.readlink(workspace.root / "run.sh") == "real/run.sh"
    assert script.read_text() == "echo new\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert os.listdir(workspace.root / "real") == ["run.sh"]


def test_what_changed_outside_survives_an_edit_and_still_guards_against_a_write(workspace, f):  # B-05
    f.write_text("one\ntwo\n")
    workspace("read", path="f")
    f.write_text("one\ntwo\nthree\n")
    assert "it had also changed otherwise" in edit(workspace, "one", "ONE")
    assert f.read_text() == "ONE\ntwo\nthree\n"
    with pytest.raises(ToolError, match="changed since it was read"):
        workspace("write", path="f", content="x")


def test_after_an_edit_of_what_was_read_a_write_goes_through(workspace, f):
    f.write_text("one\n")
    workspace("read", path="f")
    os.utime(f, (1, 1))  # B-05: a mere touch
    edit(workspace, "one", "two")
    workspace("write", path="f", content="three")


@pytest.mark.parametrize(
    ("path", "message"),
    [("nope", "nope does not exist"), ("d", "d is a directory"), ("p", "p is not a regular file (fifo)")],
)
def test_what_is_no_file_cannot_be_edited(workspace, path, message):
    (workspace.root / "d").mkdir()
    os.mkfifo(workspace.root / "p")
    with pytest.raises(ToolError, match=re.escape(message)):
        edit(workspace, "a", "b", path=path)


def test_a_large_file_is_edited(workspace, f):
    f.write_bytes(b"line of text\n" * 4_000_000 + b"needle\n" + b"line of text\n" * 4_000_000)
    edit(workspace, "needle", "thread")
    with f.open("rb") as file:
        file.seek(13 * 4_000_000)
        assert file.read(7) == b"thread\n"
    assert f.stat().st_size == 13 * 8_000_000 + 7


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", "é".encode()]), max_size=30).map(b"".join), st.data()
)
def test_edits_applied_and_reversed_give_the_original_bytes(data, draw):
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(data)), max_size=6)))
    changes = [
        Change(start, end, draw.draw(st.binary(max_size=4)), number)
        for number, (start, end) in enumerate(zip(cuts[::2], cuts[1::2], strict=False), 1)
    ]
    changed, back, shift = apply(data, changes), [], 0
    for change in changes:
        start = change.start + shift
        back.append(Change(start, start + len(change.new), data[change.start : change.end], change.number))
        shift += len(change.new) - (change.end - change.start)
    assert apply(changed, back) == data


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("ab\n"), min_size=1, max_size=25).map("".join), st.data())
def test_a_unique_piece_of_any_text_is_replaced_like_str_replace(text, draw):
    start = draw.draw(st.integers(0, len(text) - 1))
    old = text[start : draw.draw(st.integers(start + 1, len(text)))]
    places = sum(text.startswith(old, at) for at in range(len(text)))
    edits = [Edit(old.encode(), b"new", all=False)]
    if places == 1:
        assert apply(text.encode(), find(text.encode(), edits, "f")) == text.replace(old, "new").encode()
    else:
        with pytest.raises(ToolError, match=f"occurs {places} times"):
            find(text.encode(), edits, "f")


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "latin-1"])
def test_it_tells_what_it_changed_in_a_text(workspace, f, codec):
    f.write_bytes("é\na\nb\n".encode(codec))
    done = workspace.outcome("edit", path="f", edits=[{"old_text": "b", "new_text": "c"}])
    assert done.diff is not None
    assert done.diff.endswith(" a\n-b\n+c\n")
