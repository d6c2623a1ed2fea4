"""shell runs one command to its end or its limit, and everything that it began with it."""

import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from cass import tools
from cass.errors import ToolError
from cass.tools import shell
from cass.tools.shell import FILE_BYTES, KEPT_BYTES, Output

REMARK = "[processes of this command still run in the background; what they print now is not read]"


def run(workspace, command, **more):
    return workspace.outcome("shell", command=command, **more)


def until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def pid_in(path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


@pytest.mark.parametrize(
    ("command", "content", "ok"),
    [
        ("echo hi", "hi", True),
        ("true", "(no output)", True),
        ("echo one; echo two >&2; echo three", "one\ntwo\nthree", True),
        ("exit 3", "Error: exit status 3", False),
        ("echo said; exit 1", "Error: exit status 1\nsaid", False),
        ("kill -9 $$", "Error: killed by SIGKILL", False),
        ("nosuchcommand", "Error: exit status 127\nbash: line 1: nosuchcommand: command not found", False),
        ("echo $(( 1 + 1 )); [[ a == a ]] && echo bash", "2\nbash", True),
        (
            "shopt -q login_shell || echo no login; [[ $- == *i* ]] || echo not interactive",
            "no login\nnot interactive",
            True,
        ),
        (r"printf 'a\xffb\n'", "a\ufffdb", True),
        (r"printf '\303'; printf '\251'", "é", True),
    ],
)
def test_a_command_gives_its_output_in_order_and_its_status(workspace, command, content, ok):
    outcome = run(workspace, command)
    assert (outcome.content, outcome.ok) == (content, ok)


def test_each_command_begins_in_the_workspace(workspace):
    (workspace.root / "sub").mkdir()
    assert workspace("shell", command="cd sub && pwd") == f"{workspace.root}/sub"
    assert workspace("shell", command="pwd") == str(workspace.root)


def test_the_environment_is_the_given_one_and_names_the_chat(workspace):  # F-04
    workspace.environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    names = [line.partition("=")[0] for line in workspace("shell", command="env").splitlines()]
    assert sorted(set(names) - {"PWD", "OLDPWD", "SHLVL", "_"}) == ["CASS_CHAT", "LANG", "PATH"]
    assert workspace("shell", command="echo $CASS_CHAT") == "a-chat"


def test_output_comes_while_the_command_runs(workspace):
    async def main() -> None:
        go = workspace.root / "go"
        arguments = {"command": f"echo first; until [ -e {go} ]; do sleep 0.01; done; printf last"}
        async with aclosing(tools.find("shell").run(arguments, workspace.place)) as pieces:
            assert await anext(pieces) == "first\n"
            go.touch()
            assert await anext(pieces) == "last"
            assert await anext(pieces) == tools.Outcome("first\nlast")

    asyncio.run(main())


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60 & echo done; echo $! > pid",
        "setsid sleep 60 & echo done; echo $! > pid",
        "nohup sleep 60 & echo done; echo $! > pid",
        "sleep 60 >/dev/null & echo done; echo $! > pid",
        "sleep 60 >/dev/null 2>&1 & echo done; echo $! > pid",
        "(while :; do echo x; sleep 0.01; done) & echo done; echo $! > pid",
    ],
)
def test_a_background_child_does_not_hold_the_call_open(workspace, command):  # F-01
    begun = time.monotonic()
    outcome = run(workspace, command)
    pid = pid_in(workspace.root / "pid")
    try:
        assert time.monotonic() - begun < 5
        assert outcome.ok
        assert re.search(r"^done$", outcome.content, re.MULTILINE)
        assert outcome.content.endswith(REMARK)
        assert is_alive(pid) or "echo x" in command  # that one ends by what it prints
    finally:
        subprocess.run(["kill", "-9", str(pid)], stderr=subprocess.DEVNULL)


def test_a_child_that_has_ended_is_no_background_process(workspace):
    assert workspace("shell", command="(exec true) & wait; echo done") == "done"
    assert workspace("shell", command="true & echo done; sleep 0.1") == "done"


def test_a_hundred_calls_leave_no_descriptor_open(workspace):  # F-01
    async def main() -> tuple[int, int]:
        await workspace.call("shell", command="true")
        before = len(os.listdir("/dev/fd"))
        for _ in range(100):
            await workspace.call("shell", command="sleep 0.2 & echo done")
        return before, len(os.listdir("/dev/fd"))

    before, after = asyncio.run(main())
    assert after == before


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM; (echo $BASHPID > pid; sleep 60) & sleep 60",
        "echo $$ > pid; sleep 60; true",
        "bash -c 'trap \"\" TERM; (sleep 60) & echo $! > pid; sleep 60'",
    ],
)
def test_at_its_limit_a_command_ends_with_its_whole_group(workspace, command):  # F-02
    begun = time.monotonic()
    outcome = run(workspace, f"echo so far; {command}", timeout_ms=300)
    assert time.monotonic() - begun < 5
    assert (outcome.content, outcome.ok) == ("Error: timed out after 0.3 s\nso far", False)
    pid = pid_in(workspace.root / "pid")
    until(lambda: not is_alive(pid))
    assert workspace("shell", command="echo next") == "next"


def test_what_a_command_says_when_it_is_told_to_end_is_kept(workspace):
    command = "trap 'echo bye; exit' TERM; echo hi; while :; do sleep 0.01; done"
    content = run(workspace, command, timeout_ms=300).content
    assert content.startswith("Error: timed out after 0.3 s\nhi\n")
    assert content.endswith("\nbye")  # bash may say before it that the `sleep` was terminated


@pytest.mark.parametrize("how", ["cancelled", "closed", "cancelled twice"])
def test_a_call_that_is_cancelled_ends_its_whole_group(workspace, how):
    arguments = {"command": "trap '' TERM; (sleep 60) & echo $! > pid; echo ready; sleep 60"}

    async def main() -> None:
        async def call() -> None:
            async with aclosing(tools.find("shell").run(arguments, workspace.place)) as pieces:
                assert await anext(pieces) == "ready\n"
                ready.set()
                if how != "closed":
                    await anext(pieces)

        ready = asyncio.Event()
        task = asyncio.create_task(call())
        await ready.wait()
        if how != "closed":
            task.cancel()
            await asyncio.sleep(0)
        if how == "cancelled twice":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == (how != "closed")
        while len(asyncio.all_tasks()) > 1:  # a second cancel does not wait for the end of bash
            await asyncio.sleep(0.01)

    asyncio.run(main())
    pid = pid_in(workspace.root / "pid")
    until(lambda: not is_alive(pid))


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        'read -p "name? " x; echo "got:$x"',
        "python3 -c 'open(\"/dev/tty\").readline()'",
        "tty",
        "GIT_ASKPASS= git -c credential.helper= ls-remote https://127.0.0.1:9/x.git",
    ],
)
def test_a_command_that_asks_fails_at_once(workspace, command):  # F-03
    begun = time.monotonic()
    run(workspace, command)
    assert time.monotonic() - begun < 5


def test_a_flood_is_cut_in_the_middle_and_kept_in_a_private_file(workspace):  # G-04
    before = os.umask(0)
    try:
        outcome = run(workspace, "seq 1 300000")
    finally:
        os.umask(before)
    whole = "".join(f"{n}\n" for n in range(1, 300_001))
    kept = workspace.place.out / "call-1"
    assert kept.read_text() == whole
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in (kept.parent, kept.parent.parent))
    assert len(outcome.content.encode()) < KEPT_BYTES + 500
    assert outcome.content.startswith("1\n2\n3\n")
    assert outcome.content.endswith("\n299999\n300000")
    left_out = len(whole) - KEPT_BYTES
    assert f"\n[{left_out:,} of {len(whole):,} bytes left out here; all of it is kept in {kept}" in outcome.content
    assert workspace.live == whole


def test_a_file_that_was_promised_stays_when_the_id_of_its_call_comes_again(workspace):
    contents = [run(workspace, f"seq {start} 300000").content for start in (1, 2, 3)]
    for content, start, name in zip(contents, (1, 2, 3), ("call-1", "call-1-2", "call-1-3"), strict=True):
        kept = workspace.place.out / name
        assert f"all of it is kept in {kept}, for the person]" in content
        assert kept.read_text() == "".join(f"{n}\n" for n in range(start, 300_001))


def test_a_link_that_waits_for_the_output_is_not_followed(workspace):
    victim = workspace.beside / "victim"
    victim.write_text("untouched")
    workspace.place.out.mkdir(parents=True)
    (workspace.place.out / "call-1").symlink_to(victim)
    assert "call-1-2, for the person" in run(workspace, "seq 1 300000").content
    assert victim.read_text() == "untouched"


def test_short_output_makes_no_file(workspace):
    run(workspace, "seq 1 1000")
    assert not workspace.place.out.exists()


def test_a_flood_without_end_meets_the_time_limit_within_bounded_memory_and_disk(workspace):
    async def main() -> tools.Outcome:
        arguments = {"command": "yes", "timeout_ms": 1_500}
        async with aclosing(tools.find("shell").run(arguments, workspace.place)) as pieces:
            async for piece in pieces:
                if isinstance(piece, tools.Outcome):
                    return piece
        raise AssertionError

    begun = time.monotonic()
    outcome = asyncio.run(main())
    assert time.monotonic() - begun < 6
    assert outcome.content.startswith("Error: timed out after 1.5 s\ny\ny\n")
    assert len(outcome.content) < KEPT_BYTES + 500
    assert (workspace.place.out / "call-1").stat().st_size <= FILE_BYTES


@pytest.mark.parametrize("step", [1, 3, 1000, KEPT_BYTES // 2, KEPT_BYTES])
@pytest.mark.parametrize("size", [0, 1, KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1, 3 * KEPT_BYTES])
def test_what_is_kept_does_not_depend_on_the_pieces(tmp_path, size, step):
    if step < 100 < size:
        step *= 4_099
    data = bytes(65 + n % 26 for n in range(1000)) * (size // 1000 + 1)
    data = data[:size]
    output = Output(tmp_path / "out" / "call")
    for at in range(0, size, step):
        output.add(data[at : at + step])
    output.close()
    if size <= KEPT_BYTES:
        assert output.text() == data.decode()
        assert not (tmp_path / "out").exists()
    else:
        head, tail = data[: KEPT_BYTES // 2].decode(), data[-(KEPT_BYTES // 2) :].decode()
        assert output.text().startswith(head + "\n[")
        assert output.text().endswith("]\n" + tail)
        assert (tmp_path / "out" / "call").read_bytes() == data


def test_no_character_is_cut_in_half(tmp_path):
    output = Output(tmp_path / "call")
    output.add(b"x" + "é".encode() * KEPT_BYTES)
    output.close()
    assert "\ufffd" not in output.text()


def test_the_kept_file_has_a_limit_which_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(shell, "FILE_BYTES", 2 * KEPT_BYTES)
    output = Output(tmp_path / "call")
    for _ in range(5):
        output.add(b"x" * KEPT_BYTES)
    output.close()
    assert (tmp_path / "call").stat().st_size == 2 * KEPT_BYTES
    assert f"the first {2 * KEPT_BYTES:,} bytes are kept in" in output.text()


def test_output_that_cannot_be_kept_is_no_failure_of_the_command(tmp_path):
    (tmp_path / "out").write_text("in the way")
    output = Output(tmp_path / "out" / "call")
    output.add(b"x" * 2 * KEPT_BYTES)
    output.close()
    assert "they could not be kept: Not a directory" in output.text()


def test_a_workspace_that_is_gone_is_explained(workspace):
    os.rmdir(workspace.root)
    with pytest.raises(ToolError, match=r"^the workspace .*/W cannot be entered: No such file .*; nothing was run$"):
        run(workspace, "true")


def test_a_command_is_told_to_end_before_it_is_killed(workspace):
    run(
        workspace, f"trap 'echo {signal.SIGTERM.value} > told; exit' TERM; while :; do sleep 0.01; done", timeout_ms=200
    )
    assert (workspace.root / "told").read_text() == "15\n"


RUN_IT = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cass import tools
from cass.tools.paths import Place
root = Path(sys.argv[2])
place = Place(root, root / "home", root / "out", "call", "chat", {}, {"PATH": sys.argv[3]})
async def main():
    async for piece in tools.find("shell").run({"command": sys.argv[4]}, place):
        print(getattr(piece, "content", piece), flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


@pytest.fixture
def worker(workspace):
    """A process that runs a command, and then waits for the end of its input."""
    started = []

    def start(command: str) -> subprocess.Popen[bytes]:
        package = str(Path(__file__).parents[2])
        arguments = [sys.executable, "-c", RUN_IT, package, str(workspace.root), os.environ["PATH"], command]
        started.append(subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "command",
    ["echo $$ > pid; sleep 60; true", "(trap '' TERM; echo $BASHPID > pid; while :; do sleep 0.1; done); true"],
)
def test_a_command_ends_when_its_worker_is_killed(workspace, worker, command):
    running = worker(command)
    pid = pid_in(workspace.root / "pid")
    assert is_alive(pid)
    running.kill()
    until(lambda: not is_alive(pid))


def test_what_a_command_left_in_the_background_outlives_a_killed_worker(workspace, worker):
    running = worker("sleep 60 >/dev/null & echo $! > pid")
    pid = pid_in(workspace.root / "pid")
    try:
        assert (running.stdout.readline(), running.stdout.readline()) == (b"\n", REMARK.encode() + b"\n")
        left = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True).stdout
        assert left == ""  # nothing waits for its end
        running.kill()
        running.wait()
        assert is_alive(pid)
    finally:
        subprocess.run(["kill", "-9", str(pid)], stderr=subprocess.DEVNULL)
