"""`cass batch`: results, what may be killed in the middle, and that nothing is done twice."""

import contextlib
import json
import os
import signal
import subprocess

import pytest
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Pty

from cass import catalogue, presence, standing
from cass.records import TurnEnd, User
from tests import drawn

SLOW = {"text": "word " * 400, "deltas": 400, "delay_ms": 25}
"""Ten seconds, so that there is a middle to do something in."""


@pytest.fixture
def batch(home, workspace):
    """Write tasks down; workers that are left are ended after the test."""

    def write(*tasks):
        path = workspace / "tasks.jsonl"
        path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
        return str(path)

    yield write
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


def results(text):
    return {result["task"]: result for result in map(json.loads, text.splitlines())}


def chats(home):
    return [home.files(chat_id) for chat_id in sorted(catalogue.ids(home))]


def said(home):
    """The messages of each chat."""
    return [[record.content for record in facts(files, User)] for files in chats(home)]


def is_thinking(home, count=1):
    return sum(standing.look(files).is_busy for files in chats(home)) == count


@contextlib.contextmanager
def running(home, path, *arguments, count=1):
    """A batch whose turns are under way."""
    process = subprocess.Popen(argv("cass", "batch", path, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: is_thinking(home, count))
        yield process
    finally:
        process.kill()
        process.communicate()


def test_images_of_a_task_go_along_and_one_that_is_none_fails_it_alone(batch, home, workspace):
    (workspace / "a.png").write_bytes(drawn.png())
    tasks = [{"prompt": "hello", "id": name, "attach": [f"{name}.png"]} for name in ("a", "gone")]
    found = results(run("cass", "batch", batch(*tasks)).stdout)
    assert "one image, 4x3" in found["a"]["answer"]
    assert (found["gone"]["status"], "cannot be attached" in found["gone"]["error"]) == (2, True)
    assert [[len(user.attachments) for user in facts(files, User)] for files in chats(home)] == [[1]]


def test_each_task_has_a_chat_of_its_own_and_one_line_of_result(batch, home, workspace):
    path = batch({"prompt": "where is main defined?", "id": "a"}, {"prompt": "list .", "id": "b", "cwd": ".."})
    done = run("cass", "batch", path, "-j", "2")
    assert done.returncode == 0, done.stderr
    found = results(done.stdout)
    assert "app.py:1" in found["a"]["answer"]
    assert (found["b"]["cwd"], found["b"]["status"]) == (str(workspace.parent), 0)
    assert {result["chat_id"] for result in found.values()} == set(catalogue.ids(home))
    assert "2 of 2 tasks done" in done.stderr
    again = run("cass", "batch", path, "-o", "out.jsonl")
    assert (again.stdout, "2 of them had results before" in again.stderr) == ("", True)
    assert results((workspace / "out.jsonl").read_text()) == found
    assert len(catalogue.ids(home)) == 2


def test_what_failed_is_said_and_run_again_when_it_is_wanted(batch, home, workspace):
    tasks = {"prompt": "run touch made", "id": "asks", "mode": "workspace-edit"}, {"prompt": "list .", "cwd": "no"}
    done = run("cass", "batch", batch(*tasks))
    assert done.returncode == 1
    assert results(done.stdout)["asks"]["status"] == 4
    assert "asks: blocked in 2" in done.stderr
    assert "no is gone" in done.stderr
    (workspace / "no").mkdir()
    assert run("cass", "batch", batch(*tasks)).returncode == 1
    assert len(catalogue.ids(home)) == 2  # that of the missing directory was not begun before
    assert run("cass", "batch", batch(*tasks), "--again").returncode == 1
    assert len(catalogue.ids(home)) == 3


def test_a_task_may_have_a_worktree(batch, workspace):
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        named = ["-c", "user.name=me", "-c", "user.email=me@example.org", *command]
        subprocess.run(["git", *named], check=True, cwd=workspace)
    task = {"prompt": "write app.py: changed", "id": "w", "worktree": True, "mode": "workspace-edit"}
    done = run("cass", "batch", batch(task))
    assert done.returncode == 0, done.stderr
    place = workspace.parent / "work-worktrees" / "w"
    assert results(done.stdout)["w"]["cwd"] == str(place)
    assert (place / "app.py").read_text().strip() == "changed"
    assert (workspace / "app.py").read_text().startswith("def main")


def test_a_wrong_line_or_another_prompt_under_an_id_stops_it_before_anything_is_begun(batch, home):
    wrong = run("cass", "batch", batch({"prompt": "list ."}, {"promt": "x"}))
    assert (wrong.returncode, catalogue.ids(home)) == (2, [])
    assert 'tasks.jsonl:2: unknown key "promt"' in wrong.stderr
    assert run("cass", "batch", batch({"prompt": "list .", "id": "a"})).returncode == 0
    changed = run("cass", "batch", batch({"prompt": "list ..", "id": "a"}))
    assert (changed.returncode, "another prompt" in changed.stderr) == (2, True)
    assert run("cass", "batch", "nothing.jsonl").returncode == 2


def test_tasks_may_come_from_standard_input(home):
    done = run("cass", "batch", "-", input='{"prompt": "list .", "id": "a"}\n')
    assert (done.returncode, list(results(done.stdout))) == (0, ["a"])
    end_worker(chats(home)[0])


def test_a_batch_that_was_killed_goes_on_with_the_chats_it_began(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, {"text": "word " * 60, "deltas": 60, "delay_ms": 20})
    path = batch(*({"prompt": f"task {n}", "id": f"t{n}"} for n in range(3)))
    with running(home, path, "-j", "2", count=2) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert len(chats(home)) == 2
    done = run("cass", "batch", path, "-j", "2")
    assert done.returncode == 0, done.stderr
    assert sorted(said(home)) == [["task 0"], ["task 1"], ["task 2"]]
    assert {len(result["answer"]) for result in results(done.stdout).values()} == {300}


def test_a_turn_whose_worker_is_killed_goes_on_in_the_same_chat(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, SLOW, {"text": "gone on"})
    with running(home, batch({"prompt": "begin", "id": "a"})) as process:
        (files,) = chats(home)
        wait_for(lambda: facts(files, User))
        os.kill(presence.holder(files)["pid"], signal.SIGKILL)
        script(home, {"text": "gone on"}, {"text": "gone on"})
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert results(out.decode())["a"]["answer"] == "gone on"
    first, second = said(home)[0]
    assert (first, second.startswith("Your turn was interrupted")) == ("begin", True)
    assert [end.outcome for end in facts(files, TurnEnd)] == ["failed", "done"]


def test_ctrl_c_cancels_what_runs_and_the_next_run_goes_on(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, SLOW)
    path = batch({"prompt": "first", "id": "a"}, {"prompt": "second", "id": "b"})
    with running(home, path, "-j", "1") as process:
        wait_for(lambda: said(home) == [["first"]])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b""), err
    assert b"the same command goes on" in err
    (files,) = chats(home)
    assert [end.outcome for end in facts(files, TurnEnd)] == ["cancelled"]
    end_worker(files)  # it has the old script
    script(home, {"text": "done"}, {"text": "done"})
    done = run("cass", "batch", path)
    assert done.returncode == 0, done.stderr
    assert sorted(len(messages) for messages in said(home)) == [1, 2]
    assert {result["answer"] for result in results(done.stdout).values()} == {"done"}


def test_a_task_that_a_person_cancels_is_cancelled(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, SLOW)
    with running(home, batch({"prompt": "first", "id": "a"})) as process:
        run("cass", "cancel", chats(home)[0].chat_id)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, results(out.decode())["a"]["outcome"]) == (1, "cancelled")


def test_two_runs_at_once_share_the_chats(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, {"text": "word " * 30, "deltas": 30, "delay_ms": 20})
    path = batch(*({"prompt": f"task {n}", "id": f"t{n}"} for n in range(3)))
    with running(home, path, "-j", "3", count=3) as process:
        other = run("cass", "batch", path, "-j", "3")
        out, _ = process.communicate(timeout=30)
    assert results(out.decode()) == results(other.stdout)
    assert sorted(said(home)) == [["task 0"], ["task 1"], ["task 2"]]


def test_on_a_terminal_a_bar_shows_how_far_it_is(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, {"text": "word " * 20, "deltas": 20, "delay_ms": 20})
    terminal = Pty(argv("cass", "batch", batch({"prompt": "a", "id": "one"}, {"prompt": "b", "id": "two"}), "-j", "1"))
    try:
        terminal.until("0/2")
        terminal.until("one")
        terminal.until("2/2")
        assert terminal.end() == 0
        assert b"\x1b[?25h" in terminal.said.rpartition(b"2/2")[2]  # the cursor is shown again
    finally:
        terminal.close()


def test_one_chat_may_have_a_worktree(workspace, home):
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        named = ["-c", "user.name=me", "-c", "user.email=me@example.org", *command]
        subprocess.run(["git", *named], check=True, cwd=workspace)
    done = run("cass", "-p", "write app.py: changed", "--workspace-edit", "--worktree", "try")
    assert done.returncode == 0, done.stderr
    place = workspace.parent / "work-worktrees" / "try"
    assert f"worktree: {place}, on the branch cass/try" in done.stderr
    assert (place / "app.py").read_text().strip() == "changed"
    bare = run("cass", "--worktree", "-p", "list .")
    assert (bare.returncode, len(list(place.parent.iterdir()))) == (0, 2)
    refused = run("cass", "--worktree", "--resume", ".", "-p", "list .")
    assert (refused.returncode, "new chat" in refused.stderr) == (2, True)


def test_whoever_reads_the_results_may_leave(batch, home, monkeypatch):
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    script(home, {"text": "word " * 20, "deltas": 20, "delay_ms": 20})
    path = batch(*({"prompt": f"task {n}", "id": f"t{n}"} for n in range(4)))
    process = subprocess.Popen(argv("cass", "batch", path, "-j", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 141
    process.stderr.close()
    assert 1 < len(chats(home)) < 4  # nothing was begun any more
