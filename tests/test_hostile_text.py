"""Hostile text: whatever is said anywhere in a chat or a live file, no byte of it controls the terminal."""

import re
import unicodedata
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.announce import notice, title
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Attachment,
    Compaction,
    Delta,
    Meta,
    Notice,
    Record,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnEnd,
    User,
    decode,
    encode,
)
from cass.viewer import prose
from cass.viewer.attention import Attention
from cass.viewer.look import Look, ansi
from cass.viewer.page import Page

AT = "2026-01-01T00:00:00.000Z"
CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F)]
CONTROLS += [*range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB, 0xD800, 0xDFFF, 0xE0001, 0xE0041, 0x3164, 0x115F]
SEQUENCES = (
    *("\x1b]52;c;cm0gLXJmIH4=\x07", "\x1b]0;pwned\x07", "\x1b]8;;http://evil.test\x07x\x1b]8;;\x07", "\x1b[2J\x1b[10A"),
    *(
        "\x1b[6n",
        "\x1bc",
        "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\",
        "\x9b2J",
        "\x9d0;x\x9c",
        "\x1b]133;A\x07",
        "\x1b_G\x1b\\",
    ),
    *(
        "safe\rrm -rf ~",
        "\u202egnp.exe",
        "\x1b",
        "\x1b]",
        "\x1b[",
        "\x1b]8;id=1;",
        "a\nb",
        "a\tb",
        "\x1b[?1049h",
        "\x0e",
    ),
)
LOOKS = [
    Look(width=40, links=True, marks=True),
    Look(width=20, links=True, full=True, reasoning=True),
    Look(width=60, plain=True, escapes=False, color=False),
    Look(width=60, is_framed=True, marks=True, color=False),
]
OURS = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\]133;(?:A|C|D;[01])\x1b\\|\x1b\]8;id=\d+;(?:https?://|mailto:)[\x21-\x7e]+\x1b\\|\x1b\]8;;\x1b\\"
)


def assert_tame(shown: Sequence[str], look: Look) -> None:
    """Every line holds only sequences of our own, and one line each; taken out, nothing is left that has no picture."""
    for line in shown:
        bare = OURS.sub("", line) if look.escapes else line
        wild = [
            c for c in bare if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\t\u200c\u200d"
        ]
        assert not wild, repr(line)
        line.encode()


def records(text: str) -> list[Record]:
    """A chat with its live records, and `text` in every place where somebody else chooses the words."""
    call = ToolCall("x", text, {text: text, "path": [text, {text: text}]})
    shell = ToolCall("y", "shell", {"command": text})
    edit = ToolCall("z", "edit", {"path": text, "edits": [{"old_text": text, "new_text": f"{text}!"}]})
    raw = ToolCall("w", "read", {}, arguments_raw=text)
    link = f"[{text}](<http://a.test/{text}>) <http://b.test/{text}> ![{text}](<{text}>) [a](<{text}> '{text}')\n\n"
    table = f"| {text} | b |\n|---|---|\n" + f"| {text} | `{text}` |\n" * 22
    source = (
        f"# {text}\n\n{text}\n\n- {text}\n\n> {text}\n\n```{text}\n{text}\n```\n\n```py\n'''{text}\n{text}'''\n```\n\n"
    )
    status = Status(state=text, mode=text, provider=text, model=text, detail=text, created_at=AT, turn="u")

    def result(id: str, name: str, ok: bool, content: str = text) -> ToolResult:
        return ToolResult(
            tool_call_id=id,
            name=name,
            content=content,
            ok=ok,
            created_at=AT,
            diff=f"@@ -1,1 +1,1 @@\n-{text}\n+{text}\n",
        )

    def approval(id: str, decision: str) -> Approval:
        return Approval(
            request_id=id,
            tool_call_id=id,
            decision=decision,
            by=f"{text} by {text}, pid 1",
            reason=text,
            rule=text,
            created_at=AT,
        )

    def request(id: str) -> ApprovalRequest:
        return ApprovalRequest(
            request_id=f"q{id}",
            tool_call_id=id,
            name=text,
            arguments={text: text},
            reason=text,
            sandboxed=False,
            created_at=AT,
            of="a",
        )

    images = (Attachment("0" * 64, "image/png", text, 9, 4, 3),)
    return [
        Meta(chat_id=text, created_at=AT, provider=text, model=text, cwd=text),
        Meta(chat_id="c", created_at="2026", provider=text, model=text, cwd=f"{text}2"),
        User(id="u", content=text, created_at=AT, origin={"by": text}, attachments=images),
        status,
        *(Delta(of="a", reasoning=part) for part in (text, "\n", text)),
        *(Delta(of="a", text=part) for part in (text[:1], text[1:], "\n\n", link, table, source)),
        Delta(of="a", tool_call={"index": 0, "id": text, "name": text, "arguments": text}),
        Assistant(
            id="a",
            content=f"{text}\n\n{link}{table}{source}",
            created_at=AT,
            reasoning=f"{text}\n{text}",
            tool_calls=(call, shell, edit, raw),
        ),
        request("x"),
        approval("x", "approved"),
        ToolStarted(tool_call_id="x", created_at=AT, of="a"),
        ToolOutput(tool_call_id="x", text=text),
        result("x", text, True),
        request("y"),
        result("y", "shell", False, f"Error: exit status 1\n{text}\n{text}"),
        approval("z", "denied"),
        result("z", "edit", False),
        result("w", "read", True),
        approval("nobody's", "approved"),
        Compaction(summary=f"{text}\n\n{table}", first_kept_id=None, tokens_before=1, created_at=AT),
        Notice(level=text, text=text),
        Assistant(id="b", content="", created_at=AT, stop="error"),
        TurnEnd(turn="u", answers=("u",), outcome=text, error=text, created_at=AT),
    ]


def assert_nothing_escapes(text: str, look: Look) -> None:
    page = Page(look)
    shown: list[str] = []
    for record in records(text):
        shown += page.take([record], True) + page.live(1.8e9, 30)
    shown += page.again(look, "again") + page.take([], False) + page.live(1.8e9, 30)
    shown += Page(look).begin(records(text), 99)
    assert_tame(shown, look)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("part", range(4))
def test_e01_no_control_character_comes_through_in_any_place(look: Look, part: int) -> None:
    assert_nothing_escapes("".join(f"a{chr(code)}b" for code in CONTROLS[part::4]), look)


hostile = st.lists(
    st.sampled_from(SEQUENCES) | st.sampled_from([chr(code) for code in CONTROLS]) | st.text(max_size=3), max_size=5
)


@settings(max_examples=30, deadline=None)
@given(hostile.map("".join), st.sampled_from(LOOKS))
def test_e01_no_sequence_comes_through_in_any_place(text: str, look: Look) -> None:
    assert_nothing_escapes(text, look)


@pytest.mark.parametrize("text", SEQUENCES)
def test_e01_a_link_leads_where_a_terminal_may_go_and_cannot_end_early(text: str) -> None:
    source = (
        f"[a](http://a.test/{text}) [b](<http://a.test/{text}>) [c](http://a.test/%1b%5d%07) <http://c.test/?{text}>"
    )
    assert_tame(ansi(prose.lines(source, 60), LOOKS[0]), LOOKS[0])


@settings(max_examples=100, deadline=None)
@given(hostile.map("".join))
@pytest.mark.parametrize(
    "said",
    [
        lambda text: title(text),
        lambda text: Attention(text, "all", {}).show(f"{text}."),
        lambda text: notice(text, {}),
        lambda text: notice(text, {"VTE_VERSION": "6800"}),
    ],
)
def test_e01_a_title_or_notice_is_one_sequence_whatever_it_says(said: Callable[[str], str], text: str) -> None:
    assert re.fullmatch(r"\x1b\](2;|9;|777;notify;cass;)[^\x00-\x1f\x7f-\x9f]*\x07", said(text))


def test_e01_a_chat_that_was_written_by_others_is_as_tame() -> None:
    page = Page(LOOKS[0])
    shown = [line for record in records("".join(SEQUENCES)) for line in page.take([decode(encode(record))], True)]
    assert_tame(shown, LOOKS[0])
