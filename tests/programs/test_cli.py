"""The command line: what each program prints, where, and the status it ends with."""

import json
import os
import pty
import select
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, run, wait_for
from terminal import Pty

from cass import __version__, catalogue, cli, inbox, jsonl, presence, records
from cass.home import Files, Home
from cass.records import Approval, Assistant, Compaction, Meta, TurnEnd, Usage, User

PATIENT = 60
ASKING = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}


@contextmanager
def running(program: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A program of ours that goes on meanwhile; ended at the end, whatever happened."""
    process = subprocess.Popen(
        argv(program, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENT)


def only(home: Home) -> Files:
    (chat_id,) = catalogue.ids(home)
    return home.files(chat_id)


# ---- cass -p --------------------------------------------------------------------------------------------------------


def test_one_turn_prints_the_answer_alone(home, scripted):
    scripted({"text": "The answer.\nIn two lines.", "reasoning": "hm"})
    done = run("cass", "-p", "what?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "The answer.\nIn two lines.\n", "")
    files = only(home)
    assert [user.content for user in facts(files, User)] == ["what?"]
    assert not presence.is_running(files)
    assert inbox.is_empty(files)


def test_without_a_key_it_works_on_the_persons_own_files_and_says_that_it_is_the_demo(home, workspace, monkeypatch):
    monkeypatch.delenv("CASS_PROVIDER")
    done = run("cass", "-p", "where is main defined?", "--provider", "demo")
    assert done.returncode == 0
    assert "app.py" in done.stdout
    assert "no language model" in done.stderr


@pytest.mark.parametrize(
    ("step", "more", "status", "says"),
    [
        ({"text": ""}, [], 1, "failed: the model ended its answer without any text"),
        ({"text": "cut", "stop": "length"}, [], 1, "failed: the answer was cut off"),
        ({"error": "on fire"}, [], 1, "failed: on fire"),
        ({"tool_calls": [{"name": "ls"}]}, ["--max-turns", "1"], 1, "failed: stopped after 1 requests (--max-turns)"),
        (ASKING, ["--workspace-edit"], 4, "blocked: something was refused because nobody could be asked"),
        (ASKING, ["--readonly"], 0, ""),
        ({"text": "x"}, ["--provider", "openai"], 2, "set OPENAI_API_KEY"),
        ({"text": "x"}, ["--provider", "nobody"], 2, "nobody"),
        ({"text": "x"}, ["--cwd", "/none/such"], 2, "/none/such"),
        ({"text": "x"}, ["--workspace-edit", "--cwd", "/"], 2, "cannot be the workspace"),
        ({"text": "x"}, ["--config", "/none.json"], 2, "/none.json"),
        ({"text": "x"}, ["--max-turns", "0"], 2, "--max-turns"),
        ({"text": "x"}, ["--resume", "zzz"], 69, "no chat 'zzz'"),
    ],
)
def test_the_status_and_standard_error_say_how_it_ended(scripted, workspace, step, more, status, says):
    scripted(step, {"text": "as you like"})
    done = run("cass", "-p", "what?", *more)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (workspace / "made").exists()


def test_a_failure_names_the_chat_it_is_kept_in(home, scripted):
    scripted({"error": "on fire"})
    assert f"chat: {only_after(home, run('cass', '-p', 'x'))}" in run("cass", "-p", "x", "--resume", ".").stderr


def only_after(home: Home, done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 1
    return only(home).chat_id


def test_a_wrong_flag_makes_no_chat(home, workspace):
    assert run("cass", "-p", "x", "--provider", "openai").returncode == 2
    assert run("cass", "-p", " ").returncode == 2
    assert run("cass", "-p", "x", "--workspace-edit", "--cwd", "/").returncode == 2
    assert catalogue.ids(home) == []


@pytest.mark.parametrize(
    ("arguments", "given", "text"),
    [
        (["-p", "explain"], "a log\n", "explain\n\na log"),
        (["-p"], "from a pipe\n", "from a pipe"),
        (["-p", "-"], "from a pipe\n", "from a pipe"),
        (["--print", "explain"], "", "explain"),
        (["-p", "--readonly"], "from a pipe\n", "from a pipe"),
    ],
)
def test_the_prompt_is_the_argument_with_a_pipe_as_its_context(home, scripted, arguments, given, text):
    scripted({"text": "ok"})
    assert run("cass", *arguments, input=given).returncode == 0
    assert facts(only(home), User)[0].content == text


def test_an_inherited_pipe_hangs_nothing(scripted):
    scripted({"text": "ok"})
    reading, writing = os.pipe()
    try:
        done = run("cass", "-p", "explain", stdin=reading)
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert "nothing came on standard input" in done.stderr


def test_a_chat_goes_on_where_it_was(home, scripted):
    scripted({"text": "first"}, {"text": "second"})
    run("cass", "-p", "one")
    files = only(home)
    for name in (files.chat_id[-4:], "."):
        done = run("cass", "-p", "two", "--resume", name)
        assert (done.returncode, done.stdout) == (0, "second\n" if name != "." else "The script has no step 2.\n")
    assert len(facts(files, Meta)) == 1


def test_a_chat_that_a_worker_holds_is_asked_through_it(home, scripted):
    scripted({"text": "first"}, {"text": "second"})
    run("cass", "-p", "one")
    files = only(home)
    try:
        presence.start(files).wait()
        pid = presence.holder(files)["pid"]
        done = run("cass", "-p", "two", "--resume", files.chat_id)
        assert (done.returncode, done.stdout) == (0, "second\n")
        assert presence.holder(files)["pid"] == pid
    finally:
        end_worker(files)


def test_damage_is_said_on_standard_error(home, scripted):
    scripted({"text": "first"}, {"text": "second"})
    run("cass", "-p", "one")
    files = only(home)
    with open(files.chat, "ab") as file:
        file.write(b'{"type":"mess')
    done = run("cass", "-p", "two", "--resume", files.chat_id)
    assert (done.returncode, done.stdout) == (0, "second\n")
    assert "is damaged and was skipped" in done.stderr
    again = run("cass", "-p", "three", "--resume", files.chat_id)
    assert again.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_turn_and_leaves_the_chat_valid(home, scripted, number):
    scripted({"text": "some words", "hang": True})
    with running("cass", "-p", "one") as one:
        wait_for(lambda: catalogue.ids(home) and facts(only(home), User))
        one.send_signal(number)
        _, err = one.communicate(timeout=PATIENT)
    assert one.returncode == 130
    assert "cancelled" in err
    assert "Traceback" not in err
    assert facts(only(home), TurnEnd)[0].outcome == "cancelled"
    scripted({"text": "later"}, {"text": "later"})
    assert run("cass", "-p", "two", "--resume", ".").stdout == "later\n"


def test_a_closed_pipe_is_no_traceback(scripted):
    scripted({"text": "x" * 200_000, "deltas": 1})
    command = " ".join(f"'{word}'" for word in argv("cass", "-p", "one"))
    done = subprocess.run(["sh", "-c", f"{command} | head -c 10"], capture_output=True, timeout=PATIENT, text=True)
    assert done.stdout == "x" * 10
    assert "Traceback" not in done.stderr


def test_another_terminal_answers_for_one_turn(home, scripted, workspace):
    scripted(ASKING, {"text": "done"})
    with running("cass", "-p", "one", "--ask", "--workspace-edit") as one:
        (pending,) = wait_for(lambda: catalogue.ids(home) and status_of(only(home))["pending"])
        assert run("cass", "deny", ".", pending["request_id"], "--reason", "not now").returncode == 0
        assert one.communicate(timeout=PATIENT)[0] == "done\n"
    assert one.returncode == 0
    (approval,) = facts(only(home), Approval)
    assert (approval.decision, approval.reason) == ("denied", "not now")
    assert "by cass deny, pid" in approval.by
    assert not (workspace / "made").exists()


def test_everything_a_turn_makes_is_private_whatever_the_umask(home, scripted):
    shell = {"name": "shell", "arguments": {"command": "head -c 3000000 /dev/zero | tr '\\0' x"}}
    scripted({"tool_calls": [shell]}, {"text": "done"})
    for path in (home.providers, home.root / "scripted.json"):
        path.chmod(0o600)
    home.root.chmod(0o700)
    files_before = set(home.root.rglob("*"))
    assert run("cass", "-p", "one", "--full-access", umask=0).returncode == 0
    made = [path for path in home.root.rglob("*") if path not in files_before]
    assert any(path.parent.name == "out" for path in made)
    for path in made:
        mode = path.lstat().st_mode
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path


def test_a_home_that_cannot_be_written_is_one_line(tmp_path, workspace, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CASS_HOME", str(tmp_path / "file" / "home"))
    done = run("cass", "-p", "hi")
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / "file") in done.stderr


# ---- lists ----------------------------------------------------------------------------------------------------------


def make(home: Home, chat_id: str, cwd: Path | str, *said: str, model: str = "a/model-x") -> None:
    home.make()
    at = f"2026-01-0{1 + len(catalogue.ids(home))}T00:00:00.000Z"
    found = [Meta(chat_id=chat_id, created_at=at, provider="p", model=model, cwd=str(cwd))]
    found += [User(id=str(n), content=text, created_at=at) for n, text in enumerate(said)]
    home.files(chat_id).chat.write_bytes(b"".join(map(records.encode, found)))


A, B, C = "2026-06-20-143012-a8f3", "2026-06-20-150000-b8b1", "2026-06-20-160000-c123"


@pytest.fixture
def three(home, workspace):
    make(home, A, workspace, "first\nthing \x1b[31mred")
    make(home, B, workspace)
    make(home, C, "/elsewhere", "far away")


@pytest.mark.parametrize("arguments", [["ls"], ["--resume"], ["--list-chats"], ["--sessions"]])
def test_chats_of_this_directory_are_listed_newest_first(three, arguments):
    done = run("cass", *arguments)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [B, A]
    assert "(no message yet)" in lines[0]
    assert "model-x" in lines[1]
    assert "first thing" in lines[1]
    assert "\x1b" not in done.stdout


def test_all_chats_are_listed_with_their_directories(three):
    lines = run("cass", "ls", "--all", env=os.environ | {"COLUMNS": "200"}).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [C, B, A]
    assert "/elsewhere  far away" in lines[0]


def test_the_list_as_json_has_every_field(three, workspace):
    found = json.loads(run("cass", "ls", "--json", "--all").stdout)
    assert [chat["chat_id"] for chat in found] == [C, B, A]
    assert found[2] == {
        "chat_id": A,
        "created_at": "2026-01-01T00:00:00.000Z",
        "changed_at": "2026-01-01T00:00:00.000Z",
        "model": "a/model-x",
        "cwd": str(workspace),
        "title": "first thing \x1b[31mred",
        "is_running": False,
        "cost": None,
        "agent_of": None,
        "parent_chat_id": None,
        "branch_from": None,
    }


def test_what_chats_have_cost_stands_beside_them_where_it_is_known(three, home):
    assert "$" not in run("cass", "ls").stdout
    end = TurnEnd(turn="0", answers=("0",), outcome="done", created_at="2026-02-01T00:00:00.000Z", spent=0.0123)
    with home.files(A).chat.open("ab") as chat:
        chat.write(records.encode(end))
    dear, unknown = run("cass", "ls").stdout.splitlines()
    assert "model-x               $0.0123  first thing" in dear
    assert "model-x                     ?  (no message yet)" in unknown
    (said,) = json.loads(run("cass", "status", A, "--json").stdout)
    assert said["cost"] == 0.0123


@pytest.mark.parametrize(("cost", "shown"), [(0.0, "$0"), (0.0123, "$0.0123"), (None, "?")])
def test_what_cost_nothing_and_what_is_not_known_are_the_same_in_every_list(home, workspace, cost, shown):
    """Also where the turn has not ended, and where something stands behind its end."""
    make(home, A, workspace, "hello")
    at, usage = "2026-02-01T00:00:00.000Z", Usage(input=5, output=1, cost=cost)
    answer = Assistant(id="a", content="x" * 9_000, created_at=at, model="a/model-x", usage=usage)
    end = TurnEnd(turn="0", answers=("0",), outcome="done", created_at=at, usage=usage, spent=cost)
    later = Compaction(summary="", first_kept_id=None, tokens_before=1, created_at=at)
    for records_now in ([answer], [end], [later]):
        with home.files(A).chat.open("ab") as chat:
            chat.write(b"".join(map(records.encode, records_now)))
        found = [json.loads(run("cass", command, "--json").stdout)[0] for command in ("ls", "status")]
        (counted,) = json.loads(run("cass", "stats", "--json").stdout)["chat"]
        assert [said["cost"] for said in (*found, counted)] == [cost] * 3
    assert f"  {shown}  " in run("cass", "stats").stdout.replace("\n", "  \n")
    assert (f"  {shown}  hello" in run("cass", "ls").stdout) is (cost is not None)


def test_stats_are_a_table_json_or_of_one_chat(home, workspace):
    assert run("cass", "stats").stdout == "no request has told its usage yet\n"
    assert run("cass", "-p", "where is main?").returncode == 0
    (chat_id,) = catalogue.ids(home)
    shown = run("cass", "stats").stdout
    assert [word for word in ("1 chat,", "day ", "demo", str(workspace)[-30:], chat_id) if word not in shown] == []
    assert json.loads(run("cass", "stats", chat_id[-4:], "--json").stdout)["total"]["requests"] >= 1
    assert "directory" not in run("cass", "stats", ".").stdout
    assert run("cass", "stats", "--since", "1h", "--by", "model").stdout.count("\n") == 4
    assert run("cass", "stats", "--since", "soon").returncode == 2


def test_where_there_is_no_chat_it_says_so_and_lists_nothing(home, workspace, tmp_path):
    done = run("cass", "ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no chats yet" in done.stderr
    assert json.loads(run("cass", "ls", "--json").stdout) == []
    make(home, A, "/elsewhere")
    assert "1 elsewhere: cass ls --all" in run("cass", "ls").stderr


def test_what_a_worker_does_stands_in_the_list_in_the_words_of_status(files):
    presence.start(files).wait()
    assert "  idle  " in run("cass", "ls").stdout
    assert "  idle  " in run("cass", "status").stdout


# ---- status ---------------------------------------------------------------------------------------------------------


def status_of(files: Files) -> dict:
    (found,) = json.loads(run("cass", "status", files.chat_id, "--json").stdout)
    return found


def test_the_status_of_a_chat_without_a_worker(files, workspace):
    said = status_of(files)
    assert said.pop("changed_at")
    assert said == {
        "chat_id": files.chat_id,
        "state": "stopped",
        "mode": None,
        "provider": None,
        "model": "demo",
        "cwd": str(workspace),
        "title": "",
        "agent_of": None,
        "queue": [],
        "pending": [],
        "context": None,
        "cost": None,
    }
    inbox.put(files, {"type": "message", "content": "x"}, "build-1")
    (queued,) = status_of(files)["queue"]
    assert queued["id"] == "build-1"
    assert "1 waiting" in run("cass", "status").stdout


def test_the_status_of_a_chat_that_waits_for_its_person(files, home, scripted, monkeypatch):
    scripted(ASKING, {"text": "done"})
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    run("cass-send", files.chat_id, "hello", "--ask")
    (pending,) = wait_for(lambda: status_of(files)["pending"])
    said = status_of(files)
    assert (said["state"], said["mode"], said["provider"]) == ("awaiting-approval", "workspace-edit", "scripted")
    assert said["title"] == "hello"
    assert said["context"]["used"] > 0
    assert pending["name"] == "shell"
    assert pending["arguments"] == {"command": "touch made"}
    assert pending["rule"] == "shell(touch made)"
    shown = run("cass", "status").stdout
    assert f"cass approve {files.chat_id} {pending['request_id']}" in shown
    assert "touch made" in shown
    end_worker(files)
    assert status_of(files)["state"] == "stopped"
    assert status_of(files)["pending"] == [], "what a dead worker asked is not asked any more"


def test_status_where_nothing_goes_on(home, workspace):
    assert run("cass", "status").stdout == "no chats yet\n"
    assert json.loads(run("cass", "status", "--json").stdout) == []
    make(home, A, workspace)
    assert run("cass", "status").stdout == "nothing is going on in 1 chats; cass ls lists them\n"
    assert A in run("cass", "status", A).stdout


# ---- deciding, waiting, ending --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["approve"], ["deny"], ["cancel"], ["stop"]])
def test_without_a_worker_there_is_nobody_to_tell(files, command):
    done = run("cass", *command, files.chat_id)
    assert done.returncode == 69
    assert "no worker is running" in done.stderr
    assert os.listdir(files.inbox) == []


@pytest.mark.parametrize("command", ["approve", "deny", "cancel", "stop", "wait", "status", "paths"])
def test_an_unknown_chat_is_69(home, workspace, command):
    done = run("cass", command, "zzz")
    assert done.returncode == 69
    assert "no chat 'zzz'" in done.stderr
    assert done.stderr.startswith("cass: ")


@pytest.fixture
def pending(files, scripted, monkeypatch):
    """A request that waits in `files`."""
    scripted(ASKING, {"text": "done"})
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    files.home.config.write_text('{"sandbox": false}')
    assert run("cass-send", files.chat_id, "hello", "--ask").returncode == 0
    (request,) = wait_for(lambda: status_of(files)["pending"])
    return request["request_id"]


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_without_a_terminal_the_request_must_be_named(files, pending, verb, workspace):
    done = run("cass", verb, files.chat_id)
    assert done.returncode == 4
    assert f"cass {verb} {files.chat_id} {pending}" in done.stderr
    assert facts(files, Approval) == []
    assert run("cass", verb, files.chat_id, pending).returncode == 0
    assert run("cass", "wait", files.chat_id).returncode == 0
    assert (workspace / "made").exists() == (verb == "approve")


def test_the_first_answer_counts_and_the_second_is_told_who_was_first(files, pending):
    assert run("cass", "deny", files.chat_id, pending).returncode == 0
    done = run("cass", "approve", files.chat_id, pending)
    assert done.returncode == 1
    assert "already decided: denied by" in done.stderr or "no request" in done.stderr


def test_an_answer_to_another_request_is_none(files, pending):
    done = run("cass", "approve", files.chat_id, "nothing")
    assert done.returncode == 1
    assert "no request 'nothing' is waiting" in done.stderr
    assert facts(files, Approval) == []


@pytest.mark.parametrize(("key", "decided"), [("y\n", True), ("n\n", False), ("\n", False), ("\x04", False)])
def test_on_a_terminal_the_action_is_shown_and_asked(files, pending, workspace, key, decided):
    mine, theirs = pty.openpty()
    shown = b""
    asking = subprocess.Popen(argv("cass", "approve", files.chat_id), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        while b"[y/N]" not in shown:
            assert select.select([mine], [], [], PATIENT)[0], shown
            shown += os.read(mine, 1000)
        os.write(mine, key.encode())
        assert asking.wait(PATIENT) == 0
    finally:
        asking.kill()
        asking.wait(PATIENT)
    os.close(mine)
    assert "shell, 1 line:\r\n│ touch made\r\nbecause".encode() in shown
    assert b"not sandboxed: this command can do anything you can" in shown
    if decided:
        assert run("cass", "wait", files.chat_id).returncode == 0
    assert (workspace / "made").exists() == decided


def test_always_is_given_from_the_command_line(files, pending):
    assert run("cass", "approve", files.chat_id, pending, "--always").returncode == 0
    assert run("cass", "wait", files.chat_id).returncode == 0
    assert facts(files, Approval)[0].rule == "shell(touch made)"


def test_cancelling_ends_the_turn_and_not_the_worker(files, pending):
    assert run("cass", "cancel", files.chat_id).returncode == 0
    assert run("cass", "wait", files.chat_id).returncode == 130
    assert presence.is_running(files)


def test_stopping_ends_the_worker_and_its_turn(files, pending):
    assert run("cass", "stop", files.chat_id).returncode == 0
    assert not presence.is_running(files)
    assert facts(files, TurnEnd)[0].outcome == "cancelled"


def test_waiting_for_a_chat_that_has_nothing_to_do_returns_at_once(files):
    assert run("cass", "wait", files.chat_id).returncode == 0
    assert run("cass-send", files.chat_id, "hello", "--wait").returncode == 0
    assert run("cass", "wait", ".").returncode == 0
    inbox.put(files, {"type": "message", "content": "x"})
    run("cass", "stop", files.chat_id)


def test_waiting_for_a_message_that_nobody_works_on_is_69(files):
    inbox.put(files, {"type": "message", "content": "x"})
    done = run("cass", "wait", files.chat_id)
    assert done.returncode == 69
    assert "is gone" in done.stderr


# ---- the rest -------------------------------------------------------------------------------------------------------


def test_the_system_prompt_is_printed_with_the_instructions_of_the_project(home, workspace):
    home.make()
    home.instructions.write_text("Answer in French.")
    (workspace / "AGENTS.md").write_text("Use tabs.")
    done = run("cass", "--print-system-prompt")
    assert done.returncode == 0
    assert done.stdout.startswith("1. Identity")
    assert "Answer in French." in done.stdout
    assert "Use tabs." in done.stdout
    assert catalogue.ids(home) == []


def test_cassady_is_cass(scripted):
    scripted({"text": "ok"})
    assert run("cassady", "-p", "x").stdout == "ok\n"
    for name in ("cass", "cassady"):
        assert run(name, "--version").stdout == f"{name} {__version__}\n"
    assert run("cassady", "prune", "zzz").stderr.startswith("Usage: cassady")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resume"], "did you mean cass --resume; to ask it: cass -p TEXT"),
        (["logn"], "did you mean cass login; to ask it: cass -p TEXT"),
        (["zzzz"], "cass --help lists them; to ask it: cass -p TEXT"),
        (["fix the bug"], "cass --help lists them; to ask it: cass -p TEXT"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_what_may_be_meant(workspace, words, said):
    done = run("cass", *words)
    assert (done.returncode, done.stderr) == (2, f"cass: no command {words[0]!r}; {said}\n")


def test_what_else_a_command_may_be_called_leads_to_one_that_there_is():
    for meant in set(cli._ELSEWHERE.values()):
        assert run("cass", *meant.split(), "--help").returncode == 0


def test_continue_goes_on_with_the_latest_chat_of_this_directory(home, workspace):
    run("cass", "-p", "list .")
    assert run("cass", "-c", "-p", "find TODO").returncode == 0
    assert run("cass", "-p", "--continue", "find FIXME").returncode == 0
    (chat,) = catalogue.ids(home)
    assert len(facts(home.files(chat), User)) == 3


@pytest.mark.parametrize("program", [["cass", "-p", "hi"], ["cass-agent", "x"]])
def test_a_workspace_that_is_no_directory_is_wrong_usage_and_makes_no_chat(home, workspace, program):
    done = run(*program, "--cwd", str(workspace / "typo"))
    assert done.returncode == 2
    assert f"Invalid value for '--cwd': '{workspace / 'typo'}' is no directory." in done.stderr
    assert catalogue.ids(home) == []


def test_a_chat_needs_a_terminal(workspace):
    for arguments in ([], ["--resume", "x"]):
        done = run("cass", *arguments)
        assert done.returncode == 2
        assert "a chat needs a terminal" in done.stderr


@pytest.mark.parametrize("program", ["cass", "cassady", "cass-agent", "cass-view", "cass-compose", "cass-send"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_program_has_help(program, flag):
    done = run(program, flag)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {program}")


def test_paths_names_where_everything_is(files, home):
    assert f"home           {home.root}\n" in run("cass", "paths").stdout
    lines = run("cass", "paths", files.chat_id).stdout.splitlines()
    assert dict(line.split() for line in lines)["bell"] == str(files.bell)


def test_a_worker_of_an_unknown_chat_is_69(home, workspace):
    assert run("cass-agent", "zzz").returncode == 69


def test_a_worker_ends_by_itself_and_a_second_one_is_refused(files):
    with running("cass-agent", files.chat_id, "--idle", "600") as worker:
        wait_for(lambda: inbox.ring(files))
        done = run("cass-agent", files.chat_id)
        assert done.returncode == 69
        assert f"is held by another process (pid {worker.pid} " in done.stderr
        worker.terminate()
        assert worker.wait(PATIENT) == 0
    began = time.monotonic()
    assert run("cass-agent", files.chat_id, "--idle", "0").returncode == 0
    assert time.monotonic() - began < PATIENT


def test_a_line_from_a_shell_is_answered(files, scripted):
    scripted({"text": "hello to you"})
    presence.start(files).wait()
    subprocess.run(["sh", "-c", 'echo hi > "$0"', str(files.bell)], check=True, timeout=PATIENT)
    (answer,) = wait_for(lambda: facts(files, Assistant))
    assert answer.content == "hello to you"
    assert facts(files, User)[0].origin == {"by": "fifo"}


@pytest.mark.parametrize("item", [{"type": "dance"}, "rubbish", []], ids=repr)
def test_what_a_worker_does_not_understand_is_put_aside_and_it_goes_on(files, item):
    presence.start(files).wait()
    (files.inbox / "0-bad").write_bytes(item.encode() if isinstance(item, str) else records.dump(item))
    inbox.ring(files)
    wait_for((files.inbox / ".bad-0-bad").exists)
    wait_for(lambda: f"put aside in {files.inbox} as .bad-0-bad" in files.log.read_text())
    assert run("cass-send", files.chat_id, "hello", "--wait").returncode == 0


# ---- terminals ------------------------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;pwned\x07\x9b2J\u202e\u3164"


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["-p", "hi"], "answer"),
        (["--resume", A, "-p", "hi"], "the workspace"),
        (["ls", "--all"], "gone"),
        (["ls", "--all", "--json"], "gone"),
        (["status", A], "title"),
        (["status", A, "--json"], "title"),
        (["--print-system-prompt"], "instructions"),
        (["wait", A], "last words"),
        (["paths"], "conversations"),
    ],
    ids=" ".join,
)
def test_e01_whatever_is_printed_on_a_terminal_does_not_control_it(
    home, scripted, workspace, monkeypatch, arguments, shows
):
    scripted({"text": f"answer {HOSTILE}"})
    make(home, A, f"/gone {HOSTILE}", f"title {HOSTILE}", model=f"a/{HOSTILE}")
    files = home.files(A)
    inbox.put(files, {"type": "message", "content": "x"})
    files.lock.write_bytes(jsonl.dump({"error": f"last words {HOSTILE}"}))
    (workspace / "AGENTS.md").write_text(f"instructions {HOSTILE}")
    program = Pty(argv("cass", *arguments), columns=200)
    program.end()
    program.close()
    said = program.said.decode()
    assert shows in said
    assert not set(HOSTILE) & set(said) - set("0;pwned]2J")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--base-url", "http://user:hunter2-secret@127.0.0.1:9/v1"],
        ["--base-url", "http://127.0.0.1:9/v1?key=hunter2-secret"],
        ["--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "sk-live-hunter2-secret"],
    ],
    ids=["password", "query", "key for its variable"],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(home, workspace, files, arguments):
    for done in (
        run("cass", *arguments, "-m", "m", "-p", "hi"),
        run("cass", "--resume", files.chat_id, *arguments, "-m", "m", "-p", "hi"),
        run("cass-agent", files.chat_id, *arguments, "-m", "m"),
    ):
        assert done.returncode == 2
        assert "hunter2" not in done.stdout + done.stderr
        assert "key" in done.stderr
    assert catalogue.ids(home) == [files.chat_id]
    assert b"hunter2" not in b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
