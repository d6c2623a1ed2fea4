"""What docs/files.md says of the home: every file and every kind of record is there, and its examples work."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from cass import chat, jsonl, records
from cass.composer import history
from cass.home import Files, Home
from cass.ledger import Ledger
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Attachment,
    Compaction,
    Delta,
    Meta,
    Notice,
    Status,
    System,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
)

DOCS = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
AT = "2026-06-20T14:30:12.345Z"
FACTS = (
    User(
        id="u1",
        content="make it",
        mode="workspace-edit",
        origin={"by": "composer"},
        attachments=(Attachment("0" * 64, "image/png", "plan.png", 9, 4, 3),),
        created_at=AT,
    ),
    Assistant(id="a1", content="", tool_calls=(ToolCall("c1", "shell", {"command": "make"}),), created_at=AT),
    Approval(request_id="r1", tool_call_id="c1", decision="approved", by="you in the composer", created_at=AT),
    ToolResult(tool_call_id="c1", name="shell", content="make: no rule", ok=False, created_at=AT),
    TurnEnd(turn="u1", answers=("u1",), outcome="done", usage=Usage(input=9, output=7), created_at=AT),
    Compaction(summary="It was made.", first_kept_id=None, tokens_before=900, created_at=AT),
)
LIVE = (
    Status(state="thinking", mode="read-only", provider="demo", model="demo", created_at=AT),
    Delta(of="a2", text="It is "),
    ToolStarted(tool_call_id="c2", created_at=AT),
    ToolOutput(tool_call_id="c2", text="cc"),
    ApprovalRequest(
        request_id="r2", tool_call_id="c2", name="shell", arguments={}, reason="asked", sandboxed=True, created_at=AT
    ),
    Notice(level="info", text="a notice"),
)


@pytest.fixture
def person(tmp_path, workspace):
    """Somebody's home directory, where cass has kept one of everything."""
    home = Home(tmp_path / "somebody" / ".cass")
    files = chat.create(home, cwd=workspace, provider="demo", model="demo", system="You are a test.")
    with open(files.chat, "ab") as file:
        file.writelines(map(records.encode, FACTS))
    files.live.write_bytes(b"".join(map(records.encode, LIVE)))
    history.append(home.history, "make it", str(workspace))
    ledger = Ledger(home, "tasks-0")
    ledger.chat("t", "d", lambda: files)
    ledger.done({"task": "t", "outcome": "done"})
    home.edits.mkdir()
    edit = {"family": files.chat_id, "path": "/x", "before": None, "after": {"sha256": "0", "mode": 420, "size": 3}}
    files.edits.write_bytes(jsonl.dump(edit | {"call": ["a1", 0], "at": AT}) + b"\n")
    return home.root.parent


@pytest.mark.parametrize("text", EXAMPLES, ids=[text.split("\n")[0][:60] for text in EXAMPLES])
def test_an_example_says_something_of_a_home(text, person):
    for line in text.splitlines():
        command = ["bash", "-eu", "-o", "pipefail", "-c", line]
        environ = {"HOME": str(person), "PATH": os.environ["PATH"]}
        done = subprocess.run(command, env=environ, capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.strip(), line


def test_every_kind_of_record_is_described():
    kinds = {type(record) for record in (*FACTS, *LIVE)} | {Meta, System}
    assert {*records._KINDS.values(), *records._ROLES.values()} == kinds
    assert {kind.type for kind in kinds} <= set(re.findall(r"`(\w+)`", DOCS))
    assert set(records._ROLES) <= set(re.findall(r"`(\w+)`", DOCS))


def test_every_file_of_the_home_is_described():
    home = Home(Path("/home"))
    files = home.files("CHAT")
    named = {cell for row in re.findall(r"^\| (`.*?) \|", DOCS, re.MULTILINE) for cell in re.findall(r"`(.*?)`", row)}
    places = [getattr(home, name) for name, value in vars(Home).items() if isinstance(value, property)]
    assert {path.name for path in places} <= {name.partition("/")[0] for name in named}
    there = [getattr(files, name) for name, value in vars(Files).items() if isinstance(value, property)]
    inside = {path.name for path in there if path.parent == files.run}
    assert inside <= {name.rstrip("/") for name in named}
