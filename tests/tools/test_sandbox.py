"""In the sandbox a command sees and changes no more than it should, and else is as outside."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Workspace

from cass import tools
from cass.access import Mode
from cass.tools import guards, hidden, sandbox
from cass.tools.cell import SHELL
from cass.tools.guards import Guards
from cass.tools.hidden import Mount
from cass.tools.paths import Place
from cass.tools.sandbox import View

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")


class Held(Workspace):
    """A workspace whose commands are sandboxed."""

    net = False
    writable: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        return replace(super().place, sandboxed=True, net=self.net, writable=self.writable)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Not below /tmp, where nothing but the workspace would be seen anyway."""
    top = Path(tempfile.mkdtemp(prefix="cass-test-", dir="/var/tmp")).resolve()
    made = [top / name for name in ("W", "OUT", "person/.cass")]
    for directory in made:
        directory.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(top / "person"))
    yield Held(*made)
    shutil.rmtree(top)


def test_it_works_where_the_tests_run():
    assert sys.platform != "linux" or sandbox.problem() is None


@pytest.mark.parametrize(
    ("mode", "choice", "wanted"),
    [
        (Mode.READ_ONLY, None, False),
        (Mode.WORKSPACE_EDIT, None, True),
        (Mode.WORKSPACE_EDIT, False, False),
        (Mode.FULL_ACCESS, None, False),
        (Mode.FULL_ACCESS, True, True),
    ],
)
def test_the_mode_says_whether_it_is_used_and_the_person_says_otherwise(mode, choice, wanted):
    assert sandbox.holds(mode, choice) == (wanted and sandbox.problem() is None)


# ---- what it is told ------------------------------------------------------------------------------------------------


def mounted(**view) -> list[tuple[str, ...]]:
    """Mounts in their order: the option and where, without what stands there."""
    words, found = sandbox.arguments(View(tmp="/cell", **view)), []
    for at, word in enumerate(words):
        if word in ("--bind", "--ro-bind"):
            found.append((word, words[at + 2]))
        elif word in ("--tmpfs", "--dir", "--remount-ro"):
            found.append((word, words[at + 1]))
    return found


@pytest.mark.parametrize(
    ("view", "what"),
    [
        ({"workspace": "/h/w", "closed": {"/h/w/.cass"}}, [("--bind", "/h/w"), ("--tmpfs", "/h/w/.cass")]),
        ({"workspace": "/h/.cass/w", "closed": {"/h/.cass"}}, [("--tmpfs", "/h/.cass"), ("--dir", "/h/.cass/w")]),
        ({"workspace": "/h/.cass", "closed": {"/h/.cass"}}, [("--tmpfs", "/h/.cass")]),
        ({"workspace": "/h", "directories": {"/h/.ssh"}}, [("--bind", "/h"), ("--tmpfs", "/h/.ssh")]),
        ({"workspace": "/h/.ssh/w", "directories": {"/h/.ssh"}}, [("--tmpfs", "/h/.ssh"), ("--bind", "/h/.ssh/w")]),
        ({"workspace": "/h", "directories": {"/h/.a"}, "files": {"/h/.a/s"}}, [("--bind", "/h"), ("--tmpfs", "/h/.a")]),
        ({"workspace": "/w", "files": {"/k"}}, [("--bind", "/w"), ("--ro-bind", "/k")]),
        (
            {"workspace": "/w", "guards": Guards({"/w/.git/config"}, {"/w/.git"}, {})},
            [("--bind", "/w"), ("--bind", "/w/.git"), ("--ro-bind", "/w/.git/config")],
        ),
        (
            {
                "workspace": "/h",
                "closed": {"/h/c"},
                "guards": Guards({"/h/c/.envrc"}, {"/h/c"}, {}),
                "files": {"/h/c/k"},
            },
            [("--bind", "/h"), ("--tmpfs", "/h/c")],
        ),
    ],
)
def test_every_mount_comes_after_the_one_it_lies_in_and_what_is_closed_stays_closed(view, what):
    made = mounted(**view)
    own = [("--ro-bind", "/"), ("--tmpfs", "/run"), ("--bind", "/tmp")]
    assert [one for one in made if one not in own and one[0] != "--remount-ro"] == what
    assert made[0] == ("--ro-bind", "/")
    hidden_places = [path for option, path in made if option == "--tmpfs"]
    assert sorted(path for option, path in made if option == "--remount-ro") == sorted([*hidden_places, "/proc"])


def test_a_workspace_in_tmp_is_all_that_is_seen_of_it():
    made = mounted(workspace="/tmp/w", files=frozenset({"/tmp/s"}))
    assert made.index(("--bind", "/tmp")) < made.index(("--bind", "/tmp/w"))
    assert ("--ro-bind", "/tmp/s") not in made


@pytest.mark.parametrize("net", [True, False])
def test_there_is_no_network_unless_it_is_given(net):
    assert ("--unshare-net" in sandbox.arguments(View(workspace="/w", tmp="/t", net=net))) is not net


def test_a_directory_is_hidden_wherever_it_is_mounted():
    mounts = [Mount("8:1", "/", "/"), Mount("8:1", "/home", "/mnt/home"), Mount("8:2", "/", "/data")]
    assert [*hidden.aliases("/home/u/.cass", mounts)] == ["/mnt/home/u/.cass"]
    mounts = [Mount("0:5", "/@", "/"), Mount("0:5", "/@home", "/home"), Mount("0:5", "/", "/mnt/all")]
    assert [*hidden.aliases("/home/u/.cass", mounts)] == ["/mnt/all/@home/u/.cass"]
    mounts = [Mount("8:1", "/", "/"), Mount("8:1", "/home/u/.cass/run", "/srv/run")]
    assert [*hidden.aliases("/home/u/.cass", mounts)] == ["/srv/run"]
    assert [*hidden.aliases("/home/u/.cass", [])] == []


def test_what_the_kernel_says_of_mounts_and_sockets_is_understood():
    line = b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    assert hidden.mounts(line) == (Mount("98:0", "/mnt1", "/mnt 2"),)
    head = b"Num       RefCount Protocol Flags    Type St Inode Path\n"
    rows = [b"/run/a b", b"@/abstract", b"relative", b""]
    listing = head + b"".join(b"0000: 00000002 00000000 00010000 0001 01 12345 " + row + b"\n" for row in rows)
    assert hidden.sockets(listing) == {"/run/a b"}


# ---- what a command sees --------------------------------------------------------------------------------------------


@linux
def test_a_command_writes_to_the_workspace_and_to_tmp_and_nowhere_else(held):
    (held.beside / "old").write_text("old")
    said = held.outcome(
        "shell", command=f"echo new > made; echo t > /tmp/cass-t; echo x > {held.beside}/old; touch ~/x"
    )
    assert (held.root / "made").read_text() == "new\n"
    assert said.content.count("Read-only file system") == 2
    assert said.content.endswith("[sandboxed: writes only to the workspace and /tmp, no network]")
    assert (held.beside / "old").read_text() == "old"
    assert held("shell", command="cat /tmp/cass-t") == "t"  # the next command of the chat finds it
    assert not Path("/tmp/cass-t").exists()


@linux
def test_nothing_of_the_kernel_can_be_set(held):
    find = "find /proc/sys /proc/sysrq-trigger /proc/irq /proc/self/ /sys/kernel /sys/power -maxdepth 2 -type f"
    opened = f"{find} 2>/dev/null | while read -r at; do (exec 9>>$at) 2>/dev/null && echo $at; done"
    assert held("shell", command=f"{opened}; echo out > /dev/stdout; echo err > /dev/stderr") == "out\nerr"


@linux
def test_credentials_and_what_cass_keeps_are_hidden_by_every_name(held, monkeypatch):
    person = held.home.parent
    for name in (".cass/config.json", ".ssh/id", ".netrc", "keys/real", "kube/config"):
        (person / name).parent.mkdir(exist_ok=True)
        (person / name).write_text("SECRET")
    (person / ".npmrc").symlink_to("keys/real")
    monkeypatch.setenv("KUBECONFIG", f"{person}/kube/config")
    (held.root / "link").symlink_to(held.home)
    (held.root / "other").symlink_to("../person")
    command = f"grep -rs SECRET {person}/ {person}/.??* link/ other/ other/.cass/; ls -A ~/.cass ~/.ssh; echo end"
    assert held("shell", command=command) == f"{person}/.cass:\n\n{person}/.ssh:\nend"


@linux
def test_what_other_programs_run_is_read_only_and_a_repository_stays_where_it_is(held):
    for name in (".", "sub/repo"):
        subprocess.run(["git", "init", "-q", str(held.root / name)], check=True)
    (held.root / ".envrc").write_text("good\n")
    (held.root / "sub/.vscode").mkdir()
    git = "git -c user.name=n -c user.email=n@n"
    command = f"""
        echo bad > .envrc; rm -f .envrc; mv .envrc x; touch sub/.vscode/tasks.json
        for at in .git sub/repo/.git; do
            echo bad >> $at/config; touch $at/hooks/pre-commit; mv $at $at.old; rm -rf $at/config
        done
        git config core.fsmonitor bad
        {git} add .envrc; {git} commit -qm works"""
    held.outcome("shell", command=command)
    assert (held.root / ".envrc").read_text() == "good\n"
    assert os.listdir(held.root / "sub/.vscode") == []
    for at in (held.root / ".git", held.root / "sub/repo/.git"):
        assert "bad" not in (at / "config").read_text()
        assert not (at / "hooks/pre-commit").exists()
    said = subprocess.run(["git", "log", "--format=%s"], cwd=held.root, capture_output=True, text=True, check=True)
    assert said.stdout == "works\n"


@linux
def test_what_lies_above_a_guarded_file_cannot_be_swapped_for_a_copy(held):
    guarded = (".github/workflows/ci.yml", "packages/a/.vscode/tasks.json", "bare/config", "bare/hooks/post-update")
    subprocess.run(["git", "init", "-q", "--bare", str(held.root / "bare")], check=True)
    for name in guarded:
        (held.root / name).parent.mkdir(parents=True, exist_ok=True)
        (held.root / name).write_text("good\n")
    swap = "for at in .github packages packages/a bare; do mv $at x; cp -r x $at; rm -rf x; done"
    said = held.outcome("shell", command=f"{swap}; for at in {' '.join(guarded)}; do echo bad > $at; done; echo tried")
    assert "tried" in said.content
    assert [(held.root / name).read_text() for name in guarded] == ["good\n"] * len(guarded)


@linux
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("echo x > .envrc; echo x > a/.envrc", ".envrc, a/.envrc"),
        ("rm .vimrc; cp real .vimrc", ".vimrc"),  # it was a link, which nothing can be mounted over
        ("git init -q sub", "sub/.git"),
        ("git init -q --bare x", "x/config, x/hooks"),
        ("echo ../evil > .git/commondir; echo x > .git/config.worktree", ".git/commondir, .git/config.worktree"),
        ("mkdir -p .vscode; for n in 1 2 3 4 5 6; do touch $n.code-workspace; done; exit 3", "2.code-workspace"),
        ("echo x > real; echo y > a/b; git add a; git -c user.name=n -c user.email=n@n commit -qm c", ""),
    ],
)
def test_what_other_programs_run_and_a_command_made_is_said(held, command, named):
    subprocess.run(["git", "init", "-q", str(held.root)], check=True)
    (held.root / "a").mkdir()
    (held.root / "real").write_text("good")
    (held.root / ".vimrc").symlink_to("real")
    said = held.outcome("shell", command=command)
    text = "made or changed meanwhile, and run or trusted by other programs: "
    assert (text + named in (said.notice or "") or f", {named}," in (said.notice or "")) == bool(named), said
    assert (text in said.content) == bool(named)


@linux
def test_the_person_may_make_more_directories_writable_but_not_what_is_hidden_in_them(held):
    cache = held.home.parent / ".cargo"
    cache.mkdir()
    (cache / "credentials").write_text("SECRET")
    held.writable = ("~/.cargo", "~/.not-there", str(held.beside))
    said = held("shell", command=f"touch ~/.cargo/a {held.beside}/b; cat ~/.cargo/credentials; touch ~/x || echo no")
    assert said.endswith("Read-only file system\nno")
    assert (cache / "a").exists()
    assert (held.beside / "b").exists()
    assert sandbox.words(held.place).startswith(f"sandboxed: writes only to ~/.cargo, ~/.not-there, {held.beside}, the")


@linux
@pytest.mark.parametrize(("writable", "why"), [("~/.cargo", "is a link"), ("~/../person", "holds your home")])
def test_what_was_made_writable_does_not_lead_elsewhere(held, writable, why):
    (held.home.parent / ".cargo").symlink_to(held.beside)
    held.writable = (writable,)
    with pytest.raises(tools.ToolError, match=f"{why}.*nothing was run"):
        held.outcome("shell", command="echo ran")


GIT = "git -c user.name=n -c user.email=n@n -c protocol.file.allow=always"


@linux
@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_worktree_and_a_submodule_can_be_committed_to_and_what_git_runs_there_cannot_be_changed(held, kind):
    main = held.beside / "main"
    made = {
        "worktree": f"{GIT} -C main worktree add -q ../tree",
        "submodule": f"{GIT} -C main submodule add -q ../main tree",
    }
    start = f"git init -q main && {GIT} -C main commit -q --allow-empty -m 1 && {made[kind]}"
    subprocess.run(["bash", "-c", start], cwd=held.beside, check=True)
    tree = held.beside / ("tree" if kind == "worktree" else "main/tree")
    held.root.rmdir()
    held.root = tree
    bad = "at=$(git rev-parse --git-common-dir); echo x >> $at/config; touch $at/hooks/x; mv $at/hooks $at/h"
    said = held.outcome("shell", command=f"echo 1 > a; git add a; {GIT} commit -qm works; {bad}; git log --format=%s")
    assert subprocess.run(["git", "log", "-1", "--format=%s"], cwd=tree, capture_output=True).stdout == b"works\n"
    assert said.notice is None
    assert not list(main.rglob(".git/**/hooks/x"))


@linux
@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("../OUT/r/worktrees/a", {}),
        ("../OUT/r/worktrees/a", {"../OUT/r/worktrees/a/gitdir": "/elsewhere/.git"}),
        ("worktrees/a", {"worktrees/a/gitdir": "{root}/.git", "worktrees/a/commondir": "{root}/../OUT/r"}),
        ("fake", {"fake/config": "[core]\n\tworktree = .."}),
        ("../OUT/r", {"../OUT/r/config": "[core]\n\tworktree = ../elsewhere"}),
    ],
)
def test_a_repository_elsewhere_that_does_not_know_the_workspace_is_none_of_it(held, own, files):
    (held.root / own).mkdir(parents=True)
    (held.root / ".git").write_text(f"gitdir: {own}\n")
    for name, text in files.items():
        (held.root / name).parent.mkdir(parents=True, exist_ok=True)
        (held.root / name).write_text(text.format(root=held.root) + "\n")
    assert guards.repository(str(held.root)) is None


@linux
def test_why_git_cannot_be_configured_is_said(held):
    subprocess.run(["git", "init", "-q", str(held.root)], check=True)
    assert held.outcome("shell", command="git remote add o /x").content.endswith("runs: leave that to the user]")


@linux
def test_a_workspace_that_became_a_link_is_none(held):
    moved = held.beside / "moved"
    held.root.rename(moved)
    held.root.symlink_to(held.home.parent)
    with pytest.raises(tools.ToolError, match="the workspace became a link"):
        held.outcome("shell", command="touch made")
    assert not (held.home.parent / "made").exists()


@linux
@pytest.mark.parametrize("net", [True, False])
def test_a_port_of_this_machine_is_reached_only_with_the_network(held, net):
    held.net = net
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert held.outcome("shell", command=f": < /dev/tcp/127.0.0.1/{port}").ok is net


@linux
@pytest.mark.parametrize("where", ["tmp", "home of cass", "in a home of cass", "through a link"])
def test_a_workspace_may_lie_anywhere(held, tmp_path, where):
    match where:
        case "tmp":
            held.root = Path(tempfile.mkdtemp(dir="/tmp"))
        case "home of cass":
            held.root = held.home
        case "in a home of cass":
            held.root = held.home / "docs"
            held.root.mkdir()
        case _:
            (held.beside / "link").symlink_to(held.root)
            held.root = (held.beside / "link").resolve()
    (held.root / "file").write_text("here")
    try:
        seen = held("shell", command="pwd; ls")
    finally:
        if where == "tmp":
            shutil.rmtree(held.root)
    assert seen.splitlines()[0] == str(held.root)
    assert ("file" in seen) is ("cass" not in where)


# ---- and else it is as outside --------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize(
    ("command", "begins", "ok"),
    [
        ("echo one; echo two >&2; echo three", "one\ntwo\nthree", True),
        ("true", "(no output)", True),
        ("echo said; exit 1", "Error: exit status 1\nsaid\n[", False),
        ("exit 137", "Error: exit status 137\n[", False),
        ("kill -9 $$", "Error: killed by SIGKILL\n[", False),
        ("kill -SEGV $$", "Error: killed by SIGSEGV\n[", False),
        ("nosuchcommand", "Error: exit status 127\nbash: line 1: nosuchcommand: command not found\n[", False),
        ("kill -9 $PPID; sleep 5", "Error: ", False),
        ("cat; tty; : < /dev/tty", "Error: exit status 1\nnot a tty\n", False),
        ("echo $CASS_CHAT ${SSH_AUTH_SOCK-none} $TMPDIR $SHLVL", "a-chat none /tmp 1", True),
        ("kill -TERM $$", "Error: killed by SIGTERM\n[", False),
        ("wave; printenv one.two", "hello\n3", True),
        ("ls /proc/self/fd | wc -l", "4", True),
        ("printf '%s' '" + "x" * 100_000 + "' | wc -c", "100000", True),
    ],
)
def test_output_and_status_are_as_outside(held, command, begins, ok):
    held.environ = os.environ | {"SSH_AUTH_SOCK": "/x", "SHLVL": "0", "TMPDIR": "/var/tmp"}
    held.environ |= {"BASH_FUNC_wave%%": "() { echo hello; }", "one.two": "3"}
    outcome = held.outcome("shell", command=command)
    assert outcome.content.startswith(begins)
    assert outcome.ok == ok


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize(
    ("command", "said"),
    [("kill -9 $$", "illed"), ("kill -SEGV $$", "egmentation"), ("exit 137", ""), ("echo $SHLVL >&2", "")],
)
def test_whichever_shell_sh_is_it_tells_a_signal_from_a_status(shell, command, said):
    if (path := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} here")
    reading, writing = os.pipe()
    around = ["sh", "-c", SHELL, "sh", "bash", "-c", command]
    done = subprocess.run(around, executable=path, stdin=writing, capture_output=True, env=os.environ | {"SHLVL": "4"})
    os.close(writing)
    with open(reading) as report:
        begun, *lines = report.read().splitlines()
    assert (begun, done.stderr) == ("begun", b"5\n" if "SHLVL" in command else b"")
    assert bool(said) == any(said and said in line for line in lines)


def processes(mark: str) -> list[str]:
    return subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True).stdout.split()


def gone(mark: str) -> None:
    deadline = time.monotonic() + 10
    while processes(mark):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.01)


@linux
def test_what_is_left_in_the_background_ends_with_the_command_which_is_said(held):
    said = held("shell", command="sleep 61.25 & setsid sleep 61.25 >/dev/null 2>&1 & echo done")
    assert said == "done\n[processes of this command still ran; in the sandbox they end with it]"
    gone("sleep 61.25")
    assert held("shell", command="true & wait; echo done") == "done"


@linux
def test_at_its_limit_a_command_is_told_to_end_and_then_all_of_it_is_killed(held):
    command = "trap 'echo bye; exit' TERM; setsid sleep 62.25 & echo hi; while :; do sleep 0.01; done"
    content = held.outcome("shell", command=command, timeout_ms=600).content
    assert content.startswith("Error: timed out after 0.6 s\nhi\n")
    assert "\nbye\n[sandboxed" in content
    gone("sleep 62.25")
    held.outcome("shell", command="trap '' TERM; sleep 63.25; sleep 63.25", timeout_ms=600)
    gone("sleep 63.25")


@linux
def test_a_cancelled_call_ends_all_of_it(held):
    async def main() -> None:
        arguments = {"command": "trap '' TERM; setsid sleep 64.25 & echo ready; sleep 64.25"}
        async with aclosing(tools.find("shell").run(arguments, held.place)) as pieces:
            assert await anext(pieces) == "ready\n"

    asyncio.run(main())
    gone("sleep 64.25")


@linux
def test_twenty_calls_leave_no_descriptor_open(held):
    async def main() -> tuple[int, int]:
        await held.call("shell", command="true")
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            await held.call("shell", command="sleep 9 & true")
        return before, len(os.listdir("/dev/fd"))

    before, after = asyncio.run(main())
    assert after == before


@linux
def test_where_the_sandbox_cannot_be_made_nothing_is_run(held):
    made = held.beside / "made"
    held.root = Path(f"/proc/{os.getpid()}")  # which is not there in the sandbox
    with pytest.raises(tools.ToolError, match="the sandbox could not be made, and the command was not run: bwrap: "):
        held.outcome("shell", command=f"touch {made}")
    assert not made.exists()


@linux
def test_a_socket_that_goes_while_the_sandbox_is_made_keeps_no_command_from_running(held):
    code = (
        "import os, socket, sys, time\n"
        "for n in range(10**9):\n"
        "    path = f'{sys.argv[1]}/{n % 7}'\n"
        "    with socket.socket(socket.AF_UNIX) as made:\n"
        "        made.bind(path)\n"
        "        time.sleep(0.001)\n"
        "        os.unlink(path)\n"
        "    time.sleep(0.004)\n"
    )
    churning = subprocess.Popen([sys.executable, "-c", code, str(held.beside)])
    try:
        said = [held.outcome("shell", command="echo ran").content for _ in range(40)]
    finally:
        churning.kill()
        churning.wait()
    assert said == ["ran"] * 40
