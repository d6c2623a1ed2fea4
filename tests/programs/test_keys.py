"""Every key of the table in `commands`, pressed in a real tmux at a real chat: a key without a row here fails."""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stage import argv, end_worker, facts, script, wait_for
from terminal import Tmux

from cass import catalogue, inbox
from cass.commands import KEYS, At
from cass.composer.question import QUIET_S
from cass.home import Files, Home
from cass.records import Approval, TurnEnd, User
from tests import drawn

LONG_COMMAND = "\n".join(f"echo step {n:02d}" for n in range(60)) + "\ntouch ran"
ASKS = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch ran"}}]}
ASKS_LONG = {"tool_calls": [{"name": "shell", "arguments": {"command": LONG_COMMAND}}]}
HANGS = {"text": "word " * 5000, "deltas": 5000, "delay_ms": 20}
ANSWER = {"text": "\n\n".join(f"line {n:03d}" for n in range(120)), "reasoning": "thought through"}
LISTS = {"tool_calls": [{"name": "grep", "arguments": {"query": "word", "paths": ["many.txt"]}}]}
ROWS: dict[tuple[At, str], Callable[["Stage"], None]] = {}


class Stage:
    """A tmux with `cass` in it, and the home it works in."""

    def __init__(self, tmux: Tmux, home: Home) -> None:
        self.tmux = tmux
        self.home = home
        self.press, self.until = tmux.press, tmux.until

    @property
    def files(self) -> Files:
        (chat_id,) = catalogue.ids(self.home)
        return self.home.files(chat_id)

    def say(self, text: str) -> None:
        self.tmux.type(text)
        self.press("Enter")

    def says(self) -> list[str]:
        return [user.content for user in facts(self.files, User)]

    def draft(self, text: str) -> str:
        """Wait until this is what stands at the prompt."""
        pattern = re.compile(rf"❯ {re.escape(text)}".rstrip() + r"\s*$", re.MULTILINE)
        return self.until(lambda: pattern.search(self.tmux.screen()))

    def busy(self) -> None:
        self.say("go on for long")
        self.until("word word")

    def asked(self, text: str = "run it") -> None:
        self.say(text)
        self.until("y approve")
        time.sleep(QUIET_S + 0.1)  # only a quiet keyboard answers

    def mark(self, text: str) -> None:
        """Wait until the picker's mark stands at a choice."""
        self.until(lambda: re.search(rf"^> .*{re.escape(text)}", self.tmux.screen(), re.MULTILINE))

    def queue(self) -> None:
        """A busy chat with three waiting messages, and the picker of them."""
        self.busy()
        for text in ("wait one", "wait two", "wait three"):
            self.say(text)
            self.until(f": {text}")
            self.draft("")
        self.say("/queue")
        self.mark("wait three")

    def page(self) -> None:
        """The transcript as a page, above its end."""
        self.say("tell me")
        self.until("line 119")
        wait_for(lambda: facts(self.files, TurnEnd))
        self.press("PPage")
        self.until("Esc or End: back")
        self.until(lambda: self.place() > 20)

    def place(self) -> int:
        """The number of the page's first line."""
        found = re.search(r"lines (\d+)-\d+ of", self.tmux.screen())
        return int(found[1]) if found else -1


def row(at: At, name: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        ROWS[at, name] = play
        return play

    return add


STEPS = {
    "draft": (ANSWER,),
    "busy": (HANGS,),
    "question": (ASKS, {"text": "All done."}),
    "long question": (ASKS_LONG, {"text": "All done."}),
    "tools": (LISTS, {"text": "All listed.", "reasoning": "thought through"}),
}
NEEDS = {
    (At.DRAFT, "Esc"): "busy",
    (At.DRAFT, "Ctrl-S"): "busy",
    (At.DRAFT, "Ctrl-O"): "tools",
    (At.DRAFT, "Ctrl-T"): "tools",
    (At.QUESTION, "PageUp"): "long question",
    (At.QUESTION, "PageDown"): "long question",
}
BY_PLACE = {At.DRAFT: "draft", At.QUESTION: "question", At.PICKER: "busy", At.TRANSCRIPT: "draft"}


@contextmanager
def stage(tmp_path: Path, home: Home, *steps: dict) -> Iterator[Stage]:
    script(home, *steps)
    given = {name: os.environ[name] for name in ("HOME", "CASS_HOME")} | {"VISUAL": str(tmp_path / "editor")}
    given |= {"WAYLAND_DISPLAY": "wayland-0", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "wl-paste").write_text(f"#!/bin/sh\nexec cat {tmp_path}/clip\n")
    (tmp_path / "bin" / "wl-paste").chmod(0o755)
    made = Tmux(tmp_path / "tmux", environ=given, inside=False)
    try:
        made.until("$")
        made.type(shlex.join([*argv("cass"), "-P", "scripted", "--workspace-edit"]))
        made.press("Enter")
        made.until("idle")
        yield Stage(made, home)
    finally:
        made.close()
        for chat_id in catalogue.ids(home):
            end_worker(home.files(chat_id))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.at}: {key.name}")
def test_a_key_does_what_the_table_says(key, tmp_path, home, workspace):
    (workspace / "many.txt").write_text("".join(f"word {n}\n" for n in range(40)))
    steps = STEPS[NEEDS.get((key.at, key.name), BY_PLACE[key.at])]
    with stage(tmp_path, home, *steps) as given:
        ROWS[key.at, key.name](given)


def test_the_table_has_no_row_without_a_key():
    assert set(ROWS) == {(key.at, key.name) for key in KEYS}


# ---- at the draft


@row(At.DRAFT, "Enter")
def _(s):
    s.say("hello")
    wait_for(lambda: s.says() == ["hello"])
    s.draft("")


@row(At.DRAFT, "Shift-Tab")
def _(s):
    s.until("workspace-edit ·")
    s.press("BTab")
    s.until("full-access ·")
    s.press("BTab")
    s.until("read-only ·")


@row(At.DRAFT, "Ctrl-J")
def _(s):
    s.tmux.type("one")
    s.press("C-j")
    s.tmux.type("two")
    s.until("❯ one\n  two")
    assert s.says() == []


@row(At.DRAFT, "Alt-Enter")
def _(s):
    s.tmux.type("one")
    s.press("M-Enter")
    s.tmux.type("two")
    s.until("❯ one\n  two")
    assert s.says() == []


@row(At.DRAFT, "Ctrl-S")
def _(s):
    s.busy()
    s.tmux.type("stop that")
    s.press("C-s")
    s.until("waiting 1: at once: stop that")
    (waiting,) = inbox.waiting(s.files)
    assert inbox.read(s.files, waiting.name)["steer"] is True


@row(At.DRAFT, "Ctrl-O")
def _(s):
    s.say("list")
    s.until("All listed.")
    assert "word 39" not in s.tmux.screen(history=True)
    s.press("C-o")
    s.until("word 39", history=True)


@row(At.DRAFT, "Ctrl-T")
def _(s):
    s.say("list")
    s.until("All listed.")
    before = s.tmux.screen(history=True).count("All listed.")
    s.press("C-t")
    s.until(lambda: s.tmux.screen(history=True).count("All listed.") > before)


@row(At.DRAFT, "Alt-T")
def _(s):
    s.press("M-t")
    s.until("reasoning effort: low")
    s.press("M-t")
    s.until("reasoning effort: medium")
    s.say("hello")
    wait_for(lambda: facts(s.files, User))
    assert facts(s.files, User)[0].effort == "medium"


@row(At.DRAFT, "Esc")
def _(s):
    s.busy()
    s.say("and then this")
    s.until("waiting 1: and then this")
    s.press("Escape")
    s.until("❯ and then this")
    (end,) = wait_for(lambda: facts(s.files, TurnEnd))
    assert end.outcome == "cancelled"
    s.press("Escape")  # while idle nothing is lost
    s.until("Esc again")
    s.draft("and then this")


@row(At.DRAFT, "Esc Esc")
def _(s):
    s.say("the first of all")
    wait_for(lambda: facts(s.files, TurnEnd))
    s.tmux.type("kept")
    s.draft("kept")
    s.press("Escape")
    s.until("Esc again")
    s.press("Escape")
    s.mark("the first of all")
    s.press("Escape")
    s.draft("kept")
    (chat_id,) = catalogue.ids(s.home)
    s.press("Escape")
    s.until("Esc again")
    s.press("Escape")
    s.mark("the first of all")
    s.press("Enter")
    s.draft("the first of all")
    wait_for(lambda: len(catalogue.ids(s.home)) == 2)  # the transcript shows the same words already
    wait_for(lambda: s.home.files(chat_id).draft.read_text() == "kept")


@row(At.DRAFT, "Ctrl-C")
def _(s):
    s.tmux.type("some text")
    s.draft("some text")
    s.press("C-c")
    s.until("Ctrl-C again to leave")
    s.draft("")
    s.press("C-c")
    s.until("Resume this chat with")


@row(At.DRAFT, "Ctrl-D")
def _(s):
    s.press("C-d")
    s.until("Resume this chat with")


@row(At.DRAFT, "Ctrl-R")
def _(s):
    s.say("a needle in the history")
    wait_for(lambda: facts(s.files, TurnEnd))
    s.draft("")
    s.press("C-r")
    s.tmux.type("needle")
    s.until("in the history: needle")
    s.press("Enter")
    s.draft("a needle in the history")


@row(At.DRAFT, "Up")
def _(s):
    s.say("say this again")
    wait_for(lambda: facts(s.files, TurnEnd))
    s.draft("")
    s.press("Up")
    s.draft("say this again")


@row(At.DRAFT, "Tab")
def _(s):
    s.tmux.type("/tok")
    s.until("show the usage")
    s.press("Tab")
    s.draft("/tokens")


@row(At.DRAFT, "Ctrl-G")
def _(s):
    editor = Path(s.home.root.parent / "editor")
    editor.write_text('#!/bin/sh\necho "from the editor" > "$1"\n')
    editor.chmod(0o755)
    s.press("C-g")
    s.draft("from the editor")


@row(At.DRAFT, "Ctrl-V")
def _(s):
    s.press("C-v")
    s.until("the clipboard holds no image")
    (s.home.root.parent / "clip").write_bytes(drawn.png())
    s.tmux.type("look:")
    s.press("C-v")
    s.until(lambda: re.search(r"❯ look: \[image [0-9a-f]{8}\]", s.tmux.screen()))
    s.press("Enter")
    wait_for(lambda: s.says())
    (user,) = facts(s.files, User)
    assert [(one.width, one.height) for one in user.attachments] == [(4, 3)]


@row(At.DRAFT, "Ctrl-Z")
def _(s):
    s.press("C-z")
    s.until("Stopped")
    s.say("fg")
    s.until("Shift-Tab mode")


@row(At.DRAFT, "PageUp")
def _(s):
    s.page()


@row(At.DRAFT, "PageDown")
def _(s):
    s.press("NPage")  # there is nothing below: the keyboard stays at the draft
    s.tmux.type("typed on")
    s.draft("typed on")


# ---- at a question


@row(At.QUESTION, "y")
def _(s):
    s.asked()
    s.press("y")
    s.until("All done.")
    assert facts(s.files, Approval)[0].decision == "approved"


@row(At.QUESTION, "n")
def _(s):
    s.asked()
    s.press("n")
    s.until("Enter for no reason")
    s.until("because ❯")
    s.say("not now")
    s.until("All done.")
    approval = facts(s.files, Approval)[0]
    assert (approval.decision, approval.reason) == ("denied", "not now")


@row(At.QUESTION, "a")
def _(s):
    s.asked()
    s.press("a")
    s.until("shell(touch ran)")
    time.sleep(QUIET_S)  # only a quiet keyboard answers
    s.press("y")
    s.until("All done.")
    assert facts(s.files, Approval)[0].rule == "shell(touch ran)"


@row(At.QUESTION, "PageDown")
def _(s):
    s.asked()
    assert "echo step 59" not in s.tmux.screen()
    s.press("NPage", "NPage", "NPage", "NPage", "NPage", "NPage")
    s.until("echo step 59")
    s.until("touch ran")


@row(At.QUESTION, "PageUp")
def _(s):
    s.asked()
    s.press("NPage", "NPage", "NPage", "NPage", "NPage", "NPage")
    s.until(lambda: "echo step 00" not in s.tmux.screen())
    s.press("PPage", "PPage", "PPage", "PPage", "PPage", "PPage")
    s.until("echo step 00")


# ---- at a picker


@row(At.PICKER, "Up")
def _(s):
    s.queue()
    s.press("Up")
    s.mark("wait two")


@row(At.PICKER, "Down")
def _(s):
    s.queue()
    s.press("Up", "Up")
    s.mark("wait one")
    s.press("Down")
    s.mark("wait two")


@row(At.PICKER, "PageUp")
def _(s):
    s.queue()
    s.press("PPage")
    s.mark("wait one")


@row(At.PICKER, "PageDown")
def _(s):
    s.queue()
    s.press("PPage")
    s.mark("wait one")
    s.press("NPage")
    s.mark("wait three")


@row(At.PICKER, "Enter")
def _(s):
    s.queue()
    s.press("Up", "Enter")
    s.draft("wait two")
    texts = [inbox.read(s.files, waiting.name)["content"] for waiting in inbox.waiting(s.files)]
    assert texts == ["wait one", "wait three"]


@row(At.PICKER, "Backspace")
def _(s):
    s.queue()
    s.tmux.type("two")
    s.until("1 of 3")
    s.press("BSpace", "BSpace")
    s.until("3 of 3")


@row(At.PICKER, "Ctrl-U")
def _(s):
    s.queue()
    s.tmux.type("one")
    s.mark("wait one")
    s.press("C-u")
    s.until(lambda: "of 3" not in s.tmux.screen() and "take back what waits · 3" in s.tmux.screen())


@row(At.PICKER, "Esc")
def _(s):
    s.queue()
    s.press("Escape")
    s.until("waiting 3: wait three")
    s.draft("")
    assert facts(s.files, TurnEnd) == []


# ---- at the transcript


@row(At.TRANSCRIPT, "PageUp")
def _(s):
    s.page()
    before = s.place()
    s.press("PPage")
    s.until(lambda: s.place() < before - 10)


@row(At.TRANSCRIPT, "PageDown")
def _(s):
    s.page()
    before = s.place()
    s.press("PPage")
    s.until(lambda: s.place() < before)
    s.press("NPage")
    s.until(lambda: s.place() == before)


@row(At.TRANSCRIPT, "Up")
def _(s):
    s.page()
    before = s.place()
    s.press("Up")
    s.until(lambda: s.place() == before - 1)


@row(At.TRANSCRIPT, "Down")
def _(s):
    s.page()
    before = s.place()
    s.press("Down")
    s.until(lambda: s.place() == before + 1)


@row(At.TRANSCRIPT, "Home")
def _(s):
    s.page()
    s.press("Home")
    s.until(lambda: s.place() == 1)


@row(At.TRANSCRIPT, "Ctrl-O")
def _(s):
    s.page()
    s.press("C-o")
    s.until("tool output in full")


@row(At.TRANSCRIPT, "Ctrl-T")
def _(s):
    s.page()
    s.press("C-t")
    s.until(lambda: "reasoning" in s.tmux.screen())


@row(At.TRANSCRIPT, "q, Esc, End")
def _(s):
    s.page()
    for key in ("q", "Escape", "End"):
        s.press(key)
        s.until("Shift-Tab mode")
        s.press("PPage")
        s.until(lambda: s.place() > 20)
