"""grep finds what stands in a line, within limits, and ends when it is told to."""

import asyncio
import os
import re
import socket
import subprocess
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from cass import search, tools
from cass.errors import ToolError


@pytest.fixture
def tree(workspace):
    for name, text in {
        "src/app.py": "import os\n\n\ndef main():\n    return Main\n",
        "src/deep/b.txt": "nothing\nmain again\n",
        "README.md": "Main text\n",
        "node_modules/x.js": "main\n",
        ".gitignore": "*.log\n",
        "x.log": "main\n",
    }.items():
        path = workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return workspace


def lines(content: str) -> list[str]:
    *found, last = content.split("\n")
    assert last.startswith("[")
    return found


def test_a_query_is_literal_and_ignores_case(tree):
    assert tree("grep", query="main").split("\n") == [
        "README.md:1:Main text",
        "src/app.py:4:def main():",
        "src/app.py:5:    return Main",
        "src/deep/b.txt:2:main again",
        "[4 matches in 3 files; not entered: node_modules (name one to search it)]",
    ]
    assert tree("grep", query="m.in").startswith("No matches in 4 files")


def test_case_counts_when_asked(tree):
    assert lines(tree("grep", query="Main", case_sensitive=True)) == [
        "README.md:1:Main text",
        "src/app.py:5:    return Main",
    ]


def test_only_the_named_paths_are_searched_even_ignored_and_heavy_ones(tree):
    found = lines(tree("grep", query="main", paths=["x.log", "node_modules", "src/deep"]))
    assert found == ["x.log:1:main", "node_modules/x.js:1:main", "src/deep/b.txt:2:main again"]


def test_what_is_found_is_live_output_too(tree):
    content = tree("grep", query="main")
    assert tree.live.rstrip("\n") == content


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (r"^def \w+\(", ["src/app.py:4:def main():"]),
        (r"return|nothing", ["src/app.py:5:    return Main", "src/deep/b.txt:1:nothing"]),
        (r"(?-i:Main)$", ["src/app.py:5:    return Main"]),
        (r"\s{4}\w", ["src/app.py:5:    return Main"]),
        (r"os$", ["src/app.py:1:import os"]),
        (r"^$", ["src/app.py:2:", "src/app.py:3:"]),
        (r"main\Z", ["src/app.py:5:    return Main"]),
        (r"\Amain", ["README.md:1:Main text", "src/deep/b.txt:2:main again"]),
        (r"a(?!i)", ["src/app.py:4:def main():", "src/deep/b.txt:2:main again"][1:]),
        (r"(n)\1?o", ["src/deep/b.txt:1:nothing"]),
    ],
)
def test_a_regex_is_matched_line_by_line(tree, query, found):
    assert lines(tree("grep", query=query, regex=True)) == found


@pytest.mark.parametrize(
    ("query", "message"),
    [("foo(", "missing ), unterminated subpattern at position 3"), ("*", "nothing to repeat"), ("a\nb", "line break")],
)
def test_a_bad_query_is_explained(tree, query, message):
    with pytest.raises(ToolError, match=re.escape(message)):
        tree("grep", query=query, regex=True)


def test_context_lines_are_marked_and_gaps_shown(workspace):
    (workspace.root / "f").write_text("".join(f"{n}{' hit' if n in (3, 4, 6, 12) else ''}\n" for n in range(1, 14)))
    (workspace.root / "g").write_text("hit\n")
    assert lines(workspace("grep", query="hit", context_lines=1)) == [
        *("f-2-2", "f:3:3 hit", "f:4:4 hit", "f-5-5", "f:6:6 hit", "f-7-7", "--", "f-11-11", "f:12:12 hit", "f-13-13"),
        *("--", "g:1:hit"),
    ]


def test_the_search_stops_at_its_match_limit_and_says_so(workspace):
    (workspace.root / "f").write_text("hit\n" * 5)
    content = workspace("grep", query="hit", max_matches=3)
    assert content.count("f:") == 3
    assert content.endswith("[3 matches in 1 file; stopped at 3 matches, the limit: narrow the query or the paths]")
    assert "stopped" not in workspace("grep", query="hit", max_matches=5)


def test_the_search_stops_at_its_output_limit_and_says_so(workspace):
    (workspace.root / "f").write_text(("hit " + "x" * 200 + "\n") * 1_000)
    content = workspace("grep", query="hit", max_matches=1_000)
    assert len(content) < 2 * search.OUTPUT_BYTES
    assert "stopped at 60,000 bytes, the limit" in content


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        ({"include": "*.py"}, ["src/app.py"]),
        ({"include": "*.{py,md}"}, ["README.md", "src/app.py"]),
        ({"include": ["*.py", "*.md"]}, ["README.md", "src/app.py"]),
        ({"include": "*.py, *.md"}, ["README.md", "src/app.py"]),
        ({"include": "src/**"}, ["src/app.py", "src/deep/b.txt"]),
        ({"include": "./src/*"}, ["src/app.py", "src/deep/b.txt"]),
        ({"include": "src/*.txt"}, []),
        ({"include": "deep/"}, ["src/deep/b.txt"]),
        ({"include": "**/*.txt"}, ["src/deep/b.txt"]),
        ({"include": "src/**/*.txt", "paths": ["src/deep"]}, ["src/deep/b.txt"]),
        ({"exclude": "*.py"}, ["README.md", "src/deep/b.txt"]),
        ({"exclude": "deep"}, ["README.md", "src/app.py"]),
        ({"exclude": "src/"}, ["README.md"]),
        ({"include": "src/**", "exclude": "*.txt"}, ["src/app.py"]),
        ({"include": "*.md", "paths": ["src/app.py"]}, ["src/app.py"]),  # what is named is searched
        ({"include": "*.log"}, []),  # ignored files stay ignored
    ],
)
def test_globs_say_which_files_below_a_directory_are_searched(tree, globs, found):
    content = tree("grep", query="main", show="files", **globs)
    assert content.split("\n")[:-1] == found
    assert content.startswith("No matches in") == (not found)


def test_an_exclude_is_stronger_than_any_ignore_file(tree):
    (tree.root / "src" / ".ignore").write_text("!app.py\n")
    assert "app.py" not in tree("grep", query="main", exclude="*.py", show="files")


def test_files_or_counts_are_shown_in_place_of_lines(tree):
    assert tree("grep", query="main", show="files").split("\n") == [
        *("README.md", "src/app.py", "src/deep/b.txt"),
        "[3 files; not entered: node_modules (name one to search it)]",
    ]
    assert tree("grep", query="main", show="counts", context_lines=2).split("\n") == [
        *("README.md:1", "src/app.py:2", "src/deep/b.txt:1"),
        "[4 matches in 3 files; not entered: node_modules (name one to search it)]",
    ]
    assert (
        tree("grep", query="main", show="counts", max_matches=2)
        .split("\n")[2]
        .startswith("[4 matches in 2 files; stopped at 2 files, the limit")
    )


def test_counts_are_of_whole_large_files(workspace):
    (workspace.root / "f").write_text("hit\nmiss\n" * 1_000_000)
    assert lines(workspace("grep", query="hit", show="counts")) == ["f:1000000"]
    assert lines(workspace("grep", query="hit", show="files")) == ["f"]


def test_a_long_line_is_cut_around_its_match(workspace):  # C-03
    text = "x" * 1_500_000 + "NEEDLE" + "y" * 1_499_994
    (workspace.root / "app.min.js").write_text(text)
    content = workspace("grep", query="NEEDLE")
    assert len(content) < 500
    assert re.search(r"app.min.js:1:\[1,499,853 characters\] x+NEEDLEy+ \[1,499,847 more characters\]", content)


def test_binary_files_are_skipped_which_is_said_where_nothing_is_found(workspace):
    (workspace.root / "b").write_bytes(b"\0\1hit\n")
    assert workspace("grep", query="hit") == "No matches in 1 file; 1 binary file skipped"
    (workspace.root / "t").write_text("hit\n")
    assert workspace("grep", query="hit") == "t:1:hit\n[1 match in 1 file]"


def test_utf_32_is_binary(workspace):
    (workspace.root / "b").write_bytes("hit\n".encode("utf-32"))
    assert workspace("grep", query="hit").startswith("No matches in 1 file")


def test_utf_16_is_searched(workspace):  # C-01
    (workspace.root / "n.txt").write_bytes("hello\r\nwörld\r\n".encode("utf-16"))
    assert lines(workspace("grep", query="wörld")) == ["n.txt:2:wörld"]


@pytest.mark.parametrize("query", ["straße", "STRAßE", "ПРИВЕТ", "привет мир"])
def test_letters_beyond_ascii_are_found_in_either_case(workspace, query):
    (workspace.root / "f").write_text("x\nDie Straße\nПривет Мир\n")
    assert len(lines(workspace("grep", query=query))) == 1


def test_bytes_that_are_not_utf_8_neither_stop_nor_move_anything(workspace):
    (workspace.root / "f").write_bytes(b"caf\xe9\n\xff\xfe\nhit 12\n")
    assert lines(workspace("grep", query="hit")) == ["f:3:hit 12"]
    assert lines(workspace("grep", query=r"^[a-z]+ \d\d$", regex=True)) == ["f:3:hit 12"]


def test_line_ends_of_windows_are_not_part_of_a_line(workspace):
    (workspace.root / "f").write_bytes(b"hit\r\nno\r\n")
    assert lines(workspace("grep", query="t$", regex=True, context_lines=1)) == ["f:1:hit", "f-2-no"]


def test_a_large_file_is_searched_in_blocks(workspace):
    with open(workspace.root / "f", "w") as file:
        for _ in range(40):
            file.write("line of text\n" * 80_000)
        file.write("the needle\n")
    assert lines(workspace("grep", query="needle")) == [f"f:{40 * 80_000 + 1}:the needle"]


def test_pipes_sockets_and_devices_are_never_waited_for(workspace, monkeypatch):  # C-02
    os.mkfifo(workspace.root / "p")
    (workspace.root / "z").symlink_to("/dev/zero")
    (workspace.root / "f").write_text("needle\n")
    monkeypatch.chdir(workspace.root)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        assert lines(workspace("grep", query="needle")) == ["f:1:needle"]
        content = workspace("grep", query="needle", paths=["p", "z", "s", "f"])
    assert content == (
        "f:1:needle\n[1 match in 1 file; p: not a regular file (fifo); "
        "/dev/zero: not a regular file (character device); s: not a regular file (socket)]"
    )


def test_a_missing_path_is_named_and_the_others_are_searched(tree):
    assert tree("grep", query="def", paths=["scr", "src"]).startswith(
        "scr does not exist; there is src\nsrc/app.py:4:def"
    )
    with pytest.raises(ToolError, match="scr does not exist"):
        tree("grep", query="def", paths=["scr"])


def test_nothing_outside_is_found_through_links(tree):  # G-01
    (tree.beside / "secret").write_text("main secret\n")
    (tree.root / "link").symlink_to(tree.beside)
    (tree.root / "file").symlink_to(tree.beside / "secret")
    assert "secret" not in tree("grep", query="main")


@pytest.mark.parametrize(
    ("denied", "found", "note"),
    [
        ("*/secrets*", ["plain", "s[1]"], "2 denied by a rule"),
        ("*/secrets/*", ["plain", "s[1]", "secrets.txt"], "2 denied by a rule"),
        ("{root}/s[1]", ["plain", "secrets.txt", "secrets/a", "secrets/deep/b"], "1 denied by a rule"),
        ("{root}/s[[]1]", ["plain", "secrets.txt", "secrets/a", "secrets/deep/b"], "1 denied by a rule"),
        ("{root}/*", [], "4 denied by a rule"),
        ("{root}", [], ".: denied by a rule"),
        ("*/SECRETS*", ["plain", "s[1]", "secrets.txt", "secrets/a", "secrets/deep/b"], ""),
    ],
)
def test_what_a_rule_denies_is_not_searched_below_a_directory_either(workspace, denied, found, note):
    for name in ("plain", "s[1]", "secrets.txt", "secrets/a", "secrets/deep/b"):
        path = workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("needle\n")
    workspace.denied = ("*/nothing", denied.format(root=workspace.root))
    content = workspace("grep", query="needle")
    assert re.findall(r"^(.*):1:needle$", content, re.MULTILINE) == found
    assert note in content
    if found:
        assert ("denied" in content) == bool(note)


def test_what_a_rule_denies_is_not_searched_when_it_is_named(workspace):
    (workspace.root / "secrets").write_text("needle\n")
    (workspace.root / "plain").write_text("needle\n")
    workspace.denied = ("*/secrets*",)
    content = workspace("grep", query="needle", paths=["plain", "secrets"])
    assert content == "plain:1:needle\n[1 match in 1 file; secrets: denied by a rule]"


def test_names_that_are_not_utf_8_are_shown_and_searched(workspace):
    (workspace.root / os.fsdecode(b"caf\xe9.txt")).write_text("hit\n")
    (workspace.root / os.fsdecode(b"d\xe9")).mkdir()
    (workspace.root / os.fsdecode(b"d\xe9") / "x\ny").write_text("hit\n")
    assert lines(workspace("grep", query="hit")) == [r'"caf\351.txt":1:hit', r'"d\351/x\ny":1:hit']
    assert lines(workspace("grep", query="hit", paths=[r'"d\351"'])) == [r'"d\351/x\ny":1:hit']


def searching(workspace) -> list[int]:
    """Process ids of searches of this workspace."""
    listed = subprocess.run(
        ["pgrep", "-f", "from cass.search import main"], capture_output=True, text=True
    ).stdout.split()
    return [int(pid) for pid in listed if _cwd_is(int(pid), workspace.root)]


def _cwd_is(pid: int, root: Path) -> bool:
    try:
        return os.path.realpath(f"/proc/{pid}/cwd") == str(root)
    except OSError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/cwd"), reason="no /proc here")
def test_cancelling_ends_a_search_that_is_lost_in_a_regex(workspace):
    (workspace.root / "f").write_text("a" * 40 + "!\n")
    arguments = {"query": "(a+)+$", "regex": True}

    async def main() -> None:
        place = workspace.place

        async def call() -> None:
            async with aclosing(tools.find("grep").run(arguments, place)) as pieces:
                async for _ in pieces:
                    pass

        task = asyncio.create_task(call())
        while not searching(workspace):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    deadline = time.monotonic() + 5
    while searching(workspace):
        assert time.monotonic() < deadline
        time.sleep(0.01)
