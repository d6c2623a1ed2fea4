"""The home: names of files, and directories that nobody else can read."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cass import home as homes
from cass.home import Home


def modes(root: Path) -> dict[str, str]:
    """Permissions of all there is below `root`, itself included, by relative path."""
    found = [root, *sorted(root.rglob("*"))]
    return {str(path.relative_to(root)): oct(stat.S_IMODE(path.lstat().st_mode)) for path in found}


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"CASS_HOME": "/x/y"}, "/x/y"),
        ({"CASS_HOME": ""}, "~/.cass"),
        ({}, "~/.cass"),
        ({"CASS_HOME": "below"}, "below"),
    ],
)
def test_the_home_is_absolute_wherever_it_is_named(environ, root):
    assert Home.find(environ).root == Path(root).expanduser().absolute()


def test_all_files_of_a_chat_are_below_the_home(home):
    files = home.files("2026-06-20-143012-a8f3")
    names = ("chat", "run", "lock", "attached", "bell", "inbox", "socket", "live", "out", "draft", "log")
    paths = [getattr(files, name) for name in names]
    assert all(path.is_relative_to(home.root) for path in paths)
    assert len(set(paths)) == len(names)
    assert not home.root.exists(), "naming a file makes none"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_what_is_made_is_private_whatever_the_umask(tmp_path, umask):
    code = (
        "import os, sys; from pathlib import Path; from cass.home import Home, create_private;"
        f"os.umask({umask}); files = Home(Path(sys.argv[1])).files('c'); files.make(); files.make();"
        "os.close(create_private(files.chat))"
    )
    root = tmp_path / "deep" / "home"
    done = subprocess.run([sys.executable, "-c", code, str(root)], timeout=60, capture_output=True, text=True)
    if umask == 0o777 and os.geteuid() != 0:
        assert done.returncode != 0
        return
    assert done.returncode == 0, done.stderr
    allowed = 0o700 & ~umask
    assert modes(root) == {
        ".": oct(allowed),
        "conversations": oct(allowed),
        "conversations/c.jsonl": oct(0o600 & ~umask),
        "run": oct(allowed),
        "run/c": oct(allowed),
        "run/c/inbox": oct(allowed),
    }
    assert oct(stat.S_IMODE((tmp_path / "deep").stat().st_mode)) == oct(allowed)


def test_a_directory_that_exists_is_left_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    homes.make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_ten_processes_make_the_same_directories_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from cass.home import Home;"
        "sys.stdin.read(); Home(Path(sys.argv[1])).files('c').make()"
    )
    root = tmp_path / "a" / "b" / "home"
    makers = [
        subprocess.Popen([sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    for maker in makers:
        maker.stdin.close()
    for maker in makers:
        maker.stdin = None
        _, said = maker.communicate(timeout=60)
        assert maker.returncode == 0, said.decode()
    assert (root / "run" / "c" / "inbox").is_dir()


def test_a_descriptor_made_here_is_not_inherited(tmp_path):
    fd = homes.create_private(tmp_path / "x")
    try:
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)
