"""Paths: resolved once, judged by what they are, opened without being led elsewhere."""

import asyncio
import contextlib
import itertools
import os
import threading
import time
from contextlib import aclosing

import pytest

from cass import tools
from cass.errors import ToolError
from cass.names import quoted, unquoted
from cass.tools.paths import reach


@pytest.fixture
def linked(workspace):
    """G-01: links out of the workspace, inside it, and to nowhere yet."""
    (workspace.beside / "victim.txt").write_text("victim\n")
    (workspace.root / "sub").mkdir()
    (workspace.root / "sub" / "real.md").write_text("real\n")
    for name, target in {
        "d": workspace.beside,
        "n.md": workspace.beside / "victim.txt",
        "new.md": workspace.beside / "not-yet.txt",
        "in.md": workspace.root / "sub" / "real.md",
    }.items():
        (workspace.root / name).symlink_to(target)
    return workspace


@pytest.mark.parametrize(
    ("text", "target", "inside"),
    [
        ("d/x", "OUT/x", False),
        ("n.md", "OUT/victim.txt", False),
        ("new.md", "OUT/not-yet.txt", False),
        ("../OUT/victim.txt", "OUT/victim.txt", False),
        ("../W-evil/x", "W-evil/x", False),
        ("d/../W/a", "W/a", True),
        ("in.md", "W/sub/real.md", True),
        ("sub/../a", "W/a", True),
        (".", "W", True),
        ("not/there/yet", "W/not/there/yet", True),
    ],
)
def test_a_path_is_judged_by_where_it_really_leads(linked, text, target, inside):
    found = reach(text, linked.place)
    assert (os.path.relpath(found.path, linked.root.parent), found.inside) == (target, inside)


def test_absolute_paths_and_the_home_directory_are_resolved(linked):
    assert not reach(str(linked.beside / "victim.txt"), linked.place).inside
    assert reach(str(linked.root / "a"), linked.place).inside
    assert reach("~/x", linked.place).path == os.path.realpath(os.path.expanduser("~/x"))


@pytest.mark.parametrize(
    "text",
    [
        *("d", "d/..", "d/x", "n.md", "in.md", "in.md/x", "sub/../d/../W", "nope/../sub", "nope/d", "..", "../..", "/"),
        *("//x", "/..", "/../etc", "./a//b/", "chain", "chain/../x", "up", "up/sub/real.md", "/proc/self", "sub/."),
    ],
)
def test_a_path_is_resolved_as_the_system_does(linked, text):
    (linked.root / "chain").symlink_to("up/d")
    (linked.root / "up").symlink_to("sub/..")
    assert reach(text, linked.place).path == os.path.realpath(linked.root / text).replace("//", "/")


@pytest.mark.parametrize("target", ["l{}", "./l{}/../l{}", "x/" * 500 + "../" * 500 + "l{}"])
def test_a_path_of_too_many_links_is_refused_at_once(workspace, target):
    for number in range(1_500):
        (workspace.root / f"l{number}").symlink_to(target.replace("{}", str(number + 1)))
    begun = time.monotonic()
    with pytest.raises(ToolError, match=r"^the path l0 leads through more than 40 links$"):
        reach("l0", workspace.place)
    assert time.monotonic() - begun < 1


def test_a_path_that_links_make_too_long_is_refused(workspace):
    folder = workspace.root
    for _ in range(3):
        (folder / "l").symlink_to("d/" * 100 + "l")
        folder = folder.joinpath(*["d"] * 100)
        folder.mkdir(parents=True)
    with pytest.raises(ToolError, match=r"^the path l\.\.\. is too deep: 3\d\d levels of 256$"):
        reach("l", workspace.place)


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        *(
            (name, True)
            for name in (".git/hooks/pre-commit", ".git/config", "a/.GIT/config", ".git", ".cass/config.json")
        ),
        *(
            (name, True)
            for name in (".envrc", "sub/.envrc", ".mcp.json", ".vscode/tasks.json", ".idea/runConfigurations/a")
        ),
        *((name, True) for name in ("x/../.git/config", "hooks/x", "sub/../.Envrc")),
        *((name, True) for name in ("a.code-workspace", "a.sublime-project", ".dir-locals.el", ".exrc", ".nvim.lua")),
        *((name, True) for name in (".nvimrc", ".VIMRC", ".claude/settings.json", "a/.cursor/mcp.json", ".fleet/x")),
        *((name, True) for name in (".run/a.run.xml", ".theia/tasks.json", ".pre-commit-config.yaml", ".bashrc")),
        *((name, True) for name in (".github/workflows", ".github/workflows/ci.yml", "a/.GitHub/workflows/ci.yml")),
        *((name, True) for name in (".g\u200cit/config", ".github/actions/a/action.yml", ".helix/languages.toml")),
        *((name, True) for name in ("bare/HEAD", "bare/config", "bare/hooks/update", "new/HEAD", "bare/worktrees/a/x")),
        *((name, False) for name in ("bare/objects/a", "new/config", "new/hooks/x", "config", "head", "info/HEADER")),
        *((name, False) for name in (".github/x", ".gitignore", "git/x", "envrc", ".envrc.example", "cass/x")),
        *((name, False) for name in ("code-workspace", "workflows/ci.yml", "a.sublime-project.md", "xexrc", "a.run")),
    ],
)
def test_files_that_other_programs_run_are_guarded_by_any_spelling_and_link(workspace, text, guarded):
    (workspace.root / ".git" / "hooks").mkdir(parents=True)
    (workspace.root / "bare").mkdir()
    (workspace.root / "bare" / "HEAD").touch()
    (workspace.root / "hooks").symlink_to(".git/hooks")
    assert reach(text, workspace.place, write=True).guarded is guarded


def test_the_home_of_cass_is_private_but_for_reading_its_docs(workspace):
    (workspace.root / "way").symlink_to(workspace.home)
    (workspace.home / "docs").mkdir()
    place = workspace.place
    for name in (str(workspace.home), "way", "way/config.json", "../home/run/x", "way/docs/../config.json"):
        assert reach(name, place).private, name
    assert not reach("way/docs/a.md", place).private
    assert reach("way/docs/a.md", place, write=True).private
    assert not reach("../home-like/x", place).private


def test_the_default_home_is_private_as_well_where_another_is_used(workspace, monkeypatch):
    monkeypatch.setenv("HOME", str(workspace.beside))
    (workspace.beside / ".cass").mkdir()
    (workspace.beside / ".cass" / "providers.json").write_text("needle\n")
    (workspace.root / "way").symlink_to(workspace.beside / ".cass")
    for name in ("~/.cass", "~/.cass/providers.json", "way/providers.json", "../OUT/.cass/x"):
        assert reach(name, workspace.place).private, name
    assert not reach("~/.cassette", workspace.place).private
    assert "providers.json" not in workspace("grep", query="needle", paths=[".."])


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="no /proc here")
def test_environments_and_memory_of_processes_are_private(workspace):
    for name in ("/proc/self/environ", f"/proc/{os.getpid()}/environ", "/proc/1/mem", "/proc/thread-self/environ"):
        assert reach(name, workspace.place).private, name
    assert not reach("/proc/cpuinfo", workspace.place).private


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_grep_does_not_search_processes(workspace):
    content = workspace.outcome("grep", query="^(State|Uid):", regex=True, paths=["/proc"]).content
    assert content.startswith("No matches")


def test_grep_does_not_enter_the_home_of_cass_below_what_it_searches(workspace):
    (workspace.home / "conversations").mkdir()
    (workspace.home / "conversations" / "a.jsonl").write_text("needle\n")
    (workspace.beside / "x").write_text("needle\n")
    assert "a.jsonl" not in workspace("grep", query="needle", paths=[".."])


@pytest.mark.parametrize(
    "name", ["plain", 'a"b', '"', '""', "tab\there", "line\nbreak", os.fsdecode(b"caf\xe9"), "é", "a\\b", '"\\']
)
def test_any_name_is_shown_on_one_line_and_can_be_used_again(workspace, name):
    assert quoted(name).isprintable()
    assert unquoted(quoted(name)) == name
    (workspace.root / name).write_text("found\n")
    assert quoted(name) in workspace("ls")
    assert "found" in workspace("read", files=[quoted(name)])


def test_a_directory_swapped_for_a_link_never_leads_out(workspace):
    """Read and write run while another thread swaps `t` between a directory and a link to the outside."""
    (workspace.beside / "x").write_text("outside\n")
    inner = workspace.root / "t"
    inner.mkdir()
    (inner / "x").write_text("inside\n")
    stop = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            aside = workspace.root / f"aside-{number}"
            for step in (
                lambda aside=aside: os.rename(inner, aside),
                lambda: os.symlink(workspace.beside, inner),
                lambda: os.unlink(inner),
                lambda aside=aside: os.rename(aside, inner),
            ):
                with contextlib.suppress(OSError):  # a write made the directory anew in between
                    step()

    swapping = threading.Thread(target=swap)
    swapping.start()
    done = refused = 0
    try:
        for turn in range(1_000):
            place = workspace.place
            try:
                if not (reach("t/x", place, write=True).inside and reach("t/x", place).inside):
                    continue  # the decision refuses it
                if turn % 2:
                    assert "outside" not in workspace_run(place, "read", {"files": ["t/x"]})
                else:
                    workspace_run(place, "write", {"path": "t/x", "content": f"inside {turn}\n"})
                done += 1
            except ToolError:
                refused += 1
    finally:
        stop.set()
        swapping.join()
    assert done + refused > 0
    assert {path.name: path.read_text() for path in workspace.beside.iterdir()} == {"x": "outside\n"}


def workspace_run(place, tool, arguments):
    """Run a tool with what was decided in `place`."""

    async def main() -> str:
        async with aclosing(tools.find(tool).run(arguments, place)) as pieces:
            return (await anext(pieces)).content

    return asyncio.run(main())
