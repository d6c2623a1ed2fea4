"""`cass` on real terminals: a pty whose settings and bytes are checked, and a tmux whose panes are looked at."""

import os
import re
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, wait_for
from terminal import Pty, Tmux

from cass import catalogue, chat, presence, records
from cass.home import Files, Home
from cass.launch import choose_layout, raw
from cass.records import TurnEnd, User

CASS = argv("cass")
READY = "idle"
HINT = re.compile(r"Resume this chat with: cass --resume (\S+)\r?\n")


@pytest.fixture(autouse=True)
def _workers_end(home: Home) -> Iterator[None]:
    yield
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


@pytest.fixture
def terminal(home: Home, workspace: Path) -> Iterator[Pty]:
    made = Pty(CASS)
    made.until(lambda: is_ready(home))
    yield made
    made.close()


def is_ready(home: Home) -> bool:
    """Whether the worker of the only chat has spoken. (What a pty gets is pieces: it is drawn by differences.)"""
    return any(home.files(chat_id).live.exists() for chat_id in catalogue.ids(home))


@contextmanager
def tmux_of(tmp_path: Path, *arguments: str, inside: bool, size: tuple[int, int] = (100, 30)) -> Iterator[Tmux]:
    environ = {name: os.environ[name] for name in ("HOME", "CASS_HOME", "CASS_PROVIDER")}
    made = Tmux(tmp_path / "tmux", environ=environ, inside=inside, size=size)
    try:
        made.until("$")
        made.type(" ".join([*CASS, *arguments]))
        made.press("Enter")
        yield made
    finally:
        made.close()


@pytest.fixture
def inline(tmp_path: Path, workspace: Path) -> Iterator[Tmux]:
    with tmux_of(tmp_path, inside=False) as made:
        made.until(READY)
        yield made


@pytest.fixture
def panes(tmp_path: Path, workspace: Path) -> Iterator[Tmux]:
    with tmux_of(tmp_path, inside=True) as made:
        made.until(READY)
        made.until(lambda: len(made.panes()) == 2)
        yield made


def only(home: Home) -> Files:
    (chat_id,) = wait_for(lambda: catalogue.ids(home))
    return home.files(chat_id)


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def composer_of(files: Files) -> tuple[int, int]:
    """Process ids of launcher and composer on this chat's terminal: the viewer names the chat and is the composer's."""

    def find() -> tuple[int, int] | None:
        lines = subprocess.run(
            ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=False
        ).stdout
        rows = [line.split(maxsplit=2) for line in lines.splitlines()]
        parents = {int(pid): int(parent) for pid, parent, _ in rows}
        for _, parent, args in rows:
            if "cass-view" in args and "--frames" in args and files.chat_id in args:
                return parents[int(parent)], int(parent)
        return None

    return wait_for(find)


def viewer_of(files: Files) -> int:
    _, composer = composer_of(files)
    return children(composer)[0]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


# ---- starting and leaving


@pytest.mark.parametrize("delay_ms", [0, 30, 100, 300])
def test_a_line_typed_while_it_starts_arrives_once_and_whole(home, workspace, delay_ms):
    terminal = Pty(CASS)
    try:
        time.sleep(delay_ms / 1000)  # what is tried: a person types while it starts
        terminal.type("find what I typed early, é\r")
        terminal.until(lambda: catalogue.ids(home) and facts(only(home), TurnEnd))
        assert [user.content for user in facts(only(home), User)] == ["find what I typed early, é"]
    finally:
        terminal.close()


@pytest.mark.parametrize("keys", ["\x04", "\x03|\x03", "/exit|\r"], ids=["ctrl-d", "ctrl-c twice", "exit"])
def test_leaving_restores_the_terminal_says_how_to_come_back_and_ends_with_0(terminal, home, keys):
    before = len(terminal.said)
    for key in keys.split("|"):
        shown = len(terminal.said)
        terminal.type(key)
        terminal.until(lambda shown=shown: len(terminal.said) > shown)  # it was taken
    assert terminal.end() == 0
    assert b"\x1b[?2004l" in terminal.said[before:]
    found = HINT.findall(terminal.said.decode())
    assert found == [only(home).chat_id]
    assert terminal.said.decode().endswith(f"Resume this chat with: cass --resume {found[0]}\r\n")


def is_ordinary(mode: list) -> bool:
    return bool(
        mode[3] & termios.ECHO and mode[3] & termios.ICANON and mode[3] & termios.ISIG and mode[0] & termios.ICRNL
    )


def test_the_terminal_is_restored_when_the_composer_is_killed(inline, home):
    _, composer = composer_of(only(home))
    os.kill(composer, signal.SIGKILL)
    inline.until("Resume this chat with: cass --resume")
    inline.type("stty -a | tr ' ' '\\n' | grep -x -e echo -e icanon -e isig -e icrnl | sort | xargs")
    inline.press("Enter")
    inline.until("echo icanon icrnl isig")


def test_a_killed_launcher_takes_composer_and_viewer_along_but_not_the_worker(inline, home):
    files = only(home)
    launcher, composer = composer_of(files)
    viewer = viewer_of(files)
    os.kill(launcher, signal.SIGKILL)
    wait_for(lambda: gone(composer) and gone(viewer))
    assert presence.is_running(files)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal_and_leaves_the_worker_alive(terminal, home, number):
    files = only(home)
    os.kill(terminal.pid, number)
    assert terminal.end() == 128 + number
    assert b"Resume this chat with" in terminal.said
    assert presence.is_running(files)


def test_closing_the_window_leaves_the_worker_alone(terminal, home):
    files = only(home)
    launcher, composer = composer_of(files)
    viewer = viewer_of(files)
    terminal.hang_up()
    wait_for(lambda: gone(launcher) and gone(composer) and gone(viewer))
    assert presence.is_running(files)


def test_suspending_gives_the_shell_back_and_fg_comes_back_to_the_draft(inline):
    inline.type("half a thought")
    inline.until("half a thought")
    inline.press("C-z")
    inline.until("Stopped")
    inline.type("echo in the sh''ell")
    inline.press("Enter")
    inline.until("in the shell")
    inline.type("fg")
    inline.press("Enter")
    inline.until(lambda: "❯ half a thought" in inline.screen())
    inline.type(", finished")
    inline.until("❯ half a thought, finished")


def test_without_a_terminal_it_says_what_to_use_instead(home, workspace):
    done = subprocess.run(CASS, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, check=False)
    assert done.returncode == 2
    assert "cass -p" in done.stderr
    assert catalogue.ids(home) == []


# ---- inline


def test_an_answer_goes_into_scrollback_and_the_prompt_stays_below(inline, home):
    inline.type("where is main defined?")
    inline.press("Enter")
    screen = inline.until("app.py:1")
    wait_for(lambda: facts(only(home), TurnEnd))
    inline.until(lambda: "● grep" in inline.screen(history=True) and "❯\n" in inline.screen())
    assert screen.count("Shift-Tab mode · Ctrl-J newline") == 1


def test_a_killed_viewer_is_said_and_started_again(inline, home):
    viewer = viewer_of(only(home))
    os.kill(viewer, signal.SIGKILL)
    inline.until("the viewer ended")
    inline.type("where is main defined?")
    inline.press("Enter")
    inline.until("app.py:1")


def test_a_killed_worker_is_said_and_the_next_message_starts_it_again(inline, home):
    files = only(home)
    end_worker(files)
    inline.until("the worker ended; the next message starts it again")
    inline.type("where is main defined?")
    inline.press("Enter")
    inline.until("app.py:1")
    assert [user.content for user in facts(files, User)] == ["where is main defined?"]


def test_resume_joins_a_live_chat_as_one_more_viewer_and_composer(inline, home, tmp_path, workspace):
    files = only(home)
    terminal = Pty([*CASS, "--resume", files.chat_id])
    try:
        terminal.until("❯")
        inline.type("where is main defined?")
        inline.press("Enter")
        inline.until("app.py:1")
        terminal.until("app.py:1")
        terminal.type("list .\r")
        inline.until("notes.txt")
    finally:
        terminal.close()


def test_new_goes_on_in_a_new_chat_and_resume_comes_back(inline, home):
    first = only(home)
    inline.until(f"cass  {first.chat_id}")
    inline.type("/new")
    inline.press("Enter")
    wait_for(lambda: len(catalogue.ids(home)) == 2)
    (second,) = set(catalogue.ids(home)) - {first.chat_id}
    inline.until(f"cass  {second}")
    inline.until(READY)
    inline.type(f"/resume {first.chat_id}")
    inline.press("Enter")
    inline.until(lambda: inline.screen(history=True).count(f"cass  {first.chat_id}") == 2)
    inline.until(lambda: READY in inline.screen())
    inline.press("C-d")
    inline.until(f"Resume this chat with: cass --resume {first.chat_id}")
    assert inline.screen(history=True).count("Resume this chat with") == 1


def test_a_missing_key_is_said_and_the_composer_can_be_left(tmp_path, workspace, home):
    with tmux_of(tmp_path, "-P", "openai", inside=False) as made:
        made.until("set OPENAI_API_KEY")
        made.type("hello")
        made.press("Enter")
        made.until("❯ hello")
        made.press("C-c")
        made.until("Ctrl-C again to leave")
        made.press("C-c")
        made.until("Resume this chat with")
        assert not presence.is_running(only(home))


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 20)])
def test_a_small_terminal_is_readable(tmp_path, workspace, size):
    with tmux_of(tmp_path, inside=False, size=size) as made:
        made.until("❯")
        made.until("read-only")
        made.type("hello")
        made.until("❯ hello")
        made.press("C-u", "C-d")
        made.until(lambda: "Resume this" in made.screen(history=True))


# ---- panes


def test_in_tmux_the_viewer_has_a_pane_above_and_the_person_stays_in_theirs(panes, home):
    above, own = panes.panes()
    assert own == panes.pane
    panes.type("where is main defined?")
    panes.press("Enter")
    panes.until("app.py:1", pane=above)
    assert "app.py:1" not in panes.screen()
    assert "Shift-Tab mode" in panes.screen()
    assert panes.do("display-message", "-p", "#{pane_id}").strip() == own


@pytest.mark.parametrize("how", ["leave", "kill composer", "kill launcher"])
def test_the_pane_is_closed_on_every_way_out(panes, how):
    shell = int(panes.do("display-message", "-p", "-t", panes.pane, "#{pane_pid}"))
    (launcher,) = children(shell)
    (composer,) = children(launcher)
    if how == "leave":
        panes.press("C-d")
        panes.until("Resume this chat with")
    else:
        os.kill(composer if how == "kill composer" else launcher, signal.SIGKILL)
    panes.until(lambda: len(panes.panes()) == 1)
    panes.press("Enter")
    panes.type("echo still he''re")
    panes.press("Enter")
    panes.until("still here")


def rows(tmux: Tmux) -> list[int]:
    return [int(row) for row in tmux.do("list-panes", "-F", "#{pane_height}").split()]


def test_the_composers_pane_is_low_grows_with_what_it_shows_and_leaves_a_size_that_the_person_chose(panes):
    panes.until(lambda: rows(panes) == [22, 7])
    for _ in range(9):
        panes.press("C-j")
    panes.until(lambda: rows(panes) in ([17, 12], [16, 13]))  # with or without the notice of the first use
    panes.press("C-c")
    panes.until(lambda: rows(panes) == [22, 7])
    panes.type("/help")
    panes.press("Enter")
    panes.until(lambda: rows(panes) == [15, 14])
    panes.until("/help · ")
    panes.press("Escape")
    panes.until(lambda: rows(panes) == [22, 7])
    panes.do("resize-pane", "-t", panes.pane, "-y", "10")
    for _ in range(15):
        panes.press("C-j")
    panes.type("the end")
    panes.until("the end")
    assert rows(panes) == [19, 10]


def test_in_a_window_of_another_size_the_composers_pane_is_as_low_as_before(panes):
    panes.until(lambda: rows(panes) == [22, 7])
    for height, wanted in ((20, [12, 7]), (60, [52, 7])):  # tmux gives each pane its share of what is taken or added
        panes.do("resize-window", "-t", panes.pane, "-y", str(height))
        panes.until(lambda wanted=wanted: rows(panes) == wanted)
        panes.until("Shift-Tab mode")


def test_leaving_panes_leaves_the_last_turn_on_the_screen(panes, home):
    for count, text in enumerate(("hello there", "list ."), 1):
        panes.type(text)
        panes.press("Enter")
        wait_for(lambda count=count: len(facts(only(home), TurnEnd)) == count)
    panes.press("C-d")
    screen = panes.until("Resume this chat with")
    assert "❯ list ." in screen
    assert "notes.txt" in screen
    assert "hello there" not in screen


def test_the_first_use_of_panes_says_how_to_stay_in_one(panes):
    panes.until("--layout inline")


def test_page_up_scrolls_the_viewer_and_the_keyboard_stays(panes, home):
    above, _ = panes.panes()
    panes.type("list .")
    panes.press("Enter")
    panes.until("notes.txt", pane=above)
    panes.press("PPage")
    panes.until(lambda: panes.do("display-message", "-p", "-t", above, "#{pane_in_mode}").strip() == "1")
    panes.type("typed on")
    panes.until("❯ typed on")
    panes.press("NPage", "NPage", "NPage")
    panes.until(lambda: panes.do("display-message", "-p", "-t", above, "#{pane_in_mode}").strip() == "0")


def test_ctrl_o_reaches_the_viewer_out_of_copy_mode_and_no_binding_is_touched(panes, home):
    above, _ = panes.panes()
    bindings = panes.do("list-keys")
    panes.type("list .")
    panes.press("Enter")
    panes.until("notes.txt", pane=above)
    panes.press("PPage")
    panes.until(lambda: panes.do("display-message", "-p", "-t", above, "#{pane_in_mode}").strip() == "1")
    panes.press("C-o")
    panes.until("tool output in full", pane=above, history=True)
    assert panes.do("list-keys") == bindings


# ---- pure


@pytest.mark.parametrize(
    ("typed", "as_raw"),
    [
        (b"hello\n", b"hello\r"),
        (b"one\ntwo", b"one\rtwo"),
        (b"\x1b[200~line 1\n\nline 2\n\n\tline 3\n\n\x1b[201~", b"\x1b[200~line 1\rline 2\r\tline 3\r\x1b[201~"),
        (b"\x1b[200~a\nb\n\nc\x1b[201~", b"\x1b[200~a\rb\r\rc\x1b[201~"),
        (b"\0", b""),
    ],
)
def test_what_was_typed_in_line_mode_is_what_raw_mode_would_have_given(typed, as_raw):
    assert raw(typed) == as_raw


@pytest.mark.parametrize(
    ("wanted", "environ", "layout"),
    [
        (None, {}, "inline"),
        (None, {"TMUX": "x"}, "inline"),
        (None, {"TMUX": "x", "TMUX_PANE": "%1"}, "panes"),
        ("inline", {"TMUX": "x", "TMUX_PANE": "%1"}, "inline"),
        ("panes", {}, "inline"),
    ],
)
def test_panes_are_for_tmux_and_a_popup_is_no_pane(wanted, environ, layout):
    assert choose_layout(wanted, environ) == layout


# ---- an agent's chat beside the one it works for


def agent_of(files: Files, said: str) -> Files:
    made = chat.create(
        files.home, cwd=Path.cwd(), provider="demo", model="demo", system="s", agent_of=files.chat_id, depth=1
    )
    with open(made.chat, "ab") as file:
        file.write(records.encode(User(id="u", content=said, created_at="2026-06-20T12:00:00.000Z")))
        end = TurnEnd(turn="u", answers=("u",), outcome="done", created_at="2026-06-20T12:00:00.000Z")
        file.write(records.encode(end))
    return made


def sizes(tmux: Tmux) -> str:
    return tmux.do("list-panes", "-F", "#D #{pane_left} #{pane_top} #{pane_width} #{pane_height} #{pane_active}")


def pick_agent(tmux: Tmux, said: str) -> None:
    tmux.type("/agents")
    tmux.press("Enter")
    tmux.until("look at an agent")
    tmux.type(said)
    tmux.until(f"❯ {said}")
    tmux.press("Enter")


@pytest.mark.parametrize("layout", ["panes", "inline"])
def test_an_agent_that_is_picked_has_a_pane_for_itself_and_leaves_the_others_as_they_were(
    tmp_path, home, workspace, layout
):
    with tmux_of(tmp_path, "--layout", layout, inside=True) as tmux:
        tmux.until(READY)
        if layout == "panes":
            tmux.until(lambda: len(tmux.panes()) == 2)
        parent = only(home)
        agent_of(parent, "count the sleeps")
        shown = agent_of(parent, "find slow tests")
        before, panes = sizes(tmux), set(tmux.panes())
        pick_agent(tmux, "slow")
        tmux.until(lambda: len(tmux.panes()) == len(panes) + 1)
        (pane,) = set(tmux.panes()) - panes
        tmux.until("❯ find slow tests", pane=pane)
        tmux.until(READY, pane=pane)
        is_right = tmux.do("display-message", "-p", "-t", pane, "#{pane_left}").strip() != "0"
        assert is_right == (layout == "panes"), "the viewer's height is the composer's to share"
        assert f"{pane} " in next(line for line in sizes(tmux).splitlines() if line.endswith(" 1"))
        tmux.do("send-keys", "-t", pane, "-l", "where is main defined?")
        tmux.do("send-keys", "-t", pane, "Enter")
        wait_for(lambda: len(facts(shown, TurnEnd)) == 2)
        tmux.do("send-keys", "-t", pane, "C-d")
        tmux.until(lambda: sizes(tmux) == before)
        tmux.type("list .")
        tmux.press("Enter")
        wait_for(lambda: facts(parent, TurnEnd))
        tmux.press("C-d")
        tmux.until("Resume this chat with")


def test_a_pane_of_an_agent_that_cannot_be_shown_says_why_before_it_closes(panes, home):
    shown = agent_of(only(home), "find slow tests")
    known = set(panes.panes())
    panes.type("/agents")
    panes.press("Enter")
    panes.until("look at an agent")
    shown.chat.unlink()
    panes.press("Enter")
    panes.until(lambda: len(panes.panes()) == 3)
    (pane,) = set(panes.panes()) - known
    panes.until("Enter closes this pane", pane=pane)
    assert f"no chat '{shown.chat_id}'" in panes.screen(pane).replace("\n", "")
    panes.do("send-keys", "-t", pane, "Enter")
    panes.until(lambda: set(panes.panes()) == known)


def test_without_tmux_an_agent_that_is_picked_is_gone_to_and_the_way_back_is_said(inline, home):
    parent = only(home)
    inline.type("/agents")
    inline.press("Enter")
    inline.until("no agent works, or worked, for this chat")
    shown = agent_of(parent, "find slow tests")
    pick_agent(inline, "slow")
    inline.until(f"back from there: /resume {parent.chat_id}")
    inline.until(f"cass  {shown.chat_id}")
    inline.until("❯ find slow tests")
    inline.until(lambda: READY in inline.screen())
    inline.type(f"/resume {parent.chat_id}")
    inline.press("Enter")
    inline.until(lambda: inline.screen(history=True).count(f"cass  {parent.chat_id}") == 2)


def test_agents_are_in_no_list_of_chats_to_go_to(inline, home):
    agent_of(only(home), "find slow tests")
    inline.type("/resume")
    inline.press("Enter")
    inline.until("there is no other chat of this directory")
