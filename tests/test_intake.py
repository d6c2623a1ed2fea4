"""The worker's side of the inbox."""

from cass import inbox
from cass.home import Files
from cass.intake import Intake


def intake(files: Files, said: list[str]) -> Intake:
    files.make()
    return Intake(files, {}, lambda level, text: said.append(text))


def test_a_command_to_be_obeyed_at_once_is_never_served_in_line(files: Files) -> None:
    taken = intake(files, [])
    inbox.put(files, {"type": "stop"})
    assert taken.next() is None
    assert taken.command(is_busy=False) == "stop"
    assert inbox.is_empty(files)


def test_what_was_claimed_and_not_written_comes_first(files: Files) -> None:
    taken = intake(files, [])
    for id in ("1", "2"):
        inbox.put(files, {"type": "message", "content": id}, id)
    name, item = taken.next() or ("", {})
    assert taken.accept(name, item) == "1"
    taken.give_back()
    again = taken.next()
    assert again == (name, item)
    assert taken.accept(*again) == "1"
    taken.written("1")
    assert [waiting.id for waiting in inbox.waiting(files)] == ["2"]


def test_what_is_no_item_is_put_aside_and_what_was_taken_back_is_not_spoken_of(files: Files) -> None:
    said: list[str] = []
    taken = intake(files, said)
    (files.inbox / "0-x").write_text("{")
    assert taken.next() is None
    assert len(said) == 1
    inbox.put(files, {"type": "message", "content": "x"}, "y")
    (waiting,) = inbox.waiting(files)
    assert inbox.take_back(files, waiting.name) is not None
    assert taken.next() is None
    assert len(said) == 1
