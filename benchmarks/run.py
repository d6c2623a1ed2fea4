#!/usr/bin/env python3
"""Start-up and speed of cass, each beside its floor in the same run: benchmarks/run.py [-n RUNS] [NAME ...]

A floor is the least that the same work costs with the same packages: importing them, or a bare httpx script. Figures of
a busy machine mean little, ratios to a floor measured in turn with it mean more; minima are steadier than medians.
CPU is user and system time of a program and all its children. Standard library only; needs Linux for `prompt`.
"""

import argparse
import compileall
import contextlib
import functools
import http.server
import json
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "bin"
DELTAS = (200, 20_000)
CHATS = 10_000
PYTHON = [str(ROOT / ".venv/bin/python"), "-I"]


@dataclass
class Cost:
    """What one run took, in milliseconds."""

    wall: float
    cpu: float


@dataclass
class Row:
    """One program beside its floor."""

    name: str
    reach: float
    """The ratio to stay under."""
    program: Callable[[], Cost]
    floor: Callable[[], Cost]
    costs: list[Cost] = field(default_factory=list)
    floors: list[Cost] = field(default_factory=list)


def run(command: list[str], environ: dict[str, str]) -> Cost:
    """Run to the end, output thrown away; an exit status other than 0 is an error of the benchmark."""
    with open(os.devnull, "r+b") as null:
        started = time.perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, null.fileno(), fd) for fd in (0, 1)]
        pid = os.posix_spawnp(command[0], command, environ, file_actions=actions)
        _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    if status:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3)


# ---- a home with chats, and a model server --------------------------------------------------------------------------


def environment(home: Path) -> dict[str, str]:
    """No keys and no settings of the person; bytecode is written, as it is where people run this."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {"HOME": str(home), "CASS_HOME": str(home / ".cass"), "TERM": "xterm-256color"}


def fill(home: Path, count: int) -> None:
    """Put `count` finished chats of one short turn into a home, which is their workspace as well."""
    conversations = home / ".cass" / "conversations"
    conversations.mkdir(parents=True, mode=0o700)
    at = "2026-06-20T12:00:00.000Z"
    for number in range(count):
        chat = f"2026-06-20-120000-{number:04x}"
        of = {"created_at": at, "provider": "demo", "model": "demo"}
        records = [
            {"type": "meta", "v": 1, "chat_id": chat, "cwd": str(home), **of},
            {"type": "system", "content": "You are a coding agent. " * 40},
            {"type": "message", "role": "user", "id": "u", "content": f"question {number}", **of},
            {"type": "message", "role": "assistant", "id": "a", "content": "answer " * 50, "tool_calls": [], **of},
            {"type": "turn_end", "turn": "u", "answers": ["u"], "outcome": "done", "created_at": at},
        ]
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]  # as a worker writes them
        (conversations / f"{chat}.jsonl").write_text("".join(lines))


class Model(http.server.BaseHTTPRequestHandler):
    """Answers a request to ``/NUMBER/...`` with so many deltas, each in an HTTP chunk of its own, as fast as
    they are taken."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(stream(int(self.path.split("/")[1])))

    def log_message(self, format: str, *args: object) -> None:
        pass


@functools.cache
def stream(deltas: int) -> bytes:
    """The body of an answer."""
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[dict[str, object]] = [
        {"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None} for number in range(deltas)
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [json.dumps(whole | {"choices": [choice]}).encode() for choice in choices]
    events = [b"data: %s\n\n" % event for event in (*events, b"[DONE]")]
    return b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in (*events, b""))


@contextlib.contextmanager
def model_server() -> Iterator[str]:
    """The address of a `Model`, in a process of its own."""
    for deltas in DELTAS:
        stream(deltas)  # made now, not while somebody waits
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    pid = os.fork()
    if pid == 0:
        server.serve_forever()
    server.server_close()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


BARE = """
import sys
sys.modules["httpx._main"] = None  # its command line, which nothing here uses and which costs a third of the import
import asyncio, json, httpx
async def main(url):
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    async with httpx.AsyncClient() as client, client.stream("POST", url + "/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                print(json.loads(line[6:])["choices"][0]["delta"].get("content", ""), end="")
asyncio.run(main(sys.argv[1]))
"""


# ---- a program on a terminal ----------------------------------------------------------------------------------------


def cpu_of(marker: str) -> float:
    """CPU seconds of all processes whose environment holds `marker`, and of children they have waited for."""
    total = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone, or another's
            if marker.encode() in (process / "environ").read_bytes():
                tasks = [int((task / "schedstat").read_text().split()[0]) for task in (process / "task").iterdir()]
                waited = (process / "stat").read_text().rpartition(")")[2].split()[13:15]
                total += sum(tasks) / 1e9 + sum(map(int, waited)) / os.sysconf("SC_CLK_TCK")
    return total


def drawn(command: list[str], environ: dict[str, str], sign: bytes) -> Cost:
    """Start `command` on a terminal; what it took until `sign` is on it. It is then told to leave with Ctrl-D."""
    started = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environ)
    seen = b""
    while sign not in seen:
        piece = b""
        with contextlib.suppress(OSError):  # EIO: it has ended
            piece = os.read(terminal, 65536) if select.select([terminal], [], [], 20)[0] else b""
        if not piece:
            sys.exit(f"{command}: nothing like {sign!r} in {seen!r}")
        seen += piece
    cost = Cost((time.perf_counter() - started) * 1e3, cpu_of(environ["CASS_HOME"]) * 1e3)
    os.write(terminal, b"\x04")
    with contextlib.suppress(OSError):  # EIO: the last of its processes has closed the terminal
        while os.read(terminal, 65536):
            pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return cost


# ---- the table ------------------------------------------------------------------------------------------------------


def imports(names: str, environ: dict[str, str]) -> Callable[[], Cost]:
    return lambda: run([*PYTHON, "-c", f"import {names}"], environ)


def start(scratch: contextlib.ExitStack) -> list[Row]:
    home = scratch_home(scratch)
    fill(home, 200)
    environ = environment(home)
    floor = imports("click", environ)

    def row(reach: float, *arguments: str) -> Row:
        return Row(" ".join(("cass", *arguments)), reach, lambda: run([str(BIN / "cass"), *arguments], environ), floor)

    return [row(1.3, "--version"), row(1.6, "ls"), row(1.6, "status", "--json")]


EACH_HEAD = """
import os, sys
for name in os.listdir(sys.argv[1]):
    fd = os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY)
    os.pread(fd, 4096, 0)
    os.close(fd)
"""


def resume(scratch: contextlib.ExitStack) -> list[Row]:
    home = scratch_home(scratch)
    fill(home, CHATS)
    environ = environment(home)
    heads = [*PYTHON, "-c", EACH_HEAD, str(home / ".cass/conversations")]
    command = [str(BIN / "cass"), "--resume"]
    shown = b"go on with a chat"

    def floor() -> Cost:
        return run(heads, environ)

    return [
        Row(f"cass --resume, {CHATS:,} chats, a list", 10, lambda: run(command, environ), floor),
        Row(f"cass --resume, {CHATS:,} chats, picker", 13, lambda: drawn(command, environ, shown), floor),
    ]


def send(scratch: contextlib.ExitStack) -> list[Row]:
    home = scratch_home(scratch)
    fill(home, 1)
    environ = environment(home)
    (chat,) = (path.stem for path in (home / ".cass/conversations").iterdir())
    subprocess.run([BIN / "cass-send", chat, "hello"], env=environ, check=True, stdout=subprocess.DEVNULL)
    scratch.callback(subprocess.run, [BIN / "cass", "stop", chat], env=environ, stdout=subprocess.DEVNULL)

    def one() -> Cost:
        cost = run([str(BIN / "cass-send"), chat, "hello"], environ)
        subprocess.run([BIN / "cass", "wait", chat], env=environ, check=True, stdout=subprocess.DEVNULL)
        return cost

    return [Row("cass-send, worker running", 1.3, one, imports("click, orjson", environ))]


def once(scratch: contextlib.ExitStack) -> list[Row]:
    environ = environment(scratch_home(scratch)) | {"BENCH_KEY": "k"}
    address = scratch.enter_context(model_server())

    def row(deltas: int) -> Row:
        url = f"{address}/{deltas}/v1"
        to = ["-P", "openai", "--base-url", url, "--api-key-env", "BENCH_KEY", "-m", "m"]
        command = [str(BIN / "cass"), *to, "-p", "hi"]
        bare = [*PYTHON, "-c", BARE, url]
        return Row(f"cass -p, {deltas:,} deltas", 1.2, lambda: run(command, environ), lambda: run(bare, environ))

    return [row(deltas) for deltas in DELTAS]


def prompt(scratch: contextlib.ExitStack) -> list[Row]:
    environ = environment(scratch_home(scratch))
    sign = b"\x1b[?2004h"  # prompt_toolkit asks for bracketed paste when it takes the terminal to draw

    def one() -> Cost:
        return drawn([str(BIN / "cass"), "-P", "demo"], environ, sign)

    return [Row("cass, prompt drawn, all processes", 1.3, one, imports("prompt_toolkit, click", environ))]


def scratch_home(scratch: contextlib.ExitStack) -> Path:
    """A directory for one group of benchmarks; programs start in it."""
    home = scratch.enter_context(tempfile.TemporaryDirectory(prefix="cass-bench-", ignore_cleanup_errors=True))
    scratch.enter_context(contextlib.chdir(home))
    return Path(home)


GROUPS: dict[str, Callable[[contextlib.ExitStack], list[Row]]] = {
    "start": start,
    "resume": resume,
    "send": send,
    "once": once,
    "prompt": prompt,
}


def measure(row: Row, runs: int) -> None:
    row.program(), row.floor()  # files into the page cache, bytecode onto the disk
    for _ in range(runs):
        row.floors.append(row.floor())
        row.costs.append(row.program())


def show(row: Row) -> str:
    """Minimum and median of CPU and wall time, both beside the floor's, and the ratios."""
    cells = []
    for unit in ("cpu", "wall"):
        ours, floors = ([getattr(cost, unit) for cost in costs] for costs in (row.costs, row.floors))
        for pick in (min, statistics.median):
            cells.append(f"{pick(ours):6.0f} /{pick(floors):5.0f} ={pick(ours) / pick(floors):5.2f}")
    return f"{row.name:42}" + "  ".join(cells) + f"   < {row.reach}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--runs", type=int, default=15, help="of each program and of its floor, in turn")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(GROUPS)}; default all")
    given = parser.parse_args()
    if unknown := set(given.names) - set(GROUPS):
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    subprocess.run(
        [BIN / "cass", "--version"], check=True, stdout=subprocess.DEVNULL
    )  # makes .venv where it is missing
    compileall.compile_dir(ROOT / "cass", quiet=1)
    print(f"milliseconds, ours / floor = ratio, {given.runs} runs each, in turn\n")
    print(
        f"{'':42}" + "  ".join(f"{head:22}" for head in ("cpu min", "cpu median", "wall min", "wall median")) + "reach"
    )
    for name in given.names or GROUPS:
        with contextlib.ExitStack() as scratch:
            for row in GROUPS[name](scratch):
                measure(row, given.runs)
                print(show(row), flush=True)


if __name__ == "__main__":
    main()
