"""What the person was shown is what a call does: between the question and the run everything may be swapped."""

import asyncio
import os
from contextlib import aclosing
from dataclasses import replace

import pytest

from cass import tools
from cass.errors import ToolError
from cass.tools.diff import KEPT
from cass.walk import identity

WRITE = {"path": "a.py", "content": "one\n2\n"}
EDIT = {"path": "a.py", "edits": [{"old_text": "two", "new_text": "2"}]}
EVERYWHERE = {"path": "a.py", "edits": [{"old_text": "two", "new_text": "2", "replace_all": True}]}


@pytest.fixture
def asks(workspace):
    """Asks about a call, has `then` happen, and runs it; the diff that was shown, and what came of it."""

    def ask(name, arguments, then=lambda: None):
        place = replace(workspace.place, ground=identity(str(workspace.root)))
        tool = tools.find(name)
        tool.action(arguments, place)
        diff = tool.propose(arguments, place) if tool.propose else None
        then()

        async def run():
            async with aclosing(tool.run(arguments, place)) as pieces:
                return [piece async for piece in pieces][-1].content

        return diff, asyncio.run(run())

    (workspace.root / "a.py").write_text("one\ntwo\n")
    return ask


@pytest.mark.parametrize(("name", "arguments"), [("write", WRITE), ("edit", EDIT), ("edit", EVERYWHERE)])
def test_a_change_is_proposed_as_the_diff_of_the_file_as_it_is(asks, workspace, name, arguments):
    assert asks(name, arguments)[0] == "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (workspace.root / "a.py").read_text() == "one\n2\n"


def test_a_new_file_is_all_new(asks):
    assert asks("write", {"path": "b.py", "content": "x\ny\n"})[0] == "@@ -0,0 +1,2 @@\n+x\n+y\n"


@pytest.mark.parametrize("name", ["edit", "write"])
@pytest.mark.parametrize("what", ["more", "another file", "link", "link above", "gone", "directory", "hard link"])
def test_a_file_that_is_not_what_it_was_when_it_was_asked_about_is_left_alone(asks, workspace, name, what):
    path, other = workspace.root / "t/a.py", workspace.beside / "a.py"
    path.parent.mkdir()
    path.write_text("one\ntwo\n")
    other.write_text("two\nkeep\n")

    def swap():
        match what:
            case "more":
                path.write_text("one\ntwo\nkeep\n")
            case "another file":
                path.with_name("new").write_text("two\nkeep\n")
                path.with_name("new").rename(path)
            case "link above":
                path.unlink()
                path.parent.rmdir()
                path.parent.symlink_to(other.parent)
            case _:
                path.unlink()
                if what == "link":
                    path.symlink_to(other)
                if what == "hard link":
                    os.link(other, path)
                if what == "directory":
                    path.mkdir()

    arguments = {**(EDIT if name == "edit" else WRITE), "path": "t/a.py"}
    with pytest.raises(ToolError):
        asks(name, arguments, swap)
    assert other.read_text() == "two\nkeep\n"
    if what == "more":
        assert path.read_text() == "one\ntwo\nkeep\n"
    assert what != "gone" or not path.exists()


def test_a_file_that_was_made_since_is_not_replaced(asks, workspace):
    with pytest.raises(ToolError, match="changed after the user was asked"):
        asks("write", {"path": "b.py", "content": "x"}, lambda: (workspace.root / "b.py").write_text("theirs"))
    assert (workspace.root / "b.py").read_text() == "theirs"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit", {"path": "a.py", "edits": [{"old_text": "nowhere", "new_text": "2"}]}),
        ("edit", {"path": "none.py", "edits": [{"old_text": "x", "new_text": "2"}]}),
        ("write", {"path": ".", "content": "x"}),
        ("write", {"path": "/dev/null", "content": "x"}),
        ("write", {"path": "a.py", "content": "one\ntwo\n"}),
        ("write", {"path": "a.py", "content": "three\n" * KEPT}),
        ("edit", {"path": "a.py", "edits": [{"old_text": "two", "new_text": "three\n" * KEPT}]}),
    ],
    ids=lambda given: str(given)[:40],
)
def test_what_cannot_be_shown_whole_as_a_diff_is_shown_by_its_arguments(workspace, name, arguments):
    (workspace.root / "a.py").write_text("one\ntwo\n")
    assert tools.find(name).propose(arguments, workspace.place) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py", "old_text": "one", "new_text": "1", "old_string": "two", "new_string": "evil"},
        {"path": "a.py", "edits": [{"old_text": "one", "new_text": "1", "new_string": "evil"}]},
    ],
)
def test_an_edit_says_nothing_twice(asks, workspace, arguments):
    with pytest.raises(ToolError, match="give one of them"):
        asks("edit", arguments)
    assert (workspace.root / "a.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("what", ["link", "directory", "gone"])
def test_a_command_is_not_run_where_another_directory_stands_by_now(asks, workspace, what):
    def swap():
        workspace.root.rename(workspace.root.with_name("moved"))
        if what == "link":
            workspace.root.symlink_to(workspace.beside)
        elif what == "directory":
            workspace.root.mkdir()

    with pytest.raises(ToolError, match="nothing was run"):
        asks("shell", {"command": "touch made"}, swap)
    assert not (workspace.beside / "made").exists()
    assert not (workspace.root / "made").exists()


def test_a_command_finds_itself_in_the_workspace(asks, workspace):
    assert asks("shell", {"command": "pwd; ls"})[1] == f"{workspace.root}\na.py"
