"""Many senders, takers-back and dying workers at once: each message ends in exactly one place, whole."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import scripted
from stage import ROOT, wait_for

from cass import chat, exchange, inbox, presence, send
from cass.home import Files
from cass.records import Notice, TurnEnd, User

SENDERS, EACH = 8, 125
STARTS, CHATS = 500, 2

SENDER = """
import random, sys
from pathlib import Path
from cass import send
from cass.home import Home
home, chat_id, name, count, *flags = sys.argv[1:]
files, chance = Home(Path(home)).files(chat_id), random.Random(name)
for n in range(int(count)):
    size = int(20 * 10 ** (chance.random() ** 3 * 4))
    head = f"{name} {n} "
    send.send(files, head + "é" * ((size - len(head)) // 2 + 1), id=f"{name}-{n}", flags=flags)
"""

TAKER = """
import json, random, sys, time
from pathlib import Path
from cass import inbox
from cass.home import Home
home, chat_id, draft, stop = sys.argv[1:]
files, chance = Home(Path(home)).files(chat_id), random.Random(draft)
with open(draft, "w") as out:
    while not Path(stop).exists():
        for waiting in inbox.waiting(files)[-3:]:
            if chance.random() < 0.1 and (item := inbox.take_back(files, waiting.name)):
                print(json.dumps([waiting.id, item["content"]]), file=out, flush=True)
        time.sleep(0.02)
"""

ONE_BY_ONE = """
import sys
from pathlib import Path
from cass import presence, send, waiting
from cass.home import Home
home, chat_id, count = sys.argv[1:]
files, workers = Home(Path(home)).files(chat_id), set()
for n in range(int(count)):
    watch = waiting.Watch(files)
    id = send.send(files, f"hello {n}", flags=["--idle", "0"])
    workers.add(presence.holder(files).get("pid"))
    watch.until(waiting.answered(id), 60)
print(len(workers))
"""


def python(code: str, *arguments: object, stdout: int | None = None) -> "subprocess.Popen[str]":
    """A process of the package's own code, as a program that embeds it would be."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(argv, env=environ, stdout=stdout, text=True)


def test_a_thousand_messages_arrive_once_and_whole_while_workers_die_and_others_take_back(
    files: Files, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    home = files.home.root
    drafts = [tmp_path / f"draft{n}" for n in range(2)]
    with scripted.Server(lambda asked: scripted.says("yes " * 5, deltas=5)) as server:
        flags = ["--base-url", server.base_url, "--model", "m"]
        send.send(files, "first 0", id="first-0", flags=flags)
        takers = [python(TAKER, home, files.chat_id, draft, stop) for draft in drafts]
        senders = [python(SENDER, home, files.chat_id, f"s{n}", EACH, *flags) for n in range(SENDERS)]
        echoes = [echo(files, n) for n in range(20)]
        for enough in (100, 300):
            wait_for(lambda enough=enough: len(said(files)) > enough, 120)
            os.kill(presence.holder(files)["pid"], signal.SIGKILL)
            wait_for(lambda: not presence.is_running(files))
            send.send(files, f"again {enough}", id=f"again-{enough}", flags=flags)
        assert [sender.wait(200) for sender in senders] == [0] * SENDERS
        send.send(files, "last 0", id="last-0", flags=flags)
        wait_for(lambda: inbox.is_empty(files) and len(ends(files)) == len(said(files)), 200)
        stop.touch()
        for process in [*takers, *echoes]:
            process.wait(20)
        exchange.say(files, "bye 0", id="bye-0", flags=flags, timeout_s=60)
        send.stop(files, 10)

    found = chat.read(files)
    in_chat = {user.id: user.content for user in found if isinstance(user, User) and user.origin["by"] == "send"}
    taken = [json.loads(line) for draft in drafts for line in draft.read_text().splitlines()]
    back = {id: content for id, content in taken if not content.startswith("echo")}
    assert len(taken) == len(dict(taken))
    expected = {f"s{n}-{m}" for n in range(SENDERS) for m in range(EACH)}
    expected |= {"first-0", "again-100", "again-300", "last-0", "bye-0"}
    assert in_chat.keys() | back.keys() == expected
    assert not in_chat.keys() & back.keys()
    for id, content in (in_chat | back).items():
        assert content.rstrip("é") == id.replace("-", " ") + (" " if id[0] == "s" else "")
    assert Counter(user.id for user in found if isinstance(user, User)).most_common(1)[0][1] == 1
    assert_order(in_chat)
    # What a dead worker had not read yet from the pipe is gone with it: at most that, and never a piece of a line.
    lines = Counter(user.content for user in found if isinstance(user, User) and user.origin["by"] == "fifo")
    lines += Counter(content for _, content in taken if content.startswith("echo"))
    assert set(lines) <= {f"echo {n} {digest(n)}" for n in range(20)}
    assert max(lines.values(), default=1) == 1
    assert server.problems == []
    assert sum(isinstance(record, Notice) for record in found) <= 2


def assert_order(in_chat: dict[str, str]) -> None:
    """The messages of one sender stand in the order in which it sent them."""
    for n in range(SENDERS):
        numbers = [int(id.split("-")[1]) for id in in_chat if id.startswith(f"s{n}-")]
        assert all(earlier < later for earlier, later in pairwise(numbers))


def echo(files: Files, n: int) -> "subprocess.Popen[bytes]":
    """A shell that writes a line to the bell, as a person would."""
    return subprocess.Popen(["timeout", "60", "sh", "-c", f"echo 'echo {n} {digest(n)}' > '{files.bell}'"])


def digest(n: int) -> str:
    return hashlib.sha512(str(n).encode()).hexdigest() * 8


def said(files: Files) -> list[User]:
    return [record for record in chat.read(files) if isinstance(record, User)]


def ends(files: Files) -> list[str]:
    return [id for record in chat.read(files) if isinstance(record, TurnEnd) for id in record.answers]


def test_workers_started_and_ended_hundreds_of_times_are_never_two_and_never_let_a_message_wait(
    files: Files, workspace: Path
) -> None:
    chats = [files, *(chat.create(files.home, cwd=workspace, provider="demo", model="demo", system="x") for _ in "1")]
    each = STARTS // CHATS
    runs = [python(ONE_BY_ONE, files.home.root, one.chat_id, each, stdout=subprocess.PIPE) for one in chats]
    workers = [int(run.communicate(timeout=280)[0]) for run in runs]
    assert sum(workers) > STARTS * 0.8
    for one in chats:
        records = chat.read(one)
        assert len(said(one)) == each
        # Two workers would mix their turns: each is in one piece, from its message to its end.
        for first, last in zip(said(one), [r for r in records if isinstance(r, TurnEnd)], strict=True):
            assert last.answers == (first.id,)
            assert last.outcome == "done"
        assert not any(isinstance(record, Notice) for record in records)


def test_a_message_sent_while_the_worker_stops_gets_a_new_worker(files: Files) -> None:
    for n in range(20):
        send.send(files, f"hello {n}")
        inbox.put(files, {"type": "stop"})
        sent = exchange.say(files, f"after {n}", timeout_s=30)
        assert sent.end is not None
    deadline = time.monotonic() + 30
    while len(ends(files)) < 40 and time.monotonic() < deadline:
        exchange.say(files, "go on", timeout_s=30)
    assert len(set(ends(files))) >= 40
