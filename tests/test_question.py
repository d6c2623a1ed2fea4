import pytest

from cass.composer.question import QUIET_S, Question, is_unbounded, subject
from cass.records import ApprovalRequest


def request(**more):
    fields = {"request_id": "r", "tool_call_id": "c", "name": "shell", "arguments": {"command": "make"}}
    return ApprovalRequest(**(fields | {"reason": "asked", "sandboxed": False, "created_at": "", "rule": None} | more))


def text(question, takes_keys=True, rows=20):
    return "".join(piece for _, piece in question.fragments(takes_keys, rows))


@pytest.mark.parametrize(
    ("shown_at", "last_key", "now", "takes"),
    [(0, 0, QUIET_S, True), (0, 0, 0.69, False), (0, 5, 5.5, False), (0, 5, 5.7, True), (9, 0, 9.1, False)],
)
def test_keys_are_answers_only_after_a_quiet_time_since_the_last_key_and_since_it_stands_there(
    shown_at, last_key, now, takes
):
    assert Question(request(), shown_at).takes_keys(last_key, now) is takes


def test_the_subject_holds_every_argument_and_hides_nothing():
    arguments = {"command": "safe\rrm -rf ~\n\tnext\x1b[2J\u202e", "timeout_ms": 5, "note": "two\nlines"}
    assert subject(request(arguments=arguments)) == (
        "safe␍rm -rf ~\n    next␛[2J⟨U+202E⟩\ntimeout_ms: 5\nnote:\n  two\n  lines"
    )


def test_a_long_subject_says_how_much_of_it_stands_above():
    question = Question(request(arguments={"command": "\n".join("abcdefghij")}), 0)
    assert "… 5 more lines, printed whole above" in text(question, rows=10)
    assert question.is_long(10)
    assert not question.is_long(14)


def test_always_is_offered_only_where_there_is_a_rule():
    assert "always" not in text(Question(request(), 0))
    assert "a always for this chat" in text(Question(request(rule="shell(make)"), 0))


@pytest.mark.parametrize(
    ("name", "sandboxed", "warns"),
    [("shell", False, True), ("shell", True, False), ("write", False, False), ("mcp_tool", False, True)],
)
def test_a_program_without_a_sandbox_is_called_that(name, sandboxed, warns):
    asked = request(name=name, sandboxed=sandboxed)
    assert is_unbounded(asked) is warns
    assert ("not sandboxed: this command can do anything you can" in text(Question(asked, 0))) is warns
