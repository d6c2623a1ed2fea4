"""Never outside: a hostile process that swaps directories and files for links, and forests of random links."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import aclosing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cass import tools
from cass.access import Action, Allow, Mode, decide
from cass.errors import ToolError
from cass.rules import Rules
from cass.tools.paths import reach

SECRET = "what is outside"
SWAPS = 100_000
ENOUGH_S = 10.0
PATIENCE_S = 120.0

# Swaps each pair of names in one step, as fast as it can, until its input ends and it has done so often enough.
SWAPPER = """
import ctypes, os, select, sys
libc, count = ctypes.CDLL(None), 0
pairs = [tuple(os.fsencode(name) for name in pair.split("=")) for pair in sys.argv[2:]]
while count < int(sys.argv[1]) or not select.select([0], [], [], 0)[0]:
    for _ in range(500):
        for one, other in pairs:
            if libc.renameat2(-100, one, -100, other, 2):
                sys.exit("renameat2 failed")
            count += 1
print(count)
"""


def call(name: str, arguments: dict[str, object], place) -> str | None:
    """What a call gives as the worker makes it in workspace-edit, unasked; None where it may not run, or fails."""
    tool = tools.find(name)

    async def main() -> str:
        async with aclosing(tool.run(arguments, place)) as pieces:
            return "".join([piece if isinstance(piece, str) else piece.content async for piece in pieces])

    try:
        action: Action = tool.action(arguments, place)
        if not isinstance(decide(Mode.WORKSPACE_EDIT, Rules(), action), Allow):
            return None
        return asyncio.run(main())
    except ToolError:
        return None


def snapshot(top) -> dict[str, object]:
    """All below a directory, with contents, kinds and times."""
    found = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(top))] = (status.st_mode, status.st_mtime_ns, content)
    return found


CALLS = [
    ("read", {"path": "t/x"}),
    ("read", {"path": "f"}),
    ("write", {"path": "t/x", "content": "inside\n"}),
    ("write", {"path": "t/new/x", "content": "inside\n"}),
    ("write", {"path": "f", "content": "inside\n"}),
    ("edit", {"path": "t/x", "edits": [{"old_text": "inside", "new_text": "inside"}]}),
    ("edit", {"path": "t/x", "edits": [{"old_text": "outside", "new_text": "changed"}]}),
    ("edit", {"path": "f", "edits": [{"old_text": "outside", "new_text": "changed"}]}),
    ("ls", {"path": "t"}),
    ("ls", {"path": "t/sub"}),
]


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2")
def test_a_process_that_swaps_directories_for_links_never_gets_a_tool_outside(workspace):
    (workspace.beside / "sub").mkdir()
    for path in (workspace.beside / "x", workspace.beside / "sub" / "only-outside"):
        path.write_text(SECRET + "\n")
    inner = workspace.root / "t"
    (inner / "sub").mkdir(parents=True)
    (inner / "x").write_text("inside\n")
    (workspace.root / "f").write_text("inside\n")
    (workspace.root / "evil").symlink_to(workspace.beside)
    (workspace.root / "evil-f").symlink_to(workspace.beside / "x")
    before = snapshot(workspace.beside)
    swapper = subprocess.Popen(
        [sys.executable, "-I", "-c", SWAPPER, str(SWAPS), "t=evil", "f=evil-f"],
        cwd=workspace.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    ran, said, enough = 0, [], time.monotonic() + ENOUGH_S
    try:
        for turn in range(4_000):
            if turn in (50, 200):
                said.append(call("grep", {"query": "outside", "paths": ["t"]}, workspace.place))
            found = call(*CALLS[turn % len(CALLS)], workspace.place)
            ran += found is not None
            said.append(found)
            if ran > 20 and (turn >= 400 or time.monotonic() > enough):
                break  # a busy machine has other things to do, and lets through fewer
        out, _ = swapper.communicate(timeout=PATIENCE_S)
    finally:
        swapper.kill()
        swapper.wait()
    assert int(out) >= SWAPS
    assert ran > 20, "the race let nothing through: it showed nothing"
    texts = "\n".join(filter(None, said))
    assert SECRET not in texts
    assert "only-outside" not in texts
    assert snapshot(workspace.beside) == before


# ---- forests of links -----------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", ".."])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TARGETS = st.one_of(
    PATHS, PATHS.map("W/{}".format), PATHS.map("OUT/{}".format), st.sampled_from([".", "/", "..", "OUT"])
)
FORESTS = st.lists(st.tuples(PATHS, st.sampled_from(["link", "absolute", "file", "directory"]), TARGETS), max_size=8)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FORESTS, st.lists(PATHS, min_size=1, max_size=2))
def test_no_forest_of_links_leads_a_tool_outside(workspace, forest, asked):
    for top in (workspace.root, workspace.beside):
        shutil.rmtree(top)
        (top / "a").mkdir(parents=True)
        (top / "a" / "b").write_text(SECRET if top == workspace.beside else "inside")
    for at, kind, target in forest:
        grow(workspace, at, kind, target)
    before = snapshot(workspace.beside)
    for text in asked:
        place = workspace.place
        try:
            found = reach(text, place, write=True)
        except ToolError:
            continue  # links that lead to themselves
        assert found.inside == f"{os.path.realpath(workspace.root / text)}/".startswith(f"{workspace.root}/")
        said = [
            call("write", {"path": text, "content": "written"}, place),
            call("edit", {"path": text, "edits": [{"old_text": SECRET, "new_text": "x"}]}, workspace.place),
            call("read", {"path": text}, workspace.place),
            call("ls", {"path": text}, workspace.place),
        ]
        assert SECRET not in json.dumps(said)
    assert snapshot(workspace.beside) == before


def grow(workspace, at: str, kind: str, target: str) -> None:
    """Make one thing in the workspace, where it can be made."""
    parts = [part for part in at.split("/") if part != ".."] or ["a"]
    path = workspace.root.joinpath(*parts)
    try:
        if not f"{os.path.realpath(path.parent)}/".startswith(f"{workspace.root}/"):
            return  # what is outside is nobody's to change, here too
        path.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "link":
                path.symlink_to(target)
            case "absolute":
                path.symlink_to(workspace.root.parent / target)
            case "file":
                path.write_text("inside")
            case _:
                path.mkdir()
    except OSError:
        return


def test_a_hard_link_to_a_guarded_file_changes_only_its_own_name(workspace):
    guarded = workspace.root / ".git" / "config"
    guarded.parent.mkdir()
    guarded.write_text("[core]\n")
    for name, arguments in {
        "write": {"content": "[alias] x = !touch PWNED\n"},
        "edit": {"edits": [{"old_text": "[core]", "new_text": "[alias] x = !touch PWNED"}]},
    }.items():
        os.link(guarded, workspace.root / name)
        assert "hard link" in workspace(name, path=name, **arguments)
        assert guarded.read_text() == "[core]\n"
        assert "PWNED" in (workspace.root / name).read_text()
