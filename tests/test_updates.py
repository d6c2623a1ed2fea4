"""Updates: what an editor is told of a chat, however its records come in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.home import Home
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Delta,
    Fact,
    Notice,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    User,
)

pytest.importorskip("acp")
from cass.acp.before import Before
from cass.acp.updates import Updates, title

AT = "2026-06-20T14:30:12.000Z"
CALL = ToolCall("c", "shell", {"command": "ls"})
LIVE = [
    Delta(of="a", reasoning="so "),
    Delta(of="a", reasoning="so"),
    Delta(of="a", text="I "),
    Delta(of="a", text="look"),
    ToolStarted(tool_call_id="c", of="a", created_at=AT),
    ToolOutput(tool_call_id="c", text="x"),
    ToolOutput(tool_call_id="c", text="y"),
    Delta(of="b", text="Do"),
    Delta(of="b", text="ne"),
]
FACTS = {  # by how many of the live records came before each
    0: User(id="u", content="hi", created_at=AT),
    4: Assistant(id="a", content="I look", reasoning="so so", tool_calls=(CALL,), created_at=AT),
    7: ToolResult(tool_call_id="c", name="shell", content="xy", ok=True, created_at=AT),
    9: Assistant(id="b", content="Done", created_at=AT),
}


def told(home, workspace, cuts):
    """All updates, where the files are looked at after so many of the live records; the facts of then are there too.

    A look reads the live file first: a fact may be ahead of what was read of it, never behind.
    """
    updates = Updates(Before(home.files("a-chat"), workspace), "read-only")
    updates.own.add("u")
    found, live, facts = [], 0, 0
    for cut in [*sorted(cuts), len(LIVE)]:
        news = [fact for at, fact in FACTS.items() if facts <= at <= cut] + LIVE[live:cut]
        live, facts = cut, cut + 1
        for record in sorted(news, key=lambda record: not isinstance(record, Fact)):
            found += updates.step(record)
        found += updates.flush()
    return found


def texts(found, kind):
    return "".join(update.content.text for update in found if update.session_update == kind)


@settings(deadline=None)
@given(cuts=st.sets(st.integers(0, len(LIVE) - 1)))
def test_everything_is_told_once_and_in_order_whenever_the_files_are_looked_at(tmp_path_factory, cuts):
    root = tmp_path_factory.getbasetemp()
    found = told(Home(root / "home"), root, cuts)
    assert texts(found, "agent_message_chunk") == "I lookDone"
    assert texts(found, "agent_thought_chunk") == "so so"
    assert [update.tool_call_id for update in found if update.session_update == "tool_call"] == ["a-0"]
    changes = [update for update in found if update.session_update == "tool_call_update"]
    assert {update.tool_call_id for update in changes} == {"a-0"}
    assert (changes[-1].status, changes[-1].content[0].content.text) == ("completed", "xy")
    assert [update.status for update in changes].count("completed") == 1


@pytest.mark.parametrize(
    ("records", "shown"),
    [
        ([Assistant(id="a", content="\x1b[2Jred\u202e", created_at=AT)], "␛[2Jred⟨U+202E⟩"),
        ([Delta(of="a", text="\u2714"), Delta(of="a", text="\ufe0f")], "\u2714\ufe0f"),
        ([Delta(of="a", text="a\r"), Delta(of="a", text="\nb")], "a␍\nb"),
    ],
)
def test_no_text_controls_the_terminal_that_an_editor_may_run_in(home, workspace, records, shown):
    updates = Updates(Before(home.files("a-chat"), workspace), "read-only")
    assert texts([told for record in records for told in updates.step(record)], "agent_message_chunk") == shown


def test_notices_retries_and_the_context_are_told(home, workspace):
    updates = Updates(Before(home.files("a-chat"), workspace), "read-only")
    status = {"mode": "full-access", "provider": "p", "model": "m", "created_at": AT}
    found = [
        *updates.step(Notice(level="info", text="nothing much")),
        *updates.step(Notice(level="warning", text="be careful")),
        *updates.step(Status(state="retrying", detail="trying again", used=5, limit=10, **status)),
        *updates.step(Status(state="thinking", used=5, limit=10, **status)),
    ]
    assert texts(found, "agent_thought_chunk") == "be careful\ntrying again\n"
    kinds = [update.session_update for update in found if update.session_update != "agent_thought_chunk"]
    assert kinds == ["current_mode_update", "usage_update"]
    assert (found[-1].used, found[-1].size) == (5, 10)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("shell", {"command": "ls\n-l"}, "ls␊-l"),
        ("grep", {"query": "main", "paths": ["a", "b"]}, "grep main a b"),
        ("fetch", {"url": "https://A/b"}, "fetch https://a/b"),
        ("read", {"files": [{"path": "a"}, "b", 5]}, "read a b"),
        ("write", {"path": 5}, "write"),
        ("deploy", {"path": ["x"]}, "deploy"),
        ("shell", {"command": "x" * 500}, "x" * 200),
    ],
)
def test_a_call_has_a_title_whatever_its_arguments_are(name, arguments, expected):
    assert title(ToolCall("c", name, arguments)) == expected


def test_what_an_agent_asks_is_a_call_of_its_own_until_it_is_decided(home, workspace):
    updates = Updates(Before(home.files("a-chat"), workspace), "read-only")
    call = ToolCall("c", "agent", {"prompt": "look"})
    updates.step(Assistant(id="a", content="", tool_calls=(call,), created_at=AT))
    asked = {"request_id": "r", "tool_call_id": "c", "agent": "2026-06-20-143012-a8f3", "created_at": AT}
    what = {"name": "shell", "arguments": {"command": "make"}, "reason": "why", "sandboxed": False}
    shown = updates.question(ApprovalRequest(**asked, **what))
    assert (shown.tool_call_id, shown.title) == ("a-0-r", "make of the agent a8f3")
    (settled,) = updates.step(Approval(**asked, decision="denied", by="me"))
    assert (settled.tool_call_id, settled.status) == ("a-0-r", "failed")
    (ended,) = updates.step(ToolResult(tool_call_id="c", name="agent", content="no", ok=False, created_at=AT))
    assert ended.tool_call_id == "a-0"
