#!/usr/bin/env python3
"""How much of a request is an exact prefix of the next one, in bytes that the server received: benchmarks/prefix.py

A provider's cache of prefixes holds as far as this goes. For each kind: a turn of six tool calls, then five turns, each
resumed by a worker of its own, in time zones in which it is never the same day. What follows the messages (limits, the
end of the JSON) does not count. Anthropic's marks move on with the conversation, of the last two user turns; its cache
compares what they stand on, which is the second figure. At last what stands at the beginning of every request: the
system prompt and the schemas of all tools. Needs the checkout, with its `.venv`.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import scripted, spoken  # noqa: E402

STEPS, TURNS = 6, 5
TOOLS = ("ls", "read", "grep", "write", "edit", "shell", "fetch", "agent")
ZONES = ("Pacific/Kiritimati", "Etc/GMT+12")
"""26 hours apart: between any two turns lies a midnight."""
_ENDS = {
    "openai-compatible": b'],"max_tokens"',
    "openai-responses": b'],"max_output_tokens"',
    "anthropic": b']}],"max_tokens"',
    "gemini": b']}],"generationConfig"',
}
MARK = b',"cache_control":{"type":"ephemeral"}'


def requests(kind: str, home: Path) -> list[bytes]:
    """The bodies of all requests, as the server received them. `home`: an empty directory."""
    steps = [{"id": f"call_{n}", "name": "ls", "arguments": {"path": "."}} for n in range(STEPS)]
    answers = [spoken.answer(kind, f"Step {n}.", step) for n, step in enumerate(steps)]
    answers += [spoken.answer(kind, f"Answer {n}.") for n in range(TURNS + 1)]
    with scripted.Server(answers, path=spoken.PATHS[kind]) as server:
        provider = {"id": "asked", "kind": kind, "base_url": server.url}
        (home / ".cass").mkdir(mode=0o700)
        (home / ".cass/providers.json").write_text(json.dumps({"providers": [provider]}))
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "CASS_PROVIDER": "asked", "CASS_MODEL": "m"}
        chat: list[str] = []
        for turn in range(TURNS + 1):
            command = [ROOT / "bin/cass", "-p", f"Message {turn}.", *chat]
            zone = {"TZ": ZONES[turn % 2]}
            null = subprocess.DEVNULL
            subprocess.run(command, env=environ | zone, cwd=home, stdin=null, stdout=null, check=True, timeout=60)
            (path,) = (home / ".cass/conversations").iterdir()
            chat = ["--resume", path.stem]
        return [asked.raw for asked in server.asked]


def shares(kind: str, bodies: list[bytes]) -> list[float]:
    """Of each request but the last: its share, up to the end of its messages, that the next one begins with."""
    heads = [body[: body.rindex(_ENDS[kind])] for body in bodies]
    return [_common(head, after) / len(head) for head, after in itertools.pairwise(heads)]


def beginning(home: Path) -> int:
    """Bytes of system prompt and tools, as the server received them. `home`: an empty directory."""
    kind = "openai-compatible"
    with scripted.Server([spoken.answer(kind, "ok")], path=spoken.PATHS[kind]) as server:
        command = [ROOT / "bin/cass", "-p", "hi", "--full-access", "--base-url", server.url, "-m", "m"]
        environ, null = {"PATH": os.environ["PATH"], "HOME": str(home)}, subprocess.DEVNULL
        subprocess.run(command, env=environ, cwd=home, stdin=null, stdout=null, check=True, timeout=60)
        body = server.asked[0].body
    tools = json.dumps([tool["function"] for tool in body["tools"]], ensure_ascii=False, separators=(",", ":"))
    assert len(body["tools"]) == len(TOOLS)
    return len(body["messages"][0]["content"].encode()) + len(tools.encode())


def _common(one: bytes, other: bytes) -> int:
    """Bytes that both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def main() -> None:
    print(f"{'kind':20}{'requests':>9}{'least share':>13}{'without marks':>15}")
    for kind in spoken.PATHS:
        with tempfile.TemporaryDirectory(prefix="cass-bench-") as home:
            bodies = requests(kind, Path(home))
        plain = [body.replace(MARK, b"") for body in bodies]
        least = min(shares(kind, bodies)), min(shares(kind, plain))
        print(f"{kind:20}{len(bodies):9}{least[0]:13.4f}{least[1]:15.4f}")
    with tempfile.TemporaryDirectory(prefix="cass-bench-") as home:
        print(f"system prompt and schemas of {len(TOOLS)} tools: {beginning(Path(home)):,} bytes")


if __name__ == "__main__":
    main()
