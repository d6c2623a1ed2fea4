"""Scripting: what docs/scripting.md shows works as it stands, and what a script branches on is so."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from stage import facts, run, wait_for

from cass import catalogue, inbox, outlook, records
from cass.commands import SUBCOMMANDS
from cass.records import Assistant, User
from tests import drawn

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "scripting.md").read_text()
TMUX = (ROOT / "docs" / "tmux.md").read_text()


def blocks(page: str, wanted: str) -> list[str]:
    """The blocks of a page that are in one language."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language == wanted]


SHELL = blocks(DOCS, "sh")
SHOWS = {
    "-o todo.txt": lambda at: "app.py" in (at / "todo.txt").read_text(),
    "--redact": lambda at: (at / "chat.html").read_text().startswith("<!doctype html>"),
    "xargs": lambda at: "def main" in (at / "app.py.summary").read_text(),
    "result.json": lambda at: json.loads((at / "result.json").read_text())["outcome"] == "done",
    "touch made": lambda at: not (at / "made").exists(),
}
"""What is there afterwards, by words of the example."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small repository, in the home of somebody who has `cass` in the path, and no key."""
    at = tmp_path / "project"
    at.mkdir()
    (at / "app.py").write_text("def main():\n    pass  # TODO FIXME\n")
    (at / "notes.txt").write_text("a note\n")
    (at / "screenshot.png").write_bytes(drawn.png())
    (at / ".gitignore").write_text(".cass/\n")
    stub = tmp_path / "bin"
    stub.mkdir()
    (stub / "ssh").write_text('#!/bin/sh\n# As ssh sends words to a shell.\nshift\ncd "$HOME" && exec sh -c "$*"\n')
    (stub / "ssh").chmod(0o755)
    for name in ("PATH", "HOME"):
        monkeypatch.delenv(name, raising=False)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("CASS_", "GIT_"))}
    environ |= {
        "HOME": str(tmp_path),
        "PATH": f"{stub}:{ROOT / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "CASS_PROVIDER": "demo",
    }
    environ |= {"CASS_MODE": "workspace-edit", "CASS_DEMO_DELAY_MS": "1", "EMAIL": "me@example.org"}
    environ |= {"GIT_AUTHOR_NAME": "me", "GIT_COMMITTER_NAME": "me"}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run(["git", *command], cwd=at, check=True, env=environ)
    (at / "notes.txt").write_text("another note\n")
    yield at, environ
    for chat_id in os.listdir(tmp_path / ".cass" / "run") if (tmp_path / ".cass" / "run").exists() else []:
        subprocess.run([ROOT / "bin" / "cass", "stop", chat_id], env=environ, cwd=at, capture_output=True, check=False)


def shell(text: str, at: Path, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", text], cwd=at, env=environ, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("text", SHELL, ids=[next(iter(text.split("\n"))) for text in SHELL])
def test_a_shell_example_works_as_it_stands(text, project):
    at, environ = project
    if "--schema" in text:
        (at / "steps.json").write_text(json.dumps([{"text": "three"}, {"text": '```json\n{"files": 3}\n```'}]))
        environ["CASS_DEMO_SCRIPT"] = str(at / "steps.json")
    done = shell(text, at, environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() or "-o" in text or "wait" in text
    for words, holds in SHOWS.items():
        assert words not in text or holds(at), words


def test_a_line_of_cron_works_in_crons_environment(project):
    at, environ = project
    (line,) = blocks(DOCS, "cron")
    command = line.split(maxsplit=5)[5]
    poor = {name: environ[name] for name in ("HOME", "PATH")} | {"SHELL": "/bin/sh", "LOGNAME": "me"}
    subprocess.run(["sh", "-c", command], cwd="/", env=poor, check=True, timeout=60)
    assert "app.py" in (at / "morning.txt").read_text()


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_makefile_makes_its_target(project):
    at, environ = project
    (text,) = blocks(DOCS, "make")
    (at / "Makefile").write_text(text)
    subprocess.run(["make", "-s"], cwd=at, env=environ, check=True, timeout=60, capture_output=True)
    assert "def main" in (at / "summary.md").read_text()


@pytest.fixture
def tmux(project, tmp_path):
    """A server of tmux with the lines of tmux.md, in which a shell is told what to do; returns what it says."""
    at, environ = project
    (tmp_path / "tmux.conf").write_text("".join(blocks(DOCS, "tmux") + blocks(TMUX, "tmux")))
    command = ["tmux", "-S", str(tmp_path / "socket"), "-f", str(tmp_path / "tmux.conf")]

    def told(*words: str) -> str:
        done = subprocess.run([*command, *words], cwd=at, env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told("new-session", "-d", "-x", "120", "-y", "30", "-c", str(at))
    yield told
    told("kill-server")


def test_tmux_takes_the_lines_of_its_configuration(tmux, tmp_path):
    assert tmux("source-file", str(tmp_path / "tmux.conf")) == ""
    assert "cass status --tmux" in tmux("show", "-g", "status-right")
    bound = tmux("list-keys", "-T", "prefix")
    assert "display-popup" in bound
    assert "cass-view" in bound


@pytest.mark.parametrize("text", blocks(TMUX, "sh"), ids=lambda text: text.split("\n")[0])
def test_an_example_with_tmux_works_as_it_stands(text, tmux, tmp_path):
    (tmp_path / "example").write_text(f"set -eu -o pipefail\n{text}\n")
    script = f"bash {tmp_path / 'example'} > {tmp_path / 'said'} 2>&1; echo $? > {tmp_path / 'status'}"
    tmux("new-window", "-d", script)
    status = wait_for(lambda: (tmp_path / "status").exists() and (tmp_path / "status").read_text(), 60)
    assert status == "0\n", (tmp_path / "said").read_text()


def test_the_table_of_statuses_is_that_of_the_programs():
    rows = dict(re.findall(r"^\| (\d+) \| (\S+?)[,:]? ", DOCS, re.MULTILINE))
    assert {outcome: str(number) for outcome, number in outlook.EXITS.items()}.items() <= {
        word: number for number, word in rows.items()
    }.items()
    assert {"2", "69", "124"} <= rows.keys()
    assert {"grep", "wait", "export", "status"} <= {command.name for command in SUBCOMMANDS}


# ---- forms of an answer ---------------------------------------------------------------------------------------------


def test_an_answer_as_json_says_how_it_ended_and_what_it_used(home, scripted):
    scripted({"text": "The answer."})
    done = run("cass", "-p", "what?", "--output-format", "json")
    said = json.loads(done.stdout)
    (chat_id,) = catalogue.ids(home)
    (user,) = facts(home.files(chat_id), User)
    usage = said.pop("usage")
    assert said == {
        "type": "result", "chat_id": chat_id, "id": user.id, "outcome": "done", "status": 0, "answer": "The answer.",
    }  # fmt: skip
    assert usage["output"] > 0


def test_a_failure_as_json_has_its_error_and_its_status(scripted):
    scripted({"error": "on fire"})
    done = run("cass", "-p", "what?", "--output-format", "json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["outcome"], said["error"]) == (1, 1, "failed", "on fire")


@pytest.mark.parametrize("held", [False, True], ids=["own worker", "the worker of the chat"])
def test_a_stream_has_every_record_in_order_and_the_result_last(files, scripted, held):
    scripted({"text": "one two three", "deltas": 3})
    if held:
        run("cass-send", files.chat_id, "first", "--wait")
    done = run("cass", "-p", "what?", "--resume", files.chat_id, "--output-format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["type"] for line in lines if line["type"] != "status"]
    assert kinds[-1] == "result"
    assert {"delta", "message", "turn_end"} <= set(kinds)
    told = [records.decode(line.encode()) for line in done.stdout.splitlines()[:-1]]
    assert [r for r in told if isinstance(r, (User, Assistant))] == facts(files, User, Assistant)[-2:]
    assert (done.returncode, lines[-1]["answer"]) == (0, facts(files, Assistant)[-1].content)


def test_the_answer_goes_into_a_file_and_standard_output_stays_empty(scripted, tmp_path):
    scripted({"text": "The answer."})
    done = run("cass", "-p", "what?", "-o", str(tmp_path / "answer"))
    assert (done.returncode, done.stdout, (tmp_path / "answer").read_text()) == (0, "", "The answer.\n")
    lost = run("cass", "-p", "what?", "-o", str(tmp_path / "no" / "answer"))
    assert lost.returncode == 1
    assert str(tmp_path / "no" / "answer") in lost.stderr


@pytest.mark.parametrize(
    "arguments", [["-p", "--resume", ".", "more"], ["-p", "--resume", ".", "more", "--output-format", "text"]]
)
def test_the_prompt_may_stand_behind_other_options(files, scripted, arguments):
    scripted({"text": "ok"})
    assert run("cass", *arguments).stdout == "ok\n"
    assert facts(files, User)[0].content == "more"


def test_two_prompts_are_refused(files, scripted):
    done = run("cass", "-p", "--resume", ".", "one", "two")
    assert (done.returncode, done.stderr) == (2, "cass: more than one prompt: quote it as one argument\n")


def test_an_answer_that_never_fits_its_schema_is_a_failure(files, scripted, tmp_path):
    (tmp_path / "schema").write_text('{"type": "object", "required": ["a"]}')
    files.home.config.write_text('{"colour": 1}')
    scripted({"text": "no"}, {"text": '{"b": 1}'}, {"text": '{"a": 1}'})
    good = run("cass", "-p", "x", "--resume", ".", "--schema", str(tmp_path / "schema"))
    assert (good.returncode, good.stdout) == (0, '{"a":1}\n')
    assert "it is not JSON" in good.stderr
    assert good.stderr.count('unknown key "colour"') == 1
    assert "$: 'a' is a required property" in good.stderr
    assert [user.content[:21] for user in facts(files, User)] == [
        "x\n\nAnswer with one JS",
        *["The answer does not f"] * 2,
    ]
    scripted(*[{"text": "no"}] * 9)
    bad = run("cass", "-p", "x", "--schema", str(tmp_path / "schema"))
    assert (bad.returncode, bad.stdout) == (1, "no\n")
    (tmp_path / "schema").write_text('{"type": "nothing"}')
    assert run("cass", "-p", "x", "--schema", str(tmp_path / "schema")).returncode == 2


def test_sending_as_json_names_chat_and_message(files, scripted):
    scripted({"text": "one"}, {"text": "two"})
    assert json.loads(run("cass-send", ".", "hi", "--json", "--id", "m1").stdout) == {
        "chat_id": files.chat_id,
        "id": "m1",
    }
    waited = json.loads(run("cass-send", ".", "hi", "--json", "--wait").stdout)
    assert (waited["outcome"], waited["answer"]) == ("done", "two")


# ---- waiting --------------------------------------------------------------------------------------------------------


def test_waiting_for_an_approval_ends_when_it_is_asked_or_cannot_come(files, scripted, monkeypatch):
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    scripted({"tool_calls": [{"name": "shell", "arguments": {"command": "true"}}]}, {"text": "done"})
    assert run("cass", "wait", files.chat_id, "--until", "approval").returncode == 1, "there is nothing to do yet"
    run("cass-send", files.chat_id, "go", "--ask")
    assert run("cass", "wait", files.chat_id, "--until", "approval", "--timeout", "60").returncode == 0
    assert run("cass", "wait", files.chat_id, "--timeout", "0.1").returncode == 124
    run("cass", "cancel", files.chat_id)
    done = run("cass", "wait", files.chat_id, "--until", "approval")
    assert (done.returncode, done.stderr) == (1, "the chat has nothing more to do, and no approval came\n")


def test_waiting_for_a_message_counts_what_answers_the_last_one(files, scripted):
    scripted({"text": "first"}, {"text": "I look.", "tool_calls": [{"name": "ls"}]}, {"text": "", "hang": True})
    run("cass-send", files.chat_id, "one", "--wait")
    assert run("cass", "wait", files.chat_id, "--until", "message").returncode == 0
    run("cass-send", files.chat_id, "two")
    assert run("cass", "wait", files.chat_id, "--until", "message", "--timeout", "60").returncode == 0
    wait_for(lambda: inbox.is_empty(files))
    assert [said.content for said in facts(files, Assistant)] == ["first", "I look."]
    run("cass", "stop", files.chat_id)
