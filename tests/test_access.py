"""The one decision: what each mode allows, asks and denies, and what rules can change about it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass import access
from cass.access import Action, Allow, Ask, Deny, Mode, Reach, Rules, decide

READ, EDIT, FULL = Mode
NONE = Rules()
IN, OUT = Reach("/w/a"), Reach("/o/a", inside=False)
IN_W, OUT_W = Reach("/w/a", write=True), Reach("/o/a", write=True, inside=False)
GUARDED, GUARDED_W = Reach("/w/.git/config", guarded=True), Reach("/w/.git/config", guarded=True, write=True)
PRIVATE = Reach("/home/p/.cass/config.json", inside=False, private=True)


def kind(decision: access.Decision) -> str:
    return type(decision).__name__


@pytest.mark.parametrize(
    ("tool", "reach", "read_only", "workspace_edit", "full_access"),
    [
        *((tool, IN, "Allow", "Allow", "Allow") for tool in ("ls", "read", "grep")),
        *((tool, OUT, "Deny", "Ask", "Allow") for tool in ("ls", "read", "grep")),
        *((tool, GUARDED, "Allow", "Allow", "Allow") for tool in ("ls", "read", "grep")),
        *((tool, PRIVATE, "Deny", "Deny", "Deny") for tool in ("ls", "read", "grep", "write", "edit")),
        *((tool, IN_W, "Deny", "Allow", "Allow") for tool in ("write", "edit")),
        *((tool, OUT_W, "Deny", "Ask", "Allow") for tool in ("write", "edit")),
        *((tool, GUARDED_W, "Deny", "Ask", "Allow") for tool in ("write", "edit")),
    ],
)
def test_a_mode_decides_by_tool_and_place(tool, reach, read_only, workspace_edit, full_access):
    found = [kind(decide(mode, NONE, Action(tool, (reach,)))) for mode in Mode]
    assert found == [read_only, workspace_edit, full_access]


@pytest.mark.parametrize(("mode", "expected"), [(READ, "Deny"), (EDIT, "Ask"), (FULL, "Allow")])
def test_a_mode_decides_about_commands(mode, expected):
    assert kind(decide(mode, NONE, Action("shell", command="ls"))) == expected


@pytest.mark.parametrize("mode", Mode)
def test_a_tool_that_no_mode_has_is_denied(mode):
    assert kind(decide(mode, Rules(allow=("teleport",)), Action("teleport"))) == "Deny"


@pytest.mark.parametrize(
    ("mode", "reaches", "expected"),
    [
        (READ, (IN, IN), "Allow"),
        (READ, (IN, OUT), "Deny"),
        (EDIT, (IN, OUT), "Ask"),
        (EDIT, (IN, PRIVATE), "Deny"),
        (FULL, (OUT, IN), "Allow"),
        (FULL, (OUT, IN, PRIVATE), "Deny"),
        (READ, (), "Allow"),
    ],
)
def test_every_path_of_a_call_counts(mode, reaches, expected):
    assert kind(decide(mode, NONE, Action("read", reaches))) == expected


def test_reasons_are_for_a_reader_and_name_what_it_is_about():
    denied = decide(READ, NONE, Action("read", (IN, OUT)))
    assert isinstance(denied, Deny)
    assert "/o/a" in denied.reason
    asked = decide(EDIT, NONE, Action("write", (IN_W, OUT_W)))
    assert isinstance(asked, Ask)
    assert "/o/a" in asked.reason
    assert "writes" in asked.reason
    unavailable = decide(READ, NONE, Action("shell", command="ls"))
    assert isinstance(unavailable, Deny)
    assert "grep, ls and read" in unavailable.reason


# ---- rules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "rules", "action", "expected"),
    [
        # allow: spares a question of the mode, never a bound of it
        (EDIT, Rules(allow=("shell(git status)",)), Action("shell", command="git status"), "Allow"),
        (EDIT, Rules(allow=("shell(git status)",)), Action("shell", command="git status -s"), "Ask"),
        (EDIT, Rules(allow=("shell(git *)",)), Action("shell", command="git log -3"), "Allow"),
        (EDIT, Rules(allow=("shell",)), Action("shell", command="a && b"), "Allow"),
        (READ, Rules(allow=("shell",)), Action("shell", command="ls"), "Deny"),
        (READ, Rules(allow=("read(/o/*)",)), Action("read", (OUT,)), "Deny"),
        (EDIT, Rules(allow=("read(/o/*)",)), Action("read", (OUT,)), "Allow"),
        (EDIT, Rules(allow=("read(/o/*)",)), Action("read", (OUT, IN)), "Allow"),
        (EDIT, Rules(allow=("read(/o/*)",)), Action("read", (OUT, Reach("/p", inside=False))), "Ask"),
        (EDIT, Rules(allow=("read(/o/*)", "read(/p)")), Action("read", (OUT, Reach("/p", inside=False))), "Allow"),
        (EDIT, Rules(allow=("read(/o/*)",)), Action("write", (OUT_W,)), "Ask"),
        (EDIT, Rules(allow=("write",)), Action("write", (GUARDED_W,)), "Ask"),
        (EDIT, Rules(allow=("write", "write(/w/.git/*)")), Action("write", (GUARDED_W,)), "Ask"),
        (FULL, Rules(allow=("read",)), Action("read", (PRIVATE,)), "Deny"),
        # ask: makes a question where the mode had none, never opens what it closes
        (FULL, Rules(ask=("shell(git push*)",)), Action("shell", command="git push -f"), "Ask"),
        (FULL, Rules(ask=("shell(git push*)",)), Action("shell", command="true; git push -f"), "Ask"),
        (FULL, Rules(ask=("shell(git push*)",)), Action("shell", command="git pull"), "Allow"),
        (EDIT, Rules(ask=("write(*.lock)",)), Action("write", (Reach("/w/a.lock", write=True),)), "Ask"),
        (READ, Rules(ask=("shell",)), Action("shell", command="ls"), "Deny"),
        (READ, Rules(ask=("read",)), Action("read", (IN,)), "Ask"),
        # deny wins over ask wins over allow
        (FULL, Rules(deny=("shell(rm *)",)), Action("shell", command="rm -r x"), "Deny"),
        (FULL, Rules(deny=("read(*.pem)",)), Action("read", (IN, Reach("/w/key.pem"))), "Deny"),
        (EDIT, Rules(allow=("shell",), ask=("shell",), deny=("shell",)), Action("shell", command="ls"), "Deny"),
        (EDIT, Rules(allow=("shell",), ask=("shell",)), Action("shell", command="ls"), "Ask"),
        # rules that are none match nothing
        (EDIT, Rules(allow=("shell(", "(ls)", "")), Action("shell", command="ls"), "Ask"),
    ],
)
def test_rules_relax_or_narrow_what_is_asked(mode, rules, action, expected):
    assert kind(decide(mode, rules, action)) == expected


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "rm\t-rf x",
        "rm  -rf  x",
        "true; rm -rf x",
        "true;rm -rf x",
        "true && rm -rf x",
        "true || rm -rf x",
        "true | rm -rf x",
        "true & rm -rf x",
        "true\nrm -rf x",
        "echo $(rm -rf x)",
        "echo `rm -rf x`",
        "cat <(rm -rf x)",
        "(rm -rf x)",
        "{ rm -rf x; }",
        "! rm -rf x",
    ],
)
def test_a_deny_rule_also_hits_a_part_of_a_chained_command(command):
    assert kind(decide(FULL, Rules(deny=("shell(rm *)",)), Action("shell", command=command))) == "Deny"


LS = Rules(allow=("shell(ls)", "shell(ls *)", "shell(git status)", "shell(git *)"))
CHAINED = [
    "ls && touch X",
    "ls; touch X",
    "ls | tee X",
    "ls > X",
    "ls >> X",
    "ls 2> X",
    "ls < X",
    "ls\ntouch X",
    "ls\r\ntouch X",
    "ls & touch X",
    "ls || touch X",
    "ls `touch X`",
    "ls $(touch X)",
    "ls ${X:=$(touch X)}",
    "ls $'\\n' X",
    "ls <(touch X)",
    "ls # \n touch X",
    "ls \\\n&& touch X",
    "ls {a,b}",
    "ls ~root",
    "ls 'a' \"b\"",
    "ls !$",
    "env ls",
    "env touch X",
    "FOO=1 ls",
    "FOO=1 touch X",
    "ls\u00a0&& touch X",
    "ls\u00a0X",
    "ls\u2028touch X",
    "ls\x0btouch X",
    "ls\x00touch X",
    "lsX",
    "./ls",
    "/tmp/ls",
    "LS",
    "git",
    "sudo git status",
    "git\u00a0status",
    "",
    " ",
]


@pytest.mark.parametrize("command", CHAINED)
def test_an_allowed_command_covers_nothing_that_is_not_plainly_it(command):
    assert kind(decide(EDIT, LS, Action("shell", command=command))) == "Ask"


SEPARATORS = [";", "&&", "||", "|", "&", "\n", "\r", "$(", "`", ">", ">>", "<", "<(", "|&", "\\\n", "\u00a0;"]


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(["ls", "ls -l", "git status", "git log -3"]),
    st.text(" \t", max_size=2),
    st.sampled_from(SEPARATORS),
    st.text(max_size=20),
)
def test_nothing_behind_a_separator_is_ever_allowed_by_a_pattern(command, space, separator, behind):
    chained = f"{command}{space}{separator}{behind}"
    assert kind(decide(EDIT, LS, Action("shell", command=chained))) == "Ask"


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=30))
def test_what_a_pattern_allows_is_one_plain_command_of_the_allowed_program(command):
    if isinstance(decide(EDIT, LS, Action("shell", command=command)), Allow):
        assert command.split()[0] in ("ls", "git")
        assert not set(command) & set(";&|<>`$()\n\r\\*?[]{}~#!\"'")
        assert command.isascii()
        assert command.isprintable()


# ---- "always" -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (Action("shell", command="git status"), "shell(git status)"),
        (Action("shell", command="a && b"), "shell(a && b)"),
        (Action("read", (OUT, IN)), "read(/o/a)"),
        (Action("write", (OUT_W,)), "write(/o/a)"),
        (Action("read", (OUT, Reach("/p", inside=False))), None),
        (Action("write", (GUARDED_W,)), None),
        (Action("read", (IN,)), None),
    ],
)
def test_always_gives_the_narrowest_rule_that_covers_the_action(action, rule):
    assert access.rule_for(action) == rule


COMMANDS = st.text(st.sampled_from("ls rm-*?[]!()xy;&\n\t\\$é\u00a0"), min_size=1, max_size=12)


@settings(deadline=None, max_examples=300)
@given(COMMANDS, COMMANDS)
def test_always_covers_the_same_command_again_and_no_other(approved, other):
    action = Action("shell", command=approved)
    rules = NONE.allowing(access.rule_for(action))
    assert kind(decide(EDIT, rules, action)) == "Allow"
    if other != approved:
        assert kind(decide(EDIT, rules, Action("shell", command=other))) == "Ask"


@pytest.mark.parametrize(
    ("approved", "other"),
    [("rm *.pyc", "rm -r src x.pyc"), ("ls ?", "ls a"), ("ls [ab]", "ls a"), ("echo [*]", "echo *")],
)
def test_always_for_a_command_with_a_wildcard_is_no_pattern(approved, other):
    action = Action("shell", command=approved)
    rules = NONE.allowing(access.rule_for(action))
    assert kind(decide(EDIT, rules, action)) == "Allow"
    assert kind(decide(EDIT, rules, Action("shell", command=other))) == "Ask"


@pytest.mark.parametrize("path", ["/o/a[1].txt", "/o/a*b", "/o/what?", "/o/(a)", "/o/a\nb"])
def test_always_for_a_path_covers_that_path_alone(path):
    action = Action("read", (Reach(path, inside=False),))
    rules = NONE.allowing(access.rule_for(action))
    assert kind(decide(EDIT, rules, action)) == "Allow"
    assert kind(decide(EDIT, rules, Action("read", (Reach("/o/a1.txt", inside=False),)))) == "Ask"
    assert kind(decide(EDIT, rules, Action("read", (Reach("/o/aXb", inside=False),)))) == "Ask"
    assert kind(decide(EDIT, rules, Action("read", (Reach("/o/whatX", inside=False),)))) == "Ask"


def test_an_allowed_call_names_the_rule_that_spared_the_question():
    assert decide(EDIT, LS, Action("shell", command="git log")) == Allow("shell(git *)")
    assert decide(FULL, LS, Action("shell", command="git log")) == Allow()
    assert decide(EDIT, LS, Action("read", (IN,))) == Allow()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("shell", True),
        ("shell(git *)", True),
        ("read(/a/(b))", True),
        ("shell(a\nb)", True),
        ("teleport(x)", False),
        ("shell(", False),
        ("shell x", False),
        ("", False),
    ],
)
def test_a_rule_is_a_tool_that_exists_and_maybe_a_pattern(text, is_one):
    assert access.is_rule(text) == is_one


# ---- destructive commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "destructive"),
    [
        ("rm x", True),
        ("sudo rm x", True),
        ("ls; rm x", True),
        ("/bin/rm x", True),
        ("git push", True),
        ("git -C a reset --hard", True),
        ("echo x > a", True),
        ("find . -delete", True),
        ("echo x >> a", False),
        ("make 2>&1", False),
        ("ls", False),
        ("git status", False),
        ("grep rm x", True),
        ("cat farm.txt", False),
    ],
)
def test_destructive_commands_are_asked_in_full_access_where_it_is_wanted(command, destructive):
    action = Action("shell", command=command)
    assert kind(decide(FULL, Rules(confirm_destructive=True), action)) == ("Ask" if destructive else "Allow")
    assert kind(decide(FULL, NONE, action)) == "Allow"


def test_modes_go_round_and_widen():
    assert [mode.width for mode in Mode] == [0, 1, 2]
    assert [mode.next for mode in Mode] == [EDIT, FULL, READ]
    assert access.tools(READ) < access.tools(EDIT) == access.tools(FULL)
