"""The composer's keys, on a pipe, at a chat whose worker the test plays: it holds the lock and writes the files."""

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from cass import commands, decisions, inbox, jsonl
from cass.chat import Chat, LiveFile
from cass.composer import history
from cass.composer.compose import Composer
from cass.composer.question import QUIET_S
from cass.composer.seat import Seat
from cass.home import Files
from cass.records import Approval, ApprovalRequest, Assistant, Status, TurnEnd, Usage, User
from tests import drawn

LEAVE = "\x04"


class Worker:
    """A worker that does what the test says."""

    def __init__(self, files: Files) -> None:
        self.chat = Chat(files, "read-only")
        self.live = LiveFile(files)
        self.files = files
        self.asked: list[dict[str, Any]] = []
        self.refusal = ""
        self.listening: socket.socket | None = None
        self.live.begin(self.status("idle"))

    @staticmethod
    def status(state: str, mode: str = "read-only") -> Status:
        return Status(state=state, mode=mode, provider="demo", model="demo", created_at=jsonl.now())

    def is_now(self, state: str, mode: str = "read-only") -> None:
        self.live.write(self.status(state, mode))

    def asks(self, id: str = "r1", **more: Any) -> ApprovalRequest:
        fields: dict[str, Any] = {"name": "shell", "arguments": {"command": "make"}, "reason": "it is asked"}
        fields |= {"sandboxed": False, "created_at": jsonl.now(), "tool_call_id": f"call-{id}", "rule": "shell(make)"}
        request = ApprovalRequest(request_id=id, **(fields | more))
        self.is_now("awaiting-approval")
        self.live.write(request)
        return request

    def takes(self) -> list[dict[str, Any]]:
        """Claim what waits; return the items."""
        found = []
        for waiting in inbox.waiting(self.files):
            assert inbox.claim(self.files, waiting.name)
            found.append(inbox.taken(self.files, waiting.name) | {"id": waiting.id})
            inbox.done(self.files, waiting.name)
        return found

    def appends(self, record: Any) -> None:
        self.chat.append(record)

    def decides(self) -> None:
        """Answer at the socket, on a thread of its own, for as long as the test runs."""
        listening = self.listening = decisions.listen(self.files)
        listening.setblocking(True)
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    self.asked.append(jsonl.load(connection.makefile("rb").readline()))
                    answer = {"ok": False, "error": self.refusal} if self.refusal else {"ok": True}
                    connection.sendall(jsonl.dump(answer) + b"\n")

        threading.Thread(target=serve, daemon=True).start()


@pytest.fixture
def worker(files: Files) -> Iterator[Worker]:
    played = Worker(files)
    yield played
    if played.listening:
        played.listening.shutdown(socket.SHUT_RDWR)
        played.listening.close()
    played.live.close()
    played.chat.close()


class Desk:
    """A composer and the keys to it."""

    def __init__(self, composer: Composer, pipe: Any) -> None:
        self.composer = composer
        self._pipe = pipe

    async def press(self, text: str) -> None:
        """Send keys, and wait until they are taken."""
        await asyncio.to_thread(self._pipe.send_text, text)  # a pipe takes 64 KiB, then waits for its reader
        await asyncio.sleep(0.001)
        processor = self.composer.console.app.key_processor
        await self.until(lambda: not processor.input_queue)

    async def types(self, *pieces: str) -> None:
        """Send pieces one after the other, each alone, as a person does."""
        for piece in pieces:
            await self.press(piece)
            await asyncio.sleep(0.03)

    async def until(self, found: Callable[[], Any], what: str = "") -> Any:
        for _ in range(2000):
            if answer := found():
                return answer
            await asyncio.sleep(0.005)
        raise AssertionError(f"waited in vain {what}; the draft is {self.draft!r}, the hint {self.hint!r}")

    @property
    def draft(self) -> str:
        return self.composer.console.draft.text

    @property
    def hint(self) -> str:
        return "".join(text for _, text in self.composer.help(200, True))

    @property
    def status(self) -> str:
        return "".join(text for _, text in self.composer.status(200))

    @property
    def question(self) -> str:
        return "".join(text for _, text in self.composer.question())


def compose(files: Files, play: Callable[[Desk], Awaitable[None]], early: bytes = b"") -> int:
    """Run a composer while `play` sits at it; leave it afterwards if it is still there."""

    async def main() -> int:
        with create_pipe_input() as pipe:
            composer = Composer(files, layout="none", input=pipe, output=DummyOutput())
            running = asyncio.create_task(composer.run(early))
            desk = Desk(composer, pipe)
            await desk.until(lambda: composer.seat.is_running and composer.seat.standing.state)
            await play(desk)
            composer.console.leave(0)
            return await running

    return asyncio.run(main())


def test_enter_sends_the_draft_and_empties_it(files, worker):
    async def play(desk):
        await desk.types("hello", "\r")
        assert desk.draft == ""
        (item,) = worker.takes()
        assert (item["content"], item["ask"], item["origin"]["by"]) == ("hello", True, "composer")

    compose(files, play)
    assert history.load(files.home.history, "/elsewhere") == ["hello"]


def test_an_empty_paste_is_an_image_on_the_clipboard(files, worker, tmp_path, monkeypatch):
    (tmp_path / "clip").write_bytes(drawn.png())
    (tmp_path / "wl-paste").write_text(f"#!/bin/sh\nexec cat {tmp_path}/clip\n")
    (tmp_path / "wl-paste").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")

    async def play(desk):
        await desk.types("look", "\x1b[200~\x1b[201~")
        await desk.until(lambda: "[image " in desk.draft)
        await desk.types("\r")
        (item,) = worker.takes()
        assert item["content"] == f"look [image {item['attachments'][0]['sha256'][:8]}] "

    compose(files, play)


@pytest.mark.parametrize("blank", ["", "   ", "\n\n", " \n\t"])
def test_enter_on_blank_input_does_nothing(files, worker, blank):
    async def play(desk):
        await desk.types(f"\x1b[200~{blank}\x1b[201~", " ", "\r")
        assert worker.takes() == []

    compose(files, play)


@pytest.mark.parametrize(
    "key", ["\n", "\x1b\r", "\x1b[13;2u", "\x1b[27;2;13~", "\x1b[13;5u", "\x1b[27;5;13~", "\x1b[27;3;13~"]
)
def test_every_newline_key_makes_a_newline_and_none_sends(files, worker, key):
    async def play(desk):
        await desk.types("one", key, "two")
        assert desk.draft == "one\ntwo"
        await desk.types("\r")
        assert [item["content"] for item in worker.takes()] == ["one\ntwo"]

    compose(files, play)


PASTE = "line 1\r\nline 2\r\n\tline 3"


@pytest.mark.parametrize("cut", range(len("\x1b[201~") + 1))
def test_a_bracketed_paste_is_one_message_wherever_it_is_cut(files, worker, cut):
    end = "\x1b[201~"

    async def play(desk):
        await desk.types(f"\x1b[200~{PASTE}" + end[:cut], end[cut:])
        await desk.until(lambda: desk.draft == "line 1\nline 2\n\tline 3")
        assert worker.takes() == []
        await asyncio.sleep(0.06)
        await desk.types("\r")
        assert [item["content"] for item in worker.takes()] == ["line 1\nline 2\n\tline 3"]

    compose(files, play)


def test_a_paste_that_holds_the_end_of_a_paste_never_sends(files, worker):
    async def play(desk):
        await desk.press("\x1b[200~harmless\x1b[201~rm -rf\r\x1b[201~")
        await asyncio.sleep(0.1)
        assert worker.takes() == []
        assert desk.draft.startswith("harmlessrm -rf\n")

    compose(files, play)


def test_a_paste_without_brackets_is_not_sent_line_by_line(files, worker):
    async def play(desk):
        await desk.press("first\rsecond\rthird\r")
        assert [item["content"] for item in worker.takes()] == ["first\nsecond\nthird"]

    compose(files, play)


def test_a_paste_of_a_megabyte_is_taken_whole(files, worker):
    text = "".join(f"{number:09d}\n" for number in range(100_000))

    async def play(desk):
        await desk.press(f"\x1b[200~{text}\x1b[201~")
        await desk.until(lambda: desk.draft)
        await asyncio.sleep(0.1)
        await desk.press("\r")
        await desk.until(lambda: inbox.waiting(files))
        assert [item["content"] for item in worker.takes()] == [text]

    compose(files, play)


def test_a_draft_survives_the_composer(files, worker):
    async def play(desk):
        await desk.types("half a thought")
        await desk.until(lambda: files.draft.exists() and files.draft.read_text() == "half a thought")

    async def again(desk):
        assert desk.draft == "half a thought"
        await desk.types(" and more", "\r")
        assert not files.draft.exists()

    compose(files, play)
    compose(files, again)
    assert [item["content"] for item in worker.takes()] == ["half a thought and more"]


def test_ctrl_c_while_idle_clears_then_says_so_and_a_second_one_leaves(files, worker):
    async def play(desk):
        await desk.types("some text", "\x03")
        assert (desk.draft, desk.hint) == ("", "Ctrl-C again to leave")
        await desk.press("\x03")
        await desk.until(lambda: not desk.composer.console.app.is_running)

    assert compose(files, play) == 0


def test_a_late_second_ctrl_c_only_clears_again(files, worker):
    async def play(desk):
        await desk.types("\x03")
        await desk.until(lambda: desk.hint != "Ctrl-C again to leave")
        await desk.types("text", "\x03")
        assert (desk.draft, desk.hint) == ("", "Ctrl-C again to leave")
        assert desk.composer.console.app.is_running

    compose(files, play)


@pytest.mark.parametrize("keys", [("x",), ("\x1b[O", "x"), ("\x1b[A",), ("y", "\x7f")])
def test_any_key_between_two_ctrl_c_disarms_the_first(files, worker, keys):
    async def play(desk):
        await desk.types("\x03")
        assert desk.hint == "Ctrl-C again to leave"
        await desk.press("".join(keys))
        await desk.until(lambda: desk.hint != "Ctrl-C again to leave")
        await desk.types("\x03")
        assert desk.composer.console.app.is_running
        assert desk.hint == "Ctrl-C again to leave"
        await desk.types("\x1b[O", "\x1b[I", "\x03")  # what the terminal tells is no key
        await desk.until(lambda: not desk.composer.console.app.is_running)

    assert compose(files, play) == 0


@pytest.mark.parametrize("report", ["\x1b[I", "\x1b[O", "\x1b[O\x1b[I"])
def test_enter_in_one_read_with_a_focus_report_sends(files, worker, report):
    async def play(desk):
        await desk.types("hello")
        await desk.press("\r" + report)
        await desk.until(lambda: inbox.waiting(files))
        await desk.types("again")
        await desk.press(report + "\r")
        await desk.until(lambda: len(inbox.waiting(files)) == 2)
        assert [item["content"] for item in worker.takes()] == ["hello", "again"]

    compose(files, play)


def test_what_was_wrong_with_a_command_goes_with_the_next_key(files, worker):
    async def play(desk):
        await desk.types("/frobnicate", "\r")
        assert "no command /frobnicate" in desk.hint
        await desk.types("\x7f")
        assert "no command" not in desk.hint
        assert desk.draft == "/frobnicat"

    compose(files, play)


def test_ctrl_d_leaves_on_an_empty_line_only(files, worker):
    async def play(desk):
        await desk.types("text", LEAVE)
        assert desk.composer.console.app.is_running
        await desk.types("\x15", LEAVE)
        await desk.until(lambda: not desk.composer.console.app.is_running)

    assert compose(files, play) == 0


@pytest.mark.parametrize("key", ["\x03", "\x1b"])
def test_interrupting_takes_waiting_messages_back_first(files, worker, key):
    async def play(desk):
        worker.is_now("thinking")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await desk.types("one", "\r", "two", "\r", "draft")
        assert "2 waiting" in desk.status
        await desk.types(key)
        await desk.until(lambda: desk.draft == "one\n\ntwo\n\ndraft")
        assert [item["type"] for item in worker.takes()] == ["cancel"]

    compose(files, play)


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_waiting_commands_are_shown_and_come_back_as_they_are_typed(files, worker, key):
    async def play(desk):
        worker.is_now("thinking")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        for line in ("/model ollama llama3:8b", "and then", "/compact the parser", "/clear"):
            await desk.types(line, "\r")
        shown = "".join(text for _, text in desk.composer.waiting())
        assert shown.startswith("waiting 1: /model ollama llama3:8b\nwaiting 2: and then\n… and 2 more")
        assert "4 waiting" in desk.status
        await desk.types("\x1b[A")
        assert desk.draft == "/clear"
        await desk.types("\x15", key)
        await desk.until(lambda: desk.draft == "/model ollama llama3:8b\n\nand then\n\n/compact the parser")
        assert [item["type"] for item in worker.takes()] == ["cancel"]

    compose(files, play)


def test_interrupting_leaves_other_peoples_messages_waiting(files, worker):
    async def play(desk):
        inbox.put(files, {"type": "message", "content": "from cron", "ask": False, "origin": {"by": "send"}})
        worker.is_now("running")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await desk.types("\x1b")
        await desk.until(lambda: len(inbox.waiting(files)) == 2)
        assert [item.get("content", item["type"]) for item in worker.takes()] == ["from cron", "cancel"]

    compose(files, play)


def test_up_on_an_empty_line_takes_the_newest_waiting_message_back_else_the_last_one_sent(files, worker):
    async def play(desk):
        await desk.types("one", "\r", "two", "\r", "\x1b[A")
        assert desk.draft == "two"
        assert [item["content"] for item in worker.takes()] == ["one"]
        await desk.types("\x15", "\x1b[A")
        assert desk.draft in ("two", "one")

    compose(files, play)


def test_ctrl_s_steers(files, worker):
    async def play(desk):
        worker.is_now("running")
        await desk.types("not that file", "\x13")
        assert [(item["content"], item["steer"]) for item in worker.takes()] == [("not that file", True)]

    compose(files, play)


def test_the_next_mode_is_asked_for_while_idle_only(files, worker):
    worker.decides()

    async def play(desk):
        await desk.types("\x1b[Z")
        await desk.until(lambda: worker.asked)
        assert worker.asked[0] == {"do": "mode", "mode": "workspace-edit", "program": "cass-compose"}
        worker.is_now("thinking", "workspace-edit")
        await desk.until(lambda: "workspace-edit" in desk.status)
        await desk.types("\x1b[Z")
        assert desk.hint == "mode can be changed when idle"
        assert len(worker.asked) == 1

    compose(files, play)


async def quiet(desk):
    await desk.until(desk.composer.asking.takes_answers)


def test_an_approval_shows_all_that_will_happen_and_y_allows_it(files, worker):
    worker.decides()
    command = "echo \x1b[2Jsafe\rrm -rf ~ \u202e\nsecond line"

    async def play(desk):
        request = worker.asks(arguments={"command": command}, reason="workspace-edit mode asks before every command")
        await quiet(desk)
        assert "␛[2Jsafe␍rm -rf ~ ⟨U+202E⟩\n  second line" in desk.question
        assert "workspace-edit mode asks before every command" in desk.question
        assert "not sandboxed: this command can do anything you can" in desk.question
        assert "\x1b" not in desk.question
        await desk.types("y")
        await desk.until(lambda: worker.asked)
        seen = decisions.digest(request)
        expected = {"do": "approve", "request_id": "r1", "digest": seen, "program": "cass-compose"}
        assert worker.asked == [expected]
        assert desk.draft == ""

    compose(files, play)


def test_a_denial_takes_a_reason(files, worker):
    worker.decides()

    async def play(desk):
        await desk.types("my draft")
        worker.asks()
        await quiet(desk)
        await desk.types("n", "use the tests", "\r")
        await desk.until(lambda: worker.asked)
        assert worker.asked[0] | {"program": ""} == {
            "do": "deny",
            "request_id": "r1",
            "reason": "use the tests",
            "program": "",
        }
        assert desk.draft == "my draft"

    compose(files, play)


def test_always_shows_the_rule_first(files, worker):
    worker.decides()

    async def play(desk):
        worker.asks()
        await quiet(desk)
        await desk.types("a")
        assert "shell(make)" in desk.question
        assert worker.asked == []
        await asyncio.sleep(QUIET_S)
        await desk.types("y")
        await desk.until(lambda: worker.asked)
        assert worker.asked[0]["always"] is True

    compose(files, play)


def test_keys_go_into_the_draft_while_a_person_is_typing(files, worker):
    worker.decides()

    async def play(desk):
        worker.asks()
        await desk.until(lambda: desk.question)
        await desk.types("y", "e", "s")
        assert desk.draft == "yes"
        await quiet(desk)
        await desk.types("y")
        await desk.until(lambda: worker.asked)
        assert desk.draft == "yes"

    compose(files, play)


def test_a_question_answered_elsewhere_closes_and_says_by_whom(files, worker):
    async def play(desk):
        request = worker.asks()
        await quiet(desk)
        await desk.types("n", "a reason begun")
        call, now = request.tool_call_id, jsonl.now()
        worker.appends(
            Approval(
                request_id="r1", tool_call_id=call, decision="approved", by="ann by cass approve, pid 7", created_at=now
            )
        )
        await desk.until(lambda: not desk.question)
        assert desk.hint == "approved elsewhere, by ann with cass approve"
        await desk.types("typed on")
        assert desk.draft == "typed on"

    compose(files, play)


def test_a_refused_answer_is_said_and_the_question_stands_again(files, worker):
    worker.decides()
    worker.refusal = "ann was first"

    async def play(desk):
        worker.asks()
        await quiet(desk)
        await desk.types("y")
        await desk.until(lambda: desk.hint == "ann was first")
        await quiet(desk)

    compose(files, play)


def test_the_text_of_a_failed_turn_comes_back_into_an_empty_draft(files, worker):
    async def play(desk):
        await desk.types("try this", "\r")
        (item,) = worker.takes()
        now = jsonl.now()
        worker.appends(User(id=item["id"], content=item["content"], origin=item["origin"], created_at=now))
        worker.appends(
            TurnEnd(turn=item["id"], answers=(item["id"],), outcome="failed", error="HTTP 500", created_at=now)
        )
        await desk.until(lambda: desk.draft == "try this")

    compose(files, play)


@pytest.mark.parametrize("mine", [True, False])
def test_a_failed_turn_of_another_composer_gives_nothing_back(files, worker, mine):
    async def play(desk):
        now = jsonl.now()
        if mine:
            await desk.types("x", "\r", "a new thought")
            id = worker.takes()[0]["id"]
        else:
            id = "other"
        worker.appends(User(id=id, content="x", created_at=now))
        worker.appends(TurnEnd(turn=id, answers=(id,), outcome="failed", error="no", created_at=now))
        worker.is_now("thinking")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await rests(desk, worker)
        assert desk.draft == ("a new thought" if mine else "")

    compose(files, play)


async def rests(desk, worker):
    """Until the composer has looked at the chat with the keyboard quiet."""
    await desk.until(desk.composer.asking.is_quiet)
    worker.is_now("idle")
    await desk.until(lambda: not desk.composer.seat.standing.is_busy)


def fails(worker, item):
    now = jsonl.now()
    worker.appends(User(id=item["id"], content=item["content"], origin=item["origin"], created_at=now))
    worker.appends(TurnEnd(turn=item["id"], answers=(item["id"],), outcome="failed", error="killed", created_at=now))
    worker.is_now("thinking")


def test_a_failed_turn_gives_nothing_back_to_who_has_said_more_since(files, worker):
    async def play(desk):
        await desk.types("sleep again", "\r", "write notes", "\r")
        first, later = worker.takes()
        fails(worker, first)
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await rests(desk, worker)
        assert desk.draft == ""
        fails(worker, later)
        await desk.until(lambda: desk.draft == "write notes")

    compose(files, play)


def test_what_failed_is_not_put_before_what_is_typed_just_then(files, worker):
    async def play(desk):
        await desk.types("sleep again", "\r")
        fails(worker, worker.takes()[0])
        while not desk.composer.seat.standing.is_busy:
            await desk.types("\x1b[D")
        await desk.types("write notes")
        await rests(desk, worker)
        assert desk.draft == "write notes"

    compose(files, play)


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("/clear", {"type": "clear"}),
        ("/compact", {"type": "compact"}),
        ("/compact the parser", {"type": "compact", "focus": "the parser"}),
        ("/model gpt-5", {"type": "model", "model": "gpt-5"}),
        ("/model ollama llama3:8b", {"type": "model", "provider": "ollama", "model": "llama3:8b"}),
        ("/effort high", {"type": "effort", "effort": "high"}),
    ],
)
def test_a_command_in_line_goes_into_the_inbox(files, worker, line, item):
    async def play(desk):
        await desk.types(line, "\r")
        (found,) = worker.takes()
        assert found == item | {"id": found["id"], "origin": {"by": "composer", "composer": desk.composer.seat.id}}
        assert desk.draft == ""

    compose(files, play)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/frobnicate", "no command /frobnicate"),
        ("/clear everything", "takes no argument"),
        ("/mode godlike", "no mode godlike"),
        ("/effort", "needs a level"),
        ("/resume nowhere", "no chat 'nowhere'"),
        ("/new", "leave, then: cass --cwd"),
    ],
)
def test_a_command_that_cannot_be_done_says_why_and_stays_in_the_draft(files, worker, line, said):
    async def play(desk):
        await desk.types(line, "\r")
        assert said in desk.hint
        assert desk.draft == line
        assert worker.takes() == []

    compose(files, play)


@pytest.mark.parametrize(
    ("line", "said"),
    [("/queue", "nothing waits"), ("/copy", "no answer to copy"), ("/resume", "no other chat of this directory")],
)
def test_a_command_that_finds_nothing_to_do_says_so_and_is_over(files, worker, line, said):
    async def play(desk):
        await desk.types(line, "\r")
        assert said in desk.hint
        assert desk.draft == ""

    compose(files, play)


@pytest.mark.parametrize(("leaves", "chosen"), [("\r", ["two"]), ("\x1b", [])])
def test_what_is_typed_behind_the_key_that_leaves_a_list_goes_into_the_draft(files, worker, leaves, chosen):
    async def play(desk):
        taken, choices = [], ["one", "two"]
        desk.composer.pick("choose", choices, lambda n: taken.append(choices[n]), 1)
        await desk.until(lambda: desk.composer.console.app._running_in_terminal)
        await asyncio.to_thread(desk._pipe.send_text, leaves + "next")
        await desk.until(lambda: desk.draft == "next")
        assert taken == chosen

    compose(files, play)


def test_text_that_begins_with_a_path_is_a_message(files, worker):
    async def play(desk):
        await desk.types("/usr/bin/env is what?", "\r")
        assert [item["content"] for item in worker.takes()] == ["/usr/bin/env is what?"]

    compose(files, play)


def test_a_template_is_offered_and_sent_filled_and_what_has_no_value_is_said(files, worker, home):
    (home.root / "prompts").mkdir()
    (home.root / "prompts" / "fix-it.md").write_text("---\ndescription: Fix a thing\n---\nFix $1 in $2.\n")

    async def play(desk):
        await desk.press("/fix-")
        await desk.press("\t")
        assert await desk.until(lambda: desk.draft == "/fix-it")
        await desk.press(" one\r")
        await desk.until(lambda: "no value for $2; usage: /fix-it ARG1 ARG2" in desk.hint)
        await desk.press(" 'a b'\r")
        await desk.until(lambda: inbox.waiting(files))
        assert [item["content"] for item in worker.takes()] == ["Fix one in a b."]

    assert compose(files, play) == 0


def test_tab_completes_commands_and_paths(files, worker, workspace):
    (workspace / "app").mkdir()

    async def play(desk):
        await desk.types("/tok", "\t")
        await desk.until(lambda: desk.draft == "/tokens")
        await desk.types("\x1b", "\x15", "see @not")
        await desk.until(lambda: desk.composer.console.draft.complete_state, "the workspace is looked through")
        await desk.types("\t")
        await desk.until(lambda: desk.draft == "see @notes.txt")

    compose(files, play)


def test_tab_in_one_breath_with_what_it_completes_completes_it(files, worker):
    async def play(desk):
        await desk.press("/hel\t")
        await desk.until(lambda: desk.draft == "/help")
        await desk.types("\x15")
        await desk.press("see @not\t")
        await desk.until(lambda: desk.draft == "see @notes.txt")

    compose(files, play)


def test_a_question_without_an_answer_yet_does_not_stay_in_the_draft(files, worker):
    async def play(desk):
        await desk.types("/tokens", "\r")
        await desk.until(lambda: desk.draft == "")
        assert worker.takes() == []

    compose(files, play)


def test_tokens_and_stats_say_what_was_used_and_what_it_has_cost(files, worker):
    now, usage = jsonl.now(), Usage(1_000, 50, 900, cost=0.0125)

    async def play(desk):
        said: list[str] = []
        desk.composer.console.print = said.append
        worker.appends(Assistant(id="a", content="x", created_at=now, model="m", usage=usage))
        worker.appends(TurnEnd(turn="u", answers=("u",), outcome="done", created_at=now, usage=usage, spent=0.5))
        await desk.until(lambda: desk.composer.seat.standing.cost == 0.5)
        await desk.types("/tokens", "\r")
        await desk.until(lambda: "the chat" in "".join(said))
        for words in ("1,000 tokens (900 from the cache)", "cost      $0.0125, at list prices", "$0.5000 so far"):
            assert words in "".join(said)
        await desk.types("/stats", "\r")
        await desk.until(lambda: "all chats: cass stats" in "".join(said))
        assert "1 chat, 1 request: 1k tokens in (90% from the cache), 50 out, $0.0125" in "".join(said)
        await desk.types("/mcp", "\r")
        await desk.until(lambda: "no MCP servers; add one with: cass mcp add" in "".join(said))

    compose(files, play)


def test_status_and_tokens_name_what_is_a_guess(files, worker):
    now, usage = jsonl.now(), Usage(1_000, 50)

    async def play(desk):
        said: list[str] = []
        desk.composer.console.print = said.append
        worker.appends(TurnEnd(turn="u", answers=("u",), outcome="done", created_at=now, usage=usage))
        worker.live.write(replace(worker.status("idle"), used=1_234, limit=32_768, assumed=True))
        await desk.until(lambda: desk.composer.seat.standing.used == 1_234)
        for command in ("/status", "/tokens"):
            said.clear()
            await desk.types(command, "\r")
            await desk.until(lambda: "estimated" in "".join(said))
            assert "1,234 of 32,768 tokens (assumed: nothing is known" in "".join(said)

    compose(files, play)


def test_an_exit_command_leaves(files, worker):
    async def play(desk):
        await desk.types("/exit", "\r")
        await desk.until(lambda: not desk.composer.console.app.is_running)

    assert compose(files, play) == 0


def test_the_table_of_keys_is_what_is_bound(files, worker):
    async def play(desk):
        bound = {
            tuple(str(getattr(k, "value", k)) for k in b.keys) for b in desk.composer.console.app.key_bindings.bindings
        }
        names = {"enter": "c-m", "tab": "c-i"}
        for key in commands.keys_at(commands.At.DRAFT) + commands.keys_at(commands.At.QUESTION):
            for press in key.presses:
                assert tuple(names.get(name, name) for name in press) in bound, key.name

    compose(files, play)


def test_a_long_paste_is_one_marker_on_the_screen_and_whole_everywhere_else(files, worker):
    text = "".join(f"{number:09d}\n" for number in range(10_000))

    async def play(desk):
        await desk.types("before ", f"\x1b[200~{text}\x1b[201~", "after")
        await desk.until(lambda: len(desk.draft) == len("before X") + len("after"))
        assert desk.composer.pastes.shown(desk.draft[7]) == "[pasted 10,000 lines]"
        await desk.until(lambda: files.draft.exists() and files.draft.read_text() == f"before {text}after")
        await desk.types("\r")
        assert [item["content"] for item in worker.takes()] == [f"before {text}after"]
        assert history.load(files.home.history, "/elsewhere") == [f"before {text}after"]
        await desk.types("\x1b[A", "!", "\r")
        assert [item["content"] for item in worker.takes()] == [f"before {text}after!"]

    compose(files, play)


def test_backspace_takes_a_whole_paste_away(files, worker):
    async def play(desk):
        await desk.types("x", "\x1b[200~" + "line\n" * 100 + "\x1b[201~", "\x7f")
        assert desk.draft == "x"

    compose(files, play)


def test_vi_keys_interrupt_from_normal_mode_only(files, worker):
    files.home.config.write_text('{"editing": "vi"}')

    async def play(desk):
        worker.is_now("running")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await desk.types("one two", "\x1b")
        await asyncio.sleep(0.15)
        assert worker.takes() == []
        await desk.types("0", "x", "i", "O", "\x1b")
        await asyncio.sleep(0.15)
        assert desk.draft == "One two"
        assert worker.takes() == []
        await desk.types("\x1b")
        await desk.until(lambda: inbox.waiting(files))
        assert [item["type"] for item in worker.takes()] == ["cancel"]
        assert desk.draft == "One two"

    compose(files, play)


def test_vi_keys_still_send_and_answer(files, worker):
    files.home.config.write_text('{"editing": "vi"}')
    worker.decides()

    async def play(desk):
        await desk.types("hello", "\r")
        assert [item["content"] for item in worker.takes()] == ["hello"]
        worker.asks()
        await quiet(desk)
        await desk.types("y")
        await desk.until(lambda: worker.asked)
        assert desk.draft == ""

    compose(files, play)


def test_esc_twice_does_no_harm(files, worker):
    async def play(desk):
        await desk.types("a draft", "\x1b", "\x1b")
        assert desk.draft == "a draft"
        worker.is_now("thinking")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await desk.types("\x1b")
        await desk.until(lambda: inbox.waiting(files))
        worker.takes()
        worker.is_now("idle")
        await desk.until(lambda: not desk.composer.seat.standing.is_busy)
        await desk.types("\x1b")
        await asyncio.sleep(0.1)  # at once it would be Alt-Enter
        await desk.types("\r")
        assert [item.get("content") for item in worker.takes()] == ["a draft"]

    compose(files, play)


def test_alt_t_goes_through_the_efforts(files, worker):
    async def play(desk):
        efforts = []
        for _ in range(5):
            await desk.types("\x1bt")
            await desk.until(lambda: inbox.waiting(files))
            efforts += [item["effort"] for item in worker.takes()]
        assert efforts == ["low", "medium", "high", "off", "low"]

    compose(files, play)


def test_going_through_the_efforts_while_a_turn_runs_leaves_one_of_them_waiting(files, worker):
    async def play(desk):
        worker.is_now("thinking")
        await desk.until(lambda: desk.composer.seat.standing.is_busy)
        await desk.types("\x1bt", "\x1bt", "\x1bt")
        await desk.until(lambda: "reasoning effort: high" in desk.hint)
        assert [item["effort"] for item in worker.takes()] == ["high"]

    compose(files, play)


@pytest.mark.parametrize("typed", ["/save", "/sav"])
def test_an_answer_of_the_composer_stands_under_what_was_asked(files, worker, typed):
    async def play(desk):
        said = []
        desk.composer.console.print = said.append
        await desk.types(typed, "\r")
        assert [" ".join(text.split()) for text in said] == [f"❯ /save saved all along: {files.chat}"]

    compose(files, play)


def test_a_chat_is_exported_from_its_composer(files, worker, workspace):
    async def play(desk):
        said = []
        desk.composer.console.print = said.append
        await desk.types("/export notes.html", "\r")
        await desk.until(lambda: said)
        written = f"❯ /export notes.html written to {workspace}/notes.html"
        assert [" ".join(text.split()) for text in said] == [written]
        assert (workspace / "notes.html").read_text().startswith("<!doctype html>")
        await desk.types("/export nowhere/notes.html", "\r")
        await desk.until(lambda: "No such file" in desk.hint)

    compose(files, play)


def test_what_the_running_turn_is_to_hear_stands_before_what_waits_for_the_next(files):
    seat = Seat(files)
    seat.send("after it")
    seat.send("be short", steer=True)
    seat.order("compact")
    assert seat.waiting() == ["at once: be short", "after it", "/compact"]
    assert seat.take_one(seat.waiting_names()[0]) == ["be short"]
    assert seat.waiting() == ["after it", "/compact"]
    seat.close()


def test_what_an_idle_worker_is_just_taking_is_not_shown_as_waiting(files, worker):
    async def play(desk):
        await desk.types("hello", "\r")
        assert (desk.composer.seat.waiting(60), desk.composer.seat.waiting()) == ([], ["hello"])
        await desk.until(lambda: "waiting 1: hello" in str(desk.composer.waiting()), "nobody takes it")
        assert "1 waiting" in desk.status

    compose(files, play)


def test_what_a_worker_that_is_gone_left_behind_is_not_shown(files):
    gone = Worker(files)
    gone.is_now("thinking", "full-access")
    gone.live.close()
    gone.chat.close()
    seat = Seat(files)
    seat.look()
    assert (seat.standing.state, seat.standing.mode, seat.standing.model) == ("", "", "")
    seat.close()


def test_a_focus_report_is_no_text(files, worker):
    async def play(desk):
        await desk.types("a", "\x1b[O", "b")
        assert not desk.composer.attention.is_focused
        await desk.types("\x1b[I", "c")
        assert desk.composer.attention.is_focused
        assert desk.draft == "abc"

    compose(files, play)


def test_a_long_question_hides_nothing_and_the_live_block_gives_way(files, worker):
    async def play(desk):
        worker.asks(arguments={"command": "\n".join(f"line {n}" for n in range(100))})
        await quiet(desk)
        assert "PageUp and PageDown scroll" in desk.question
        seen = desk.question
        for _ in range(12):
            await desk.types("\x1b[6~")
            seen += desk.question
        assert all(f"line {n}\n" in seen for n in range(100))
        assert desk.composer.live() == ""

    compose(files, play)
