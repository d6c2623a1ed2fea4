"""Compound commands: the parts that bash would run, or why they are uncertain."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass import compound
from cass.compound import Uncertain


def values(command: str) -> list[list[str]]:
    return [part.values for part in compound.split(command)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls", [["ls"]]),
        ("  ls   -l\t", [["ls", "-l"]]),
        ("a;b&&c||d|e|&f&g\nh", [[c] for c in "abcdefgh"]),
        ("a;\n\n b &\n", [["a"], ["b"]]),
        ("a &&\n b", [["a"], ["b"]]),
        ("a 'b; c' \"d && e\" f\\;g", [["a", "b; c", "d && e", "f;g"]]),
        ("a ''\"\" b", [["a", "", "b"]]),
        ('a "\\$ \\` \\" \\\\ \\n"', [["a", '$ ` " \\ \\n']]),
        ("a 'b\n\nc'", [["a", "b\n\nc"]]),
        ('a \\\n b "c\\\nd"', [["a", "b", "cd"]]),
        ("a # b; c\nd #", [["a"], ["d"]]),
        ("a b#c '#d'", [["a", "b#c", "#d"]]),
        ("a 2>&1 >/dev/null 2> /dev/null &>/dev/null </dev/null b", [["a", "b"]]),
        ("a > b c", [["a", "c"]]),
        ("a src/*.py --x=*", [["a", "src/*.py", "--x=*"]]),
        ("a 'ü ש 漢'", [["a", "ü ש 漢"]]),
        ("A=1 b", [["A=1", "b"]]),
        ("! a; time b", [["!", "a"], ["time", "b"]]),
    ],
)
def test_a_command_is_split_as_bash_does(command, expected):
    assert values(command) == expected


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "no command"),
        ("# only a comment", "no command"),
        ("a $b", r"expansion"),
        ("a `b`", "backquotes"),
        ('a "$(b)"', "quote"),
        ("(a)", "parentheses"),
        ("{ a; }", "braces"),
        ("a [b]", "brackets"),
        ("a 'b", "not closed"),
        ("a <<E\nE", "here-document"),
        ("a <(b)", "something else than a file"),
        ("a >&b c", "something else than a file"),
        ("a > 2>&1 b", "something else than a file"),
        ("a ;; b", "nothing stands before"),
        ("&& a", "nothing stands before"),
        ("a &&", "not finished"),
        ("a |\n", "not finished"),
        ("a >", "without a file"),
        ("a > ; b", "without a file"),
        ("a *", "wildcard"),
        ("a -*", "wildcard"),
        ("* a", "wildcard"),
        ("a 'b'*", "wildcard"),
        ("a ~", "home directory"),
        ("if a", "the word if"),
        ("! if a", "the word if"),
        ("a\u00a0b", "unusual"),
        ("a 'b\u202ec'", "invisible"),
        ("a 'b\rc'", "invisible"),
        ("a\rb", "carriage return"),
        ("é", "unusual"),
        ("a \\\r", "unusual"),
        ("a\0b", "unusual"),
        ("a\\\nb", "a backslash"),
        ("a 2\\\n>b", "a backslash"),
        ("a # b\rc", "invisible"),
        ("a " * 40_000, "too long"),
        ("a;" * 201, "too many parts"),
    ],
)
def test_what_is_uncertain_says_why(command, why):
    with pytest.raises(Uncertain, match=why):
        compound.split(command)


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("g'it'  st\"atus\"", "git status"),
        ('git commit -m "it\'s"', "git commit -m 'it'\"'\"'s'"),
        ("'git status'", "'git status'"),
        ("a ''", "a ''"),
        ("git show HEAD~1", "git show HEAD~1"),
    ],
)
def test_what_means_the_same_has_one_spelling(command, plain):
    assert [part.plain for part in compound.split(command)] == [plain]


# A command that bash does not find is handed to this function; with no PATH that is every one.
HANDLE = '() { printf "%s\\0" "$#" "$@" >>"$LOG"; }'
TEXTS = st.lists(
    st.sampled_from(
        ["a", "b", " ", " ", "-", "\n", ";", "&&", "||", "|", "&", "'", '"', "\\", "#", "$", "`", "(", ")", "{", "}"]
        + ["<", ">", "2", ">&1", "2>/dev/null", "!", "~", "=", ",", "\t", "\r", "*", "[", "]", "^", "%", ":", "\\\n"]
    ),
    max_size=14,
).map("".join)


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    """What bash runs for a command: the words of each program."""
    place = Path(tmp_path_factory.mktemp("bash"))
    log = place.parent / "log"
    environ = {"PATH": "/nowhere", "LOG": str(log), "BASH_FUNC_command_not_found_handle%%": HANDLE, "HOME": "/nowhere"}

    def run(command: str) -> list[list[str]]:
        log.write_bytes(b"")
        subprocess.run(
            ["/bin/bash", "-c", command + "\nwait"],
            cwd=place,
            env=environ,
            capture_output=True,
            timeout=10,
            check=False,
        )
        for made in place.iterdir():
            made.unlink()
        words, found = log.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1], []
        while words:
            count = int(words[0])
            found.append(words[1 : count + 1])
            words = words[count + 1 :]
        return found

    return run


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs bash")
@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_bash_runs_nothing_that_a_split_does_not_name(bash, text):
    command = f"a {text}"
    try:
        parts = [part.values[at:] for part in compound.split(command) for at in range(len(part.words))]
    except Uncertain:
        return
    assert [words for words in bash(command) if words not in parts] == []


@pytest.mark.parametrize(
    "command",
    ["rm x", "rm  x", "'rm' x", "r\\m x", "/bin/rm x", "env -i A=1 rm x", "sudo -u root rm x", "a; rm x", "$(rm x)"]
    + [
        "sh -c 'rm x'",
        "eval rm x",
        "xargs -0 rm x",
        "find . -exec rm x",
        "$'\\162m' x",
        "$'\\x72\\u006d' x",
        "rm$IFS'x'",
    ]
    + ["nice -n 5 rm x", "timeout 5 rm x", "{rm,x}", "if rm x", "A=1 B=2 rm x", "r\\\nm x", "nohup time rm x"],
)
def test_what_a_command_runs_is_found_in_the_easy_spellings(command):
    assert "rm x" in compound.mentions(command)


@pytest.mark.parametrize("command", ["echo 'a; rm x'", "git commit -m 'rm x'", "ls # rm x"])
def test_what_only_looks_like_a_command_is_none(command):
    assert "rm x" not in compound.mentions(command)


@pytest.mark.parametrize("text", ["-exec ", "env ", "a;", "$(", "'a' ", "A=1 ", "{", "\\", "sh -c '"])
def test_a_command_made_to_be_slow_is_not(text):
    assert sum(map(len, compound.mentions(text * 10_000))) < 100_000_000
