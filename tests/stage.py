"""What tests of whole programs stand on: running them, waiting for a condition, looking into a chat."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cass import chat, jsonl, presence
from cass.home import Files, Home
from cass.records import Record

ROOT = Path(__file__).parents[1]


def end_worker(files: Files) -> None:
    if presence.is_running(files) and (pid := presence.holder(files).get("pid")) and pid != os.getpid():
        subprocess.run(["pkill", "-KILL", "-P", str(pid)], check=False)
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            return
        wait_for(lambda: not presence.is_running(files))


def wait_for(found: Callable[[], Any], timeout_s: float = 20.0, what: str | Callable[[], str] = "") -> Any:
    """The first true answer of `found`; fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        if answer := found():
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain: {what if isinstance(what, str) else what()}")
        time.sleep(0.005)


def run(program: str, *arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run one of our programs to its end; standard input is empty unless it is given."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("timeout", 60)
    return subprocess.run(argv(program, *arguments), capture_output=True, text=True, check=False, **more)


def argv(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-m", "cass.cli", program, *arguments]


def facts(files: Files, *kinds: type) -> list[Record]:
    """The records of a chat, those of the given kinds only where there are some."""
    return [record for record in chat.read(files) if not kinds or isinstance(record, kinds)]


def script(home: Home, *steps: dict[str, Any], name: str = "scripted") -> None:
    """Configure the provider `scripted`: the demo, answering with `steps`."""
    home.make()
    path = home.root / f"{name}.json"
    path.write_bytes(jsonl.dump(list(steps)))
    entry = {"id": name, "kind": "demo", "script": str(path), "default_model": "scripted"}
    home.providers.write_bytes(jsonl.dump({"providers": [entry]}))
