"""ls names what is in one directory, and only that."""

import os
import re

import pytest

from cass.errors import ToolError
from cass.tools.ls import ENTRY_LIMIT


def test_directories_links_sizes_and_hidden_files_are_listed_in_order(workspace):
    (workspace.root / "b").mkdir()
    (workspace.root / "c.py").write_text("x" * 1234)
    (workspace.root / ".env").write_text("")
    (workspace.root / "a").symlink_to("b")
    assert workspace("ls", path=".") == ".env\t0\na -> b\nb/\nc.py\t1,234"


def test_things_that_are_no_files_are_listed_with_what_they_are(workspace):  # C-02
    os.mkfifo(workspace.root / "p")
    (workspace.root / "z").symlink_to("/dev/zero")
    assert workspace("ls") == "p\tfifo\nz -> /dev/zero"


def test_an_empty_directory_says_so(workspace):
    assert workspace("ls") == ". is empty"


def test_a_long_listing_is_cut_and_counted(workspace):
    for number in range(ENTRY_LIMIT + 7):
        (workspace.root / f"f{number:05}").touch()
    lines = workspace("ls").split("\n")
    assert len(lines) == ENTRY_LIMIT + 1
    assert lines[-1].startswith("[7 of 1,007 entries not shown")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nope", "nope does not exist"),
        ("sbu", "sbu does not exist; there is sub"),
        ("sbu/x/y", "sbu/x/y does not exist; there is sub"),
        ("file.txt", "file.txt is a file, not a directory; use read"),
        ("p", "p is a fifo, not a directory"),
        ("file.txt/x", "cannot list file.txt/x: a part of the path is a file"),
    ],
)
def test_what_cannot_be_listed_is_explained(workspace, path, message):
    (workspace.root / "sub").mkdir()
    (workspace.root / "file.txt").write_text("")
    os.mkfifo(workspace.root / "p")
    with pytest.raises(ToolError, match=re.escape(message)):
        workspace("ls", path=path)
