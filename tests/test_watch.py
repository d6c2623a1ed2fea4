"""The watch: appends, replacements and new files wake it, with the system's help and without."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cass.viewer.watch import Watch


@pytest.fixture(params=[False, True], ids=["watching", "polling"])
def by_polling(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def is_woken(watch: Watch, timeout_s: float = 10.0) -> bool:
    return bool(select.select([watch], [], [], timeout_s)[0])


def settle(watch: Watch, path: Path) -> None:
    """Wait until the watch is surely up: until an append wakes it by itself, sooner than its backstop would."""
    for _ in range(50):
        watch.drain()
        append(path)
        if is_woken(watch, 0.1):
            return
    raise AssertionError("the watch never came up")


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"line\n")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    (tmp_path / "conversations").mkdir()
    path = tmp_path / "conversations" / "chat.jsonl"
    path.write_bytes(b"first\n")
    return path


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return tmp_path / "run" / "live.jsonl"


@pytest.fixture
def watch(chat: Path, live: Path, by_polling: bool) -> Iterator[Watch]:
    watch = Watch(chat, live, by_polling=by_polling)
    yield watch
    watch.close()


def test_an_append_wakes(watch: Watch, chat: Path) -> None:
    settle(watch, chat)
    watch.drain()
    append(chat)
    assert is_woken(watch)


def test_a_file_in_a_directory_that_was_missing_wakes_and_so_does_its_replacement(
    watch: Watch, chat: Path, live: Path
) -> None:
    settle(watch, chat)
    live.parent.mkdir()
    settle(watch, chat)  # any wake makes it look for new directories
    for text in (b"one\n", b"two\n"):
        watch.drain()
        new = live.with_name(".new")
        new.write_bytes(text)
        new.rename(live)
        assert is_woken(watch)


def test_it_can_be_woken_by_hand_and_drained(watch: Watch) -> None:
    for _ in range(100_000):
        watch.wake()
    assert is_woken(watch, 0)
    watch.drain()


LEAVES = """
import os, sys
from pathlib import Path
from stage import wait_for
from cass.viewer.watch import Watch

before = len(os.listdir("/dev/fd"))
for _ in range(3):
    Watch(Path(sys.argv[1]), Path(sys.argv[2]), by_polling=sys.argv[3] == "True").close()
wait_for(lambda: len(os.listdir("/dev/fd")) == before)  # the system's watch ends in a thread of its own
"""


def test_it_leaves_no_descriptor_and_no_thread(chat: Path, live: Path, by_polling: bool) -> None:
    """In a process of its own: what tests before left open may be closed meanwhile."""
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", LEAVES, str(chat), str(live), str(by_polling)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
