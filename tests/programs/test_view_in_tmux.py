"""cass-view in a real tmux: columns, resizes, the title, the bell."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stage import argv, wait_for
from terminal import Tmux

from cass import presence
from cass.chat import LiveFile
from cass.home import Files
from cass.jsonl import now
from cass.records import Assistant, Delta, Record, Status, ToolCall, ToolResult, TurnEnd, User, encode
from cass.tools.diff import unified

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


def append(files: Files, *made: Record) -> None:
    with files.chat.open("ab") as chat:
        chat.write(b"".join(encode(record) for record in made))


def user(content: str, id: str = "u") -> User:
    return User(id=id, content=content, created_at=now(), origin={"by": "composer"})


def answer(content: str, id: str = "a") -> Assistant:
    return Assistant(id=id, content=content, created_at=now())


def changed(old: str, new: str) -> list[Record]:
    asked = ToolCall("x", "edit", {"path": "app.py", "edits": []})
    diff = unified(old.encode(), new.encode())
    done = ToolResult(tool_call_id="x", name="edit", content="Applied", ok=True, diff=diff, created_at=now())
    return [Assistant(id="of x", content="", created_at=now(), tool_calls=(asked,), stop="tool_calls"), done]


def ended(turn: str = "u") -> TurnEnd:
    return TurnEnd(turn=turn, answers=(turn,), outcome="done", created_at=now())


@pytest.fixture
def worker(files: Files) -> Iterator[LiveFile]:
    files.make()
    lock = presence.hold(files)
    live = LiveFile(files)
    live.begin(Status(state="thinking", mode="read-only", provider="demo", model="demo", created_at=now(), turn="u"))
    yield live
    live.close()
    with contextlib.suppress(OSError):
        os.close(lock)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., Tmux]]:
    """Starts a shell in a tmux; the viewer is run from it, as a person would."""
    opened: list[Tmux] = []

    def start(columns: int = 60, rows: int = 24) -> Tmux:
        environ = {name: os.environ[name] for name in ("CASS_HOME", "HOME", "PATH")} | {"LC_ALL": "C.UTF-8"}
        opened.append(Tmux(tmp_path / "tmux", environ=environ, size=(columns, rows)))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


def view(tmux: Tmux, files: Files, *flags: str) -> None:
    tmux.until("$")
    tmux.type(" ".join(argv("cass-view", files.chat_id, *flags)))
    tmux.press("Enter")


def column_of(screen: str, word: str) -> int:
    """Where `word` begins, in columns; tmux gives a wide character once."""
    line = next(line for line in screen.split("\n") if word in line)
    wide = sum(ord(char) > 0x2E80 for char in line[: line.index(word)])
    return line.index(word) + wide


def test_wide_characters_and_tabs_keep_their_columns(files: Files, tmux: Callable[..., Tmux]) -> None:
    table = "| name | n |\n|---|---|\n| 漢字 | eins |\n| ascii | zwei |\n| 😀 | drei |\n"
    code = "```\nab\t|one\n漢字\t|two\n```\n"
    append(files, user("go"), answer(f"{table}\n{code}\né and e\u0301."), ended())
    screen = tmux()
    view(screen, files)
    text = screen.until("é and")
    assert column_of(text, "eins") == column_of(text, "zwei") == column_of(text, "drei")
    assert column_of(text, "|one") == column_of(text, "|two") == 2 + 8


def test_a_diff_has_its_numbers_in_a_column(files: Files, tmux: Callable[..., Tmux]) -> None:
    old = "".join(f"line {i}\n" for i in range(1, 30))
    append(files, user("go"), *changed(old, old.replace("line 9\n", "neun 漢字\nund mehr\n")), ended())
    screen = tmux()
    view(screen, files)
    text = screen.until("╰ ok · +2 -1 · Applied")
    assert "  │  8  line 8\n  │  9 -line 9\n  │  9 +neun 漢字\n  │ 10 +und mehr\n  │ 11  line 10\n" in text


def test_twenty_columns_are_enough(files: Files, tmux: Callable[..., Tmux]) -> None:
    content = (
        "# A long heading of words\n\n| one | two | three |\n|---|---|---|\n| 1 | 2 | 3 |\n\n漢字漢字漢字漢字漢字漢字\n"
    )
    append(files, user("a question that is long"), *changed("a\n", "b " * 30 + "\n"), answer(content), ended())
    screen = tmux(columns=20, rows=50)
    view(screen, files)
    text = screen.until("no worker")
    assert "one   two   three" in text
    assert "漢字漢字漢字漢字漢字\n漢字\n" in text or "漢字漢字漢字漢字漢字漢字" in text.replace("\n", "")


def test_a_resize_lays_out_anew_what_grows_and_no_finished_line(
    files: Files, worker: LiveFile, tmux: Callable[..., Tmux]
) -> None:
    screen = tmux(columns=80)
    append(files, user("go"))
    view(screen, files)
    screen.until("thinking")
    worker.write(Delta(of="a", text="fini " * 14 + "\n\n" + "grow " * 15))
    screen.until("grow grow")
    for columns in (40, 70, 34):
        screen.do("resize-window", "-x", str(columns))
        wanted = "\n" + " ".join(["grow"] * ((columns + 1) // 5)) + "\ngrow"  # tmux alone would break it elsewhere
        screen.until(lambda wanted=wanted: wanted in screen.screen())  # type: ignore[misc]
    worker.write(Delta(of="a", text="end.\n\n"))
    append(files, answer("fini " * 14 + "\n\n" + "grow " * 15 + "end.\n\n"), ended())
    text = screen.until(lambda: "thinking" not in screen.screen())
    text = screen.screen(history=True)
    text = text.replace("fin\ni", "fini")  # what is finished is broken by tmux, wherever it likes
    assert (text.count("fini"), text.count("grow"), text.count("end."), text.count("❯ go")) == (14, 15, 1, 1)
    assert "thinking" not in text


def test_the_pane_is_named_after_the_chat_and_its_state_until_the_end(
    files: Files, worker: LiveFile, tmux: Callable[..., Tmux]
) -> None:
    screen = tmux()
    title = lambda: screen.do("display-message", "-p", "-t", screen.pane, "#{pane_title}").strip()  # noqa: E731
    screen.until("$")
    before = title()
    view(screen, files)
    wait_for(lambda: title() == f"cass {files.chat_id} thinking", what=title)
    screen.press("q")
    wait_for(lambda: title() == before, what=title)


def test_a_window_that_nobody_looks_at_rings_when_the_turn_ends(
    files: Files, worker: LiveFile, tmux: Callable[..., Tmux]
) -> None:
    screen = tmux()
    append(files, user("go"))
    view(screen, files)
    screen.until("thinking")
    screen.do("new-window", "sleep 60")
    append(files, answer("so"), ended())
    rung = lambda: screen.do("display-message", "-p", "-t", screen.pane, "#{window_bell_flag}").strip()  # noqa: E731
    wait_for(lambda: rung() == "1")
