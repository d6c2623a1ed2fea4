"""Export: a chat as Markdown, HTML and JSON, for people and programs; secrets hidden where that is asked for."""

import json
import re
import stat
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import run

from cass import chat
from cass.export import FORMATS, document, html, plain
from cass.export.redaction import HIDDEN, Redaction
from cass.records import (
    Approval,
    Assistant,
    Compaction,
    Meta,
    System,
    ToolCall,
    ToolResult,
    TurnEnd,
    Usage,
    User,
    encode,
)

AT = "2026-06-20T14:30:12.345Z"
KEY = "sk-abcdefghijklmnopqrstuv"
ANSWER = """\
# Heading

Some *text*, [link](https://example.org), [bad](javascript:alert), ![picture](http://192.0.2.1/x.png), <b>bold</b>.

```python
print("hi")
```
"""
CALLS = (
    ToolCall("1", "shell", {"command": f"export API_KEY={KEY}\nmake"}),
    ToolCall("2", "edit", {"path": "a.py", "edits": [{}]}),
    ToolCall("3", "read", {"path": "x"}),
)
DIFF = "@@ -1,3 +1,3 @@\n a\n-b <x>\n+c\n d\n@@ -10,1 +10,2 @@\n x\n+\ty\n"
RECORDS = [
    Meta(chat_id="2026-06-20-143012-a8f3", created_at=AT, provider="p", model="m", cwd="/work"),
    System(content="You are a test."),
    User(id="u", content="\nFix <main>\n\nplease", created_at=AT, origin={"by": "send"}),
    Assistant(id="a", content=ANSWER, reasoning="hm <b>", tool_calls=CALLS, created_at=AT),
    Approval(request_id="r", tool_call_id="1", decision="approved", by="you", created_at=AT),
    ToolResult(tool_call_id="1", name="shell", content=f"{KEY}\n\x1b[31mred </pre>", ok=True, created_at=AT),
    ToolResult(tool_call_id="2", name="edit", content="Applied 1 edit", ok=True, diff=DIFF, created_at=AT),
    ToolResult(tool_call_id="3", name="read", content="Error: x does not exist", ok=False, created_at=AT),
    Compaction(summary="They fixed it.", first_kept_id=None, tokens_before=1, created_at=AT),
    TurnEnd(turn="u", answers=("u",), outcome="failed", error="boom <b>", usage=Usage(1234, 10), created_at=AT),
]


class Tags(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open and self.open[-1] != "style" else ""


def test_a_page_needs_nothing_else_and_nothing_in_it_acts():
    page = html.page(RECORDS)
    tags = Tags(page)
    assert tags.open == []
    assert not {"script", "img", "link", "iframe", "b><", "object"} & {tag for tag, _ in tags.found}
    addresses = [attrs["href"] for tag, attrs in tags.found if tag == "a"]
    assert addresses == ["https://example.org", "http://192.0.2.1/x.png"]
    assert not [attrs for _, attrs in tags.found if any(name.startswith("on") for name in attrs)]
    assert "default-src 'none'" in page


def test_a_page_shows_calls_folded_and_changes_with_their_line_numbers():
    tags = Tags(html.page(RECORDS))
    kinds = [attrs["class"] for tag, attrs in tags.found if tag == "details" and "class" in attrs]
    assert kinds == ["call ok", "call ok", "call failed"]
    assert "open" not in {name for _, attrs in tags.found for name in attrs}
    for said in (
        "Fix <main>",
        "with cass-send",
        "hm <b>",
        "approved by you",
        "␛[31mred </pre>",
        "boom <b>",
        "They fixed it.",
    ):
        assert said in tags.text
    rows = re.findall(r"<tr([^>]*)><td>(\d*)</td><td>(.)</td><td>(.*?)</td></tr>", html.page(RECORDS))
    assert rows == [
        ("", "1", " ", "a"), (' class="del"', "2", "-", "b &lt;x&gt;"), (' class="add"', "2", "+", "c"),
        ("", "3", " ", "d"), ("", "", "…", ""), ("", "10", " ", "x"), (' class="add"', "11", "+", "\ty"),
    ]  # fmt: skip


def test_markdown_holds_everything_and_no_fence_ends_early():
    fenced = ToolResult(tool_call_id="1", name="shell", content="```\nx\n````", ok=True, created_at=AT)
    text = plain.markdown([*RECORDS[:4], fenced])
    assert "`````\n```\nx\n````\n`````" in text
    whole = plain.markdown(RECORDS)
    assert whole.startswith("# Fix \\<main\\>\n\n- chat: `2026-06-20-143012-a8f3`\n")
    for said in (
        "> Fix <main>",
        "```diff\n@@ -1,3",
        "### read `x` · failed",
        "**failed: boom \\<b\\>**",
        ANSWER.strip(),
    ):
        assert said in whole


def test_json_holds_every_record_as_the_chat_does():
    found = json.loads(FORMATS["json"](RECORDS))
    assert found["chat_id"] == "2026-06-20-143012-a8f3"
    assert found["title"] == "Fix <main>"
    assert found["records"] == [json.loads(encode(record)) for record in RECORDS]


@given(st.text())
def test_no_text_can_leave_its_place_in_a_page(text):
    """Every element that is open is closed in order, whatever stands in a message, a result or a change."""
    records = [
        RECORDS[0],
        User(id="u", content=text, created_at=AT, origin={"by": text}),
        Assistant(id="a", content=text, reasoning=text, tool_calls=(ToolCall("1", text, {text: text}),), created_at=AT),
        ToolResult(tool_call_id="1", name=text, content=text, ok=True, diff=f"@@ -1,1 +1,1 @@\n-{text}", created_at=AT),
        TurnEnd(turn="u", answers=("u",), outcome="failed", error=text, created_at=AT),
    ]
    tags = Tags(html.page(records))
    assert tags.open == []
    inside = [tag for tag, _ in tags.found]
    assert not {"script", "img", "iframe", "style", "link"} & set(inside[inside.index("main") :])


# ---- redaction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"the key {KEY}.", f"the key {HIDDEN}."),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345 x", f"{HIDDEN} x"),
        ("AKIAIOSFODNN7EXAMPLE", HIDDEN),
        ("DB_PASSWORD=hunter22 next", f"DB_PASSWORD={HIDDEN} next"),
        ('{"api_key": "0123456789ab"}', f'{{"api_key": "{HIDDEN}"}}'),
        ("Authorization: Bearer abc.def-123456", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://me:geheim99@host/db", f"postgres://me:{HIDDEN}@host/db"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0", HIDDEN),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter", f"{HIDDEN}\nafter"),
        ("it is correct-horse here", f"it is {HIDDEN} here"),
        ("max_tokens: 8192, token count = None", "max_tokens: 8192, token count = None"),
        ("password: $PASSWORD and <password>", "password: $PASSWORD and <password>"),
        ("see https://example.org:8080/path", "see https://example.org:8080/path"),
        ("max_tokens=1000000 tokens: 123456", "max_tokens=1000000 tokens: 123456"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_the_rest_stays(text, left):
    assert Redaction(["correct-horse", "short"]).text(text) == left


def test_redaction_reaches_every_text_of_a_record_and_leaves_ids():
    redaction = Redaction()
    found = [redaction.record(record) for record in RECORDS]
    assert KEY not in FORMATS["json"](found)
    assert [record.tool_call_id for record in found if isinstance(record, ToolResult)] == ["1", "2", "3"]
    assert found[3].tool_calls[0].arguments == {"command": f"export API_KEY={HIDDEN}\nmake"}
    assert redaction.hidden == 2


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def full(files):
    for record in RECORDS[2:]:
        with files.chat.open("ab") as file:
            file.write(encode(record))
    return files


def test_a_chat_is_printed_or_written_for_its_owner_alone(full, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "boom-like-a-value")
    printed = run("cass", "export", full.chat_id)
    assert printed.stdout == plain.markdown([*chat.read(full)])
    written = tmp_path / "chat.html"
    assert run("cass", "export", full.chat_id, "-o", "-", cwd=tmp_path).stdout == printed.stdout
    done = run("cass", "export", full.chat_id, "-o", str(written), "--redact")
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 places redacted" in done.stderr
    assert KEY not in written.read_text()
    assert written.read_text().startswith("<!doctype html>")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    again = run("cass", "export", full.chat_id, "-o", str(tmp_path / "none" / "x.md"))
    assert (again.returncode, again.stderr.count(str(tmp_path / "none" / "x.md"))) == (1, 1)


def test_lines_of_a_change_have_the_numbers_that_they_have_in_the_file():
    assert document.diff_lines("@@ -0,0 +1,1 @@\n+new\n\\ No newline\n") == [("+", "1", "new"), ("…", "", "No newline")]
