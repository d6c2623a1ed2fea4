"""A worker killed with -9 anywhere between acceptance and the end of a turn: nothing is lost, doubled or run again."""

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import scripted
from stage import wait_for

from cass import chat, exchange, inbox, presence, send
from cass.home import Files
from cass.records import ApprovalRequest, Assistant, Delta, Notice, TurnEnd, User
from cass.tail import Tail

KILLS = 25
LARGE = "x" * 1_000_000


def answer(asked: scripted.Asked) -> scripted.Answer:
    """What the last user message asks for; a plain word once its call is answered, or was interrupted."""
    last = asked.body["messages"][-1]
    wanted = last["content"].rpartition("\n")[2]
    if last["role"] == "tool" or not wanted.startswith(("stream", "large", "run", "slow")):
        return scripted.says("done")
    if wanted.startswith("stream"):
        return scripted.says("word " * 200, deltas=200, delay_s=0.002)
    if wanted.startswith("large"):
        return scripted.says(LARGE, deltas=2)
    if wanted.startswith("slow"):
        return scripted.raw(0.2, *scripted.says("late").pieces)
    return scripted.calls({"name": "shell", "arguments": {"command": wanted.removeprefix("run ")}})


def live(files: Files, kind: type) -> list[object]:
    tail = Tail(files.live)
    found = [record for record in tail.read() if isinstance(record, kind)]
    tail.close()
    return found


def size(files: Files) -> int:
    return files.chat.stat().st_size


Phase = tuple[str, str, Callable[[Files, Path, int], object]]
"""Mode, message, and when it is far enough; the file that tools append to and the chat's size before are at hand."""

PHASES: dict[str, Phase] = {
    "before the request": ("full-access", "slow {n}", lambda files, out, before: size(files) > before),
    "streaming": ("full-access", "stream {n}", lambda files, out, before: live(files, Delta)),
    "appending a large record": ("full-access", "large {n}", lambda files, out, before: size(files) > before + 5_000),
    "a tool running": (
        "full-access",
        "run echo {n} >> {out}; sleep 0.3",
        lambda files, out, before: out.stat().st_size > before,
    ),
    "an approval pending": (
        "workspace-edit",
        "run echo {n} >> {out}",
        lambda files, out, before: live(files, ApprovalRequest),
    ),
    "ending": (
        "full-access",
        "say {n}",
        lambda files, out, before: any(isinstance(r, Assistant) for r in Tail(files.chat, before).read()),
    ),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_killed_anywhere_loses_and_repeats_nothing(phase: str, files: Files, tmp_path: Path) -> None:
    mode, message, is_far_enough = PHASES[phase]
    out = tmp_path / "outside.txt"
    out.touch()
    chance = random.Random(phase)
    sent: dict[str, str] = {}
    with scripted.Server(answer) as server:
        flags = ["--base-url", server.base_url, "--model", "m", f"--{mode}"]
        for n in range(KILLS):
            before = len(out.read_bytes()) if phase == "a tool running" else size(files)
            text = message.format(n=n, out=out)
            id = send.send(files, text, ask=True, flags=flags)
            sent[id] = text
            wait_for(lambda before=before: is_far_enough(files, out, before), what=lambda: f"{phase}, {explain(files)}")
            pause = time.monotonic() + chance.random() * 0.004
            while time.monotonic() < pause:
                pass
            kill(files)
        last = exchange.say(files, "say goodbye", flags=flags, timeout_s=60)
        sent[last.id] = "say goodbye"
        assert last.end is not None
        assert last.end.outcome == "done"
        send.stop(files, 10)

    found = chat.read(files)
    said = [record for record in found if isinstance(record, User)]
    assert Counter(user.id for user in said) == Counter(list(sent))
    assert {user.id: user.content for user in said} == sent
    assert inbox.is_empty(files)
    assert sum(isinstance(record, Notice) for record in found) <= KILLS
    assert Counter(itertools.chain(*(end.answers for end in found if isinstance(end, TurnEnd)))) == Counter(list(sent))
    assert server.problems == []
    runs = Counter(out.read_text().split() if out.exists() else [])
    assert runs == Counter(str(n) for n in range(KILLS) if phase == "a tool running")


def explain(files: Files) -> str:
    tail = [line[:300] for line in (files.chat.read_bytes() + files.live.read_bytes()).splitlines()[-12:]]
    return f"running {presence.is_running(files)}, live {tail}, inbox {os.listdir(files.inbox)}"


def kill(files: Files) -> None:
    pid = presence.holder(files)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not presence.is_running(files))
