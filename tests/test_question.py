import pytest

from cass.composer.question import QUIET_S, Question, subject
from cass.records import ApprovalRequest


def request(**more):
    fields = {"request_id": "r", "tool_call_id": "c", "name": "shell", "arguments": {"command": "make"}}
    return ApprovalRequest(**(fields | {"reason": "asked", "sandboxed": False, "created_at": "", "rule": None} | more))


def text(question, takes_keys=True, rows=20, columns=80):
    return "".join(piece for _, piece in question.fragments(takes_keys, rows, columns))


def lines_of(request):
    return "\n".join(line for _, line in subject(request))


@pytest.mark.parametrize(
    ("shown_at", "last_key", "now", "takes"),
    [(0, 0, QUIET_S, True), (0, 0, 0.69, False), (0, 5, 5.5, False), (0, 5, 5.7, True), (9, 0, 9.1, False)],
)
def test_keys_are_answers_only_after_a_quiet_time_since_the_last_key_and_since_it_stands_there(
    shown_at, last_key, now, takes
):
    assert Question(request(), shown_at).takes_keys(last_key, now) is takes


def test_the_key_behind_the_one_that_asked_for_the_rule_is_an_answer_at_once():
    question = Question(request(rule="shell(make)"), 0, stage="rule")
    assert question.takes_keys(9, 9.1)


def test_the_subject_holds_every_argument_and_hides_nothing():
    arguments = {"command": "safe\rrm -rf ~\n\tnext\x1b[2J\u202e", "timeout_ms": 5, "note": "two\nlines"}
    assert lines_of(request(arguments=arguments)) == (
        "safe␍rm -rf ~\n    next␛[2J⟨U+202E⟩\ntimeout_ms: 5\nnote:\n  two\n  lines"
    )


def test_a_long_subject_is_scrolled_and_says_where():
    question = Question(request(arguments={"command": "\n".join("abcdefghij")}), 0)
    assert question.is_long(10, 80)
    assert not question.is_long(15, 80)
    assert "  a\n  b\n  c\n  d\n  e\n  rows 1-5 of 10," in text(question, rows=10)
    question.scroll(1, 10, 80)
    assert "  e\n  f\n  g\n  h\n  i\n  rows 5-9 of 10," in text(question, rows=10)
    question.scroll(5, 10, 80)
    assert "  j\n  rows 6-10 of 10," in text(question, rows=10)
    question.scroll(-9, 10, 80)
    assert "rows 1-5" in text(question, rows=10)


def test_a_change_is_shown_as_its_diff_in_colours_and_with_its_path():
    diff = "@@ -1,2 +1,2 @@\n-x\x1b[2J\n+y\n rest\n"
    asked = request(name="edit", arguments={"path": "a.py", "edits": [{"old_text": "x", "new_text": "y"}]}, diff=diff)
    assert subject(asked) == [
        ("class:subject", "edit a.py"),
        ("class:dim", "@@ -1,2 +1,2 @@"),
        ("class:removed", "-x␛[2J"),
        ("class:added", "+y"),
        ("", " rest"),
    ]


def test_a_page_is_shown_by_the_address_that_is_asked_whole_and_in_letters_that_look_like_no_other():
    asked = request(name="fetch", arguments={"url": "HTTPS://\u0430pple.com/\u202e?q=" + "x" * 200, "offset": 5})
    address = "https://xn--pple-43d.com/%E2%80%AE?q=" + "x" * 200
    assert subject(asked) == [("class:subject", address), ("class:subject", "offset: 5")]
    assert address in text(Question(asked, 0)).replace("\n  ", "")
    assert "not sandboxed" not in text(Question(asked, 0))


def test_always_is_offered_only_where_there_is_a_rule():
    assert "always" not in text(Question(request(), 0))
    assert "a always for this chat" in text(Question(request(rule="shell(make)"), 0))
    assert "a always for this agent" in text(Question(request(rule="shell(make)", agent="2026-06-20-143012-a8f3"), 0))


def test_in_the_smallest_terminal_something_of_the_subject_and_all_answers_are_seen():
    command = "for i in $(seq 1 30); do echo line $i; sleep 0.1; done"
    question = Question(request(arguments={"command": command}, rule="shell(for *)", sandboxed=True), 0)
    rows = text(question, rows=4, columns=20).split("\n")
    assert rows[1:4] == ["  for i in $(seq 1 3", "  0); do echo line $", "  1-2 of 3"]
    assert rows[-2:] == ["y approve · n deny", "a always for this chat"]
    assert len(rows) <= 8


def test_why_it_is_asked_is_broken_between_words():
    why = "workspace-edit mode asks before every command; sandboxed: writes only to the workspace and /tmp"
    assert "writes only to the\nworkspace and /tmp" in text(Question(request(reason=why, sandboxed=True), 0))


@pytest.mark.parametrize(
    ("name", "sandboxed", "warns"),
    [
        ("shell", False, "not sandboxed: this command can do anything you can"),
        ("shell", True, ""),
        ("ticket", True, ""),
        ("ticket", False, "not sandboxed: this tool can do anything you can"),
        ("mcp__files__move", False, "not sandboxed: what the MCP server makes of this is up to the server"),
        ("write", False, ""),
        ("read", False, ""),
    ],
)
def test_what_nothing_holds_back_is_called_that(name, sandboxed, warns):
    said = text(Question(request(name=name, sandboxed=sandboxed), 0))
    assert [line for line in said.split("\n") if line.startswith("not sandboxed")] == [warns] * bool(warns)


def test_what_is_cut_off_a_reason_stands_in_what_can_be_scrolled():
    why = f"it reads {', '.join(f'/elsewhere/file-{n}' for n in range(40))}, outside the workspace"
    question = Question(request(name="read", arguments={"paths": ["a"]}, reason=why), 0)
    seen = text(question, rows=10)
    assert "file-39" not in seen
    for _ in range(10):
        question.scroll(1, 10, 80)
        seen += text(question, rows=10)
    assert "file-39" in seen.replace("\n  ", "")
    assert seen.count("it reads /elsewhere/file-0,") == 11, "once on each screen"


def test_a_long_reason_stands_whole_and_once_where_the_subject_leaves_it_room():
    why = f"it reads {', '.join(f'/elsewhere/file-{n:02}' for n in range(12))}, outside the workspace"
    said = text(Question(request(name="read", arguments={"paths": ["a"]}, reason=why), 0), rows=18, columns=40)
    assert " ".join(said.split()).count(why) == 1
    assert "scroll" not in said
    assert "…" not in said


@pytest.mark.parametrize(("rows", "columns"), [(6, 20), (6, 40), (9, 80), (1, 20), (5, 60)])
def test_a_long_reason_gives_way_to_the_answers(rows, columns):
    request = ApprovalRequest(
        request_id="r",
        tool_call_id="c",
        name="shell",
        arguments={"command": "make all"},
        reason="because " * 80,
        sandboxed=True,
        created_at="2026-06-20T14:30:12.345Z",
    )
    text = "".join(text for _, text in Question(request, 0.0).fragments(True, rows, columns))
    assert "…\n" in text
    below = [line for line in text.split("\n") if not line.startswith("  ")]
    assert "".join(below).count("because") * len("because ") <= max(rows // 3, 1) * columns
    assert text.endswith("y approve · n deny")
