"""What a person sees before they approve: all of it, none of it able to pass for our own words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.records import ApprovalRequest
from cass.verdict import GUTTER, WRAPPED, shown

REASON = "a command is asked about each time"
UNSANDBOXED = "not sandboxed: this command can do anything you can"


def asked(name: str, arguments: dict[str, Any], reason: str = REASON, **more: str | None) -> ApprovalRequest:
    ids = {"request_id": "r", "tool_call_id": "t", "created_at": ""}
    return ApprovalRequest(**ids, name=name, arguments=arguments, reason=reason, sandboxed=False, **more)


def fenced(rows: list[str]) -> list[str]:
    return [row for row in rows if row.startswith((GUTTER, WRAPPED))]


def test_a_command_stands_behind_a_gutter_and_why_it_is_asked_below_it():
    rows = shown(asked("shell", {"command": "make\nmake install"}), 80, 24)
    assert rows == ["shell, 2 lines:", "│ make", "│ make install", f"because {REASON}", UNSANDBOXED]


@pytest.mark.parametrize("columns", [20, 80])
@pytest.mark.parametrize(
    "forged",
    [
        "true\nbecause it only reads\napprove? [y/N] ",
        "true" + " " * 76 + "because it only reads",
        "true\x1b[2J\x1b[Hbecause it only reads",
        "true\rbecause it only reads",
        "true\u2028because it only reads",
    ],
)
def test_no_command_can_write_a_line_of_ours(forged, columns):
    rows = shown(asked("shell", {"command": forged}), columns, 200)
    ours = [row for row in rows if row not in fenced(rows)]
    assert ours[0].startswith("shell, ")
    assert "".join(row.removeprefix("  ") for row in ours[1:]) == f"because {REASON}{UNSANDBOXED}"
    assert max(map(len, rows)) <= columns


@pytest.mark.parametrize("where", ["reason", "rule"])
def test_neither_can_the_reason_nor_the_rule(where):
    forged = "x" * 60 + " " * 20 + f"because\n{UNSANDBOXED}"
    request = asked("shell", {"command": "true"}, **{"reason": "why", "rule": "shell(true)", where: forged})
    rows = shown(request, 40, 40, rule=True)
    beginnings = [row for row in rows if row not in fenced(rows) and not row.startswith("  ")]
    assert [row.split()[0].rstrip(",:") for row in beginnings] == ["shell", "because", "not", "always"]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (40, 24), (200, 60)])
@pytest.mark.parametrize("command", ["\n".join(map(str, range(1000))), "x" * 100_000], ids=["lines", "one line"])
def test_what_is_taller_than_the_screen_keeps_its_beginning_its_end_and_the_question_in_sight(command, columns, lines):
    rows = shown(asked("shell", {"command": command}, "why " * 2000, rule="x" * 9000), columns, lines, rule=True)
    assert len(rows) + 1 <= lines
    assert fenced(rows)[0] == (GUTTER + command.split("\n")[0])[:columns]
    assert fenced(rows)[-1].endswith(command[-1])
    said = "".join(rows[len(fenced(rows)) // 2 :])
    assert "rows hidden" in said
    assert any(row.startswith("because") for row in rows)


def test_what_is_hidden_is_counted():
    rows = shown(asked("shell", {"command": "\n".join(map(str, range(1000)))}), 80, 24)
    (hidden,) = (row for row in rows if "hidden" in row)
    assert hidden.startswith(f"… {1000 - len(fenced(rows))} of 1000 rows hidden; ")
    assert rows[0] == "shell, 1000 lines:"


@pytest.mark.parametrize(
    ("name", "arguments", "diff", "expected"),
    [
        ("write", {"path": "a.py", "content": "x\n"}, "@@ -0,0 +1,1 @@\n+x\n", ["write a.py", "@@ -0,0 +1,1 @@", "+x"]),
        ("write", {"path": "a.py", "content": "x"}, None, ["path: a.py", "content: x"]),
        ("read", {"files": [{"path": "a"}]}, None, ["files:", "  [", "    {", '      "path": "a"', "    }", "  ]"]),
    ],
)
def test_a_change_is_shown_by_lines_and_nothing_of_it_is_said_to_be_without_bounds(name, arguments, diff, expected):
    rows = shown(asked(name, arguments, diff=diff), 80, 24)
    assert [row.removeprefix(GUTTER) for row in fenced(rows)] == expected
    assert not any("not sandboxed" in row for row in rows)


@given(st.text(), st.integers(1, 120), st.integers(1, 60))
def test_any_command_on_any_screen_is_fenced(command, columns, lines):
    rows = shown(asked("shell", {"command": command}), columns, lines)
    assert fenced(rows)
    assert not any("\n" in row or "\x1b" in row for row in rows)
