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
        ("fetch(https://a/*)", True),
        ("ticket(x)", True),
        ("mcp__files__*(x)", True),
        ("tick*(x)", False),
        ("1(x)", False),
        ("a-b", False),
        ("shell(", False),
        ("shell x", False),
        ("", False),
    ],
)
def test_a_rule_is_the_name_of_a_tool_and_maybe_a_pattern(text, is_one):
    assert rules.is_rule(text) == is_one


@pytest.mark.parametrize(
    ("pattern", "url", "covered"),
    [
        ("https://docs.python.org/*", "https://docs.python.org/3/?q=x", True),
        ("https://docs.python.org/*", "http://docs.python.org/3/", False),
        ("https://docs.python.org/*", "https://docs.python.org.evil.example/", False),
        ("https://docs.python.org/*", "https://docs.python.org:8443/", False),
        ("https://docs.python.org/*", "https://evil.example/https://docs.python.org/", False),
        ("https://*.python.org/*", "https://docs.python.org/", True),
        ("https://*.python.org/*", "https://evil.example/x.python.org/", False),
        ("https://*.python.org/*", "https://evil.example/?x.python.org/", False),
        ("*://docs.python.org/*", "http://docs.python.org/", True),
        ("*://docs.python.org/*", "https://evil.example/://docs.python.org/", False),
        ("https://a/b", "https://a/b", True),
        ("https://a/b", "https://a/b/c", False),
        ("https://a/?*", "https://a/bcd", True),
        ("*", "https://a/", True),
        ("*python*", "https://docs.python.org/", False),
        ("https*", "https://a/", False),
    ],
)
def test_a_pattern_covers_a_url_part_by_part(pattern, url, covered):
    rule = (f"fetch({pattern})",)
    assert (rules.covering_url(rule, "fetch", url) is not None) == covered
    assert not covered or rules.mentioning_url(rule, "fetch", url)


@pytest.mark.parametrize("pattern", ["*python*", "https://docs*", "http*", "https://docs.python.org/*", "*/3/"])
def test_what_denies_may_speak_of_any_part_of_a_url(pattern):
    rule = f"fetch({pattern})"
    assert rules.mentioning_url((rule,), "fetch", "https://docs.python.org/3/") == rule
    assert rules.mentioning_url((rule,), "fetch", "ftp://elsewhere/") is None


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
        (Rules(allow=("fetch(docs.python.org)",)), "it must say which hosts and which paths"),
        (Rules(allow=("fetch(https://docs.python.org)",)), "it must say which hosts and which paths"),
        (Rules(allow=("fetch(*python*)",)), "it must say which hosts and which paths"),
        (Rules(deny=("fetch(python.org)",)), "*python.org*"),
        (Rules(allow=("fetch(https://Docs.python.org/*)",)), "lower case"),
        (Rules(allow=("fetch(ftp://a/*)",)), "only http:// and https://"),
        (Rules(allow=("fetch(https://me@a/*)",)), "without user"),
        (Rules(allow=("fetch(https://a:443/*)",)), "without the usual port"),
        (Rules(allow=("fetch(https://b\u00fccher.example/*)",)), "in ASCII"),
        (Rules(allow=("fetch(https://a/)",), deny=("fetch",)), "fetch is stronger"),
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
        Rules(
            allow=("fetch", "fetch(*)", "fetch(*://*/*)", "fetch(https://*.python.org/3/*)", "fetch(http://a:443/*)")
        ),
        Rules(deny=("fetch(*evil*)", "fetch(https://evil*)", "fetch(http:*)"), ask=("fetch(*/secret/*)",)),
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
