"""Joining: flags hold for a chat that has a worker already, or it is said that they do not."""

import pytest
from stage import end_worker, facts, run, wait_for

from cass import catalogue, joining, presence, standing
from cass.connection import Options
from cass.records import ToolResult

ASKING = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo ran"}}]}


@pytest.fixture
def held(home, scripted, workspace):
    """A chat with an idle worker in read-only mode, as cass-send leaves one."""
    scripted({"text": "one"}, {"text": "two"}, ASKING, {"text": "three"}, {"text": "four"})
    run("cass", "-p", "first")
    files = home.files(catalogue.ids(home)[0])
    assert run("cass-send", files.chat_id, "second", "--wait").returncode == 0
    wait_for(lambda: not standing.look(files).is_busy)
    yield files
    end_worker(files)


def test_a_turn_runs_in_the_mode_that_is_asked_for_though_a_worker_was_idle_in_another(held):
    done = run("cass", "-p", "--resume", held.chat_id, "--full-access", "third")
    assert (done.returncode, done.stderr) == (0, "")
    (result,) = facts(held, ToolResult)
    assert "ran" in result.content


@pytest.mark.parametrize("options", [Options(), Options(mode="read-only"), Options(layout="inline")])
def test_a_worker_that_runs_as_is_asked_is_kept(held, options):
    pid = presence.holder(held)["pid"]
    assert joining.join(held, options) == ""
    assert presence.holder(held)["pid"] == pid
    assert presence.is_running(held)


@pytest.mark.parametrize("options", [Options(mode="full-access"), Options(max_cost=1.0), Options(net=False)])
def test_an_idle_worker_that_runs_otherwise_is_ended(held, options):
    assert joining.join(held, options) == ""
    assert not presence.is_running(held)


def test_a_worker_at_work_goes_on_and_a_turn_that_wants_it_otherwise_is_refused(held):
    run("cass", "stop", held.chat_id)
    presence.start(held, ["--workspace-edit"]).wait()
    run("cass-send", held.chat_id, "third", "--ask")
    wait_for(lambda: standing.look(held).pending)
    done = run("cass", "-p", "--resume", held.chat_id, "--readonly", "--max-turns", "3", "fourth")
    assert done.returncode == 2
    assert "--max-turns --readonly: its worker is at work, and goes on as it is" in done.stderr
    assert presence.holder(held)["mode"] == "workspace-edit"
