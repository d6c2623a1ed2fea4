"""cass-view on real files, pipes and terminals, beside a worker's own writing."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from stage import argv, wait_for

from cass import jsonl, presence
from cass.chat import LiveFile
from cass.home import Files
from cass.jsonl import now
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Delta,
    Notice,
    Record,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    User,
    encode,
)


def append(files: Files, *made: Record) -> None:
    with files.chat.open("ab") as chat:
        chat.write(b"".join(encode(record) for record in made))


def user(content: str = "hi", id: str = "u") -> User:
    return User(id=id, content=content, created_at=now(), origin={"by": "composer"})


def answer(content: str, id: str = "a", **more: Any) -> Assistant:
    return Assistant(id=id, content=content, created_at=now(), **more)


def ended(turn: str = "u") -> TurnEnd:
    return TurnEnd(turn=turn, answers=(turn,), outcome="done", created_at=now())


def listed(call: str, lines: int) -> list[Record]:
    content = "\n".join(f"{call}-{i}" for i in range(lines))
    asked = answer("", f"of {call}", stop="tool_calls", tool_calls=(ToolCall(call, "ls", {"path": call}),))
    return [asked, ToolResult(tool_call_id=call, name="ls", content=content, ok=True, created_at=now())]


def thinking(state: str = "thinking") -> Status:
    return Status(state=state, mode="read-only", provider="demo", model="demo", created_at=now(), turn="u")


@pytest.fixture
def worker(files: Files) -> Iterator[LiveFile]:
    """A worker, as far as a viewer can see: the lock is held and the live file written."""
    files.make()
    lock = presence.hold(files)
    live = LiveFile(files)
    yield live
    live.close()
    with contextlib.suppress(OSError):
        os.close(lock)


# ---- a terminal


class Glass:
    """What stands on a terminal: just what the viewer may use of one; anything else is an error."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.told: list[str] = []
        """What is not for the screen: titles, marks, bells, in order."""
        self.lines = [""]
        self.row = 0
        self.column = 0

    def feed(self, text: str) -> None:
        text = self.OUT_OF_BAND.sub(self._outside, text)
        for sequence, final, char in re.findall(r"(\x1b\[[0-9;?]*([A-Za-z]))|([^\x1b])", text, re.DOTALL):
            if not sequence:
                self._put(char)
            elif final == "A":
                self.row -= int(sequence[2:-1])
                assert self.row >= 0
            elif final == "J":
                assert sequence == "\x1b[J"
                self.lines = [*self.lines[: self.row], self.lines[self.row][: self.column]]
            else:
                assert final == "m" or sequence in ("\x1b[?2026h", "\x1b[?2026l"), sequence
        assert text.count("\x1b") == len(re.findall(r"\x1b\[[0-9;?]*[A-Za-z]", text))

    OUT_OF_BAND = re.compile(r"\x1b\]([^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b\[([0-9;]*t|\?1004[hl])|(\x07)")

    def _outside(self, found: "re.Match[str]") -> str:
        assert found[1] is None or re.match(r"2;cass |133;[ACD]|8;|9;cass |777;", found[1])
        self.told.append(found[1] or found[2] or "bell")
        return ""

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n" or self.column >= self.columns:
            self.row, self.column = self.row + 1, 0
            self.lines += [""] * (self.row + 1 - len(self.lines))
            if char != "\n":
                self._put(char)
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


CUT = re.compile(rb"\x1b(\][^\x07\x1b]*|\[[0-9;?]*)?$|[\xc0-\xff][\x80-\xbf]{0,2}$(?<![\xc0-\xdf].)(?<![\xe0-\xef]..)")
"""Bytes that end inside a sequence or a character."""


class Pane:
    """A viewer on a terminal of its own."""

    def __init__(self, files: Files, *flags: str, columns: int = 60, **environ: str) -> None:
        self._master, self._slave = os.openpty()
        termios.tcsetwinsize(self._slave, (24, columns))
        self.modes = termios.tcgetattr(self._slave)
        self.glass = Glass(columns)
        self.process = subprocess.Popen(
            argv("cass-view", files.chat_id, *flags),
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=os.environ | {"TERM": "xterm"} | environ,
            start_new_session=True,
        )
        self.raw = b""
        self._rest = b""

    def read(self, timeout_s: float = 0.02) -> str:
        while select.select([self._master], [], [], timeout_s)[0]:
            data = os.read(self._master, 65536)
            self.raw += data
            self._rest += data
            whole = self._rest
            # A sequence or a character may be cut anywhere: keep what is after the last whole frame, if there are any.
            end = max(whole.rfind(b"\x1b[?2026l") + 8 if b"\x1b[?2026l" in whole else 0, 0)
            if b"\x1b[?2026h" not in whole[end:] and not CUT.search(whole):
                end = len(whole)
            self.glass.feed(whole[:end].decode())
            self._rest = whole[end:]
        return self.glass.text

    def see(self, text: str) -> str:
        wait_for(lambda: text in self.read(), what=f"{text!r} on {self.glass.text!r}")
        return self.glass.text

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, columns: int) -> None:
        termios.tcsetwinsize(self._slave, (24, columns))

    def modes_now(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def set_modes(self, modes: list[Any]) -> None:
        termios.tcsetattr(self._slave, termios.TCSANOW, modes)

    def close_terminal(self) -> None:
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    def end(self) -> int:
        status = self.process.wait(10)
        if self._master >= 0:
            self.read()
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        if self._master >= 0:
            self.close_terminal()


@pytest.fixture
def pane() -> Iterator[Callable[..., Pane]]:
    panes: list[Pane] = []

    def open_pane(*arguments: Any, **more: Any) -> Pane:
        panes.append(Pane(*arguments, **more))
        return panes[-1]

    yield open_pane
    for opened in panes:
        opened.close()


# ---- frames


class Framed:
    """A viewer whose frames are read."""

    def __init__(self, files: Files, *flags: str) -> None:
        self.process = subprocess.Popen(
            argv("cass-view", files.chat_id, "--frames", *flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"TERM": "xterm"},
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.frames: list[dict[str, str]] = []
        self._rest = b""

    def read(self) -> list[dict[str, str]]:
        assert self.process.stdout is not None
        while chunk := self.process.stdout.read(1 << 16):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self.frames += [jsonl.load(line) for line in lines]
        return self.frames

    @property
    def printed(self) -> str:
        return bare("".join(frame.get("print", "") for frame in self.read()))

    @property
    def live(self) -> str:
        return bare(next((frame["live"] for frame in reversed(self.read()) if "live" in frame), ""))

    def tell(self, said: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(jsonl.dump(said) + b"\n")
        self.process.stdin.flush()


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def see(viewer: Framed, text: str) -> None:
    wait_for(lambda: text in viewer.printed + viewer.live, what=lambda: f"{text!r} among {viewer.frames}")


@pytest.fixture
def framed() -> Iterator[Callable[..., Framed]]:
    opened: list[Framed] = []

    def start(*arguments: Any) -> Framed:
        opened.append(Framed(*arguments))
        return opened[-1]

    yield start
    for viewer in opened:
        viewer.process.kill()
        viewer.process.wait(10)
        for pipe in (viewer.process.stdin, viewer.process.stdout):
            if pipe is not None:
                pipe.close()


def run(files: Files, *flags: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv("cass-view", files.chat_id, *flags),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=os.environ | environ,
    )


# ---- printing


def test_without_a_terminal_it_prints_the_whole_chat_without_escapes_and_ends(files: Files) -> None:
    append(files, user("find main"), *listed("x", 30), answer("It is **here**."), ended())
    done = run(files)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.endswith("  │ x-11\n  ╰ ok · … 18 more lines (Ctrl-O)\n\nIt is **here**.\n")
    assert "\n❯ find main\n" in done.stdout
    assert "x-29" in run(files, "--full").stdout


def test_an_empty_chat_prints_a_header(files: Files, workspace: Path) -> None:
    text = run(files).stdout
    assert f"cass  {files.chat_id}" in text
    assert str(workspace) in text
    assert "offline, no language model" in text


def test_only_the_last_messages_are_printed_when_asked(files: Files) -> None:
    append(files, *[user(f"n{i}", f"u{i}") for i in range(20)])
    text = run(files, "-n", "2").stdout
    assert "earlier messages are not shown" in text
    assert re.findall(r"❯ (n\d+)", text) == ["n18", "n19"]


@pytest.mark.parametrize(
    ("environ", "flags", "has_escapes"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({}, ("--color", "always"), True),
        ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
        ({"FORCE_COLOR": "1"}, ("--plain",), False),
        ({}, ("--width", "20", "--color", "always"), True),
    ],
)
def test_colours_as_asked(files: Files, environ: dict[str, str], flags: tuple[str, ...], has_escapes: bool) -> None:
    append(files, user(), answer("# head\n\n" + "word " * 30))
    done = run(files, *flags, **environ)
    assert done.returncode == 0
    assert ("\x1b[" in done.stdout) == has_escapes
    if "--width" in flags:
        assert max(cell_len(line) for line in bare(done.stdout).split("\n") if "word" in line) <= 20


def test_json_is_the_lines_as_they_are(files: Files) -> None:
    append(files, user("one"), user("two", "u2"))
    with files.chat.open("ab") as chat:
        chat.write(b'{"type":"of a later version"}\nno json\n{"unfinished')
    whole = files.chat.read_bytes().rpartition(b"\n")[0] + b"\n"
    assert run(files, "--json").stdout.encode() == whole
    assert run(files, "--json", "-n", "2").stdout == '{"type":"of a later version"}\nno json\n'
    assert run(files, "--json", "-n", "0").stdout == ""


def test_a_damaged_line_is_named_and_hides_nothing(files: Files) -> None:
    append(files, user("before"))
    with files.chat.open("ab") as chat:
        chat.write(b"no json\n")
    append(files, user("after", "u2"))
    for flags in ((), ("-n", "9")):
        text = run(files, *flags).stdout
        assert "❯ before" in text
        assert "❯ after" in text
        assert text.count("is damaged and was skipped") == 1


def test_e01_nothing_in_a_chat_controls_the_terminal(files: Files) -> None:
    nasty = "\x1b]52;c;cm0=\x07\x1b]0;pwned\x07\x1b[2J\x1bc\x9b2J\x9d0;x\x9c safe\rrm -rf ~ \u202e [/INST] <div> \x1b]"
    calls = (ToolCall("x", nasty, {nasty: nasty}), ToolCall("y", "shell", {"command": nasty}))
    result = [ToolResult(tool_call_id=id, name=nasty, content=nasty, ok=False, created_at=now()) for id in "xy"]
    failed = TurnEnd(turn="u", answers=("u",), outcome="failed", error=nasty, created_at=now())
    append(files, user(nasty), answer(f"# {nasty}\n\n`{nasty}`\n\n- {nasty}", tool_calls=calls), *result, failed)
    for flags in ((), ("--color", "always"), ("--color", "always", "--full", "--reasoning")):
        done = run(files, *flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", bare(done.stdout))
        assert "␛]52;c;cm0=" in done.stdout
        assert "[/INST] <div>" in done.stdout


def test_who_closes_the_pipe_early_hears_nothing_more(files: Files) -> None:
    append(files, *[user("x" * 500, f"u{i}") for i in range(2000)])
    for flags in ("", "--json", "--follow"):
        command = " ".join(argv("cass-view", files.chat_id)) + f" {flags} | head -1"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_an_error_that_says_so(files: Files) -> None:
    append(files, user("hello"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv("cass-view", files.chat_id), stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "cass-view: cannot write to standard output: No space left on device\n",
    )


def test_a_width_that_is_asked_for_is_that_of_the_lines_in_a_pipe_too(files: Files) -> None:
    append(files, answer("word " * 40 + "\n\n| a | b |\n|---|---|\n| 1 | 2 |"), ended())
    assert "word " * 40 in run(files).stdout
    lines = run(files, "--width", "30").stdout.split("\n")
    assert max(map(len, lines)) <= 30
    assert "a   b" in lines


def test_a_chat_of_a_hundred_megabytes_is_not_loaded_to_be_shown(files: Files) -> None:
    line = encode(user("x" * 100_000))
    with files.chat.open("ab") as chat:
        for _ in range(1000):
            chat.write(line)
    append(files, user("the last one", "u2"))
    # A child's peak counts from its fork, when it is still as big as we are: so a small parent, which says it.
    measure = "import resource as r, subprocess, sys; subprocess.run(sys.argv[1:])"
    measure += "; print(r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    command = [sys.executable, "-c", measure, *argv("cass-view", files.chat_id, "-n", "1")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith("❯ the last one\n")
    assert int(done.stderr) * (1 if sys.platform == "darwin" else 1024) < 70_000_000


# ---- following on a terminal


def test_on_a_terminal_it_follows_what_is_appended_by_any_means(files: Files, pane: Callable[..., Pane]) -> None:
    append(files, user("find main"), ended())
    viewer = pane(files)
    viewer.see("❯ find main")
    subprocess.run(
        ["sh", "-c", 'echo "$1" >> "$2"', "sh", encode(user("by hand", "u2")).decode().strip(), str(files.chat)],
        check=True,
    )
    text = viewer.see("❯ by hand")
    assert text.count("❯ find main") == 1
    viewer.see("no worker runs")


def test_an_answer_grows_at_the_bottom_and_ends_as_finished_lines(
    files: Files, worker: LiveFile, pane: Callable[..., Pane]
) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = pane(files)
    viewer.see(" thinking")
    whole = "First *one*.\n\n- a\n- b\n\n```py\nx = 1\ny = 2\n```\n\nLast."
    for i in range(0, len(whole), 3):
        worker.write(Delta(of="a", text=whole[i : i + 3]))
        viewer.read(0.001)
    viewer.see("Last.")
    append(files, answer(whole), ended())
    worker.write(thinking("idle"))
    wait_for(lambda: " thinking" not in viewer.read())
    shown = viewer.glass.text[viewer.glass.text.index("❯ go") :].rstrip()
    shown, _, hint = shown.rpartition("\n\n")
    assert shown == "❯ go\n\nFirst one.\n\n• a\n• b\n\n  x = 1\n  y = 2\n\nLast."
    assert hint == "q leaves · Ctrl-O tool output · Ctrl-T reasoning"


def test_a_call_runs_with_its_last_output_and_ends_with_its_result(
    files: Files, worker: LiveFile, pane: Callable[..., Pane]
) -> None:
    worker.begin(thinking())
    viewer = pane(files)
    call = ToolCall("x", "shell", {"command": "make"})
    append(files, user("go"), answer("", tool_calls=(call,), stop="tool_calls"))
    request = ApprovalRequest(
        request_id="r",
        tool_call_id="x",
        name="shell",
        arguments={"command": "make"},
        reason="it asks",
        sandboxed=False,
        created_at=now(),
        of="a",
    )
    worker.write(request)
    viewer.see("waits for approval: it asks")
    assert "not sandboxed" in viewer.glass.text
    append(files, Approval(request_id="r", tool_call_id="x", decision="approved", by="ada in pane 2", created_at=now()))
    worker.write(ToolStarted(tool_call_id="x", created_at=now(), of="a"))
    for i in range(50):
        worker.write(ToolOutput(tool_call_id="x", text=f"step {i}\n"))
    text = viewer.see("step 49")
    assert "waits" not in text
    assert "step 3\n" not in text
    append(files, ToolResult(tool_call_id="x", name="shell", content="built\nexit 0", ok=True, created_at=now()))
    text = viewer.see("╰ ok")
    assert "step" not in text
    assert "● shell make\n  │ approved by ada in pane 2\n  │ built\n  │ exit 0\n  ╰ ok" in text


def test_the_end_of_the_worker_is_said_once_and_its_live_state_is_gone(files: Files, pane: Callable[..., Pane]) -> None:
    files.make()
    lock = presence.hold(files)
    live = LiveFile(files)
    append(files, user("go"))
    live.begin(thinking())
    live.write(Delta(of="a", text="half an ans"))
    viewer = pane(files)
    viewer.see("half an ans")
    live.close()
    os.close(lock)
    viewer.see("no worker runs")
    append(files, user("still here", "u2"))
    text = viewer.see("❯ still here")
    assert text.count("no worker runs") == 1
    assert "thinking" not in text
    assert "half an ans\n\n❯ still here" in text


def test_j03_a_record_is_shown_when_its_line_is_whole_and_once(files: Files, pane: Callable[..., Pane]) -> None:
    viewer = pane(files)
    viewer.see(files.chat_id)
    line = encode(user("中文😀 whole"))
    inside = line.index("中".encode()) + 1
    with files.chat.open("ab", buffering=0) as chat:
        for a, b in ((0, 9), (9, inside), (inside, len(line) - 1)):
            chat.write(line[a:b])
            append_elsewhere = viewer.read(0.05)
            assert "whole" not in append_elsewhere
        chat.write(b"\n")
    viewer.see("❯ 中文😀 whole")
    append(files, *[user(f"number {i} of many", f"m{i}") for i in range(2000)])
    with files.chat.open("ab") as chat:
        chat.write(b"{not json}\n")
    append(files, user("good again", "g"))
    text = viewer.see("❯ good again")
    assert re.findall(r"number (\d+) of", text) == [str(i) for i in range(2000)]
    assert text.count("is damaged and was skipped") == 1


def test_the_keys_show_the_last_turn_in_full_and_leave(files: Files, pane: Callable[..., Pane]) -> None:
    append(files, user("old", "u1"), *listed("x", 30), user("new", "u2"), *listed("y", 30))
    append(files, answer("so", reasoning="because", id="a2"), ended("u2"))
    before = files.chat.read_bytes()
    viewer = pane(files)
    viewer.see("18 more lines (Ctrl-O)")
    assert viewer.modes_now() != viewer.modes
    viewer.press(b"\x0f")
    text = viewer.see("── tool output in full")
    viewer.see("y-29")
    assert "x-29" not in text
    viewer.press(b"\x14")
    viewer.see("┆ because")
    viewer.press(b"\x0f")
    viewer.see("── tool output short")
    viewer.press(b"zq")
    assert viewer.end() == 0
    assert viewer.modes_now() == viewer.modes
    assert files.chat.read_bytes() == before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_restores_the_terminal(
    files: Files, worker: LiveFile, pane: Callable[..., Pane], number: signal.Signals, status: int
) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = pane(files)
    viewer.see(" thinking")
    viewer.process.send_signal(number)
    assert viewer.end() == status
    assert viewer.modes_now() == viewer.modes
    assert " thinking" not in viewer.glass.text
    assert "Traceback" not in viewer.glass.text


def test_it_goes_on_after_it_was_suspended(files: Files, worker: LiveFile, pane: Callable[..., Pane]) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = pane(files)
    viewer.see(" thinking")
    modes = viewer.modes_now()
    viewer.process.send_signal(signal.SIGSTOP)
    viewer.set_modes(viewer.modes)  # as a shell does meanwhile
    viewer.process.send_signal(signal.SIGCONT)
    wait_for(lambda: viewer.modes_now() == modes)
    append(files, answer("so"), ended())
    viewer.see("so")


def test_it_ends_when_its_terminal_is_gone(files: Files, pane: Callable[..., Pane]) -> None:
    viewer = pane(files)
    viewer.see(files.chat_id)
    viewer.close_terminal()
    viewer.process.wait(10)


def test_a_resize_wraps_only_what_grows_anew(files: Files, worker: LiveFile, pane: Callable[..., Pane]) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    worker.write(Delta(of="a", text="word " * 20))
    viewer = pane(files, columns=80)
    viewer.see("word word")
    viewer.resize(40)
    viewer.glass.columns = 40
    wait_for(lambda: any("word" in line and len(line) < 41 for line in viewer.read().split("\n")))
    append(files, answer("word " * 20), ended())
    wait_for(lambda: " thinking" not in viewer.read())
    assert viewer.glass.text.split().count("word") == 20


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"CLICOLOR": "0"}])
def test_poor_terminals_are_readable(
    files: Files, worker: LiveFile, pane: Callable[..., Pane], environ: dict[str, str]
) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = pane(files, columns=20, **environ)
    for _ in range(5):
        worker.write(Delta(of="a", text="# Head\n\nSome words of an answer.\n\n"))
    viewer.see("answer.")
    append(files, answer("# Head\n\nSome words of an answer.\n\n" * 5), *listed("x", 3), ended())
    text = viewer.see("╰ ok")
    assert text.count("Some words of an\nanswer.") == 5
    escapes = re.findall(rb"\x1b\[[0-9;?]*[A-Za-z]", viewer.raw)
    if environ.get("TERM") == "dumb":
        assert escapes == []
    else:
        assert not [sequence for sequence in escapes if re.search(rb"[\[;](3|4|9|10)\d[;m]", sequence)]


# ---- beside the screen


def test_the_title_has_chat_and_state_while_it_runs_and_is_given_back(
    files: Files, worker: LiveFile, pane: Callable[..., Pane]
) -> None:
    viewer = pane(files)
    viewer.see(files.chat_id)
    worker.begin(thinking())
    name = f"2;cass {files.chat_id}"
    wait_for(lambda: viewer.read() and f"{name} thinking" in viewer.glass.told)
    worker.write(thinking("idle"))
    wait_for(lambda: viewer.read() and viewer.glass.told[-1] == f"{name} idle")
    viewer.press(b"q")
    assert viewer.end() == 0
    assert viewer.glass.told[0] == "22;2t"
    assert "23;2t" in viewer.glass.told[-2:]


def test_turns_are_marked_for_the_terminal(files: Files, pane: Callable[..., Pane]) -> None:
    failed = TurnEnd(turn="u2", answers=("u2",), outcome="failed", error="boom", created_at=now())
    append(files, user("one"), answer("so"), ended(), user("two\nlines", "u2"), failed)
    viewer = pane(files)
    viewer.see("boom")
    append(files, user("three", "u3"))
    viewer.see("three")
    marks = [said for said in viewer.glass.told if said.startswith("133")]
    assert marks == ["133;A", "133;C", "133;D;0", "133;A", "133;C", "133;D;1", "133;A", "133;C"]
    assert b"\x1b]133;A\x1b\\\x1b[1;36m" + "❯ ".encode() in viewer.raw
    assert b"]133" not in run(files, "--color", "always").stdout.encode()


@pytest.mark.parametrize(
    ("notify", "flags", "heard"),
    [
        (None, (), ["bell"]),
        ("off", (), []),
        ("all", (), ["bell", "9;cass {id}: the turn is done"]),
        ("all", ("--notify", "off"), []),
    ],
)
def test_who_looks_elsewhere_is_told_of_the_end_of_a_turn(
    files: Files,
    worker: LiveFile,
    pane: Callable[..., Pane],
    notify: str | None,
    flags: tuple[str, ...],
    heard: list[str],
) -> None:
    if notify:
        files.home.config.write_bytes(jsonl.dump({"notify": notify}))
    append(files, user("one"))
    viewer = pane(files, *flags, VTE_VERSION="")
    viewer.see("❯ one")
    append(files, ended(), user("two", "u2"))  # looked at
    viewer.see("❯ two")
    viewer.press(b"\x1b[O")
    append(files, ended("u2"), user("three", "u3"))
    viewer.see("❯ three")
    viewer.press(b"\x1b[I")
    append(files, ended("u3"), user("four", "u4"))
    viewer.see("❯ four")
    viewer.press(b"q")
    viewer.end()
    said = [said for said in viewer.glass.told if said == "bell" or said.startswith("9;")]
    assert said == [text.format(id=files.chat_id) for text in heard]
    assert ("?1004h" in viewer.glass.told, viewer.glass.told[-1] == "?1004l") == (bool(heard), bool(heard))


def test_who_looks_elsewhere_is_told_once_of_each_approval(
    files: Files, worker: LiveFile, pane: Callable[..., Pane]
) -> None:
    worker.begin(thinking("awaiting-approval"))
    append(files, user("go"), answer("", tool_calls=(ToolCall("x", "shell", {"command": "make"}),), stop="tool_calls"))
    viewer = pane(files)
    viewer.see("❯ go")
    viewer.press(b"\x1b[O")
    request = {"request_id": "r", "tool_call_id": "x", "name": "shell", "arguments": {}, "reason": "it asks"}
    worker.write(ApprovalRequest(**request, sandboxed=False, created_at=now(), of="a"))  # type: ignore[arg-type]
    viewer.see("waits for approval")
    for i in range(3):
        append(files, user(f"more {i}", f"m{i}"))
        viewer.see(f"❯ more {i}")
    assert viewer.glass.told.count("bell") == 1


def test_ctrl_z_gives_the_terminal_back_and_goes_on(files: Files, worker: LiveFile, pane: Callable[..., Pane]) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = pane(files)
    viewer.see(" thinking")
    viewer.process.send_signal(signal.SIGTSTP)  # nobody would wake us: the system lets us go on at once
    wait_for(lambda: viewer.read() and viewer.glass.told.count("?1004h") == 2)
    assert viewer.glass.told.index("?1004l") < viewer.glass.told.index("?1004h", 2)
    append(files, answer("so"), ended())
    viewer.see("so")
    assert viewer.modes_now() != viewer.modes


# ---- frames


def test_frames_are_finished_lines_and_what_grows_and_nothing_when_nothing_does(
    files: Files, worker: LiveFile, framed: Callable[..., Framed]
) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = framed(files)
    worker.write(Delta(of="a", text="One.\n\nTwo"))
    wait_for(lambda: "Two" in viewer.live)
    assert viewer.printed.endswith("\x1b]133;A\x1b\\❯ go\x1b]133;C\x1b\\\n\nOne.\n")
    append(files, answer("One.\n\nTwo."), ended())
    worker.write(thinking("idle"))
    wait_for(lambda: viewer.live == "" and viewer.printed.endswith("\nOne.\n\nTwo.\n"))
    assert all(set(frame) in ({"print", "at"}, {"live"}, {"print", "at", "live"}) for frame in viewer.frames)
    assert all(frame["print"].endswith("\n") for frame in viewer.frames if "print" in frame)


def test_frames_obey_width_and_keys_and_end_with_their_input(files: Files, framed: Callable[..., Framed]) -> None:
    append(files, user("go"), *listed("x", 30), ended())
    viewer = framed(files)
    wait_for(lambda: "more lines (Ctrl-O)" in viewer.printed)
    assert "no worker" not in viewer.printed
    viewer.tell({"width": 30})
    viewer.tell({"key": "C-o"})
    wait_for(lambda: "x-29" in viewer.printed)
    append(files, answer("word " * 30))
    wait_for(lambda: viewer.printed.count("word") == 30)
    assert max(len(line) for line in viewer.printed.split("\n") if "word" in line) <= 30
    assert viewer.process.stdin is not None
    viewer.process.stdin.write(b'not json\n[]\n{"width":"x"}\n')
    viewer.process.send_signal(signal.SIGINT)  # Ctrl-C in the terminal of whoever reads the frames
    viewer.process.stdin.close()
    assert viewer.process.wait(10) == 0


def test_the_first_paint_has_the_width_that_was_told_at_once(files: Files, framed: Callable[..., Framed]) -> None:
    append(files, user("go"), answer("word " * 60))
    viewer = framed(files)
    viewer.tell({"width": 33})
    wait_for(lambda: viewer.printed.count("word") == 60)
    assert max(len(line) for line in viewer.printed.split("\n") if "word" in line) == 29


def test_twenty_thousand_deltas_are_all_shown_once_each(
    files: Files, worker: LiveFile, framed: Callable[..., Framed]
) -> None:
    append(files, user("go"))
    worker.begin(thinking())
    viewer = framed(files)
    wait_for(lambda: "❯ go" in viewer.printed)
    pieces = [f"w{i} " if i % 20 else f"w{i}\n\n" for i in range(20_000)]
    for piece in pieces:
        worker.write(Delta(of="a", text=piece))
    wait_for(lambda: "w19980 " in viewer.printed or "w19999" in viewer.live, 60)
    append(files, answer("".join(pieces)), ended())
    wait_for(lambda: "w19999" in viewer.printed, 60)
    assert re.findall(r"\bw(\d+)", viewer.printed) == [str(i) for i in range(20_000)]
    # What is written is little more than what there is to read: the answer is not drawn over and over.
    assert sum(len(frame.get("live", "")) for frame in viewer.frames) < 20 * len("".join(pieces))


def test_a_reader_that_goes_away_ends_an_idle_follower(files: Files, framed: Callable[..., Framed]) -> None:
    viewer = framed(files)
    wait_for(lambda: "cass" in viewer.printed)
    assert viewer.process.stdout is not None
    viewer.process.stdout.close()
    assert viewer.process.wait(10) == 0


def test_json_follows_both_files(files: Files, worker: LiveFile) -> None:
    append(files, user("go"))
    process = subprocess.Popen(
        argv("cass-view", files.chat_id, "--json", "--live", "--follow", "-n", "1"), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert jsonl.load(process.stdout.readline())["content"] == "go"
        worker.begin(thinking())
        assert jsonl.load(process.stdout.readline())["type"] == "status"
        append(files, answer("so"))
        assert jsonl.load(process.stdout.readline())["content"] == "so"
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_a_viewer_that_was_killed_is_followed_by_one_that_repeats_nothing_and_misses_nothing(
    files: Files, worker: LiveFile, framed: Callable[..., Framed]
) -> None:
    append(files, user("go"), *listed("x", 3))
    worker.begin(thinking())
    worker.write(Notice(level="warning", text="only once"))
    pieces = [f"w{i} " if i % 7 else f"w{i}\n\n" for i in range(401)]
    printed, flags = "", ("--after", "0.0.0")
    for number in range(5):
        viewer = framed(files, *flags)
        for piece in pieces[number * 80 : number * 80 + 80]:
            worker.write(Delta(of="a", text=piece))
        see(viewer, f"w{number * 80 + 75}")
        viewer.process.kill()
        viewer.process.wait()
        printed += viewer.printed
        flags = ("--after", [frame["at"] for frame in viewer.frames if "at" in frame][-1])
        worker.write(Notice(level="info", text=f"between {number}"))
    append(files, answer("".join(pieces)), ended())
    viewer = framed(files, *flags)
    wait_for(lambda: "w400" in viewer.printed)
    printed += viewer.printed
    assert re.findall(r"\bw(\d+)", printed) == [str(i) for i in range(401)]
    for once in ("❯ go", "● ls x", "only once", *(f"between {i}" for i in range(5))):
        assert printed.count(once) == 1, once


def test_a_place_that_no_frame_named_is_an_error(files: Files) -> None:
    done = run(files, "--frames", "--after", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--after x: not a place that a frame named" in done.stderr


# ---- from a time on, and as the person likes it


def test_since_begins_at_a_time(files: Files) -> None:
    old = "2026-01-01T00:00:00.000Z"
    append(files, *[User(id=f"o{i}", content="old " + "x" * 50_000, created_at=old) for i in range(60)])
    append(files, user("newer"), answer("so"))
    text = run(files, "--since", "1h").stdout
    assert "earlier messages are not shown" in text
    assert text.endswith("\n❯ newer\n\nso\n")
    assert "old" not in text
    assert run(files, "--since", "2025-12-31").stdout.count("❯ old") == 60
    assert "❯" not in run(files, "--since", "0s").stdout
    assert [jsonl.load(line)["content"] for line in run(files, "--json", "--since", "1h").stdout.splitlines()] == [
        "newer",
        "so",
    ]
    done = run(files, "--since", "yesterday")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--since yesterday: give a duration" in done.stderr


@pytest.mark.parametrize(
    ("config", "flags", "shows_reasoning", "shown"),
    [
        (None, (), False, 2000),
        (b'{"show_reasoning":true,"ui_tool_result_limit":300}', (), True, 300),
        (b'{"show_reasoning":true}', ("--no-reasoning",), False, 2000),
        (b'{"show_reasoning":false}', ("--reasoning",), True, 2000),
        (b'{"show_reasoning":"yes","ui_tool_result_limit":-1,"notify":3}', (), False, 2000),
        (b"not json", (), False, 2000),
    ],
)
def test_the_persons_preferences_hold_where_no_flag_says_otherwise(
    files: Files, config: bytes | None, flags: tuple[str, ...], shows_reasoning: bool, shown: int
) -> None:
    if config is not None:
        files.home.config.write_bytes(config)
    result = ToolResult(tool_call_id="x", name="ls", content="ÿ" * 5000, ok=True, created_at=now())
    calls = (ToolCall("x", "ls", {}),)
    append(files, user(), answer("so", reasoning="because", stop="tool_calls", tool_calls=calls), result)
    text = run(files, "--width", "9000", *flags).stdout
    assert ("┆ because" in text) == shows_reasoning
    assert text.count("ÿ") == shown
