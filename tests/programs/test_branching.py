"""`cass branch`: from a shell, on a terminal, beside a worker, and what the model is asked in a branch."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import scripted
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Pty, Tmux

from cass import catalogue, inbox
from cass.composer.branching import folded
from cass.home import Home
from cass.records import Assistant, Meta, TurnEnd, User

HANGS = {"text": "word " * 5000, "deltas": 5000, "delay_ms": 20}


def write(path: str, content: str) -> dict:
    return {"tool_calls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A directory with ``home`` and ``work``, in which a chat wrote two files in two turns; made once, for it costs."""
    top = tmp_path_factory.mktemp("branching")
    (top / "work").mkdir()
    (top / "work/notes.txt").write_text("nothing here\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CASS_")}
    environ |= {"HOME": str(top), "CASS_HOME": str(top / "home"), "CASS_PROVIDER": "scripted"}
    home, how = Home(top / "home"), {"env": environ, "cwd": top / "work"}
    first = (write("one", "first"), {"text": "One is there."})
    second = (write("one", "second"), write("two", "2"), {"text": "Both are there."})
    script(home, *first, *second, write("three", "3"), HANGS)
    assert run("cass", "-p", "write one", "--workspace-edit", **how).returncode == 0
    (chat_id,) = catalogue.ids(home)
    assert run("cass", "-p", "and two", "--workspace-edit", "--resume", chat_id, **how).returncode == 0
    subprocess.run(["cp", "-a", "home", "work", _kept(top)], cwd=top, check=True)
    return top


def _kept(top: Path) -> Path:
    """Where it is kept as it was made."""
    kept = top / "kept"
    kept.mkdir(exist_ok=True)
    return kept


@pytest.fixture
def home(made, monkeypatch) -> Home:
    """The home as it was made, at the place where it was, and the workspace with it: paths stand in both."""
    for name in ("home", "work"):
        shutil.rmtree(made / name)
    subprocess.run(["cp", "-a", "home", "work", made], cwd=_kept(made), check=True)
    monkeypatch.setenv("CASS_HOME", str(made / "home"))
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    return Home(made / "home")


@pytest.fixture
def workspace(made, home, monkeypatch) -> Path:
    monkeypatch.chdir(made / "work")
    return made / "work"


@pytest.fixture
def written(home, workspace):
    """A chat that wrote two files in two turns, the second of them over the first's."""
    (chat_id,) = catalogue.ids(home)
    yield home.files(chat_id)
    for one in catalogue.ids(home):
        end_worker(home.files(one))


def kinds(files) -> list[tuple[int, str]]:
    said = json.loads(run("cass", "branch", files.chat_id, "--list", "--json").stdout)
    return [(point["number"], point["kind"]) for point in said]


TURN = ["user", "assistant", "call", "result"]


def test_the_list_gives_the_numbers_that_the_command_takes_and_the_branches_that_there_are(written):
    wanted = [*TURN, "assistant", *TURN, "assistant", "call", "result", "assistant"]
    assert kinds(written) == list(enumerate(wanted, 1))
    made = run("cass", "branch", written.chat_id, "5").stdout.strip()
    listed = run("cass", "branch", written.chat_id, "--list").stdout
    assert "   6  " in listed
    assert "  ❯ and two\n" in listed
    assert "    call       write two" in listed
    place = listed.index("One is there.")
    assert place < listed.index(made) < listed.index("and two")
    said = run("cass", "branch", made, "--list")
    assert f"branched from {written.chat_id}" in said.stderr
    assert kinds(written.home.files(made)) == list(enumerate(wanted[:5], 1))


def test_a_branch_prints_its_id_and_leaves_parent_and_files_as_they_are(written, workspace):
    before = written.chat.read_bytes()
    done = run("cass", "branch", written.chat_id[-4:], "6", "--json")
    said = json.loads(done.stdout)
    assert (said["point"]["kind"], said["files"]) == ("user", [])
    made = written.home.files(said["chat_id"])
    assert made.draft.read_text() == "and two"
    assert facts(made, Meta)[0].parent_chat_id == written.chat_id
    assert (written.chat.read_bytes(), (workspace / "one").read_text()) == (before, "second")
    assert catalogue.summaries(written.home)[0].chat_id in (made.chat_id, written.chat_id)


def test_files_go_back_with_a_branch_and_on_again_to_its_parent(written, workspace):
    done = run("cass", "branch", written.chat_id, "6", "--restore", "--yes")
    assert done.returncode == 0, done.stderr
    assert "one  take it back to 5 bytes" in done.stderr
    assert ((workspace / "one").read_text(), (workspace / "two").exists()) == ("first", False)
    back = run("cass", "branch", written.chat_id, "--files-only", "--yes")
    assert (back.returncode, back.stdout) == (0, "")
    assert ((workspace / "one").read_text(), (workspace / "two").read_text()) == ("second", "2")
    assert len(catalogue.ids(written.home)) == 2


def test_what_others_changed_is_said_and_the_rest_is_done(written, workspace):
    (workspace / "one").write_text("by hand")
    done = run("cass", "branch", written.chat_id, "5", "--restore", "--yes", "--json")
    assert done.returncode == 0
    found = {os.path.basename(file["path"]): file["conflict"] for file in json.loads(done.stdout)["files"]}
    assert found == {"one": "changed by others since", "two": None}
    assert ((workspace / "one").read_text(), (workspace / "two").exists()) == ("by hand", False)


def test_a_dry_run_and_a_run_that_cannot_ask_do_nothing(written, workspace):
    plan = run("cass", "branch", written.chat_id, "5", "--restore", "--dry-run")
    assert (plan.returncode, plan.stdout) == (0, "")
    assert "two  remove it" in plan.stderr
    refused = run("cass", "branch", written.chat_id, "5", "--restore")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "add --yes" in refused.stderr
    assert ((workspace / "one").read_text(), len(catalogue.ids(written.home))) == ("second", 1)


@pytest.mark.parametrize(
    ("typed", "status", "left"), [("y\r", 0, "first"), ("n\r", 130, "second"), ("\r", 130, "second")]
)
def test_on_a_terminal_the_plan_stands_above_the_question(written, workspace, typed, status, left):
    terminal = Pty(argv("cass", "branch", written.chat_id, "5", "--restore"))
    try:
        terminal.until("restore 2 files? [y/N]")
        assert terminal.said.index(b"two  remove it") < terminal.said.index(b"[y/N]")
        terminal.type(typed)
        assert terminal.end() == status
    finally:
        terminal.close()
    assert (workspace / "one").read_text() == left
    assert len(catalogue.ids(written.home)) == (2 if status == 0 else 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("99",), "there are 13: cass branch 2"), (("call_",), "no point"), (("",), "no point")],
)
def test_a_point_that_is_none_is_named(written, arguments, said):
    done = run("cass", "branch", written.chat_id, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_chat_in_the_middle_of_a_turn_can_be_branched_but_its_files_are_not_taken_from_under_it(written):
    run("cass-send", written.chat_id, "on with it")
    wait_for(lambda: facts(written, Assistant)[-1].tool_calls and len(facts(written, User)) == 3)
    wait_for(lambda: b'"word "' in written.live.read_bytes() or b"delta" in written.live.read_bytes())
    made = run("cass", "branch", written.chat_id).stdout.strip()
    (end,) = facts(written.home.files(made), TurnEnd)[-1:]
    assert end.outcome == "cancelled"
    refused = run("cass", "branch", written.chat_id, "5", "--restore", "--yes")
    assert refused.returncode == 1
    assert f"a turn runs in {written.chat_id}" in refused.stderr
    from_other = run("cass", "branch", made, "5", "--restore", "--yes")
    assert f"a turn runs in {written.chat_id}" in from_other.stderr
    assert inbox.is_empty(written)
    run("cass", "cancel", written.chat_id)


@pytest.mark.parametrize("number", [1, 3, 4, 9])
def test_the_strictest_server_takes_what_a_branch_asks(written, number, monkeypatch):
    made = run("cass", "branch", written.chat_id, str(number)).stdout.strip()
    with scripted.Server([scripted.says("and so on")]) as server:
        monkeypatch.delenv("CASS_PROVIDER")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        done = run("cass", "-p", "go on", "--resume", made, "--base-url", server.base_url, "--model", "m")
        assert (done.stdout, done.returncode) == ("and so on\n", 0), done.stderr
    assert server.problems == []


def test_home_is_needed_for_nothing_but_the_chat(tmp_path):
    done = run("cass", "branch", "nothing", "1")
    assert done.returncode == 69
    assert not Home(tmp_path / "home").root.exists()


@pytest.fixture
def seat(written, tmp_path):
    """A tmux with the chat in it."""
    given = {name: os.environ[name] for name in ("HOME", "CASS_HOME", "CASS_PROVIDER")}
    made = Tmux(tmp_path / "tmux", argv("cass", "--resume", written.chat_id), environ=given, inside=False)
    try:
        made.until("idle")
        yield made
    finally:
        made.close()


def choose(seat, command: str, point: str) -> str:
    """Type a command, then a part of the point that is meant, and take it; return the screen with all."""
    seat.type(command)
    seat.press("Enter")
    offered: str = seat.until("Esc none")
    seat.type(point)
    seat.until(lambda: re.search(rf"^> .*{point}", seat.screen(), re.MULTILINE))
    seat.press("Enter")
    return offered


def test_a_point_is_picked_and_the_new_chat_begins_there_with_the_files_of_then(written, workspace, seat):
    offered = choose(seat, "/branch", "and two")
    assert [line for line in offered.split("\n") if "call  " in line or "result  " in line] == []
    seat.until("branch, and restore 2 files")
    seat.until("one  take it back to 5 bytes", history=True)
    assert ((workspace / "one").read_text(), len(catalogue.ids(written.home))) == ("second", 1)
    seat.press("Down", "Enter")
    wait_for(lambda: (workspace / "one").read_text() == "first" and not (workspace / "two").exists())
    seat.until(lambda: re.search(r"❯ and two\s*$", seat.screen(), re.MULTILINE))
    (made,) = set(catalogue.ids(written.home)) - {written.chat_id}
    assert [user.content for user in facts(written.home.files(made), User)] == ["write one"]


def test_files_are_taken_back_and_forth_in_one_chat(written, workspace, seat):
    choose(seat, "/restore", "One is")
    seat.until("restore 2 files")
    seat.press("Enter")
    seat.until("2 files restored")
    assert ((workspace / "one").read_text(), (workspace / "two").exists()) == ("first", False)
    choose(seat, "/restore", "Both are")
    seat.until("restore 2 files")
    seat.press("Enter")
    wait_for(lambda: (workspace / "two").exists())
    assert (workspace / "one").read_text() == "second"
    choose(seat, "/restore", "Both are")
    seat.until("no file is to be restored")
    assert len(catalogue.ids(written.home)) == 1


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        ("", ""),
        ("u", "u"),
        ("ua", "ua"),
        ("uacra", "ua"),
        ("uacracraua", "uaua"),
        ("uacr", "ur"),
        ("uac", "uc"),
        ("uacruacra", "uua"),
    ],
)
def test_points_between_are_folded(kinds, kept):
    names = {"u": "user", "a": "assistant", "c": "call", "r": "result"}
    points = [{"kind": names[kind], "number": number} for number, kind in enumerate(kinds, 1)]
    found = folded(points)
    assert "".join(point["kind"][0] for point in found) == kept
    assert found[-1:] == points[-1:]
