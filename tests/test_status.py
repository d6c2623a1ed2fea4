"""What a chat is doing: one fold of its two files, whichever was read first, and waiting for it."""

import itertools
import threading

import pytest

from cass import chat, status
from cass.errors import NoWorker, WaitedTooLong
from cass.records import (
    Assistant,
    Record,
    TurnEnd,
    User,
)
from cass.status import Outlook

EARLY, AT, LATE = (f"2026-06-20T14:30:1{n}.000Z" for n in range(3))


def user(id: str) -> User:
    return User(id=id, content=id, created_at=AT)


def end(*ids: str, outcome: str = "done") -> TurnEnd:
    return TurnEnd(turn=ids[0], answers=ids, outcome=outcome, created_at=AT)


def said(text: str, stop: str = "stop") -> Assistant:
    return Assistant(id=text, content=text, created_at=AT, stop=stop)


def outlook(*found: Record) -> Outlook:
    made = Outlook()
    for record in found:
        made.add(record)
    return made


@pytest.mark.parametrize(
    ("found", "open"),
    [
        ([], []),
        ([user("1")], ["1"]),
        ([user("1"), end("1")], []),
        ([user("1"), user("2"), end("1")], ["2"]),
        ([user("1"), user("2"), end("1", "2")], []),
        ([end("9")], []),
    ],
)
def test_a_message_is_open_until_a_turn_that_took_it_in_has_ended(found, open):
    assert list(outlook(*found).open) == open


def test_the_last_answer_is_the_last_one_with_a_text_that_was_not_broken_off():
    assert outlook(said("first"), said(" "), said("cut", stop="error")).last == "first"


# ---- waiting --------------------------------------------------------------------------------------------------------


def test_a_watch_sees_what_comes_after_it_was_made(files):
    held = chat.Chat(files, "read-only")
    held.append(user("1"))
    watch = status.Watch(files)
    thread = threading.Thread(target=lambda: [held.append(r) for r in (end("1"), user("2"), said("a"), end("2"))])
    thread.start()
    assert watch.until(status.answered("2"), 20) == end("2")
    thread.join(20)
    assert watch.outlook.last == "a"
    held.close()


def test_a_watch_gives_up_in_time_and_calls_meanwhile(files):
    calls = itertools.count()
    with pytest.raises(WaitedTooLong, match=f"chat {files.chat_id} goes on"):
        status.Watch(files).until(lambda _: False, 0.5, lambda: next(calls) and None)
    assert next(calls) > 0


def test_whoever_looks_meanwhile_may_end_the_waiting(files):
    def gone() -> None:
        raise NoWorker("gone")

    with pytest.raises(NoWorker):
        status.Watch(files).until(lambda _: False, 20, gone)


def test_a_chat_that_has_nothing_to_do_is_settled(files):
    assert status.settle(files, 1) is None
    held = chat.Chat(files, "read-only")
    for record in (user("1"), end("1", outcome="failed")):
        held.append(record)
    assert status.settle(files, 1) == end("1", outcome="failed")
    held.append(user("2"))
    with pytest.raises(WaitedTooLong):
        status.settle(files, 0.1)
    held.sign("read-only", "the disk is full")
    held.close()
    with pytest.raises(NoWorker, match="is gone: the disk is full"):
        status.settle(files, 1)


def test_every_end_has_its_exit_status():
    assert status.EXITS == {"done": 0, "failed": 1, "blocked": 4, "cancelled": 130}
