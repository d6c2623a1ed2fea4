"""The one decision: what each mode allows, asks and denies, and what rules can change about it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass import access, compound
from cass.access import Action, Allow, Ask, Deny, Effect, Mode, Reach, decide
from cass.rules import Rules

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


PAGE = Action("fetch", url="https://docs.python.org/3/")
PYTHON = "fetch(https://docs.python.org/*)"


@pytest.mark.parametrize(
    ("rules", "read_only", "workspace_edit", "full_access"),
    [
        (Rules(), "Deny", "Ask", "Allow"),
        (Rules(allow=(PYTHON,)), "Allow", "Allow", "Allow"),
        (Rules(allow=("fetch",)), "Allow", "Allow", "Allow"),
        (Rules(allow=("fetch(https://*.python.org/3/*)",)), "Allow", "Allow", "Allow"),
        (Rules(allow=("fetch(https://docs.python.org/2/*)",)), "Deny", "Ask", "Allow"),
        (Rules(allow=("shell", "read", "mcp__*")), "Deny", "Ask", "Allow"),
        (Rules(ask=(PYTHON,)), "Ask", "Ask", "Ask"),
        (Rules(allow=(PYTHON,), ask=("fetch",)), "Ask", "Ask", "Ask"),
        (Rules(allow=(PYTHON,), deny=("fetch(*python*)",)), "Deny", "Deny", "Deny"),
        (Rules(deny=("fetch",)), "Deny", "Deny", "Deny"),
        (Rules(confirm_destructive=True), "Deny", "Ask", "Allow"),
    ],
)
def test_a_mode_and_the_rules_decide_about_a_url(rules, read_only, workspace_edit, full_access):
    assert [kind(decide(mode, rules, PAGE)) for mode in Mode] == [read_only, workspace_edit, full_access]


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://docs.python.org/3/", PYTHON),
        ("https://docs.python.org/", PYTHON),
        ("http://docs.python.org/", "fetch(http://docs.python.org/*)"),
        ("https://docs.python.org:8443/3/", "fetch(https://docs.python.org:8443/*)"),
        ("http://[2001:db8::1]/x", "fetch(http://[[]2001:db8::1]/*)"),
    ],
)
def test_always_is_for_the_pages_of_one_origin(url, rule):
    action = Action("fetch", url=url)
    assert access.rule_for(action) == rule
    assert decide(EDIT, Rules(allow=(rule,)), action) == Allow(rule)
    elsewhere = [
        url.replace("://", "://x."),
        url.replace("://", "://x/"),
        url.replace("/", "/y", 1),
        f"https://e/{url}",
    ]
    for other in elsewhere:
        assert kind(decide(EDIT, Rules(allow=(rule,)), Action("fetch", url=other))) == "Ask"


@pytest.mark.parametrize(
    ("effect", "reaches", "read_only", "workspace_edit", "full_access"),
    [
        ("reads", (), "Allow", "Allow", "Allow"),
        ("reads", (IN,), "Allow", "Allow", "Allow"),
        ("reads", (OUT,), "Deny", "Ask", "Allow"),
        ("writes", (), "Deny", "Ask", "Allow"),
        ("writes", (IN_W,), "Deny", "Allow", "Allow"),
        ("writes", (IN_W, OUT_W), "Deny", "Ask", "Allow"),
        ("writes", (GUARDED_W,), "Deny", "Ask", "Allow"),
        ("runs", (), "Deny", "Ask", "Allow"),
        ("runs", (IN_W,), "Deny", "Ask", "Allow"),
        *((effect, (PRIVATE,), "Deny", "Deny", "Deny") for effect in Effect),
    ],
)
def test_a_tool_of_a_host_program_is_decided_by_what_it_does(effect, reaches, read_only, workspace_edit, full_access):
    action = Action("deploy", reaches, effect=Effect(effect))
    assert [kind(decide(mode, NONE, action)) for mode in Mode] == [read_only, workspace_edit, full_access]


@pytest.mark.parametrize(
    ("reaches", "rule"),
    [((), "deploy"), ((IN_W,), "deploy"), ((OUT_W,), "deploy(/o/a)"), ((OUT_W, IN_W), "deploy(/o/a)")],
)
def test_rules_speak_of_a_tool_of_a_host_program_as_of_any(reaches, rule):
    action = Action("deploy", reaches, effect=Effect.RUNS)
    assert access.rule_for(action) == rule
    assert decide(EDIT, Rules(allow=(rule,)), action) == Allow(rule)
    asked = decide(FULL, Rules(ask=("deploy",)), action)
    assert isinstance(asked, Ask)
    assert asked.reason.startswith("the rule deploy asks")
    assert kind(decide(FULL, Rules(allow=(rule,), deny=("deploy",)), action)) == "Deny"
    assert kind(decide(READ, Rules(allow=(rule,)), action)) == "Deny"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(allow=('ticket(*"id":"42"*)',)), "Allow"),
        (Rules(allow=('ticket(*"id":"43"*)',)), "Ask"),
        (Rules(allow=("ticket",), deny=('ticket(*"42"*)',)), "Deny"),
        (Rules(allow=("ticket",), ask=("ticket",)), "Ask"),
    ],
)
def test_rules_speak_of_what_a_tool_that_is_none_of_cass_is_given(rules, expected):
    action = Action("ticket", effect=Effect.RUNS, given='{"id":"42"}')
    assert kind(decide(EDIT, rules, action)) == expected


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
    every = decide(EDIT, NONE, Action("read", (OUT, IN, Reach("/o/b", inside=False))))
    assert every == Ask("it reads /o/a, /o/b, outside the workspace")
    both = decide(FULL, Rules(ask=("write",)), Action("write", (OUT_W, GUARDED_W)))
    assert both == Ask(
        "the rule write asks; it writes /o/a, outside the workspace; "
        "it writes /w/.git/config, which other programs run or trust"
    )
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
    "ls *",
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
    "git -c core.pager=X log",
    "git log --output=X",
    "git grep -OX a",
    "'ls -l'",
    "",
    " ",
]


@pytest.mark.parametrize("command", CHAINED)
def test_an_allowed_command_covers_nothing_that_is_not_plainly_it(command):
    assert kind(decide(EDIT, LS, Action("shell", command=command))) == "Ask"


CONSTRUCTS = {
    # what a rule or several allow, what the same rules leave to be asked, what `shell(rm *)` denies
    ";": ("ls; git status", "ls; touch X", "ls; rm X"),
    "&&": ("git status && git diff", "ls && touch X", "ls && rm X"),
    "||": ("git status || ls", "ls || touch X", "ls || rm X"),
    "|": ("git log | head -5", "ls | tee X", "ls | rm X"),
    "|&": ("git log |& head -5", "ls |& tee X", "ls |& rm X"),
    "&": ("ls & git status", "ls & touch X", "ls & rm X"),
    "newline": ("ls\ngit status\n", "ls\ntouch X", "ls\nrm X"),
    "$( )": ("echo $(pwd)", "ls $(touch X)", "ls $(rm X)"),
    "$( ) in quotes": ("echo '$(rm X)'", 'ls "$(touch X)"', 'ls "$(rm X)"'),
    "backquotes": ("echo '`rm X`'", "ls `touch X`", "ls `rm X`"),
    "<( )": ("diff <(ls a) <(ls b)", "ls <(touch X)", "ls <(rm X)"),
    "here-doc": ("cat <<< a", "cat <<E\n$(touch X)\nE", "cat <<E\n$(rm X)\nE"),
    "find -exec": ("find . -name '*.py'", "find . -exec touch X ;", "find . -exec rm X \\;"),
    "find -execdir": ("find . -execdir ls {} +", "find . -execdir touch X +", "find . -execdir rm X +"),
    "find -delete": ("find src -type f", "find . -delete", "find . -ok rm X \\;"),
    "find -ok": ("find . -newer a", "find . -ok touch X \\;", "find . -okdir rm X \\;"),
    "xargs": ("ls | xargs ls", "ls | xargs touch", "ls | xargs -0 -n 1 rm X"),
    "env": ("env CI=1 make", "env ls", "env -i A=1 rm X"),
    "sh -c": ("sh -c 'ls; pwd'", "sh -c ls", "sh -c 'ls; rm X'"),
    "sh FILE": ("bash run.sh -v", "bash other.sh", "bash rm X"),
    "bash -lc": ("bash -lc make", "bash -lc ls", "bash -lc 'rm X'"),
    "git -c": ("git -c color.ui=never diff", "git -c core.pager=X log", "git -c a=b push X"),
    "--output=": ("git log --output=log.txt", "git log --output=X", "rm X --output=a"),
    "--outp=": ("git log --oneline", "git log --outp X", "rm X --outp=a"),
    ">": ("make > log", "ls > X", "rm X > a"),
    ">>": ("ls 2>/dev/null >>/dev/null", "ls >> X", "ls >> X; rm X"),
    "<": ("ls </dev/null", "ls < X", "rm X < a"),
    "2>&1": ("ls 2>&1 | head -5", "ls 2>&1 | tee X", "rm X 2>&1"),
    "assignment": ("CI=1 make", "LD_PRELOAD=./X ls", "A=1 rm X"),
    "eval": ("eval ls", "eval 'ls'", "eval 'rm X'"),
    "command": ("command git status", "command touch X", "command rm X"),
    "command -p": ("command git diff -p", "command -p ls", "command -p rm X"),
    "nohup": ("nohup ls -l", "nohup touch X", "nohup rm X"),
    "time": ("time git status", "time touch X", "time rm X"),
    "timeout": ("timeout 9 pytest -q", "timeout 9 ls", "timeout -k 1 9 rm X"),
    "sudo": ("sudo apt update", "sudo ls", "sudo -u root rm X"),
    "comment": ("ls # && touch X", "ls # all\ntouch X", "ls # all\nrm X"),
    "continuation": ("git \\\n status", "ls \\\n&& touch X", "r\\\nm X"),
    "$'..'": ("echo '$' ", "ls $'a'", "$'\\x72m' X"),
    "quotes": ('git commit -m "fix: a; b"', "'ls -l'", "r''m X"),
    "quoted newline": ("git commit -m 'a\n\nb; rm c'", "git\\ status", '"r"m X'),
    "backslash": ("ls a\\ b", "ls \\\r", "r\\m X"),
    "braces": ("echo '{a,b}'", "ls {a,b}", "{rm,X}"),
    "group": ("ls a; ls b", "{ ls; touch X; }", "{ ls; rm X; }"),
    "subshell": ("ls '(a)'", "(ls)", "(ls; rm X)"),
    "!": ("! git status", "! touch X", "! rm X"),
    "if": ("ls if", "if ls; then touch X; fi", "if ls; then rm X; fi"),
    "glob": ("ls src/*.py", "ls *.py", "rm *"),
    "glob in an option": ("ls --ignore=*.py", "ls -*", "rm --x=*"),
    "brackets": ("ls '[a]'", "ls [ab]", "rm [ab]"),
    "~": ("git show HEAD~1", "ls ~root", "rm ~/a"),
    "$HOME": ("ls '$HOME'", "ls $HOME", "rm $HOME"),
    "$IFS": ("ls 'a b'", "ls$IFS-l", "rm${IFS}X"),
    "alias": ("alias ls=ls", "alias git=X\ngit status", "alias a=b; rm X"),
    "function": ("ls 'f()'", "ls() { touch X; }; ls", "f() { rm X; }; f"),
    "cd": ("cd sub && make", "cd sub && ls", "cd sub && rm X"),
    "\\r": ("ls -l", "ls\rtouch X", "ls\r;rm X"),
    "NUL": ("ls -1", "ls\0touch X", "r\0m X"),
    "unicode space": ("git commit -m 'café'", "git\u00a0status", "ls;\u2003rm X"),
    "bidi": ("git commit -m 'ש'", "git commit -m '\u202ea'", "rm X\u202e"),
    "homoglyph": ("ls 'а'", "lѕ", "ls а; rm X"),
    "path": ("./run.sh -v", "./ls", "/bin/rm X"),
}
ALLOWED = Rules(
    allow=tuple(
        f"shell({pattern})"
        for pattern in (
            *("ls", "ls *", "git status*", "git diff*", "git log*", "git commit *", "git show *", "head *", "find *"),
            *("echo *", "xargs *", "env *", "pwd", "cat *", "bash run.sh *", "timeout 9 pytest *", "sudo apt *"),
            *("./run.sh *", "git -c color.ui=never *", "alias *", "cd *", "eval *", "sh *", "bash -lc *"),
            # for exactly this command, as "always" gives them
            *("echo $(pwd)", "cat <<< a", "diff <(ls a) <(ls b)", "xargs ls", "env CI=1 make", "sh -c 'ls; pwd'"),
            *("bash -lc make", "git log --output=log.txt", "make > log", "CI=1 make", "eval ls", "cd sub && make"),
            *("find . -execdir ls {} +", "alias ls=ls"),
        )
    ),
    deny=("shell(rm *)", "shell(git push*)"),
)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_of_the_shell_is_allowed_asked_and_denied(name):
    found = [kind(decide(EDIT, ALLOWED, Action("shell", command=command))) for command in CONSTRUCTS[name]]
    assert found == ["Allow", "Ask", "Deny"]


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_what_rules_deny_is_denied_in_full_access_too_and_nothing_else(name):
    found = [kind(decide(FULL, ALLOWED, Action("shell", command=command))) for command in CONSTRUCTS[name]]
    assert found == ["Allow", "Allow", "Deny"]


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_no_rule_opens_the_shell_in_read_only(name):
    found = [kind(decide(READ, ALLOWED, Action("shell", command=command))) for command in CONSTRUCTS[name]]
    assert found == ["Deny", "Deny", "Deny"]


SEPARATORS = [
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "\n",
    "\r\n",
    " \\\n;",
    "$(",
    "`",
    '"$(',
    "<(",
    "\u00a0;",
    "\u2028",
    "# x\n",
]
CLOSED = {"$(": ")", "`": "`", '"$(': ')"', "<(": ")"}
ALLOWED_ONES = st.sampled_from(["ls", "ls -l", "git status", "git log -3", "git commit -m 'a; b'"])
NOT_ALLOWED = st.sampled_from(
    ["touch X", "tee", "lsX", "./ls", "env ls", "A=1 ls", "ls>X", "t'o'uch X", "'ls -l'", "l\\"]
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(ALLOWED_ONES, st.sampled_from(SEPARATORS[:5])), max_size=3),
    ALLOWED_ONES,
    st.text(" \t", max_size=2),
    st.sampled_from(SEPARATORS),
    NOT_ALLOWED,
    st.text(max_size=10),
)
def test_an_allowed_command_with_one_behind_it_that_is_not_is_never_allowed(
    before, command, space, separator, bad, end
):
    front = "".join(f"{one} {between} " for one, between in before)
    chained = f"{front}{command}{space}{separator}{space}{bad}{CLOSED.get(separator, '')}{end}"
    assert kind(decide(EDIT, LS, Action("shell", command=chained))) == "Ask"


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("ls git -; & | \n \r $()`<>'\" \\ \u00a0 é * { } ~ = # !"), max_size=30))
def test_what_patterns_allow_begins_every_part_with_an_allowed_program(command):
    if isinstance(decide(EDIT, LS, Action("shell", command=command)), Allow):
        assert {part.words[0].value for part in compound.split(command)} <= {"ls", "git", "!"}


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
        ("docker compose rm x", True),
        pytest.param("git a " * 100_000, False, id="very long, decided at once"),
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
