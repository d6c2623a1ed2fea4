"""The composer on real terminals, with a real worker: approvals, other programs, streams, several composers."""

import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Pty, Tmux

from cass import catalogue
from cass.composer.question import QUIET_S
from cass.home import Files, Home
from cass.records import Approval, ToolResult, TurnEnd, User

ASKS = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo ran >> ran.txt"}}]}
FLAGS = ("-P", "scripted", "--workspace-edit", "--no-sandbox")


@pytest.fixture(autouse=True)
def _workers_end(home: Home) -> Iterator[None]:
    yield
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


@contextmanager
def cass(tmp_path: Path, *flags: str, inside: bool = False, **environ: str) -> Iterator[Tmux]:
    """A tmux with `cass` in it, ready."""
    given = {name: os.environ[name] for name in ("HOME", "CASS_HOME", "CASS_PROVIDER")} | environ
    made = Tmux(tmp_path / "tmux", environ=given, inside=inside)
    try:
        made.until("$")
        made.type(shlex.join([*argv("cass"), *flags]))
        made.press("Enter")
        made.until("idle")
        yield made
    finally:
        made.close()


def only(home: Home) -> Files:
    (chat_id,) = catalogue.ids(home)
    return home.files(chat_id)


def say(tmux: Tmux, text: str) -> None:
    tmux.type(text)
    tmux.press("Enter")


@pytest.mark.parametrize(("key", "runs"), [("y", True), ("n", False)])
def test_an_approval_is_shown_in_full_and_answered_by_one_key(tmp_path, home, workspace, key, runs):
    script(home, ASKS, {"text": "All done."})
    with cass(tmp_path, *FLAGS) as tmux:
        say(tmux, "run it")
        screen = tmux.until("y approve")
        assert "echo ran >> ran.txt" in screen
        assert "not sandboxed: this command can do anything you can" in screen
        time.sleep(QUIET_S + 0.1)  # only a quiet keyboard answers
        tmux.press(key)
        if not runs:
            tmux.until("Enter for no reason")
            say(tmux, "not today")
        tmux.until("All done.")
    (approval,) = facts(only(home), Approval)
    (result,) = facts(only(home), ToolResult)
    assert (workspace / "ran.txt").exists() is runs
    assert approval.decision == ("approved" if runs else "denied")
    assert "cass-compose" in approval.by
    assert runs or "not today" in result.content


def test_a_change_is_asked_about_with_its_diff(tmp_path, home, workspace):
    edit = {"path": str(workspace.parent / "outside.py"), "edits": [{"old_text": "two", "new_text": "2"}]}
    (workspace.parent / "outside.py").write_text("one\ntwo\nthree\n")
    script(home, {"tool_calls": [{"name": "edit", "arguments": edit}]}, {"text": "All done."})
    with cass(tmp_path, *FLAGS) as tmux:
        say(tmux, "change it")
        tmux.until("  -two\n  +2\n")
        tmux.until("y approve")
        time.sleep(QUIET_S + 0.1)  # only a quiet keyboard answers
        tmux.press("y")
        tmux.until("All done.")
    assert (workspace.parent / "outside.py").read_text() == "one\n2\nthree\n"


def test_always_gives_the_rule_that_was_shown_and_asks_no_more(tmp_path, home, workspace):
    script(home, ASKS, ASKS, {"text": "All done."})
    with cass(tmp_path, *FLAGS) as tmux:
        say(tmux, "run it twice")
        tmux.until("a always for this chat")
        time.sleep(QUIET_S + 0.1)  # only a quiet keyboard answers
        tmux.press("a")
        tmux.until("shell(echo ran >> ran.txt)")
        time.sleep(QUIET_S + 0.1)  # only a quiet keyboard answers
        tmux.press("y")
        tmux.until("All done.")
    assert (workspace / "ran.txt").read_text() == "ran\nran\n"


def test_a_question_answered_in_another_terminal_closes_and_says_by_whom(tmp_path, home, workspace):
    script(home, ASKS, {"text": "All done."})
    with cass(tmp_path, *FLAGS) as tmux:
        say(tmux, "run it")
        tmux.until("y approve")
        request = wait_for(lambda: "request_id" in only(home).live.read_text() and only(home).live.read_text())
        request_id = request.split('"request_id":"')[1].split('"')[0]
        done = run("cass", "approve", only(home).chat_id, request_id)
        assert done.returncode == 0, done.stderr
        tmux.until("approved elsewhere, by you with cass approve")
        tmux.until(lambda: "y approve" not in tmux.screen())


def test_a_command_of_the_person_runs_on_their_terminal_and_its_output_is_sent(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        say(tmux, "!echo out of $((40 + 2)); exit 3")
        tmux.until("out of 42")
        (user,) = wait_for(lambda: facts(only(home), User))
        assert user.content == "$ echo out of $((40 + 2)); exit 3\nout of 42\n[exit status 3]"
        wait_for(lambda: facts(only(home), TurnEnd))
        shown = tmux.until("no language model) shell", history=True)
        assert (shown.count("out of 42"), shown.count("[exit status 3]")) == (1, 1), shown


def test_two_exclamation_marks_run_only(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        say(tmux, "!!test -t 1 && echo on a ter''minal; read line; echo got $line")
        tmux.until("on a terminal")
        say(tmux, "some words")
        tmux.until("got some words")
        tmux.until(lambda: tmux.screen().rstrip().endswith("clear/exit"))
        assert facts(only(home), User) == []
        tmux.type("and the prompt is back")
        tmux.until("❯ and the prompt is back")


def test_ctrl_c_ends_a_command_of_the_person_and_nothing_else(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        say(tmux, "!!echo be''gun; sleep 100")
        tmux.until("begun")
        tmux.press("C-c")
        tmux.until(lambda: tmux.screen().rstrip().endswith("clear/exit"))
        say(tmux, "where is main defined?")
        tmux.until("app.py:1")


def test_ctrl_g_writes_the_message_in_the_persons_editor(tmp_path, home, workspace):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\nby the editor\\n" "$(cat "$1")" > "$1.new"\nmv "$1.new" "$1"\n')
    editor.chmod(0o755)
    with cass(tmp_path, VISUAL=str(editor)) as tmux:
        tmux.type("begun by hand")
        tmux.press("C-g")
        tmux.until("by the editor")
        tmux.press("Enter")
        (user,) = wait_for(lambda: facts(only(home), User))
        assert user.content == "begun by hand\nby the editor"


def test_ctrl_r_finds_what_was_typed_in_another_chat(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        first = only(home)
        say(tmux, "find the needle")
        wait_for(lambda: facts(first, TurnEnd))
        say(tmux, "/new")
        wait_for(lambda: len(catalogue.ids(home)) == 2)
        (chat_id,) = set(catalogue.ids(home)) - {first.chat_id}
        tmux.until(lambda: re.search(rf"· idle · .*{chat_id[-4:]}$", tmux.screen(), re.MULTILINE))
        tmux.press("C-r")
        tmux.type("needle")
        tmux.until(lambda: tmux.screen().count("❯ find the needle") == 2)
        tmux.press("Enter")
        tmux.until(lambda: "in the history" not in tmux.screen())
        tmux.press("Enter")
        users = wait_for(lambda: facts(home.files(chat_id), User))
        assert [user.content for user in users] == ["find the needle"]


def test_keys_echo_and_nothing_is_lost_while_a_thousand_lines_a_second_stream(tmp_path, home, workspace):
    lines = "\n\n".join(f"line {number:05d}" for number in range(3000))
    script(home, {"text": lines, "deltas": 3000, "delay_ms": 1})
    with cass(tmp_path, "-P", "scripted") as tmux:
        say(tmux, "go")
        tmux.until("line 00")
        slowest = 0.0
        for word in ("one ", "two ", "three ", "four "):
            began = time.monotonic()
            tmux.type(word)
            tmux.until(word.strip())
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2  # not a measurement: a prompt that waits for the stream would take all of it
        wait_for(lambda: facts(only(home), TurnEnd), 60)
        tmux.until("❯ one two three four")
        shown = tmux.until("line 02999", history=True)
    found = [line for line in shown.splitlines() if line.startswith("line ")]
    assert found == sorted(set(found))
    assert found[-1] == "line 02999"


def test_the_prompt_does_not_jump_up_where_a_block_of_an_answer_ends(tmp_path, home, workspace):
    paragraph = "some words that go on until they have several rows on a screen " * 6
    script(home, {"text": f"{paragraph}\n\n" * 6 + "the end", "deltas": 150, "delay_ms": 8})
    with cass(tmp_path, "-P", "scripted") as tmux:
        say(tmux, "go")
        tmux.until("some words")
        rows = []
        while "the end" not in (screen := tmux.screen()):
            rows.append(max(n for n, line in enumerate(screen.splitlines()) if line.startswith("❯")))
        assert len(rows) > 10
        assert rows == sorted(rows)


def test_shift_enter_makes_a_newline_in_a_tmux_that_passes_it_on(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        tmux.do("set-option", "-s", "extended-keys", "always")
        tmux.type("one")
        tmux.press("S-Enter")
        tmux.type("two")
        tmux.press("C-Enter")
        tmux.type("three")
        tmux.until("❯ one\n  two\n  three")
        assert facts(only(home), User) == []


def test_searching_the_history_goes_on_for_as_long_as_a_person_thinks(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        say(tmux, "find the needle")
        wait_for(lambda: facts(only(home), TurnEnd))
        tmux.press("C-r")
        tmux.until("in the history:")
        time.sleep(0.7)  # as a person thinks
        tmux.type("needle")
        tmux.until("in the history: needle")
        tmux.until(lambda: tmux.screen().count("❯ find the needle") == 2)


def test_a_paste_in_tmux_is_one_message(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        tmux.do("set-buffer", "-b", "pasted", "line 1\nline 2\n\tline 3")
        tmux.do("paste-buffer", "-p", "-b", "pasted", "-t", tmux.pane)
        tmux.until("line 3")
        time.sleep(0.1)  # an Enter in one breath with a paste would be part of it
        tmux.press("Enter")
        (user,) = wait_for(lambda: facts(only(home), User))
        assert user.content == "line 1\nline 2\n\tline 3"


def test_a_failed_turn_gives_the_text_back(tmp_path, home, workspace):
    script(home, {"error": "HTTP 400: no"})
    with cass(tmp_path, "-P", "scripted") as tmux:
        say(tmux, "will it work?")
        wait_for(lambda: facts(only(home), TurnEnd))
        tmux.until(lambda: only(home).draft.exists() and only(home).draft.read_text() == "will it work?")
        tmux.until(lambda: tmux.screen().count("❯ will it work?") == 2)


def test_nothing_that_a_model_says_controls_the_terminal(home, workspace):
    evil = "\x1b]0;pwned\x07\x1b[2J\x1b]52;c;YQ==\x07 \u009b31m \u202e end"
    script(home, {"tool_calls": [{"name": "shell", "arguments": {"command": f"echo {evil}"}}]}, {"text": evil})
    terminal = Pty([*argv("cass"), *FLAGS])
    try:
        terminal.until("❯")
        terminal.type("go\r")
        terminal.until("y")
        terminal.until("not sandboxed")
        for sign in (b"\x1b]0;pwned", b"\x1b[2J", b"\x1b]52", "\u009b".encode(), "\u202e".encode()):
            assert sign not in terminal.said
        assert "␛]0;pwned".encode() in terminal.said
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("environ", "has_colors"),
    [({"NO_COLOR": "1"}, False), ({"CLICOLOR": "0"}, False), ({"TERM": "dumb"}, False), ({}, True)],
)
def test_colours_are_left_out_where_they_are_not_wanted(home, workspace, environ, has_colors):
    terminal = Pty(argv("cass"), os.environ | {"TERM": "xterm-256color"} | environ)
    try:
        terminal.until("idle")
        terminal.type("list .\r")
        terminal.until("notes.txt")
        attributes = {
            int(n) for found in re.findall(rb"\x1b\[([0-9;]*)m", terminal.said) for n in found.split(b";") if n
        }
        assert any(n >= 30 for n in attributes) is has_colors
    finally:
        terminal.close()


def test_an_idle_composer_costs_next_to_nothing(tmp_path, home, workspace):
    with cass(tmp_path) as tmux:
        pid = int(tmux.do("display-message", "-p", "#{pane_pid}"))
        launcher = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        composer = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()[0]

        def ticks() -> int:
            fields = Path(f"/proc/{composer}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        wait_for(lambda: ticks() == (time.sleep(0.3), ticks())[1])  # what it has to do at its start is done
        before = ticks()
        time.sleep(3)  # what is measured
        assert ticks() - before <= 10  # 10 ms each: a loop that never sleeps has 300
