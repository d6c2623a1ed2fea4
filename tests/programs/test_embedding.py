"""The embedding API as others use it: the examples of docs/python.md, their types, chats shared with the programs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import scripted
from sessions import asynchronous, take
from stage import argv, facts, run, script, wait_for

from cass import Session, catalogue
from cass.errors import Held
from cass.records import ApprovalRequest, TurnEnd, User

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "python.md"
EXAMPLES = ROOT / "docs" / "examples"


def example(name: str, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environ,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_every_example_is_named_in_the_docs_and_the_first_stands_there_whole():
    text = DOCS.read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert (EXAMPLES / "summarize.py").read_text().partition("\n\n")[2] == block
    named = set(re.findall(r"\(examples/(\w+\.py)\)", text)) | {"summarize.py"}
    assert named == {path.name for path in EXAMPLES.iterdir()}


def test_the_answer_comes_and_cass_goes_on_with_the_chat(home, workspace):
    done = example("summarize.py")
    assert "no language model" in done.stdout
    chat = done.stderr.rpartition(" ")[2].strip()
    again = run("cass", "-p", "--resume", chat, "list .")
    assert "app.py" in again.stdout
    assert [user.content for user in facts(home.files(chat), User)][1:] == ["list ."]


def test_every_choice_holds_and_a_chat_is_come_back_to(workspace):
    with scripted.Server([scripted.says("a project"), scripted.says("nobody")]) as server:
        done = example("options.py", server.base_url, MY_PROVIDER_KEY="sk-mine", CASS_PROVIDER="")
    assert server.problems == []
    assert done.stdout == "a project\nnobody\n"
    assert [asked.body["model"] for asked in server.asked] == ["my-model"] * 2
    assert {asked.header("authorization") for asked in server.asked} == {"Bearer sk-mine"}
    assert len(server.asked[1].body["messages"]) == 4
    assert list((workspace / "my-cass-root" / "conversations").iterdir())


def test_the_host_program_decides(workspace):
    assert "app.py" in example("approve.py", "run ls -l").stdout
    denied = example("approve.py", "run rm app.py")
    assert denied.stdout == "Error: the user denied it: only ls -l may be run here\n"
    assert "approval needed for shell: workspace-edit mode asks" in denied.stderr
    assert "denied by the host program" in denied.stderr
    assert (workspace / "app.py").exists()


def test_a_cancelled_turn_leaves_the_chat_whole(workspace):
    done = example("cancel.py", CASS_DEMO_DELAY_MS="50")
    assert done.stdout == "cancelled\n['cancelled', 'cancelled', 'cancelled']\n"


def test_a_model_uses_the_tools_of_the_host_program(home, workspace):
    wanted = [("ticket", {"number": 7}), ("note", {"path": "notes.md"}), ("deploy", {"where": "staging"})]
    script(home, {"tool_calls": [{"name": name, "arguments": given} for name, given in wanted]}, {"text": "ok"})
    assert example("tools.py", CASS_PROVIDER="scripted").stdout.splitlines() == [
        "ticket: The lamp in the hall is broken.",
        "note: written",
        "asked: deploy, workspace-edit mode asks before every deploy",
        "deploy: sending staging … done",
    ]
    assert (workspace / "notes.md").read_text() == "noted\n"


def test_a_provider_of_the_host_program_answers(workspace):
    assert example("provider.py").stdout == "Who is a clever bird?\n"


WRONG = """\
import cass
from cass import Nonsense, Session
async def main() -> None:
    session = await Session.new(cwd=".", mdoe="read-only")
    session.turn(5)
"""


def test_a_type_checker_knows_the_examples_and_what_is_wrong(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", EXAMPLES, tmp_path / "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    found = re.findall(r"^(\S+):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert [(Path(path).name, int(line), kind) for path, line, kind in found] == [
        ("wrong.py", 2, "attr-defined"),
        ("wrong.py", 4, "call-arg"),
        ("wrong.py", 5, "arg-type"),
    ], done.stdout


@asynchronous
async def test_a_viewer_sees_the_turn_while_it_runs_and_nobody_else_takes_part(opened, tmp_path):
    """The programs say who holds the chat, and leave nothing behind."""
    call = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}
    async with opened({"text": "On my way."} | call, {"text": "All is done."}, mode="workspace-edit") as session:
        shown = tmp_path / "shown"
        with shown.open("wb") as out:
            viewer = subprocess.Popen(argv("cass-view", "--follow", session.id), stdout=out, stdin=subprocess.DEVNULL)

        async def sees(words: str) -> None:
            await asyncio.to_thread(wait_for, lambda: words in shown.read_text(), what=shown.read_text)

        async def meanwhile(turn, request):
            await sees("On my way.")
            for program, *more in (
                ("cass", "approve", session.id, request),
                ("cass", "cancel", session.id),
                ("cass-send", session.id, "hello"),
            ):
                done = await asyncio.to_thread(run, program, *more)
                assert done.returncode == Held.status, done
                assert f"chat {session.id} is held by" in done.stderr
            assert os.listdir(session.files.inbox) == []
            turn.approve(request)

        tasks = []

        def on(turn, record):
            if isinstance(record, ApprovalRequest):
                tasks.append(asyncio.create_task(meanwhile(turn, record.request_id)))

        await take(session, on=on)
        await asyncio.gather(*tasks)
        await sees("All is done.")
        viewer.terminate()
        viewer.wait(10)
    done = run("cass", "ls")
    assert session.id in done.stdout


@asynchronous
async def test_a_chat_that_a_worker_holds_is_refused_and_not_touched(home, files):
    assert run("cass-send", files.chat_id, "list .", "--wait").returncode == 0
    before = files.chat.read_bytes()
    with pytest.raises(Held, match=f"chat {files.chat_id} is held by another process"):
        await Session.resume(files.chat_id, home=home.root)
    assert files.chat.read_bytes() == before
    assert catalogue.ids(home) == [files.chat_id]
    assert facts(files, TurnEnd)[0].outcome == "done"
