"""Rules: their form, what a pattern covers of a command, and which are in vain."""

import re
from pathlib import Path

import pytest

from cass import rules, written
from cass.compound import Uncertain
from cass.rules import Rules


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
    assert rules.is_rule(text) == is_one


@pytest.mark.parametrize(
    ("pattern", "command", "covered"),
    [
        ("git status", "git  'status'", True),
        ("git log *", '"git log" x', False),
        ("git *", "git log --output=x", False),
        ("git log --output=*", "git log --output=x", True),
        ("git log --output=* *", "git log --output=x --outp y", False),
        ("sort *", "sort -o x a", False),
        ("sort *", "sort -rox a", False),
        ("sort *", "sort -rn a", True),
        ("sort -o *", "sort -o x a", True),
        ("fd *", "fd --exec-batch rm", False),
        ("fd *", "fd -X rm", False),
        ("git rebase*", "git rebase -x make", False),
        ("git cherry-pick*", "git cherry-pick -x a", True),
        ("git clone *", "git clone -u make a", False),
        ("git clone *", "git clone --template=x a", False),
        ("git -c *", "git -c a=b log", True),
        ("git -c a=b *", "git -c a=b -c core.pager=x log", False),
        ("git --color *", "git --color -c a=b", False),
        ("git *", "git log -c", True),
        ("git *", "git diff -C", True),
        ("git *", "git -C /tmp/x status", False),
        ("git *", "git config core.pager X", False),
        ("git *", "git --no-pager submodule foreach X", False),
        ("git config *", "git config core.pager", True),
        ("printf *", "printf %s a", True),
        ("printf *", "printf -v PATH /tmp", False),
        ("test *", "test -v 'a[$(touch X)]'", False),
        ("read *", "read 'a[$(touch X)]'", False),
        ("sort *", "sort --compress-program=X a", False),
        ("find *", "find . -name x", True),
        ("find *", "find . -delete", False),
        ("find * -delete", "find . -delete", True),
        ("find * -delete", "find . -exec rm {} + -delete", False),
        ("bash x.sh *", "bash x.sh -v", True),
        ("bash x.sh *", "bash x.sh -c y", True),
        ("bash *", "bash x.sh", False),
        ("sudo apt *", "sudo apt update", True),
        ("sudo *", "sudo apt update", False),
        ("sudo sh *", "sudo sh -c x", False),
        ("/usr/bin/env *", "/usr/bin/env x", False),
        ("timeout 5 make *", "timeout 5 make all", True),
        ("timeout 5 *", "timeout 5 make all", False),
        ("xargs *", "xargs rm", False),
        ("xargs rm", "xargs rm", True),
        ("cat src/*", "cat src/*", True),
        ("cat src/?", "cat src/*", False),
        ("cat src/[!a]", "cat src/?", False),
        ("*", "ls -l", True),
        ("*", "eval ls", False),
    ],
)
def test_a_pattern_covers_a_part_only_with_all_that_it_may_turn_into(pattern, command, covered):
    try:
        found = rules.allowing((f"shell({pattern})",), "shell", command)
    except Uncertain:
        found = [(command, None)]
    assert [rule is not None for _, rule in found] == [covered]


def test_each_part_is_named_with_the_rule_that_allows_it():
    given = ("shell(git status)", "shell(git diff*)")
    assert rules.allowing(given, "shell", "git status && git diff -w; ls") == [
        ("git status", "shell(git status)"),
        ("git diff -w", "shell(git diff*)"),
        ("ls", None),
    ]
    assert rules.allowing(("shell",), "shell", "a; b") == [("a; b", "shell")]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Rules(allow=("read(src/*)",)), "*/src/*"),
        (Rules(deny=("read(./.env)",)), "*/.env"),
        (Rules(deny=("write(~/.ssh/*)",)), "*/.ssh/*"),
        (Rules(allow=("write(/a/../b)",)), "/../"),
        (Rules(allow=("write(/a/)",)), "slash at the end"),
        (Rules(deny=("shell( rm *)",)), "blanks"),
        (Rules(allow=("shell(git * && git *)",)), "part by part"),
        (Rules(allow=("shell(echo $HOME *)",)), "an expansion"),
        (Rules(allow=("shell(make * > log)",)), "redirects"),
        (Rules(allow=("shell(A=1 make *)",)), "sets variables"),
        (Rules(allow=("shell(xargs *)",)), "xargs runs"),
        (Rules(allow=("shell(sudo *)",)), "sudo runs"),
        (Rules(allow=("shell(cd *)",)), "cd runs or changes"),
        (Rules(allow=("shell(ls)",), deny=("shell",)), "shell is stronger"),
        (Rules(allow=("shell(ls)",), ask=("shell(ls)",)), "shell(ls) is stronger"),
        (Rules(ask=("read",), deny=("read",)), "read is stronger"),
    ],
)
def test_a_rule_that_can_never_match_says_why(given, why):
    (text,) = rules.vain(given)
    assert why in text


@pytest.mark.parametrize(
    "given",
    [
        Rules(),
        Rules(allow=("shell",), ask=("shell(git push*)",), deny=("shell(rm *)", "read(*.pem)", "read(/etc/*)")),
        Rules(allow=("shell(git * *)", "shell(*)", "shell(a && b)", "shell(xargs rm)", "shell(sudo apt *)")),
        Rules(allow=('shell(git commit -m "*")', "shell(git log --output=*)", "shell([gG]it ?)", "write(/)")),
        Rules(deny=("shell(*$(*)", "shell(sudo *)", "shell(*>*)"), ask=("shell(* | *)",)),
    ],
)
def test_a_rule_that_can_match_is_not_complained_about(given):
    assert rules.vain(given) == []


DOCUMENTED = (Path(__file__).parents[1] / "docs" / "rules.md").read_text()


def test_the_examples_of_the_documentation_are_as_it_says(home):
    home.make()
    for block in re.findall(r"^```json\n(.*?)^```", DOCUMENTED, re.MULTILINE | re.DOTALL):
        home.config.write_text(block)
        assert written.review(home)[home.config] == (None, [])
        config = written.Written.read(home, None).config
        given = Rules(*(tuple(config.get(key, ())) for key in ("allow", "ask", "deny")))
        assert rules.vain(given) == []
        if given.allow:
            found = rules.allowing(given.allow, "shell", "git status && git diff | head -5")
            assert [rule is not None for _, rule in found] == [True, True, True]
