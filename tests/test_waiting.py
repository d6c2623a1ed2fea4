"""Waiting for what comes in a chat, and for its end."""

import itertools
import threading

import pytest

from cass import chat, records, send, waiting
from cass.errors import NoWorker, WaitedTooLong
from cass.records import Assistant, TurnEnd, User

AT = "2026-06-20T14:30:11.000Z"


def user(id: str) -> User:
    return User(id=id, content=id, created_at=AT)


def end(*ids: str, outcome: str = "done") -> TurnEnd:
    return TurnEnd(turn=ids[0], answers=ids, outcome=outcome, created_at=AT)


def said(text: str) -> Assistant:
    return Assistant(id=text, content=text, created_at=AT)


def test_a_watch_sees_what_comes_after_it_was_made(files):
    held = chat.Chat(files, "read-only")
    held.append(user("1"))
    watch = waiting.Watch(files)
    thread = threading.Thread(target=lambda: [held.append(r) for r in (end("1"), user("2"), said("a"), end("2"))])
    thread.start()
    assert watch.until(waiting.answered("2"), 20) == end("2")
    thread.join(20)
    assert watch.outlook.last == "a"
    held.close()


def test_a_watch_gives_up_in_time_and_calls_meanwhile(files):
    calls = itertools.count()
    with pytest.raises(WaitedTooLong, match=f"chat {files.chat_id} goes on"):
        waiting.Watch(files).until(lambda _: False, 0.5, lambda: next(calls) and None)
    assert next(calls) > 0


def test_whoever_looks_meanwhile_may_end_the_waiting(files):
    def gone() -> None:
        raise NoWorker("gone")

    with pytest.raises(NoWorker):
        waiting.Watch(files).until(lambda _: False, 20, gone)


def test_a_chat_that_has_nothing_to_do_is_settled(files):
    assert waiting.settle(files, 1) is None
    held = chat.Chat(files, "read-only")
    for record in (user("1"), end("1", outcome="failed")):
        held.append(record)
    assert waiting.settle(files, 1) == end("1", outcome="failed")
    held.append(user("2"))
    with pytest.raises(WaitedTooLong):
        waiting.settle(files, 0.1)
    held.sign("read-only", "the disk is full")
    held.close()
    with pytest.raises(NoWorker, match="is gone: the disk is full"):
        waiting.settle(files, 1)


def test_who_waits_for_what_was_just_sent_hears_of_its_turn(files):
    """It goes from the inbox into the chat while both are looked at, which takes longer for a chat that is."""
    said = Assistant(id="a", content="word " * 50, created_at="2026-06-20T14:30:12.000Z")
    with open(files.chat, "ab") as file:
        file.write(records.encode(said) * 2000)
    for _ in range(10):
        id = send.send(files, "hello")
        end = waiting.settle(files, 20)
        assert end is not None
        assert id in end.answers
