"""Passages: what was said in any chat is found by its words, whatever characters it is written in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import run

from cass import chat, passages
from cass.catalogue import Summary
from cass.errors import UsageError
from cass.home import Home
from cass.passages import Wanted
from cass.records import Assistant, Compaction, ToolCall, ToolResult, User, encode

AT = "2026-06-20T14:30:12.345Z"
RECORDS = [
    User(id="u", content='Where is "main"?\nTell me: café.', created_at=AT),
    Assistant(id="a", content="I look.", tool_calls=(ToolCall("1", "grep", {"query": "def main"}),), created_at=AT),
    ToolResult(tool_call_id="1", name="grep", content="app.py:3: def MAIN():\x1b[31m", ok=True, created_at=AT),
    Compaction(summary="Main is in app.py.", first_kept_id=None, tokens_before=1, created_at=AT),
]


@pytest.fixture
def said(files):
    with files.chat.open("ab") as file:
        file.write(b'{"type":"message","role":"user","content":7}\nmain torn {\n')
        file.writelines(encode(record) for record in RECORDS)
    return files


def found(files, text: str, **how: bool) -> list[str]:
    wanted = Wanted(text, is_regex=how.get("regex", False), case_sensitive=how.get("case", False))
    summary = Summary(files.chat_id, AT, AT, "", "", "", False)
    return [f"{p.by}: {p.words}" for p in passages.search(files.home, [summary], wanted)]


@pytest.mark.parametrize(
    ("text", "how", "expected"),
    [
        ("main", {}, ["you: main", "grep: main", "grep: MAIN", "summary: Main"]),
        ("main", {"case": True}, ["you: main", "grep: main"]),
        ('"main"', {}, ['you: "main"']),
        ("main\"?\nTell", {}, ["you: main\"?␊Tell"]),
        ("CAFÉ", {}, ["you: café"]),
        ("ma.n", {}, []),
        ("^def ma.n", {"regex": True}, ["grep: def main"]),
        ("\x1b[31m", {}, ["grep: ␛[31m"]),
        ("tool_calls", {}, []),
    ],
)  # fmt: skip
def test_words_are_found_in_what_was_said_and_nowhere_else(said, text, how, expected):
    assert found(said, text, **how) == expected


@given(st.text(min_size=1, max_size=8), st.text(max_size=30), st.text(max_size=30))
def test_any_text_that_was_said_is_found_again(text, before, after):
    line = encode(User(id="u", content=before + text + after, created_at=AT))
    wanted = Wanted(text, is_regex=False, case_sensitive=True)
    assert wanted.may_stand_in(line)
    assert [passage.by for passage in passages._of_line("c", line, wanted)] == ["you"]


@pytest.mark.parametrize("text", ["(", "*", "x*", "^"])
def test_an_expression_that_is_none_or_finds_everything_is_refused(text):
    with pytest.raises(UsageError):
        Wanted(text, is_regex=True, case_sensitive=False)


def test_a_passage_fits_its_line_and_keeps_its_words():
    passage = passages.Passage("2026-06-20-143012-a8f3", AT, "you", "b" * 40, "the words", "a" * 40)
    shown = passages.line(passage, 80)
    assert len(shown) <= 80
    assert "the words" in shown
    assert passages.line(passage, 20).endswith("the wordsaaaaaa")


def test_the_command_lists_passages_chats_or_json_and_says_whether_there_were_any(said, tmp_path):
    other = chat.create(Home(said.home.root), cwd=tmp_path, provider="", model="", system="main")
    plain = run("cass", "grep", "def main")
    assert plain.returncode == 0
    assert plain.stdout.splitlines()[0] == f"{said.chat_id}  2026-06-20  grep: def main"
    assert run("cass", "grep", "-l", "main").stdout == f"{said.chat_id}\n"
    lines = [json.loads(line) for line in run("cass", "grep", "--json", "main").stdout.splitlines()]
    assert {line["chat_id"] for line in lines} == {said.chat_id}
    assert run("cass", "grep", "main", "--here", cwd=tmp_path).returncode == 1
    assert run("cass", "grep", "nothing like it").returncode == 1
    assert run("cass", "grep", "-E", "(").returncode == 2
    assert other.chat_id not in plain.stdout
