import asyncio
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from unittest.mock import ANY

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cass import branch, chat, jsonl, restore, snapshots, tools
from cass.branch import Kind, Point
from cass.chat import Chat
from cass.home import Files, Home
from cass.records import Assistant, ToolCall, ToolResult, TurnEnd, User
from cass.snapshots import Journal
from cass.tools.paths import Place


class Author:
    """Says something in a chat, and calls tools in it, as a worker does."""

    def __init__(self, files: Files, root: Path, changed=lambda: None, said=lambda _: None) -> None:
        """`changed` hears that files may have changed, `said` that there is a new record."""
        self.files, self.root, self.changed, self.said = files, root, changed, said
        found = chat.read(files)
        self.journal = Journal(files, chat.family(found, files))

    def say(self, text: str) -> None:
        self._append(User(id=jsonl.new_id(), content=text, created_at=jsonl.now()))

    def call(self, *calls: tuple[str, dict]) -> list[str]:
        """One answer with calls; returns what they say. A provider may give all calls one id."""
        of = jsonl.new_id()
        asked = tuple(ToolCall("call", name, arguments) for name, arguments in calls)
        self._append(Assistant(id=of, content="", tool_calls=asked, stop="tool_calls", created_at=jsonl.now()))
        said = [asyncio.run(self._run(of, number, *call)) for number, call in enumerate(calls)]
        return said

    def write(self, name: str, content: str) -> str:
        return self.call(("write", {"path": name, "content": content}))[0]

    async def _run(self, of: str, number: int, name: str, arguments: dict) -> str:
        keep = self.journal.of_call((of, number))
        place = Place(self.root, self.files.home.root, self.files.out, "c", self.files.chat_id, {}, {}, keep=keep)
        async with aclosing(tools.find(name).run(arguments, place)) as pieces:
            async for piece in pieces:
                said = piece.content
        self.changed()
        self._append(ToolResult(tool_call_id="call", name=name, content=said, ok=True, created_at=jsonl.now()))
        return said

    def end(self) -> None:
        found = chat.read(self.files)
        (turn,) = [record.id for record in found if isinstance(record, User)][-1:]
        self._append(TurnEnd(turn=turn, answers=(turn,), outcome="done", created_at=jsonl.now()))

    def _append(self, record) -> None:
        tick()
        held = Chat(self.files, "test")
        held.append(record)
        held.close()
        tick()
        self.said(self)

    def points(self) -> list[Point]:
        return branch.points(chat.read(self.files))

    def plan(self, point: Point) -> list[restore.Step]:
        return restore.plan(self.files, chat.read(self.files), point)

    def restore(self, point: Point) -> list[restore.Step]:
        done = restore.carry_out(self.plan(point), self.journal, self.files.home)
        self.changed()
        tick()
        return done

    def branch(self, point: Point) -> "Author":
        made = branch.branch(self.files, branch.read(self.files), point)
        return Author(made, self.root, self.changed, self.said)


def tick() -> None:
    """Records know milliseconds: what comes after is later."""
    time.sleep(0.0011)


@pytest.fixture
def author(files, workspace):
    return Author(files, workspace)


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def last(author: Author, kind: Kind = Kind.RESULT) -> Point:
    return [point for point in author.points() if point.kind is kind][-1]


# ---- whatever is done, in whatever branch ---------------------------------------------------------------------------


class World:
    """A family of chats at one workspace, and what is known of it by looking: no journal is read here."""

    def __init__(self, home: Home, root: Path) -> None:
        self.root = root
        self.now = tree(root)
        self.changes: list[tuple[str, tuple | None, tuple | None]] = []
        """Path, before and after of each change of ours."""
        self.seen: dict[tuple[str, int], int] = {}
        """How many of them there were at a point of a chat."""
        files = chat.create(home, cwd=root, provider="p", model="m", system="s")
        self.authors = [Author(files, root, self.changed, self.said)]

    def changed(self, ours: bool = True) -> None:
        before, self.now = self.now, tree(self.root)
        for path in sorted(before.keys() | self.now.keys()):
            if ours and before.get(path) != self.now.get(path):
                self.changes.append((path, before.get(path), self.now.get(path)))

    def said(self, author: Author) -> None:
        for point in author.points():
            self.seen.setdefault((author.files.chat_id, point.number), len(self.changes))

    def branch(self, author: Author, point: Point) -> None:
        made = author.branch(point)
        self.authors.append(made)
        for copied in made.points():
            self.seen[made.files.chat_id, copied.number] = self.seen[author.files.chat_id, copied.number]

    def expected(self, author: Author, point: Point) -> dict[str, tuple]:
        """What a restore has to lead to: what our first change after that moment found, where the last one is ours."""
        found = dict(self.now)
        later: dict[str, list] = {}
        for path, *states in self.changes[self.seen[author.files.chat_id, point.number] :]:
            later.setdefault(path, []).append(states)
        for path, all_later in later.items():
            holds, wanted, known = self.now.get(path), all_later[0][0], all_later[-1]
            if (holds and holds[0]) not in [state and state[0] for state in known]:
                continue  # others changed it
            if wanted is None:
                found.pop(path, None)
            else:
                is_theirs = holds and holds[1] not in [state[1] for state in known if state]
                found[path] = (wanted[0], holds[1] if is_theirs else wanted[1])
        return found


OPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "edit", "two", "say", "others", "remove", "chmod", "branch", "restore"]),
        st.integers(0, 3),
        st.integers(0, 30),
        st.sampled_from(("a", "b/c", "b/d")),
    ),
    min_size=4,
    max_size=14,
)


@settings(deadline=None, max_examples=25)
@given(OPS)
@example([("write", 0, 0, "a"), ("branch", 0, 0, "a"), ("write", 1, 0, "a"), ("branch", 1, 3, "a")])
def test_a_restore_leads_to_what_was_there_and_leaves_alone_what_others_did(tmp_path_factory, ops):
    top = tmp_path_factory.mktemp("family")
    root = top / "work"
    root.mkdir()
    (root / "a").write_text("first a")
    world = World(Home(top / "home"), root)
    for count, (op, who, number, name) in enumerate(ops):
        play(world, op, world.authors[who % len(world.authors)], number, name, f"text {count}")


def play(world: World, op: str, author: Author, number: int, name: str, text: str) -> None:
    path = world.root / name
    match op:
        case "write":
            author.write(name, text)
        case "edit" if path.exists():
            author.call(("edit", {"path": name, "edits": [{"old_text": path.read_text(), "new_text": text}]}))
        case "two":
            author.call(*(("write", {"path": other, "content": text + other}) for other in (name, "e")))
        case "say":
            author.say(text)
        case "others":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        case "remove":
            path.unlink(missing_ok=True)
        case "chmod" if path.exists():
            path.chmod([0o755, 0o600, 0o640][number % 3])
        case "branch" | "restore" if points := author.points():
            point = points[number % len(points)]
            if op == "branch":
                world.branch(author, point)
            wanted = world.expected(author, point)
            author.restore(point)
            assert tree(world.root) == wanted
    world.changed(ours=False)


# ---- what is in the way ---------------------------------------------------------------------------------------------


def words(author: Author, steps: list[restore.Step]) -> dict[str, str]:
    return {os.path.relpath(step.path, author.root): step.conflict for step in steps}


def spoil(what: str, path: Path, outside: Path) -> None:
    match what:
        case "changed":
            path.write_text("by others")
        case "removed":
            path.unlink()
        case "link":
            path.unlink()
            path.symlink_to(outside / "file")
        case "directory":
            path.unlink()
            path.mkdir()
        case "fifo":
            path.unlink()
            os.mkfifo(path)
        case "above":
            path.parent.rename(outside / "moved")
            path.parent.symlink_to(outside / "moved")
        case "large":
            os.truncate(path, snapshots.LIMIT + 1)
        case "home":
            path.unlink()


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("changed", "changed by others since"),
        ("removed", "removed by others since"),
        ("link", "a part of its path became a link"),
        ("directory", "not a regular file (directory)"),
        ("fifo", "not a regular file (fifo)"),
        ("above", "a part of its path became a link"),
        ("large", "changed by others since"),
    ],
)
def test_what_others_did_is_said_and_left_alone(author, tmp_path, what, why):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside")
    author.write("sub/one", "before")
    point = last(author)
    author.write("sub/one", "after")
    author.write("two", "new")
    spoil(what, author.root / "sub/one", outside)
    beside = tree(outside)
    assert words(author, author.plan(point)) == {"sub/one": why, "two": ""}
    assert words(author, author.restore(point)) == {"sub/one": why, "two": ""}
    assert (tree(outside), (author.root / "two").exists()) == (beside, False)


@pytest.mark.parametrize("what", ["changed", "removed", "link", "directory", "above"])
def test_what_others_do_between_plan_and_restore_is_left_alone_too(author, tmp_path, what):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside")
    author.write("sub/one", "before")
    point = last(author)
    author.write("sub/one", "after")
    steps = author.plan(point)
    spoil(what, author.root / "sub/one", outside)
    beside = tree(outside)
    (step,) = restore.carry_out(steps, author.journal, author.files.home)
    assert step.conflict
    assert tree(outside) == beside


def test_a_large_file_and_a_pruned_one_cannot_come_back_and_that_is_said(author):
    for name in ("large", "pruned", "grown"):
        author.write(name, f"{name}, begun")
    point = last(author)
    os.truncate(author.root / "large", snapshots.LIMIT + 1)
    author.call(("edit", {"path": "large", "edits": [{"old_text": "begun", "new_text": "end"}]}))
    author.write("pruned", "two")
    author.write("grown", "x" * (snapshots.LIMIT + 1))
    (blob,) = [path for path in author.files.home.blobs.iterdir() if path.read_bytes() == b"pruned, begun"]
    blob.unlink()
    why = {"grown": "too large to be kept", "large": "too large to have been kept"}
    why |= {"pruned": "what it held is not kept any more"}
    assert words(author, author.restore(point)) == why
    assert (author.root / "pruned").read_text() == "two"


def test_a_content_that_was_tampered_with_is_not_brought_back(author):
    author.write("one", "before")
    point = last(author)
    author.write("one", "after")
    for blob in author.files.home.blobs.iterdir():
        blob.write_text("evil")
    assert words(author, author.restore(point)) == {"one": "what it held is not kept any more"}
    assert (author.root / "one").read_text() == "after"


EVIL = b"evil"


def forge(author, **said) -> None:
    """Write a line into the journal as a tool could that nothing holds back, with a content to go with it."""
    home = author.files.home
    state = {"sha256": hashlib.sha256(EVIL).hexdigest(), "mode": 0o644, "size": len(EVIL)}
    home.blobs.mkdir(exist_ok=True)
    home.edits.mkdir(exist_ok=True)
    (home.blobs / state["sha256"]).write_bytes(EVIL)
    given = {"family": author.files.chat_id, "before": state, "after": None, "call": None, "at": "2999"}
    changed = {key: state | value if isinstance(value, dict) else value for key, value in said.items()}
    with open(author.files.edits, "ab") as file:
        file.write(json.dumps(given | changed).encode() + b"\n")


@pytest.mark.parametrize(
    "said",
    [
        {"path": "/tmp/a\0b"},
        {"path": '"/tmp/a\\000b"'},
        {"path": "new"},
        {"path": "~/new"},
        {"path": ""},
        {"path": "/x" * 3000},
        {"path": "/"},
        {"path": "/proc/self/mem"},
        {"path": "/dev/null"},
        {"path": "{home}/config.json"},
        {"path": "{root}/../new"},
        {"path": "{root}/notes.txt"},
        *(
            {"path": "{root}/new", "before": {"sha256": one}}
            for one in ("../../one", "a\0b", "", ".", "x" * 300, "0" * 64)
        ),
        *({"path": "{root}/new", "before": {"mode": one}} for one in (-1, 10**30, "1" * 5000, None)),
        *({"path": "{root}/new", "before": {"size": one}} for one in (-1, 10**30, 1, float("inf"), "x")),
        {"path": "{root}/new", "call": ["a", float("inf")]},
        {"path": "{root}/new", "call": {"a": 1}},
        {"path": 5},
    ],
    ids=lambda said: str(said)[:60],
)
def test_a_forged_line_of_the_journal_changes_nothing_that_no_line_could_change(author, said):
    author.say("begin")
    point = last(author, Kind.USER)
    author.write("one", "after")
    names = {"home": author.files.home.root, "root": author.root}
    path = said["path"].format(**names) if isinstance(said["path"], str) else said["path"]
    forge(author, **said | {"path": path})
    found = author.restore(point)
    assert [step.path for step in found if not step.conflict] == [str(author.root / "one")]
    assert tree(author.root) == {"notes.txt": (b"nothing here\n", 0o644), "app.py": ANY}
    assert not (author.files.home.root / "config.json").exists()


def test_a_plan_says_what_is_outside_and_what_other_programs_run(author, tmp_path):
    author.say("begin")
    point = last(author, Kind.USER)
    for path in (tmp_path / "outside", author.root / ".envrc", author.root / "one", tmp_path / ".bashrc"):
        forge(author, path=str(path))
    said = {line.split()[0]: line.partition("bytes")[2] for line in restore.lines(author.plan(point), str(author.root))}
    assert said == {
        str(tmp_path / "outside"): " (outside the workspace)",
        str(tmp_path / ".bashrc"): " (outside the workspace, other programs run or trust it)",
        ".envrc": " (other programs run or trust it)",
        "one": "",
    }


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_a_journal_that_is_no_file_is_none(author, kind):
    author.write("one", "before")
    point = last(author)
    author.write("one", "after")
    path = author.files.home.edits / "2026-01-01-000000-aaaa.jsonl"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    assert words(author, author.restore(point)) == {"one": ""}


def test_a_file_that_cannot_be_written_stays_and_the_others_go_on(author):
    for name in ("one", "two"):
        author.write(name, "before")
    point = last(author)
    for name in ("one", "two"):
        author.write(name, "after")
    for blob in list(author.files.home.blobs.iterdir()):
        if blob.read_text() != "before":
            blob.unlink()
    author.files.home.blobs.chmod(0o500)
    try:
        done = author.restore(point)
    finally:
        author.files.home.blobs.chmod(0o700)
    if os.getuid():  # nothing stops root
        assert "what it holds cannot be kept" in words(author, done)["one"]


def test_a_program_with_the_rights_of_somebody_does_not_come_back_with_them(author):
    path = author.root / "notes.txt"
    path.chmod(0o4755)
    author.say("begin")
    point = last(author, Kind.USER)
    author.write("notes.txt", "new")
    author.restore(point)
    assert tree(author.root)["notes.txt"] == (b"nothing here\n", 0o755)


def test_a_restore_is_undone_by_the_end_of_the_chat_it_was_made_in(author):
    author.write("one", "before")
    point = last(author)
    author.write("one", "after")
    author.write("two", "new")
    whole = tree(author.root)
    author.restore(point)
    assert tree(author.root) != whole
    author.restore(branch.end(chat.read(author.files)))
    assert tree(author.root) == whole


def test_going_to_and_fro_between_two_branches_brings_the_files_of_each(author):
    author.write("one", "common")
    other = author.branch(last(author))
    author.write("one", "here")
    author.write("two", "here")
    here = tree(author.root)
    other.restore(last(author))  # a call of the other branch: this one's moment before it began
    other.restore(branch.end(chat.read(other.files)))
    other.write("one", "there")
    there = tree(author.root)
    assert there != here
    for _ in range(2):
        author.restore(branch.end(chat.read(author.files)))
        assert tree(author.root) == here
        other.restore(branch.end(chat.read(other.files)))
        assert tree(author.root) == there


RESTORES = """
import sys
from pathlib import Path
from cass import branch, chat, restore
from cass.home import Home
from cass.snapshots import Journal
files = Home(Path(sys.argv[1])).files(sys.argv[2])
found = chat.read(files)
steps = restore.plan(files, found, branch.find(found, sys.argv[3]))
print(len(steps), flush=True)
for step in steps:
    restore.carry_out([step], Journal(files, chat.family(found, files)), files.home)
    print(step.path, flush=True)
"""


@pytest.mark.parametrize("after", [1, 2, 5, 9])
def test_a_restore_that_is_killed_can_be_done_again(author, after):
    calls = [(f"d/{n}", f"old {n}" * 1000) for n in range(10)]
    author.call(*(("write", {"path": path, "content": text}) for path, text in calls))
    point, old = last(author), tree(author.root)
    author.call(*(("write", {"path": path, "content": "new"}) for path, _ in calls))
    new = tree(author.root)
    arguments = [str(author.files.home.root), author.files.chat_id, str(point.number)]
    process = subprocess.Popen([sys.executable, "-c", RESTORES, *arguments], stdout=subprocess.PIPE, text=True)
    for _ in range(after + 1):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    found = {path: state for path, state in tree(author.root).items() if not path.endswith(".tmp")}
    assert all(state in (old[path], new[path]) for path, state in found.items())
    author.restore(point)
    assert {path: tree(author.root)[path] for path in old} == old
    author.restore(branch.end(chat.read(author.files)))
    assert {path: tree(author.root)[path] for path in new} == new
