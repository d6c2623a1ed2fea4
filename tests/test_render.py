"""Rendering: everything that is there appears, nothing that is there controls the terminal, at any width."""

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from cass.blocks import Answer, Block, Call, Moved, Now
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Compaction,
    Meta,
    Notice,
    Status,
    ToolCall,
    ToolResult,
    TurnEnd,
    Usage,
    User,
)
from cass.tools.diff import unified
from cass.viewer import calls, changes, code, prose, render
from cass.viewer.look import Look, ansi, look_for
from cass.viewer.wrapping import NARROWEST
from cass.visible import safe

AT = "2026-01-01T00:00:00.000Z"
LOOKS = [
    Look(),
    Look(width=20),
    Look(width=1),
    Look(full=True, reasoning=True),
    Look(width=20, full=True, reasoning=True),
    Look(color=False),
    Look(escapes=False, color=False),
    Look(plain=True, escapes=False, color=False),
]
OUR_SEQUENCES = re.compile(r"\x1b\[[0-9;]*m")

NASTY = (
    "\x1b]52;c;cm0gLXJmIH4=\x07 \x1b]0;pwned\x07 \x1b]8;;http://evil.test\x07click\x1b]8;;\x07 \x1b[2J\x1b[10A \x1b[6n"
    " \x1bc \x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\ \x9b31m \x9d0;x\x9c safe command\rrm -rf ~ \u202egnp.exe \x1b]"
)
MARKUP = "[/INST] list[int] arr[red]x [b :smile: Vec<T> <div> &amp;"


def blocks_of(text: str) -> list[Block]:
    """Every kind of block, with `text` wherever somebody else chooses the words."""
    tool = ToolCall("x", text, {"path": text, text: [text]})
    approval = Approval(
        request_id="r", tool_call_id="x", decision="approved", by=text, reason=text, rule=text, created_at=AT
    )
    failed = ToolResult(tool_call_id="x", name=text, content=f"Error: {text}\nmore", ok=False, created_at=AT)
    edit = ToolCall("x", "edit", {"path": text, "edits": [{"old_text": text, "new_text": f"{text}!"}]})
    shell = ToolCall("x", "shell", {"command": f"{text}\n{text}"})
    good = ToolResult(tool_call_id="x", name="read", content=text, ok=True, created_at=AT)
    denied = Approval(request_id="r", tool_call_id="x", decision="denied", by=text, reason=text, created_at=AT)
    return [
        Meta(chat_id="c", created_at=AT, provider=text, model=text, cwd=text),
        Moved(text),
        User(id="u", content=text, created_at=AT, origin={"by": text}),
        Assistant(id="a", content=text, reasoning=text, created_at=AT, stop="error"),
        Assistant(id="a", content=f"# {text}\n\n- {text}\n\n> {text}\n\n```{text}\n{text}\n```\n", created_at=AT),
        Assistant(id="a", content=f"**{text}**\n\n|a|b|\n|-|-|\n|{text}|c|\n\n`{text}`\n", created_at=AT),
        Call(call=tool, approval=approval, result=failed),
        Call(call=shell, approval=denied, result=failed),
        Call(call=edit, result=good),
        Call(call=ToolCall("x", "read", {}, arguments_raw=text)),
        approval,
        Compaction(summary=text, first_kept_id=None, tokens_before=1, created_at=AT),
        TurnEnd(turn="u", answers=("u",), outcome="failed", error=text, created_at=AT),
        TurnEnd(turn="u", answers=("u",), outcome=text, created_at=AT),
        Notice(level="error", text=text),
        Notice(level=text, text=text),
    ]


def nows_of(text: str) -> list[Now]:
    request = ApprovalRequest(
        request_id="r", tool_call_id="x", name=text, arguments={}, reason=text, sandboxed=False, created_at=AT
    )
    shell = ToolCall("x", "shell", {"command": text})
    status = Status(state=text, mode=text, provider=text, model=text, detail=text, created_at=AT)
    return [
        Now(Answer(of="a", text=text, reasoning=text, calls=((text, text),)), (), status),
        Now(None, (Call(call=shell, request=request), Call(call=shell, request=replace(request, agent=text))), status),
        Now(None, (Call(call=shell, started_at=AT, output=f"{text}\n{text}"),), status),
    ]


def shown(block: Block, look: Look | None = None) -> str:
    look = look or Look(escapes=False, color=False)
    return "\n".join(ansi(render.lines(block, look), look))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("text", [NASTY, MARKUP, "", "\n\n", "\ud800 \U0001f469\u200d\U0001f467 漢字 \t\tx"])
def test_e01_no_text_of_others_brings_an_escape_sequence(text: str, look: Look) -> None:
    lines = [line for block in blocks_of(text) for line in ansi(render.lines(block, look), look)]
    lines += [line for now in nows_of(text) for line in ansi(render.now(now, [], look, 0.0), look)]
    for line in lines:
        bare = OUR_SEQUENCES.sub("", line)
        assert bare == safe(bare), repr(line)
        assert "\n" not in bare
        assert look.escapes or line == bare
        line.encode()


@pytest.mark.parametrize("look", [Look(width=200, escapes=False, color=False), LOOKS[-1]])
def test_e02_brackets_tags_and_entities_appear_literally_everywhere(look: Look) -> None:
    for block in blocks_of(MARKUP):
        if block not in (TurnEnd(turn="u", answers=("u",), outcome="done", created_at=AT),):
            text = shown(block, Look(width=400, escapes=False, color=False, full=True, reasoning=True))
            assert MARKUP in text.replace("\n", " "), block


@pytest.mark.parametrize("look", LOOKS)
def test_e02_an_escaping_link_cannot_smuggle_a_control_through_its_percent_signs(look: Look) -> None:
    text = "".join(ansi(prose.lines("<http://x/%1B%5D0;pwned%07> ![a](b%1b) [c](d%1b)", 60), look))
    assert OUR_SEQUENCES.sub("", text) == safe(OUR_SEQUENCES.sub("", text))


@pytest.mark.parametrize("width", [1, 2, 5, 20, 37, 80])
def test_no_line_is_wider_than_the_screen_but_code_that_the_terminal_wraps(width: int) -> None:
    wide = "漢字 👩‍👩‍👧 " * 9 + "a" * 99 + "\tb" * 9
    look = Look(width=width, escapes=False, color=False)
    for block in blocks_of(wide):
        if isinstance(block, Assistant) and "```" in block.content:
            continue
        for line in ansi(render.lines(block, look), look):
            assert cell_len(line) <= max(width, NARROWEST + 4), repr(line)


@pytest.mark.parametrize("width", [1, 20, 80])
def test_markdown_of_any_shape_is_laid_out(width: int) -> None:
    rng = random.Random(3)
    parts = ["> ", "- ", "1. ", "    ", "```\n", "| a | b |\n|---|---|\n", "# ", "**", "`", "\n", "\n\n", "x", "[a](b)"]
    parts += ["![i](s)", "~~", "<div>", "\\", "  \n", "---\n", "|", "漢", "\t", "* * *\n"]
    for _ in range(300):
        source = "".join(rng.choice(parts) for _ in range(rng.randrange(40)))
        prose.lines(source, width)
    prose.lines("> " * 60 + "x\n" + "- " * 60 + "y", width)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("# One\n\nTwo **three**", ["One", "", "Two three"]),
        ("a\nb  \nc", ["a b", "c"]),
        ("- a\n- b\n  - c\n\n  d", ["• a", "• b", "  • c", "", "  d"]),
        ("9. a\n10. b", [" 9. a", "10. b"]),
        ("> a\n> b", ["▏ a b"]),
        ("```py\nx = 1\n\ny\n```", ["  x = 1", "", "  y"]),
        ("[text](http://a.test) <http://b.test>", ["text (http://a.test) http://b.test"]),
        ("![alt](x.png)", ["![alt](x.png)"]),
        ("[x]: http://a.test", ["[x]: http://a.test"]),
        ("| a | b |\n|---|--:|\n| 1 | 2 |", ["a   b", "─────", "1   2"]),
        ("---", ["─" * 40]),
    ],
)
def test_markdown_as_lines(source: str, lines: list[str]) -> None:
    assert [line.plain for line in prose.lines(source, 60)] == lines


def test_code_is_coloured_by_its_language_and_plain_where_it_is_unknown() -> None:
    coloured = ansi(code.highlight("def f(): return 'x'", "python"), Look())
    assert "\x1b[35mdef\x1b[0m" in coloured[0]
    assert ansi(code.highlight("def f()", "no-such-language"), Look()) == ["def f()"]
    assert ansi(code.highlight("x" * 9999, "python"), Look()) == ["x" * 9999]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"by": "composer", "composer": "c"}, None),
        ({}, None),
        ({"by": "send", "program": "cass-send"}, "with cass-send"),
        ({"by": "send", "program": "cass -p"}, "with cass -p"),
        ({"by": "send"}, "with cass-send"),
        ({"by": "fifo"}, "through the pipe"),
        ({"by": "api"}, "from Python"),
        ({"by": "agent", "chat": "c"}, "by the chat above"),
        ({"by": ["\x1b"]}, "by ['\\x1b']"),
    ],
)
def test_a_message_says_how_it_came_unless_it_was_written_in_a_composer(
    origin: dict[str, Any], words: str | None
) -> None:
    lines = shown(User(id="u", content="hi", created_at=AT, origin=origin)).split("\n")
    assert lines == ["❯ hi", *([f"  {words}"] if words else [])]


# ---- tool calls


def call(name: str, content: str, /, *, ok: bool = True, approval: Approval | None = None, **arguments: Any) -> Call:
    result = ToolResult(tool_call_id="x", name=name, content=content, ok=ok, created_at=AT)
    return Call(call=ToolCall("x", name, arguments), result=result, approval=approval)


def test_a_call_shows_what_it_is_about_its_result_and_how_it_ended() -> None:
    assert shown(call("read", "1  a\n2  b", files=[{"path": "app.py", "lines": "1-2"}])).split("\n") == [
        "● read app.py 1-2",
        "  │ 1  a",
        "  │ 2  b",
        "  ╰ ok",
    ]
    assert shown(call("write", "wrote 3 bytes", path="a", content="x\ny\n")).split("\n") == [
        "● write a (2 lines)",
        "  ╰ ok · wrote 3 bytes",
    ]
    assert shown(call("x", "Error: unknown tool 'x'", ok=False)).split("\n") == ["● x", "  ╰ failed · unknown tool 'x'"]


def test_sizes_of_a_listing_stand_below_each_other() -> None:
    listing = f"src/\na.py\t7\n写.md\t1,024\n{'x' * 50}\t20\nrun.sock\tsocket\nlink -> a.py"
    assert shown(call("ls", listing)).split("\n")[1:-1] == [
        "  │ src/",
        "  │ a.py           7",
        "  │ 写.md      1,024",
        f"  │ {'x' * 50}      20",
        "  │ run.sock  socket",
        "  │ link -> a.py",
    ]
    assert shown(call("read", "a\tb\nc")).split("\n")[1] == "  │ a       b"


def test_a_long_result_is_short_and_says_how_much_is_hidden_and_how_to_see_it() -> None:
    lines = shown(call("ls", "\n".join(f"file{i}" for i in range(100)))).split("\n")
    assert len(lines) == 1 + 12 + 1
    assert lines[-1] == "  ╰ ok · … 88 more lines (Ctrl-O)"


def test_a_result_of_few_long_lines_is_short_too() -> None:
    text = shown(call("read", "x" * 5000 + "\n" + "y" * 5000))
    assert text.count("x") == 2000
    assert "y" not in text
    assert text.endswith("ok · … 1 more line (Ctrl-O)")
    assert shown(call("read", "x" * 5000)).endswith("ok · … 3,000 more characters (Ctrl-O)")


def test_the_full_view_has_every_argument_as_json_and_the_whole_result() -> None:
    look = Look(escapes=False, color=False, full=True)
    text = shown(call("ls", "\n".join(f"file{i}" for i in range(100)), path="src"), look)
    assert '  │ {\n  │   "path": "src"\n  │ }\n' in text
    assert "file99" in text
    assert "Ctrl-O" not in text


def test_an_edit_shows_what_it_takes_away_and_puts_in_its_place() -> None:
    edits = [{"old_text": "a\nb\nc\n", "new_text": "a\nB\nc\n"}]
    lines = shown(call("edit", "edited", path="f", edits=edits)).split("\n")
    assert lines == ["● edit f (1 edit)", "  │  a", "  │ -b", "  │ +B", "  │  c", "  ╰ ok · edited"]


def test_a_long_edit_says_how_much_of_it_is_hidden() -> None:
    edits = [{"old_text": "", "new_text": "\n".join(map(str, range(40)))}]
    text = shown(call("edit", "edited", path="f", edits=edits))
    assert "  │ +11\n  │ … 28 more lines (Ctrl-O)\n  ╰ ok" in text
    assert "  │ +39" in shown(call("edit", "edited", path="f", edits=edits), Look(escapes=False, full=True))


def changed(old: str, new: str, /, name: str = "edit", **arguments: Any) -> Call:
    made = ToolResult(
        tool_call_id="x",
        name=name,
        content="Applied",
        ok=True,
        created_at=AT,
        diff=unified(old.encode(), new.encode()),
    )
    return Call(call=ToolCall("x", name, {"path": "f", **arguments}), result=made)


def test_a_change_is_a_diff_with_the_numbers_of_its_lines() -> None:
    old = "".join(f"line {i}\n" for i in range(1, 120))
    new = old.replace("line 3\n", "three\nthree and a half\n").replace("line 100\n", "")
    assert shown(changed(old, new, edits=[]), Look(escapes=False, full=True, width=60)).split("\n")[-17:] == [
        "  │   1  line 1",
        "  │   2  line 2",
        "  │   3 -line 3",
        "  │   3 +three",
        "  │   4 +three and a half",
        "  │   5  line 4",
        "  │   6  line 5",
        "  │   7  line 6",
        "  │     ⋮",
        "  │  98  line 97",
        "  │  99  line 98",
        "  │ 100  line 99",
        "  │ 100 -line 100",
        "  │ 101  line 101",
        "  │ 102  line 102",
        "  │ 103  line 103",
        "  ╰ ok · +2 -2 · Applied",
    ]


def test_a_change_is_coloured_and_the_rest_is_dim() -> None:
    old, new, same = ansi(render.lines(changed("a\nb\n", "A\nb\n"), Look()), Look())[1:4]
    assert "\x1b[31m-a" in old
    assert "\x1b[32m+A" in new
    assert "\x1b[2m b" in same


def test_a_new_file_is_shown_as_what_came_and_a_long_one_short_until_it_is_asked_for() -> None:
    block = changed("", "".join(f"{i}\n" for i in range(1, 101)), name="write", content="")
    lines = shown(block).split("\n")
    assert (lines[1], lines[12], lines[13]) == ("  │  1 +1", "  │ 12 +12", "  │ … 88 more lines (Ctrl-O)")
    assert len(lines) == 15
    assert "\n  │ 100 +100\n" in shown(block, Look(escapes=False, full=True))


@pytest.mark.parametrize("width", [20, 40])
def test_a_long_line_of_a_diff_goes_on_below_its_text(width: int) -> None:
    look = Look(width=width, escapes=False)
    lines = ansi(render.lines(changed("", "漢字\tword " * 9 + "\n" + "x" * 60 + "\n"), look), look)
    assert max(map(cell_len, lines)) <= width
    assert lines[1].startswith("  │ 1 +漢字    wo")
    assert lines[2].startswith("  │    ")


def test_of_a_diff_of_ten_thousand_lines_the_beginning_is_shown_and_all_are_counted() -> None:
    old, new = ("".join(f"{word} {i}\n" for i in range(10_000)) for word in ("line", "Line"))
    lines = shown(changed(old, new, edits=[]), Look(width=40, escapes=False)).split("\n")
    assert len(lines) == 1 + 12 + 1 + 1
    assert lines[-1] == "  ╰ ok · +10,000 -10,000 · Applied"
    assert 5_000 < len(shown(changed(old, new, edits=[]), Look(escapes=False, full=True)).split("\n")) < 20_000
    assert changes.counts("@@ -0,0 +1,1 @@\n+ of (+7 -8)\n") == "+1 -0"


def test_what_a_diff_holds_cannot_pass_for_a_part_of_it() -> None:
    block = changed("@@ -1,1 +1,1 @@\n\\ a\n-b\nx\n", "@@ -1,1 +1,1 @@\n\\ a\n-b\n\x1b[2Jx\r\n")
    assert shown(block).split("\n")[1:6] == [
        "  │ 1  @@ -1,1 +1,1 @@",
        "  │ 2  \\ a",
        "  │ 3  -b",
        "  │ 4 -x",
        "  │ 4 +␛[2Jx",
    ]


def command(content: str, took_ms: int = 1200, *, ok: bool = True, look: Look | None = None) -> list[str]:
    ended = f"2026-01-01T00:00:{took_ms // 1000:02d}.{took_ms % 1000:03d}Z"
    result = ToolResult(tool_call_id="x", name="shell", content=content, ok=ok, created_at=ended)
    block = Call(call=ToolCall("x", "shell", {"command": "make"}), result=result, started_at=AT)
    return shown(block, look).split("\n")


@pytest.mark.parametrize(
    ("content", "ok", "took_ms", "lines"),
    [
        ("(no output)", True, 40, ["  ╰ ok · exit status 0 · 0 s"]),
        ("built", True, 1200, ["  ╰ ok · exit status 0 · 1.2 s · built"]),
        ("a\nb", True, 59_000, ["  │ a", "  │ b", "  ╰ ok · exit status 0 · 59 s"]),
        ("Error: exit status 2\na\nb", False, 300, ["  │ a", "  │ b", "  ╰ failed · exit status 2 · 0.3 s"]),
        ("Error: exit status 1", False, 300, ["  ╰ failed · exit status 1 · 0.3 s"]),
        ("Error: killed by SIGKILL\na", False, 300, ["  ╰ failed · killed by SIGKILL · 0.3 s · a"]),
        ("Error: timed out after 2 s", False, 2000, ["  ╰ failed · timed out after 2 s · 2 s"]),
        ("Error: cancelled by the user\na", False, 2000, ["  ╰ cancelled by the user · 2 s · a"]),
        ("Error: interrupted: the worker died", False, 2000, ["  ╰ failed · interrupted: the worker died"]),
        ("exit status 0\nb", True, 0, ["  │ exit status 0", "  │ b", "  ╰ ok · exit status 0 · 0 s"]),
    ],
)
def test_a_command_says_how_it_ended_and_how_long_it_took(
    content: str, ok: bool, took_ms: int, lines: list[str]
) -> None:
    assert command(content, took_ms, ok=ok)[1:] == lines


def test_of_a_long_output_the_end_is_shown_too() -> None:
    lines = command("\n".join(f"step {i}" for i in range(1, 101)))
    assert lines[1:6] == [*(f"  │ step {i}" for i in range(1, 5)), "  │ … 88 more lines (Ctrl-O)"]
    assert lines[6:] == [*(f"  │ step {i}" for i in range(93, 101)), "  ╰ ok · exit status 0 · 1.2 s"]
    assert len(command("\n".join("ab"), look=Look(escapes=False))) == 4


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        ("x" * 5000, ["… 3,000 more characters (Ctrl-O)", "x" * 2000]),
        ("a\n" + "x" * 5000, ["… 3,000 more characters (Ctrl-O)", "x" * 2000]),
        ("x" * 5000 + "\na\nb", ["… 1 more line (Ctrl-O)", "a", "b"]),
        (
            "a\n" + "x" * 5000 + "\nb\n" + "x" * 900 + "\n" + "y" * 999,
            ["… 1 more line (Ctrl-O)", "b", "x" * 900, "y" * 999],
        ),
    ],
)
def test_of_an_output_of_long_lines_the_end_is_shown(content: str, ending: list[str]) -> None:
    lines = command(content, look=Look(width=9999, escapes=False))
    assert [line[4:] for line in lines[-1 - len(ending) : -1]] == ending


@pytest.mark.parametrize("command", ["x" * 5000, "\n".join(["step"] * 5000)])
def test_a_long_command_is_cut_once_it_needs_no_approval(command: str) -> None:
    assert len(shown(call("shell", "ok", command=command))) < 2500
    assert "(Ctrl-O)" in shown(call("shell", "ok", command=command))
    assert "(Ctrl-O)" not in shown(call("shell", "ok", command=command), Look(escapes=False, full=True))


def test_a_long_paste_is_cut_on_the_screen_and_whole_in_the_full_view() -> None:
    paste = User(id="u", content="\n".join(map(str, range(10_000))), created_at=AT)
    assert shown(paste).endswith("  59\n  … 9,940 more lines (Ctrl-O)")
    assert shown(paste, Look(escapes=False, full=True)).endswith("  9999")


def test_it_says_who_allowed_and_who_denied() -> None:
    yes = Approval(request_id="r", tool_call_id="x", decision="approved", by="ada", created_at=AT, rule="shell(ls)")
    no = Approval(request_id="r", tool_call_id="x", decision="denied", by="ada", created_at=AT, reason="not now")
    assert "approved by ada, always for shell(ls)" in shown(call("shell", "x\ny", approval=yes, command="ls"))
    assert shown(call("shell", "Error: denied", ok=False, approval=no, command="ls")).split("\n") == [
        "● shell ls",
        "  ╰ denied by ada: not now",
    ]


@pytest.mark.parametrize(
    ("by", "short", "full"),
    [
        ("ada by cass-compose, pid 7", "you in the composer", "you in the composer, pid 7"),
        ("ada by cass approve, pid 7", "you with cass approve", "you with cass approve, pid 7"),
        ("bob by cass-compose, pid 7", "bob in the composer", "bob in the composer, pid 7"),
        ("ada by my by script, pid 7", "you through my by script", "you through my by script, pid 7"),
        ("the rule shell(ls)", "the rule shell(ls)", "the rule shell(ls)"),
        ("the host program", "the host program", "the host program"),
        ("\x1b[2J by \x1b, pid 1", "␛[2J through ␛", "␛[2J through ␛, pid 1"),
    ],
)
def test_who_decided_is_said_in_words_for_people(by: str, short: str, full: str) -> None:
    yes = Approval(request_id="r", tool_call_id="x", decision="approved", by=by, created_at=AT)
    block = call("shell", "x\ny", approval=yes, command="ls")
    look = Look(escapes=False, user="ada")
    assert f"  │ approved by {short}\n" in shown(block, look)
    assert f"  │ approved by {full}\n" in shown(block, Look(escapes=False, user="ada", full=True))


def test_a_pending_approval_shows_the_whole_command_and_that_nothing_bounds_it() -> None:
    command = "\n".join(f"step {i}" for i in range(50))
    request = ApprovalRequest(
        request_id="r", tool_call_id="x", name="shell", arguments={}, reason="it asks", sandboxed=False, created_at=AT
    )
    block = Call(call=ToolCall("x", "shell", {"command": command}), request=request)
    text = "\n".join(line.plain for line in calls.running([block], Look(), 0.0))
    assert "step 49" in text
    assert "waits for approval: it asks" in text
    assert "not sandboxed: this command can do anything you can" in text


def test_within_a_composer_a_pending_call_repeats_nothing_of_what_is_asked_there() -> None:
    request = ApprovalRequest(
        request_id="r", tool_call_id="x", name="shell", arguments={}, reason="it asks", sandboxed=False, created_at=AT
    )
    block = Call(call=ToolCall("x", "shell", {"command": "make"}), request=request)
    lines = [line.plain for line in calls.running([block], Look(is_framed=True), 0.0)]
    assert lines == ["● shell make", "  ╰ waits for your answer"]


def test_a_running_call_shows_its_last_output_and_its_seconds() -> None:
    block = Call(
        call=ToolCall("x", "shell", {"command": "make"}),
        started_at="1970-01-01T00:00:10.000Z",
        output="".join(f"line {i}\n" for i in range(1000)),
    )
    lines = [line.plain for line in calls.running([block], Look(), 75.0)]
    assert lines == ["· shell make", *[f"  │ line {i}" for i in range(994, 1000)], "  ╰ running · 1 min 5 s"]


def test_reasoning_is_one_line_until_it_is_asked_for() -> None:
    answer = Assistant(id="a", content="so", reasoning="one\ntwo", created_at=AT)
    assert shown(answer).split("\n") == ["∴ thought, 2 lines (Ctrl-T)", "", "so"]
    assert "┆ one\n┆ two\n\nso" in shown(answer, Look(reasoning=True, escapes=False))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (TurnEnd(turn="u", answers=("u",), outcome="done", created_at=AT), ""),
        (TurnEnd(turn="u", answers=("u",), outcome="cancelled", created_at=AT), "■ cancelled"),
        (TurnEnd(turn="u", answers=("u",), outcome="failed", error="boom", created_at=AT), "✗ failed: boom"),
        (TurnEnd(turn="u", answers=("u",), outcome="blocked", error="no", created_at=AT), "■ blocked: no"),
        (Assistant(id="a", content="x", created_at=AT, stop="length"), "x\n\n… cut at the output limit"),
        (Notice(level="warning", text="odd"), "! odd"),
    ],
)
def test_how_things_end_in_words(block: Block, text: str) -> None:
    assert shown(block) == text


def test_the_full_view_of_a_done_turn_has_its_tokens() -> None:
    end = TurnEnd(turn="u", answers=("u",), outcome="done", created_at=AT, usage=Usage(1234, 5, 1000))
    assert shown(end, Look(escapes=False, full=True)) == "1,234 tokens in (1,000 cached) · 5 out"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "demo: demo · /w\noffline, no language model"),
        (User(id="u", content="x", created_at=AT, provider="work", model="large"), "last with work: large · /w"),
        (User(id="u", content="x", created_at=AT), "demo: demo · /w"),
    ],
)
def test_the_header_of_a_chat_that_is_gone_on_with_names_what_answered_last(said, words) -> None:
    meta = Meta(chat_id="c-a8f3", created_at=AT, provider="demo", model="demo", cwd="/w")
    text = "\n".join(line.plain for line in render.header(meta, Look(), said))
    assert words in text
    assert ("offline" in text) == (said is None)


def test_the_header_says_that_the_demo_is_no_model() -> None:
    text = shown(Meta(chat_id="c-a8f3", created_at=AT, provider="demo", model="demo", cwd="/w"))
    assert "c-a8f3" in text
    assert "offline, no language model" in text
    assert "FIREWORKS_API_KEY" in text


# ---- links


@pytest.mark.parametrize(
    ("environ", "knows"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "foot"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "6800"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4205"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-256color", "WT_SESSION": "x"}, True),
        ({"TERM": "screen", "TMUX": "x", "VTE_VERSION": "6800"}, False),
        ({"TERM": "screen", "TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a"}, False),
        ({"TERM": "tmux", "TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({"TERM": "dumb", "VTE_VERSION": "6800"}, False),
    ],
)
def test_links_are_ones_to_click_where_the_terminal_has_them(environ: dict[str, str], knows: bool) -> None:
    assert look_for(environ, is_terminal=True).links == knows
    assert not look_for(environ, is_terminal=False).links


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[a](https://x.test/b?c=d&e=%20#f)", "https://x.test/b?c=d&e=%20#f"),
        ("<mailto:a@x.test>", "mailto:a@x.test"),
        ("[a](https://x.test/é漢)", "https://x.test/%C3%A9%E6%BC%A2"),
        ("[a](<https://x.test/%1B]0;x%07 y>)", "https://x.test/%1B%5D0;x%07%20y"),
        ("[a](javascript:x)", None),
        ("[a](file:///etc/passwd)", None),
        ("[a](b.md)", None),
    ],
)
def test_a_link_leads_where_it_says_and_says_where_it_leads(source: str, target: str | None) -> None:
    (line,) = ansi(prose.lines(source, 200), Look(links=True))
    found = re.findall(r"\x1b\]8;id=\d+;([\x21-\x7e]+)\x1b\\", line)
    assert set(found) == ({target} if target else set())
    assert line.count("\x1b]8;") == 2 * len(found)
    assert "\x1b]8;" not in ansi(prose.lines(source, 200), Look())[0]


# ---- colours


@pytest.mark.parametrize(
    ("environ", "is_terminal", "choice", "escapes", "color"),
    [
        ({"TERM": "xterm"}, True, "auto", True, True),
        ({"TERM": "xterm"}, False, "auto", False, False),
        ({"TERM": "dumb"}, True, "auto", False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, "auto", True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, "auto", True, True),
        ({"TERM": "xterm", "CLICOLOR": "0"}, True, "auto", True, False),
        ({"FORCE_COLOR": "1"}, False, "auto", True, True),
        ({"FORCE_COLOR": "0"}, False, "auto", False, False),
        ({"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, False, "auto", True, True),
        ({"TERM": "xterm"}, False, "always", True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, "always", True, True),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, True, "never", False, False),
    ],
)
def test_colours_follow_the_environment(
    environ: dict[str, str], is_terminal: bool, choice: str, escapes: bool, color: bool
) -> None:
    look = look_for(environ, is_terminal, choice)
    assert (look.escapes, look.color) == (escapes, color)


def test_without_colours_there_are_none_and_the_words_are_the_same() -> None:
    for block in blocks_of("text"):
        coloured, mono, bare = (ansi(render.lines(block, look), look) for look in (LOOKS[0], LOOKS[5], LOOKS[6]))
        assert [OUR_SEQUENCES.sub("", line) for line in coloured] == bare
        assert [OUR_SEQUENCES.sub("", line) for line in mono] == bare
        assert not [line for line in mono if re.search(r"\x1b\[[0-9;]*(3|4|9|10)[0-7][;m]", line)]


def test_calls_side_by_side_are_shown_each_with_less_of_it() -> None:
    look = Look(escapes=False, color=False)
    output = "".join(f"line {n}\n" for n in range(9))
    running = [
        Call(call=ToolCall(f"{n}", "agent", {"prompt": f"look {n}\nwell"}), started_at=AT, output=output)
        for n in (1, 2)
    ]
    done = Call(
        call=ToolCall("3", "agent", {"prompt": "look 3"}),
        result=ToolResult(tool_call_id="3", name="agent", content="x", ok=True, created_at=AT),
    )
    lines = ansi(render.now(Now(None, (*running, done), None), [], look, 0.0), look)
    assert [line[2:] for line in lines if line[:1].strip()] == ["agent look 1", "agent look 2", "agent look 3"]
    assert [line for line in lines if "line" in line] == ["  │ line 7", "  │ line 8"] * 2
    assert lines[-1] == "  ╰ ok"


def test_what_an_agent_asks_is_shown_under_its_call() -> None:
    look = Look(escapes=False, color=False)
    request = ApprovalRequest(
        request_id="r",
        tool_call_id="x",
        name="shell",
        arguments={"command": "rm -r a\nrm b"},
        reason="why",
        sandboxed=False,
        created_at=AT,
        agent="2026-06-20-143012-a8f3",
    )
    call = Call(call=ToolCall("x", "agent", {"prompt": "tidy up"}), request=request)
    lines = ansi(render.now(Now(None, (call,), None), [], look, 0.0), look)
    assert [line.strip() for line in lines[:3]] == ["● agent tidy up", "│ shell rm -r a", "│ rm b"]
