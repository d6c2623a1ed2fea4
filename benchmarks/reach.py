#!/usr/bin/env python3
"""What cass can reach costs nothing while it is not used: benchmarks/reach.py [-n RUNS]

Servers of MCP whose tools are known, skills, prompt templates and hooks are configured, and a turn needs none of them:
beside the same turn where nothing is configured. Time is that of `cass -p` and of the prompt; memory is what the worker
holds for itself alone after a turn (PSS). Agents, fetch and images are always there; the last line says which of the
packages that all of this may need were loaded. Needs Linux, and the checkout with its `.venv`.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import run  # noqa: E402

SERVERS, TOOLS, SKILLS, TEMPLATES = 3, 20, 20, 20
SILENT: dict[str, int] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
PACKAGES = ("mcp", "httpx2", "anyio", "justhtml", "jsonschema", "html")
"""That only a call of a tool of these may load."""


def configure(home: Path) -> None:
    """All that a person can add, and no turn of these benchmarks uses."""
    cass = home / ".cass"
    cass.mkdir(mode=0o700)
    servers = {f"server{n}": {"command": "false", "args": [str(n)]} for n in range(SERVERS)}
    write(cass / "mcp.json", json.dumps({"mcpServers": servers}))
    hook = {"run": "false", "tools": ["shell"]}
    write(cass / "config.json", json.dumps({"hooks": {"before-tool": [hook], "after-tool": [hook]}}))
    for n in range(SKILLS):
        text = f"---\nname: skill{n}\ndescription: Does the thing number {n}.\n---\n" + "Do it well.\n" * 100
        write(cass / f"skills/skill{n}/SKILL.md", text)
    for n in range(TEMPLATES):
        write(cass / f"prompts/template{n}.md", "Review $1.\n")
    remember(home)


def remember(home: Path) -> None:
    """Keep what each server is said to have listed when it ran: that is what is offered."""
    code = (
        "import json, os, sys\nfrom pathlib import Path\nfrom cass.home import Home\nfrom cass.mcp import servers\n"
        "home = Home.find(); tools = json.loads(sys.argv[1])\n"
        "for server in servers.load(home, Path.cwd(), os.environ).servers:\n"
        "    path = home.mcp_tools / f'{server.key}.json'; path.parent.mkdir(exist_ok=True)\n"
        "    path.write_text(json.dumps({'tools': tools}))\n"
    )
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [{"name": f"tool{n}", "description": "Does a thing.", "inputSchema": schema} for n in range(TOOLS)]
    command = [*run.PYTHON, "-c", code, json.dumps(tools)]
    subprocess.run(command, env=run.environment(home), check=True, timeout=60)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def held(environ: dict[str, str]) -> tuple[float, set[str]]:
    """MiB that a worker holds for itself after a turn, and which of `PACKAGES` it has loaded."""
    command = [ROOT / "bin/cass", "-P", "demo", "--workspace-edit", "-p", "hi"]
    subprocess.run(command, env=environ, check=True, **SILENT, timeout=60)
    newest = max((Path(environ["CASS_HOME"]) / "conversations").iterdir(), key=lambda path: path.stat().st_mtime)
    agent = [ROOT / "bin/cass-agent", newest.stem, "--workspace-edit", "--detach"]
    subprocess.run(agent, env=environ, check=True, **SILENT, timeout=60)
    send = [ROOT / "bin/cass-send", "--wait", newest.stem, "hi"]
    subprocess.run(send, env=environ, check=True, **SILENT, timeout=60)
    pid = json.loads((Path(environ["CASS_HOME"]) / "run" / newest.stem / "lock").read_bytes())["pid"]
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    mapped = Path(f"/proc/{pid}/maps").read_text()
    subprocess.run([ROOT / "bin/cass", "stop", newest.stem], env=environ, check=True, timeout=60)
    kib = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return kib / 1024, {name for name in PACKAGES if f"/{name}/" in mapped}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--runs", type=int, default=15, help="of each, in turn")
    given = parser.parse_args()
    sign = b"\x1b[?2004h"
    with contextlib.ExitStack() as scratch:
        plain, full, _ = (run.scratch_home(scratch) for _ in range(3))  # the last is the workspace of both
        configure(full)
        bare, reach = (run.environment(home) | {"BENCH_KEY": "k"} for home in (plain, full))
        url = f"{scratch.enter_context(run.model_server())}/200/v1"
        to = ["-P", "openai", "--base-url", url, "--api-key-env", "BENCH_KEY", "-m", "m", "--workspace-edit"]
        ask, draw = [str(ROOT / "bin/cass"), *to, "-p", "hi"], [str(ROOT / "bin/cass"), *to]
        rows = [
            run.Row("cass -p, all configured and unused", 1.1, lambda: run.run(ask, reach), lambda: run.run(ask, bare)),
            run.Row(
                "prompt drawn, all configured and unused",
                1.1,
                lambda: run.drawn(draw, reach, sign),
                lambda: run.drawn(draw, bare, sign),
            ),
        ]
        print(f"milliseconds, with all of it / with none = ratio, {given.runs} runs each, in turn; cpu and wall\n")
        for row in rows:
            run.measure(row, given.runs)
            print(run.show(row), flush=True)
        time.sleep(1)
        (less, _), (more, loaded) = held(bare), held(reach)
        print(f"{'worker after a turn, MiB':42}{more:6.1f} /{less:5.1f} ={more / less:5.2f}   < 1.05")
        print(f"loaded of {', '.join(PACKAGES)}: {', '.join(sorted(loaded)) or 'none'}")


if __name__ == "__main__":
    os.environ.pop("CASS_HOME", None)
    main()
