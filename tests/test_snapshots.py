import asyncio
import itertools
import os
import signal
import stat
import subprocess
import sys
from contextlib import aclosing

import pytest
from stage import wait_for

from cass import jsonl, snapshots, tools
from cass.snapshots import Edit, Journal, State
from cass.tools.paths import Place

ONE, TWO = State("1" * 64, 0o644, 1), State("2" * 64, 0o644, 2)


@pytest.fixture
def call(files, workspace):
    """Runs a tool as the `number`-th call of an answer, with the journal of the chat; returns what it says."""

    def call(tool: str, number: int = 0, of: str = "answer", **arguments: object) -> str:
        journal = Journal(files, "the-family")
        keep = journal.of_call((of, number))
        place = Place(workspace, files.home.root, files.out, "c", files.chat_id, {}, {}, keep=keep)
        return asyncio.run(run(tool, arguments, place))

    async def run(tool: str, arguments: dict, place: Place) -> str:
        async with aclosing(tools.find(tool).run(arguments, place)) as pieces:
            async for piece in pieces:
                return piece.content
        raise AssertionError

    return call


def test_a_change_is_kept_with_what_was_there_before(files, workspace, call):
    (workspace / "app.py").chmod(0o755)
    call("edit", 3, path="app.py", edits=[{"old_text": "1", "new_text": "2"}])
    call("write", 4, path="new/file", content="text")
    first, second = snapshots.edits(files.edits)
    assert (first.path, first.call, first.before.mode, first.after.mode) == (
        *(str(workspace / "app.py"), ("answer", 3)),
        *(0o755, 0o755),
    )
    assert snapshots.content(files.home, first.before) == b"def main():\n    return 1\n"
    assert first.after.sha256 == snapshots.look("app.py", os.open(workspace, os.O_RDONLY)).sha256
    assert (second.path, second.before, second.after.size) == (str(workspace / "new/file"), None, 4)
    assert first.at < second.at < jsonl.now()


def test_a_call_that_changes_nothing_leaves_no_line(files, call):
    call("write", path="notes.txt", content="nothing here\n")
    assert not files.edits.exists()


def test_journals_and_contents_are_private_and_kept_once(files, workspace, call):
    for number, text in enumerate(["a", "b", "a", "b", "a"]):
        call("write", number, path="notes.txt", content=text)
    blobs = list(files.home.blobs.iterdir())
    assert len(blobs) == 3
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [*blobs, files.edits]}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (files.home.blobs, files.home.edits)} == {0o700}


def test_a_large_file_costs_no_disk_and_the_call_says_so(files, workspace, call):
    large = workspace / "large"
    large.write_bytes(b"begin\n")
    os.truncate(large, snapshots.LIMIT + 1)
    said = call("edit", path="large", edits=[{"old_text": "begin", "new_text": "end"}])
    assert "this cannot be undone: files of more than 32 MiB are not kept" in said
    (edit,) = snapshots.edits(files.edits)
    assert (edit.before.size, snapshots.is_kept(files.home, edit.before)) == (snapshots.LIMIT + 1, False)
    assert large.read_bytes()[:4] == b"end\n"


@pytest.mark.parametrize("spoiled", ["blobs", "edits"])
def test_where_nothing_can_be_kept_the_call_goes_on_and_says_so(files, workspace, call, spoiled):
    files.home.edits.mkdir()
    {"blobs": files.home.blobs, "edits": files.edits}[spoiled].symlink_to("/proc/nothing")
    said = call("write", path="notes.txt", content="new")
    assert "this cannot be undone, its old content was not kept" in said
    assert (workspace / "notes.txt").read_text() == "new"


def test_a_line_cut_by_a_full_disk_costs_only_itself(files, call):
    call("write", 0, path="notes.txt", content="one")
    with open(files.edits, "ab") as file:
        file.write(b'{"family":"the-fam')
    call("write", 1, path="notes.txt", content="two")
    assert [edit.call[1] for edit in snapshots.edits(files.edits)] == [0, 1]
    assert snapshots.family_of(files.edits) == "the-family"


def test_names_that_are_no_utf_8_are_kept_as_they_are(files, workspace, call):
    call("write", path='"caf\\351\\n"', content="text")
    (edit,) = snapshots.edits(files.edits)
    assert os.fsencode(edit.path) == os.fsencode(workspace) + b"/caf\xe9\n"


CHANGES = """
import os, sys
from cass.home import Home
from cass.snapshots import Journal
from cass.tools.paths import Place
from cass.tools.write import replace
from pathlib import Path
files = Home(Path(sys.argv[1])).files("a-chat")
keep = Journal(files, "a-chat").of_call(("a", 0))
place = Place(Path("."), files.home.root, files.out, "c", "a-chat", {}, {}, keep=keep)
for number in range(10**6):
    replace(sys.argv[2], str(number).encode() * 1000, place, os.stat(sys.argv[2]))
    print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 3, 10, 30])
def test_whenever_a_process_is_killed_what_it_replaced_is_there(files, workspace, after):
    path = workspace / "counted"
    path.write_text("at first")
    process = subprocess.Popen(
        [sys.executable, "-c", CHANGES, str(files.home.root), str(path)], stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: int(process.stdout.readline()) >= after)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    found = snapshots.edits(snapshots.journals(files.home)[0])
    assert all(snapshots.content(files.home, edit.before) is not None for edit in found)
    now = snapshots.look("counted", os.open(workspace, os.O_RDONLY))
    assert now in (found[-1].before, found[-1].after)
    assert all(one.after == other.before for one, other in itertools.pairwise(found))


def edit(path: str, at: str, call: snapshots.Call | None, before: State | None = ONE, after: State | None = TWO):
    return Edit(path, before, after, call, at)


HISTORY = [edit("/a", "T1", ("m", 0)), edit("/b", "T2", ("m", 1)), edit("/a", "T3", None), edit("/c", "T4", ("n", 0))]


@pytest.mark.parametrize(
    ("at", "done", "undone", "place"),
    [
        ("T0", [], [], 0),
        ("T2", [], [], 2),
        ("T9", [], [], 4),
        ("T2", [("m", 0)], [("m", 1)], 1),
        ("T0", [("m", 0), ("m", 1)], [], 2),  # a clock that was set back
        ("T9", [("m", 0)], [("m", 1), ("n", 0)], 1),
    ],
)
def test_a_moment_is_placed_by_calls_and_else_by_the_clock(at, done, undone, place):
    assert snapshots.place(HISTORY, at, set(done), set(undone)) == place


def test_a_file_goes_back_to_what_the_first_change_after_the_moment_found():
    history = [
        edit("/f", "1", None, None, ONE),
        edit("/f", "2", None, ONE, TWO),
        edit("/g", "3", None),
        edit("/f", "4", None, TWO, None),
    ]
    assert [(t.path, t.to, t.known) for t in snapshots.targets(history, 1)] == [
        ("/f", ONE, (None, TWO)),
        ("/g", ONE, (TWO, ONE)),
    ]
    assert snapshots.targets(history, 4) == []
