"""What the project says of itself is so: its programs are the same everywhere, and every block of the README works."""

import http.server
import json
import os
import pkgutil
import pty
import re
import select
import signal
import stat
import subprocess
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import cass
from cass import config
from cass.cli import PROGRAMS
from cass.config import Options
from cass.home import Home
from cass.known import MODEL_LISTS, PROVIDERS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# ---- programs -------------------------------------------------------------------------------------------------------

THIN = """\
#!/bin/sh
# {says}
ROOT=$0; [ -h "$0" ] && ROOT=$(readlink -f "$0"); ROOT=${{ROOT%/*}}/..; . "$ROOT/venv.sh"
exec "$VENV/bin/python" -I -c 'from cass.cli import main; main("{program}")' "$@"
"""


def test_every_program_is_in_bin_and_in_pyproject():
    scripts = PYPROJECT["project"]["scripts"]
    assert {name: pkgutil.resolve_name(place) for name, place in scripts.items()} == PROGRAMS
    assert {path.name for path in (ROOT / "bin").iterdir()} == set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_bin_is_two_lines_that_hold_no_logic(program):
    path = ROOT / "bin" / program
    says = path.read_text().split("\n")[1].removeprefix("# ")
    assert path.read_text() == THIN.format(says=says, program=program)
    assert path.stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_tells_its_help_under_its_own_name(program):
    said = subprocess.run([ROOT / "bin" / program, "--help"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"Usage: {program} ")


def test_the_version_is_that_of_the_package():
    said = subprocess.run([ROOT / "bin/cass", "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"cass {cass.__version__}\n"


# ---- README ---------------------------------------------------------------------------------------------------------

BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
(DEMONSTRATION,) = (block for block in BLOCKS if "kill -9" in block)
SHORT = [block for block in BLOCKS if block != DEMONSTRATION]
DRAWN = b"\x1b[?2004h"
"""What a terminal is told when the composer takes it."""


class Model(http.server.BaseHTTPRequestHandler):
    """Stands where the providers are: answers with text, but runs `date` first for whoever asks it to run something."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[tuple[str, str]]] = []
    """Path and key of each request."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"]))
        last = body["messages"][-1]
        if last["role"] == "user" and "run" in last["content"].split("\n")[-1].lower() and body.get("tools"):
            function = {"name": "shell", "arguments": '{"command": "date; sleep 1"}'}
            call = {"index": 0, "id": "c1", "type": "function", "function": function}
            choices = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
        else:
            choices = [({"content": "All is well."}, None), ({}, "stop")]
        self.answer(choices)

    def answer(self, choices: list[tuple[dict[str, object], str | None]]) -> None:
        whole = [{"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in choices]
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in whole) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[str]:
    """The URL of a `Model` that has not been asked anything yet."""
    Model.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def reader(tmp_path: Path, model: str) -> Iterator[dict[str, str]]:
    """The environment of somebody who follows the README: a fresh home in which each provider's address is `model`."""
    home = tmp_path / "home"
    (home / ".cass").mkdir(parents=True, mode=0o700)
    entries = [
        {"id": known.id, "kind": "openai-compatible", "base_url": f"{model}/{known.id}/v1", "api_key_env": known.key}
        for known in PROVIDERS.values()
        if known.key
    ]
    (home / ".cass/providers.json").write_text(json.dumps({"providers": entries}))
    path = os.pathsep.join([str(home / ".local/bin"), str(ROOT / "bin"), str(ROOT / ".venv/bin"), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "PIP_CERT", "SSL_CERT_FILE")}
    environ = kept | {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "MY_SERVER": f"{model}/v1"}
    yield environ
    for chat in (home / ".cass/conversations").glob("*.jsonl"):
        subprocess.run([ROOT / "bin/cass", "stop", chat.stem], env=environ, capture_output=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory that somebody follows the README in."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "hello.py").write_text("def main():\n    print('hello')\n")
    return root


def typed(block: str, cwd: Path, environ: dict[str, str]) -> tuple[int, str]:
    """Run a block on a terminal, leaving each composer that it opens with /exit; its status, and all it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe("bash", ["bash", "-euo", "pipefail", "-c", block], environ)
    shown, drawn = b"", 0
    deadline = time.monotonic() + 60
    try:
        while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # EIO: everything has ended
                break
            while shown.count(DRAWN) > drawn:
                drawn += 1
                os.write(terminal, b"/exit\r")
        else:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode(errors="replace")


@pytest.mark.parametrize("block", SHORT, ids=lambda block: block.partition("\n")[0][:40])
def test_a_shell_block_of_the_readme_works_as_it_stands(block, reader, project):
    status, shown = typed(block, ROOT if "install ." in block else project, reader)
    assert status == 0, shown
    keys = set(re.findall(r"(?<=_KEY=)\S+", block))
    assert {key.removeprefix("Bearer ") for _, key in Model.asked} == keys, shown


def test_the_demonstration_in_the_readme_shows_who_allowed_what_and_what_was_interrupted(reader, project):
    status, shown = typed(DEMONSTRATION, project, reader)
    assert status == 0, shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    facts = [json.loads(line) for line in plain.splitlines() if line.startswith('{"type":')]
    assert [(fact["type"], fact.get("decision"), fact.get("ok")) for fact in facts] == [
        ("approval", "approved", None),
        ("tool_result", None, False),
    ]
    assert "cass approve" in facts[0]["by"]
    assert "interrupted" in facts[1]["content"]
    assert "All is well." in shown


@pytest.mark.parametrize("provider", ["fireworks", "openai", "anthropic", "gemini", "deepseek", "kimi"])
def test_the_readme_shows_how_to_use_a_provider_and_where_its_models_are_listed(provider):
    assert f"{PROVIDERS[provider].key}=" in "".join(BLOCKS)
    assert MODEL_LISTS[provider] in README


def test_the_configuration_in_the_readme_is_taken_without_a_remark(tmp_path):
    files = re.findall(r"^`~/\.cass/(\w+\.json)`.*?\n+```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert {name for name, _ in files} == {"config.json", "providers.json", "models.json"}
    for name, text in files:
        (tmp_path / name).write_text(text)
    assert config.load(Home(tmp_path), Options(), {}).notices == ()
