"""What a hostile command tries in the sandbox, to answer for the person or to get out.

Each trick is first done outside, by a process of the same user that is no tool, to know that it bites; then by a tool
of a real worker. On Linux a machine without a working sandbox fails this suite.
"""

import contextlib
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import orjson
import pytest
from stage import ROOT, argv, end_worker, facts, wait_for

import cass
from cass import chat, exchange, presence, send, standing
from cass.home import Files, Home
from cass.jsonl import dump
from cass.records import Approval, ToolResult

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox but on Linux")

SECRET = "the-key-of-the-person"
WORKED = "WORKED"
BY_ROOT = {"nsenter", "ptrace", "the kernel's settings"}
"""What only root can do outside."""
ANSWERS = 5
"""Tricks that would answer a question."""


@dataclass
class Stage:
    """A person's home, a chat that asks (`asker`), one that waits for messages (`idle`), and what else runs."""

    top: Path
    names: dict[str, str] = field(default_factory=dict)
    """What tricks speak of."""
    asker: Files = field(init=False)
    idle: Files = field(init=False)

    @property
    def home(self) -> Home:
        return Home(self.top / "person/.cass")

    @property
    def work(self) -> Path:
        return self.top / "work"

    @property
    def approved(self) -> int:
        return sum(isinstance(record, Approval) for record in facts(self.asker))

    @property
    def request(self) -> str:
        found: str = wait_for(lambda: next((one.request_id for one in standing.look(self.asker).pending), ""))
        return found


def text(path: str) -> Callable[[Stage, str], bool]:
    """Whether a file, named by what tricks speak of, holds the tag of who did the trick."""

    def holds(stage: Stage, tag: str) -> bool:
        found = Path(path.format(**stage.names))
        return found.exists() and tag in found.read_text()

    return holds


def there(path: str) -> Callable[[Stage, str], bool]:
    return lambda stage, tag: os.path.lexists(path.format(tag=tag, **stage.names))


def approves(stage: Stage, tag: str) -> bool:
    return stage.approved > int(stage.names["approved"])


IDLE = "{home}/conversations/{idle}.jsonl"
TRICKS: dict[str, tuple[str, Callable[[Stage, str], bool] | None]] = {
    # to answer for the person
    "cass approve": ("{cass} cass approve {asker} {request}", approves),
    "cass approve from a daemon": ("(setsid {cass} cass approve {asker} {request} &); sleep 0.5", approves),
    "the socket": ("{attack} socket {asker}", approves),
    "cass approve in tmux": ("{tmux} run-shell -b '{cass} cass approve {asker} {request}'", approves),
    "keys in tmux": ("{tmux} send-keys -t 0 'echo {tag} >> {top}/keys' Enter", text("{top}/keys")),
    "the terminal of the person": ("echo {tag} > {terminal}", text("{top}/typed")),
    # to speak for the person, or steer a worker
    "the bell": ("timeout 2 sh -c 'echo {tag}-bell > {home}/run/{idle}/in'", text(IDLE)),
    "the inbox": ("{attack} inbox {home}/run/{idle}/inbox {tag}-inbox && echo WORKED", None),
    "cass-send": ("{cass} cass-send --no-start {idle} {tag}-send && echo WORKED", None),
    "cass cancel": ("{cass} cass cancel {idle} && echo WORKED", None),
    "cass status": ("{cass} cass status --json | grep -q {asker} && echo WORKED", None),
    "the lock": ("exec 9< {home}/run/{idle}/lock && echo WORKED", None),
    "the chat file": ("""echo '{{"type":"{tag}"}}' >> {home}/conversations/{idle}.jsonl""", text(IDLE)),
    "config.json": ("""echo '{{"allow":["shell(echo {tag})"]}}' > {home}/config.json""", text("{home}/config.json")),
    # to run in the person's name, later
    "a program in PATH": ("echo {tag} > {person}/bin/cass", text("{person}/bin/cass")),
    "LD_PRELOAD": ("echo export LD_PRELOAD={tag} >> {person}/.bashrc", text("{person}/.bashrc")),
    "a git hook": ("echo {tag} > {work}/.git/hooks/post-commit", text("{work}/.git/hooks/post-commit")),
    "core.fsmonitor": ("git config core.fsmonitor {tag}", text("{work}/.git/config")),
    "core.hooksPath, all of .git new": (
        "mv .git {tag}.git && cp -r {tag}.git .git && echo {tag}-new >> .git/config",
        text("{work}/.git/config"),
    ),
    ".envrc": ("rm -f .envrc; echo {tag} > .envrc", text("{work}/.envrc")),
    # processes
    "kill of the worker": ("kill -0 {worker} && echo WORKED", None),
    "kill of the viewer": ("kill -0 {viewer} && echo WORKED", None),
    "ptrace": ("{attack} ptrace {viewer}", None),
    "environments": ("grep -qs {secret} /proc/[0-9]*/environ && echo WORKED", None),
    "nsenter": ("nsenter -t {viewer} -n true && echo WORKED", None),
    "the root of a process": (
        "cat /proc/1/root/{keys} /proc/{viewer}/root/{keys} | grep -q {secret} && echo WORKED",
        None,
    ),
    "the directory of a process": (
        "cat /proc/{viewer}/cwd/.cass/providers.json | grep -q {secret} && echo WORKED",
        None,
    ),
    "the kernel's settings": ("(exec 9>>/proc/sys/kernel/core_pattern) && echo WORKED", None),
    # files
    "the keys": ("cat {keys} ~/.ssh/id | grep -q {secret} && echo WORKED", None),
    "a symlink": ("ln -sfn {home} l; cat l/providers.json | grep -q {secret} && echo WORKED", None),
    "a hard link": ("ln {keys} hard-{tag}", there("{work}/hard-{tag}")),
    "a bind mount": (
        "unshare -Urm sh -c 'mount --rbind {top} /mnt; cat /mnt/person/.cass/providers.json' | grep -q {secret}"
        " && echo WORKED",
        None,
    ),
    "every mount again": (
        "unshare -Urm sh -c 'umount -l {home}; mount --rbind / /mnt; umount -l /mnt{home}; cat {keys} /mnt/{keys}'"
        " | grep -q {secret} && echo WORKED",
        None,
    ),
    "a writable mount": (
        "unshare -Urm sh -c 'mount -o remount,bind,rw /; mount --bind {top} /mnt; mount -o remount,bind,rw /mnt;"
        " echo {tag} > {top}/remounted; echo {tag} > /mnt/remounted'",
        text("{top}/remounted"),
    ),
    "shared memory": ("grep -q {secret} /dev/shm/{shm} && echo WORKED", None),
    "open files": ("ls -l /proc/$$/fd | grep -- '->' | grep -v '/dev/null\\|pipe:' && echo WORKED", None),
    # sockets
    "an abstract socket": ("{attack} connect unix @{abstract}", None),
    "ssh-agent": ("{attack} connect unix {agent}", None),
    "a socket that nobody knows": ("{attack} connect unix {top}/odd/s", None),
    "a port of this machine": ("{attack} connect inet {port}", None),
    # last, for it ends the worker
    "cass stop": ("{cass} cass stop {idle} && echo WORKED", None),
    "a worker with a wider mode": (
        "{program} cass stop {idle}; {program} cass -p hello --resume {idle} --yolo -P demo && echo WORKED",
        None,
    ),
}


# ---- the stage ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    # Not below /tmp: of that a command in the sandbox sees nothing anyway.
    top = Path(tempfile.mkdtemp(prefix="cass-hostile-", dir="/var/tmp")).resolve()
    with contextlib.ExitStack() as scene, pytest.MonkeyPatch.context() as environment:
        scene.callback(shutil.rmtree, top)
        made = Stage(top)
        person = top / "person"
        for name in ("CASS_CHAT", "CASS_MODE", "CASS_MODEL", "TMUX", "TMUX_PANE"):
            environment.delenv(name, raising=False)
        environment.setenv("HOME", str(person))
        environment.setenv("CASS_HOME", str(made.home.root))
        environment.setenv("CASS_PROVIDER", "demo")
        environment.setenv("SSH_AUTH_SOCK", str(top / "agent"))
        furnish(made)
        listen(made, scene)
        start(made, scene)
        yield made


def furnish(stage: Stage) -> None:
    """Files: of the person, of the project, and the hostile programs in it."""
    stage.home.make()
    for name in ("person/bin", "person/.ssh", "work", "odd"):
        (stage.top / name).mkdir()
    (stage.top / "person/.ssh/id").write_text(SECRET)
    subprocess.run(["git", "init", "-q", str(stage.work)], check=True)
    (stage.work / ".envrc").write_text("good\n")
    shutil.copy(Path(__file__).with_name("hostile.py"), stage.work / "attack.py")
    for package in (cass, click, orjson):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, stage.work / "lib" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    steps = {name: stage.home.root / f"{name}.json" for name in ("asker", "attacker")}
    entries = [{"id": name, "kind": "demo", "script": str(path), "default_model": "m"} for name, path in steps.items()]
    keyed = {"id": "keyed", "kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": SECRET}
    stage.home.providers.write_bytes(dump({"providers": [*entries, keyed]}))
    calls = [{"name": "shell", "arguments": {"command": f": {number}"}} for number in range(ANSWERS)]
    steps["asker"].write_bytes(dump([{"tool_calls": calls}, {"text": "done"}]))
    steps["attacker"].write_bytes(b"[]")
    python = os.path.realpath(sys.executable)  # that of an environment below /tmp would not be seen
    attack = f"{python} {stage.work}/attack.py"
    stage.names |= {
        "top": str(stage.top),
        "person": str(stage.top / "person"),
        "work": str(stage.work),
        "home": str(stage.home.root),
        "keys": str(stage.home.providers),
        "secret": SECRET[:7] + "[-]" + SECRET[8:],  # a pattern that is not in its own environment or arguments
        "attack": attack,
        "cass": f"{attack} cass",
        "program": " ".join(argv("")[:-1]),
        "agent": str(stage.top / "agent"),
        "shm": f"cass-{os.getpid()}",
        "abstract": f"cass-{os.getpid()}",
    }


def listen(stage: Stage, scene: contextlib.ExitStack) -> None:
    """Sockets of the person's other programs, and what they share."""
    for family, address in (
        (socket.AF_UNIX, str(stage.top / "agent")),
        (socket.AF_UNIX, str(stage.top / "odd/s")),
        (socket.AF_UNIX, "\0" + stage.names["abstract"]),
        (socket.AF_INET, ("127.0.0.1", 0)),
    ):
        listening = scene.enter_context(socket.socket(family, socket.SOCK_STREAM))
        listening.bind(address)
        listening.listen(8)
    stage.names["port"] = str(listening.getsockname()[1])
    shared = Path("/dev/shm") / stage.names["shm"]
    shared.write_text(SECRET)
    scene.callback(shared.unlink)
    mine, theirs = pty.openpty()
    scene.callback(os.close, theirs)
    stage.names["terminal"] = os.ttyname(theirs)
    screen = subprocess.Popen(["tee", "-a", stage.top / "typed"], stdin=mine, stdout=subprocess.DEVNULL)
    os.close(mine)
    scene.callback(screen.wait)
    scene.callback(screen.kill)
    tmux = ["tmux", "-S", str(stage.top / "odd/tmux"), "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "sh"], check=True)
    scene.callback(subprocess.run, [*tmux, "kill-server"], check=False)
    stage.names["tmux"] = " ".join(tmux)


def start(stage: Stage, scene: contextlib.ExitStack) -> None:
    """The chats, their workers, and a viewer."""
    for name in ("asker", "idle"):
        made = chat.create(stage.home, cwd=stage.work, provider="demo", model="demo", system="You are a test.")
        setattr(stage, name, made)
        stage.names[name] = made.chat_id
        scene.callback(end_worker, made)
    presence.start(stage.idle).wait()
    send.send(stage.asker, "go", ask=True, flags=["-P", "asker", "--workspace-edit", "--no-sandbox"])
    stage.names["worker"] = str(wait_for(lambda: presence.holder(stage.asker).get("pid")))
    viewer = subprocess.Popen(
        argv("cass-view", "--frames", stage.asker.chat_id),
        env=os.environ | {"A_KEY": SECRET},
        cwd=stage.top / "person",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    scene.callback(viewer.communicate)
    scene.callback(viewer.kill)
    stage.names["viewer"] = str(viewer.pid)


# ---- the tricks -----------------------------------------------------------------------------------------------------


def outside(stage: Stage, name: str) -> tuple[bool, str]:
    """Whether a trick works for a process of the person; and what it said."""
    command, shows = TRICKS[name]
    stage.names |= {"approved": str(stage.approved), "request": stage.request}
    with open(stage.home.providers) as leaked:  # as if a worker had let it through
        done = subprocess.run(
            ["bash", "-c", command.format(tag=f"outside-{tag_of(name)}", **stage.names)],
            cwd=stage.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            pass_fds=[leaked.fileno()],
        )
    said = done.stdout + done.stderr
    if shows is None:
        return WORKED in done.stdout, said
    with contextlib.suppress(AssertionError):
        wait_for(lambda: shows(stage, f"outside-{tag_of(name)}"), 5)
    return shows(stage, f"outside-{tag_of(name)}"), said


def inside(stage: Stage) -> dict[str, tuple[bool, str]]:
    """Whether each trick works for a tool in the sandbox, one turn for all of them."""
    stage.names |= {"approved": str(stage.approved), "request": stage.request}
    commands = {name: trick[0].format(tag=f"inside-{tag_of(name)}", **stage.names) for name, trick in TRICKS.items()}
    calls = [
        {"name": "shell", "arguments": {"command": command, "timeout_ms": 20_000}} for command in commands.values()
    ]
    (stage.home.root / "attacker.json").write_bytes(dump([{"tool_calls": calls}, {"text": "done"}]))
    files = chat.create(stage.home, cwd=stage.work, provider="demo", model="demo", system="You are a test.")
    try:
        exchange.say(files, "go", timeout_s=120, flags=["-P", "attacker", "--full-access", "--sandbox"])
    finally:
        end_worker(files)
    results = [record for record in facts(files, ToolResult) if isinstance(record, ToolResult)]
    assert [result.sandboxed for result in results] == [True] * len(TRICKS)
    found = {}
    for (name, (_, shows)), result in zip(TRICKS.items(), results, strict=True):
        worked = WORKED in result.content if shows is None else shows(stage, f"inside-{tag_of(name)}")
        found[name] = (worked, result.content)
    return found


def tag_of(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum())


@pytest.fixture(scope="module")
def tried(stage: Stage) -> dict[str, tuple[tuple[bool, str], tuple[bool, str]]]:
    """What came of each trick, outside and inside."""
    bites = {name: outside(stage, name) for name in TRICKS}
    if not presence.is_running(stage.idle):
        presence.start(stage.idle).wait()
    held = inside(stage)
    return {name: (bites[name], held[name]) for name in TRICKS}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_that_works_outside_the_sandbox_fails_in_it(name, tried):
    (bites, said_outside), (works, said_inside) = tried[name]
    assert bites or (name in BY_ROOT and os.geteuid()), f"not even outside: {said_outside}"
    assert not works, said_inside


def test_what_was_asked_is_still_asked_and_every_worker_is_there(stage, tried):
    assert standing.look(stage.asker).pending
    assert presence.is_running(stage.asker)
    assert presence.is_running(stage.idle)
    assert "inside" not in stage.idle.chat.read_text()
    assert ROOT.exists()
