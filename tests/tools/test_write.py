"""write leaves the old file or the new one, as it was but for its content."""

import contextlib
import errno
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cass.errors import ToolError
from cass.tools.paths import failure

ROOT = os.getuid() == 0


def names(workspace):
    return sorted(os.listdir(workspace.root))


def test_the_bytes_are_written_as_given_and_counted(workspace):
    content = "a\r\nb\n\nc é\u2028 without end"
    size = len(content.encode())
    assert (
        workspace("write", path="new/deep/f.txt", content=content) == f"Wrote {size} bytes to new/deep/f.txt (new file)"
    )
    assert (workspace.root / "new/deep/f.txt").read_bytes() == content.encode()
    assert os.listdir(workspace.root / "new" / "deep") == ["f.txt"]


def test_a_file_is_replaced_and_never_half(workspace):
    (workspace.root / "f").write_text("old" * 100)
    reader = os.open(workspace.root / "f", os.O_RDONLY)
    assert workspace("write", path="f", content="new") == "Wrote 3 bytes to f (replaced 300 bytes)"
    assert os.read(reader, 1_000) == b"old" * 100  # whoever had it open still reads all of the old one
    os.close(reader)
    assert names(workspace) == ["f"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_what_the_umask_leaves(workspace, umask, mode):
    before = os.umask(umask)
    try:
        workspace("write", path="f", content="")
    finally:
        os.umask(before)
    assert stat.S_IMODE((workspace.root / "f").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o1644])
def test_the_mode_of_a_file_stays(workspace, mode):  # B-03
    (workspace.root / "f").write_text("old")
    (workspace.root / "f").chmod(mode)
    workspace("write", path="f", content="new")
    assert stat.S_IMODE((workspace.root / "f").stat().st_mode) == mode


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_new_content_never_runs_with_the_rights_of_another(workspace, tool):
    """As write(2) of a person: set-uid, set-gid and capabilities do not outlive the content they were given for."""
    path = workspace.root / "f"
    path.write_text("old")
    with contextlib.suppress(OSError, AttributeError):  # not on every system, nor for everybody
        os.setxattr(path, "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    path.chmod(0o6755)
    more = {"content": "new"} if tool == "write" else {"old_text": "old", "new_text": "new"}
    workspace(tool, path="f", **more)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    if hasattr(os, "listxattr"):
        assert "security.capability" not in os.listxattr(path)


def test_through_a_link_its_target_is_written_and_the_link_stays(workspace):  # B-03
    (workspace.root / "real").mkdir()
    (workspace.root / "real" / "conf.txt").write_text("old")
    (workspace.root / "conf.txt").symlink_to("real/conf.txt")
    assert "real/conf.txt" in workspace("write", path="conf.txt", content="new")
    assert os.readlink(workspace.root / "conf.txt") == "real/conf.txt"
    assert (workspace.root / "real" / "conf.txt").read_text() == "new"


def test_a_broken_hard_link_is_said(workspace):  # B-03
    (workspace.root / "h1").write_text("old")
    os.link(workspace.root / "h1", workspace.root / "h2")
    content = workspace("write", path="h1", content="new")
    assert content.endswith("; the old content stays under 1 other name (hard links)")
    assert ((workspace.root / "h1").read_text(), (workspace.root / "h2").read_text()) == ("new", "old")


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_extended_attributes_stay(workspace):
    path = workspace.root / "f"
    path.write_text("old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    workspace("write", path="f", content="new")
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(not ROOT, reason="only root may give files away")
def test_the_owner_stays(workspace):
    (workspace.root / "f").write_text("old")
    os.chown(workspace.root / "f", 1234, 5678)
    workspace("write", path="f", content="new")
    status = (workspace.root / "f").stat()
    assert (status.st_uid, status.st_gid) == (1234, 5678)


# ---- what changed meanwhile (B-05) ----------------------------------------------------------------------------------


def test_a_file_that_changed_since_it_was_read_is_not_overwritten_until_it_is_read_again(workspace):
    path = workspace.root / "f"
    path.write_text("one\ntwo\n")
    workspace("read", path="f")
    path.write_text("one\ntwo\nthree\n")
    with pytest.raises(ToolError, match=r"^f changed since it was read in this chat; read it again, then write$"):
        workspace("write", path="f", content="ONE\ntwo\n")
    assert path.read_text() == "one\ntwo\nthree\n"
    workspace("read", path="f")
    workspace("write", path="f", content="ONE\ntwo\n")
    assert path.read_text() == "ONE\ntwo\n"


def test_a_mere_touch_hinders_nothing(workspace):
    path = workspace.root / "f"
    path.write_text("one\n")
    workspace("read", path="f")
    os.utime(path, (1, 1))
    workspace("write", path="f", content="two\n")
    assert path.read_text() == "two\n"


def test_content_is_compared_not_size_and_time(workspace):
    path = workspace.root / "f"
    path.write_text("one\n")
    workspace("read", path="f")
    status = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ToolError, match="changed since it was read"):
        workspace("write", path="f", content="three\n")


def test_what_this_chat_wrote_or_never_read_may_be_overwritten(workspace):
    (workspace.root / "f").write_text("never read")
    workspace("write", path="f", content="one")
    workspace("write", path="f", content="two")
    assert workspace("write", path="f", content="two") == "f already has exactly this content (3 bytes)"
    os.unlink(workspace.root / "f")
    assert "new file" in workspace("write", path="f", content="three")


# ---- what cannot be written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("d", "d is a directory"),
        ("p", "p is not a regular file (fifo)"),
        ("plain/x", "cannot write plain/x: a part of the path is a file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_is_no_file_is_left_alone(workspace, path, message):
    (workspace.root / "d").mkdir()
    (workspace.root / "plain").write_text("")
    os.mkfifo(workspace.root / "p")
    with pytest.raises(ToolError, match=re.escape(message)):
        workspace("write", path=path, content="x")
    assert names(workspace) == ["d", "p", "plain"]


WRITE_AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cass import tools
from cass.tools.paths import Place
root, write = Path(sys.argv[2]), tools.find("write")
os.setgid(65534), os.setuid(65534)
place = Place(root, root / "home", root / "out", "call", "chat", {}, {})
async def main():
    async for piece in write.run({"path": "f", "content": "new"}, place):
        print(piece.content)
try:
    asyncio.run(main())
except tools.ToolError as e:
    print("Error:", e)
"""


def write_as_nobody(root: str) -> str:
    package = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITE_AS_NOBODY, str(package), root]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
def test_a_write_protected_file_and_directory_stay_as_they_are():
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        path = Path(root, "f")
        path.write_text("old")
        assert write_as_nobody(root) == "Error: cannot write f: it is write-protected"
        assert path.read_text() == "old"
        path.unlink()
        assert write_as_nobody(root) == "Error: cannot write f: permission denied"
        path.write_text("old")
        path.chmod(0o666)
        assert write_as_nobody(root) == "Error: cannot write f: permission denied"
        assert os.listdir(root) == ["f"]


@pytest.mark.skipif(not ROOT, reason="only root may mount")
def test_a_full_disk_changes_nothing_and_leaves_nothing(workspace):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(workspace.root)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (workspace.root / "f").write_text("old")
        with pytest.raises(ToolError, match=r"^cannot write f: the disk is full; nothing was changed$"):
            workspace("write", path="f", content="x" * 1_000_000)
        assert (workspace.root / "f").read_text() == "old"
        assert names(workspace) == ["f"]
    finally:
        subprocess.run(["umount", str(workspace.root)], check=True)


def test_a_full_disk_and_a_used_up_quota_are_told_apart(workspace):
    path = str(workspace.root / "f")
    said = [str(failure("write", path, workspace.place, OSError(code, ""))) for code in (errno.ENOSPC, errno.EDQUOT)]
    assert said == [
        "cannot write f: the disk is full; nothing was changed",
        "cannot write f: the disk quota is used up; nothing was changed",
    ]


def test_it_tells_what_it_changed_in_a_text(workspace):
    assert workspace.outcome("write", path="f", content="a\nb\n").diff == "@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert workspace.outcome("write", path="f", content="a\nc\n").diff == "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert workspace.outcome("write", path="f", content="a\nc\n").diff is None
    (workspace.root / "binary").write_bytes(b"\0\1")
    assert workspace.outcome("write", path="binary", content="a\n").diff is None
