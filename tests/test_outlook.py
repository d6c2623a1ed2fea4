"""What of a chat is open."""

import pytest

from cass import outlook
from cass.records import Assistant, TurnEnd, User

AT = "2026-06-20T14:30:11.000Z"


def user(id: str) -> User:
    return User(id=id, content=id, created_at=AT)


def end(*ids: str, outcome: str = "done") -> TurnEnd:
    return TurnEnd(turn=ids[0], answers=ids, outcome=outcome, created_at=AT)


def said(text: str, stop: str = "stop") -> Assistant:
    return Assistant(id=text, content=text, created_at=AT, stop=stop)


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
    assert list(outlook.of(found).open) == open


def test_the_last_answer_is_the_last_one_with_a_text_that_was_not_broken_off():
    assert outlook.of([said("first"), said(" "), said("cut", stop="error")]).last == "first"


def test_every_end_has_its_exit_status():
    assert outlook.EXITS == {"done": 0, "failed": 1, "blocked": 4, "cancelled": 130}
