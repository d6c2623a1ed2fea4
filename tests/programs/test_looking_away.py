"""What a person who looks elsewhere learns, by bell, title and tmux; and how they come back: lists, the page."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Pty, Tmux

from cass import catalogue, jsonl
from cass.home import Files, Home
from cass.records import TurnEnd, User

ASKS = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch ran"}}]}
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"


@pytest.fixture(autouse=True)
def _workers_end(home: Home) -> Iterator[None]:
    yield
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


def only(home: Home) -> Files:
    (chat_id,) = wait_for(lambda: catalogue.ids(home))
    return home.files(chat_id)


def tmux_with(tmp_path: Path, *command: str, inside: bool) -> Tmux:
    environ = {name: os.environ[name] for name in ("HOME", "CASS_HOME", "CASS_PROVIDER")}
    made = Tmux(tmp_path / "tmux", environ=environ, inside=inside)
    made.until("$")
    made.type(" ".join([*argv("cass"), *command]))
    made.press("Enter")
    return made


def composer_has_heard(terminal: Pty) -> bool:
    """Whether the composer knows of the end of the turn: only then it can tell its usage."""
    before = len(terminal.said)
    terminal.type("/tokens\r")
    terminal.until(lambda: re.search(rb"no turn has told|input +\d", terminal.said[before:]))
    return b"no turn has told" not in terminal.said[before:]


def configure(home: Home, **settings: str) -> None:
    home.make()
    home.config.write_bytes(jsonl.dump(settings))


# ---- bell and title


@pytest.mark.parametrize(
    ("notify", "focus", "rings", "notices"),
    [
        (None, FOCUS_OUT, True, False),
        ("bell", FOCUS_OUT, True, False),
        ("all", FOCUS_OUT, True, True),
        ("off", FOCUS_OUT, False, False),
        ("all", FOCUS_OUT + FOCUS_IN, False, False),
        ("all", "", False, False),
    ],
)
def test_the_end_of_a_turn_rings_where_nobody_looks(home, workspace, notify, focus, rings, notices):
    configure(home, **({"notify": notify} if notify else {}))
    terminal = Pty(argv("cass"))
    try:
        terminal.until("❯")
        assert b"\x1b[?1004h" in terminal.said
        terminal.until(lambda: only(home).live.exists())
        before = len(terminal.said)
        if focus:
            terminal.type(focus)
        terminal.type("list .")
        terminal.until("list")  # an Enter in one breath with it would be part of it
        terminal.type("\r")
        terminal.until(lambda: facts(only(home), TurnEnd))
        terminal.until("notes.txt")
        terminal.until(lambda: composer_has_heard(terminal))
        terminal.type("\x04")
        terminal.end()
        said = terminal.said[before:].replace(b"\x1b]2;", b"\x1b]title;").split(b"\x1b]title;")
        without_titles = b"".join([said[0], *(piece.partition(b"\a")[2] for piece in said[1:])])
        assert (b"\a" in without_titles) is rings
        assert (b"\x1b]9;cass" in without_titles) is notices
        assert b"\x1b]133;A\x1b\\" in without_titles  # turns are marked inline, too
        assert terminal.said.rindex(b"\x1b[?1004l") > terminal.said.rindex(b"\x1b[?1004h")
    finally:
        terminal.close()


def test_the_title_names_chat_and_state_and_is_restored(tmp_path, home, workspace):
    tmux = tmux_with(tmp_path, inside=False)
    try:
        tmux.do("select-pane", "-T", "mine", "-t", tmux.pane)
        chat_id = only(home).chat_id

        def title() -> str:
            return tmux.do("display-message", "-p", "-t", tmux.pane, "#{pane_title}").strip()

        tmux.until(lambda: title() == f"cass {chat_id} idle")
        tmux.press("C-d")
        tmux.until("Resume this chat with")
        tmux.until(lambda: not title().startswith("cass"))
    finally:
        tmux.close()


@pytest.mark.parametrize("how", ["leave", "kill"])
def test_tmux_is_told_the_state_and_told_to_forget_it(tmp_path, home, workspace, how):
    script(home, ASKS, {"text": "All done."})
    tmux = tmux_with(tmp_path, "-P", "scripted", "--workspace-edit", inside=True)
    try:

        def state() -> str:
            return tmux.do("display-message", "-p", "-t", tmux.pane, "#{@cass_state}").strip()

        tmux.until(lambda: state() == "idle")
        assert run("cass", "status", "--tmux").stdout == f"{only(home).chat_id[-4:]} idle\n"
        tmux.type("go")
        tmux.press("Enter")
        tmux.until(lambda: state() == "awaiting-approval")
        assert "#[reverse] awaiting approval #[default]" in run("cass", "status", "--tmux").stdout
        tmux.until("y approve")
        if how == "leave":
            tmux.press("C-d")
        else:
            shell = int(tmux.do("display-message", "-p", "-t", tmux.pane, "#{pane_pid}"))
            launcher = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0]
            composer = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()[0]
            os.kill(int(composer), signal.SIGKILL)
        tmux.until("Resume this chat with")
        tmux.until(lambda: state() == "")
    finally:
        tmux.close()


def test_a_status_line_says_nothing_where_no_worker_runs(home, workspace):
    assert run("cass", "status", "--tmux").stdout.strip() == ""


# ---- lists to choose from


def test_a_bare_resume_picks_a_chat_and_goes_on_with_it(tmp_path, home, workspace):
    for text in ("find the first needle", "find the second needle"):
        assert run("cass", "-p", text).returncode in (0, 1)
    tmux = tmux_with(tmp_path, "--resume", inside=False)
    try:
        tmux.until(">  now")
        tmux.type("first")
        tmux.until("1 of 2")
        tmux.press("Enter")
        tmux.until("❯ find the first needle")
        tmux.until("Shift-Tab mode")
        tmux.press("C-d")
        tmux.until("Resume this chat with")
    finally:
        tmux.close()


def test_esc_in_a_bare_resume_ends_with_0_and_leaves_nothing(tmp_path, home, workspace):
    run("cass", "-p", "hello")
    tmux = tmux_with(tmp_path, "--resume; echo status $?", inside=False)
    try:
        tmux.until("go on with a chat")
        tmux.press("Escape")
        tmux.until("status 0")
        assert "go on with a chat" not in tmux.screen()
    finally:
        tmux.close()


def test_a_bare_resume_lists_where_there_is_no_terminal(home, workspace):
    run("cass", "-p", "hello")
    assert only(home).chat_id in run("cass", "--resume").stdout


def test_resume_and_model_are_picked_inside_a_chat(tmp_path, home, workspace):
    entry = {"id": "fake", "kind": "demo", "default_model": "one", "models": ["one", "two"]}
    home.make()
    home.providers.write_bytes(jsonl.dump({"providers": [entry]}))
    run("cass", "-p", "the earlier chat")
    tmux = tmux_with(tmp_path, "-P", "fake", inside=False)
    try:
        tmux.until("idle")
        tmux.type("/model")
        tmux.press("Enter")
        tmux.until("go on with a model")
        tmux.type("two")
        tmux.press("Enter")
        tmux.until("fake: two, from the next message on")
        tmux.until("two · idle")
        tmux.type("/resume")
        tmux.press("Enter")
        tmux.until(">  now")
        tmux.press("Enter")
        tmux.until("❯ the earlier chat")
        tmux.until("Shift-Tab mode")
    finally:
        tmux.close()


# ---- the page


def more(tmux: Tmux) -> list[str]:
    """Wait until more has come; return the number of the first line on the page, of the last one, and of all."""

    def place() -> list[str]:
        return re.findall(r"\d+", tmux.screen().splitlines()[-1])[:3]

    before = place()
    return wait_for(lambda: (now := place())[2:] != before[2:] and now)


def test_the_page_keeps_its_place_while_output_comes(tmp_path, home, workspace):
    text = "\n\n".join(f"line {n:04d}" for n in range(700))
    script(home, {"text": text, "deltas": 700, "delay_ms": 8})
    tmux = tmux_with(tmp_path, "-P", "scripted", inside=False)
    try:
        tmux.until("idle")
        tmux.type("go")
        tmux.press("Enter")
        tmux.until("line 0100")
        tmux.press("PPage")
        tmux.until(lambda: re.search(r"^lines \d+", tmux.screen(), re.MULTILINE))
        tmux.press("PPage")
        wait_for(lambda: more(tmux)[0] == more(tmux)[0])  # it has found its place
        first = tmux.screen().splitlines()[:-1]
        more(tmux)
        assert tmux.screen().splitlines()[:-1] == first
        tmux.press("q")
        tmux.until("Shift-Tab mode")
        wait_for(lambda: facts(only(home), TurnEnd))
        shown = tmux.until("line 0699", history=True)
        found = [line for line in shown.splitlines() if line.startswith("line ")]
        assert found == [f"line {n:04d}" for n in range(700)]
    finally:
        tmux.close()


# ---- what is killed


def viewer_of(files: Files) -> int:
    lines = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=False).stdout
    rows = [line.split(maxsplit=1) for line in lines.splitlines()]
    found = [int(pid) for pid, args in rows if "-m cass.cli cass-view" in args and files.chat_id in args]
    return next((pid for pid in found if Path(f"/proc/{pid}/exe").resolve().name.startswith("python")), 0)


@pytest.mark.parametrize("inside", [False, True], ids=["inline", "panes"])
def test_a_viewer_that_is_killed_in_the_middle_of_an_answer_loses_and_doubles_nothing(
    tmp_path, home, workspace, inside
):
    text = "\n\n".join(f"line {n:04d}" for n in range(600))
    script(home, {"text": text, "deltas": 600, "delay_ms": 4})
    tmux = tmux_with(tmp_path, "-P", "scripted", inside=inside)
    try:
        tmux.until("idle")
        if inside:
            tmux.until(lambda: len(tmux.panes()) == 2)
        above = tmux.panes()[0]
        tmux.type("go")
        tmux.press("Enter")
        tmux.until("line 0100", pane=above)
        os.kill(wait_for(lambda: viewer_of(only(home))), signal.SIGKILL)
        wait_for(lambda: facts(only(home), TurnEnd))
        shown = tmux.until("line 0599", pane=above, history=True)
        found = [line for line in shown.splitlines() if line.startswith("line ")]
        assert found == [f"line {n:04d}" for n in range(600)]
        assert "started again" in shown + tmux.screen()
    finally:
        tmux.close()


# ---- a popup


def test_in_a_popup_it_is_inline(tmp_path, home, workspace):
    environ = {name: os.environ[name] for name in ("HOME", "CASS_HOME", "CASS_PROVIDER")}
    tmux = Tmux(tmp_path / "tmux", environ=environ, size=(100, 30))
    client = Pty(["tmux", "-S", str(tmp_path / "tmux"), "attach"], rows=30, columns=100)
    try:
        client.until("$")
        given = [f"-e{name}={value}" for name, value in environ.items()]
        command = ["display-popup", "-E", "-w", "80", "-h", "22", *given, " ".join(argv("cass"))]
        popup = subprocess.Popen(["tmux", "-S", str(tmp_path / "tmux"), *command], stdout=subprocess.DEVNULL)
        client.until("❯")
        client.until(lambda: only(home).live.exists())
        client.type("list .\r")
        client.until(lambda: facts(only(home), User))
        client.until("notes.txt")
        assert len(tmux.panes()) == 1
        client.type("\x04")
        client.until(lambda: popup.poll() is not None)
    finally:
        client.close()
        tmux.close()
        popup.wait()
