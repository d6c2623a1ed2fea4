"""Chats that an agent of another chat is: where lists show them, where they are left out, and how they are found."""

import json
import os
import time

import pytest
from stage import end_worker, run, script, wait_for

from cass import catalogue, chat, inbox, presence, records
from cass.home import Files, Home
from cass.records import Assistant, Meta, System, Usage, User

PARENT, CHILD, GRANDCHILD, BRANCH, OTHER = (f"2026-06-20-14301{n}-{name}" for n, name in enumerate("pcgbo"))


def make(home: Home, chat_id: str, cwd, said: str, **more) -> Files:
    home.make()
    at = f"2026-01-01T00:00:{len(catalogue.ids(home)):02}.000Z"
    usage = Usage(100, 10, cost=0.5)
    found = [
        Meta(chat_id=chat_id, created_at=at, provider="p", model="m", cwd=str(cwd), **more),
        System(content="s" * 5000),
        User(id="u", content=said, created_at=at),
        Assistant(id="a", content="yes", created_at=at, usage=usage),
    ]
    home.files(chat_id).chat.write_bytes(b"".join(map(records.encode, found)))
    return home.files(chat_id)


def told(line: str) -> str:
    """What a line says behind the model and what the chat has cost."""
    return line.partition(f"  {'m':20}  $0.5000  ")[2]


@pytest.fixture
def family(home, workspace):
    """A chat, its agent, that one's agent in another directory, a branch, and a chat that has none."""
    make(home, PARENT, workspace, "the work")
    make(home, CHILD, workspace, "a part of it", agent_of=PARENT, depth=1)
    make(home, GRANDCHILD, "/elsewhere", "a part of the part", agent_of=CHILD, depth=2)
    make(home, BRANCH, workspace, "the other way", parent_chat_id=PARENT, branch_from="a", family=PARENT)
    make(home, OTHER, workspace, "something else")


def test_agents_are_left_out_and_counted_at_the_chat_they_work_for(family):
    lines = run("cass", "ls").stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == [OTHER, BRANCH, PARENT]
    assert [told(line) for line in lines] == [
        "    something else",
        "    the other way",
        "+2  the work",
    ]


def test_where_no_chat_has_an_agent_the_list_is_as_before(home, workspace):
    make(home, OTHER, workspace, "something else")
    assert told(run("cass", "ls").stdout.splitlines()[0]) == "something else"


def test_a_tree_shows_agents_and_branches_below_the_chat_they_came_from(family):
    rows = [line.rstrip() for line in run("cass", "ls", "--tree").stdout.splitlines()]
    assert [line[: line.rindex("-") + 2] for line in rows] == [
        OTHER,
        PARENT,
        f"  {BRANCH}",
        f"  {CHILD}",
        f"    {GRANDCHILD}",
    ]
    assert [told(line) for line in rows] == [
        "something else",
        "the work",
        "branch: the other way",
        "agent: a part of it",
        "agent: a part of the part",
    ]


def test_the_tree_of_one_chat_is_that_chat_and_what_came_from_it(family):
    rows = run("cass", "ls", "--tree", CHILD[-6:]).stdout.splitlines()
    assert [line.split()[0] for line in rows] == [CHILD, GRANDCHILD]
    assert [len(line) - len(line.lstrip()) for line in rows] == [0, 2]
    found = json.loads(run("cass", "ls", "--tree", PARENT, "--json").stdout)
    assert [one["chat_id"] for one in found] == [PARENT, BRANCH, CHILD, GRANDCHILD]
    assert run("cass", "ls", CHILD).returncode == 2


def test_as_json_all_are_there_with_what_they_came_from(family):
    found = {one["chat_id"]: one for one in json.loads(run("cass", "ls", "--json").stdout)}
    assert list(found) == [OTHER, BRANCH, GRANDCHILD, CHILD, PARENT]
    of = {chat_id[-1]: (one["agent_of"], one["parent_chat_id"], one["branch_from"]) for chat_id, one in found.items()}
    none = (None, None, None)
    assert of == {"p": none, "c": (PARENT, None, None), "g": (CHILD, None, None), "b": (None, PARENT, "a"), "o": none}


@pytest.mark.parametrize(
    "claims",
    [
        {OTHER: {"agent_of": OTHER}},
        {OTHER: {"agent_of": BRANCH}, BRANCH: {"agent_of": OTHER}},
        {OTHER: {"agent_of": "gone"}, BRANCH: {"parent_chat_id": "gone"}},
        {OTHER: {"agent_of": "../../etc/passwd\x1b[31m"}},
    ],
)
def test_a_tree_hides_nothing_and_ends_whatever_a_file_claims(home, workspace, claims):
    for chat_id, claim in claims.items():
        make(home, chat_id, workspace, "hi", **claim)
    done = run("cass", "ls", "--tree")
    assert sorted(line.split()[0] for line in done.stdout.splitlines()) == sorted(claims)
    assert "\x1b" not in done.stdout
    assert run("cass", "ls").returncode == run("cass", "status", OTHER).returncode == 0


def test_what_is_no_id_makes_no_agent_of_a_chat_in_a_list(home, workspace):
    for number, value in enumerate(("5", '""', '["x"]', "null", "true")):
        line = f'{{"type":"meta","chat_id":"x{number}","created_at":"","cwd":"{workspace}","agent_of":{value}}}\n'
        home.make()
        home.files(f"x{number}").chat.write_text(line)
    assert len(run("cass", "ls").stdout.splitlines()) == 5


def test_an_agent_of_a_chat_elsewhere_is_listed_there_and_where_it_is(home, workspace):
    make(home, PARENT, "/elsewhere", "the work")
    make(home, CHILD, "/elsewhere", "a part of it", agent_of=PARENT)
    assert run("cass", "ls", "--tree").stdout == ""
    make(home, GRANDCHILD, workspace, "here", agent_of=CHILD)
    (alone,) = run("cass", "ls", "--tree").stdout.splitlines()
    assert (alone.split()[0], alone.partition("agent of c: ")[2]) == (GRANDCHILD, "here")
    assert "1 elsewhere: cass ls --all" in run("cass", "ls").stderr
    assert [line.split()[0] for line in run("cass", "ls", "--all", "--tree").stdout.splitlines()] == [
        *(PARENT, CHILD, GRANDCHILD)
    ]


def test_the_latest_chat_is_never_an_agent_and_an_agent_is_found_by_a_part_of_its_id(family, home):
    os.utime(home.files(GRANDCHILD).chat)
    make(home, "2026-06-20-150000-cccc", os.getcwd(), "newest", agent_of=PARENT)
    assert catalogue.find(home, ".").chat_id == OTHER
    assert catalogue.find(home, "cccc").chat_id == "2026-06-20-150000-cccc"


def test_what_is_said_by_and_about_an_agent_says_whose_it_is(family):
    found = run("cass", "grep", "the part").stdout
    assert found.startswith(f"{GRANDCHILD} (agent of c)  2026-01-01  you: ")
    said = [json.loads(line) for line in run("cass", "grep", "part", "--json").stdout.splitlines()]
    assert {one["chat_id"]: one["agent_of"] for one in said} == {GRANDCHILD: CHILD, CHILD: PARENT}
    assert f"- agent of: `{CHILD}`" in run("cass", "export", GRANDCHILD).stdout
    assert "agent of" not in run("cass", "export", PARENT).stdout
    table = run("cass", "stats", "--by", "chat").stdout
    assert f"{CHILD}, agent of p" in table
    rows = json.loads(run("cass", "stats", "--json").stdout)["chat"]
    assert {row["name"]: row.get("agent_of") for row in rows if "agent_of" in row} == {CHILD: PARENT, GRANDCHILD: CHILD}


# ---- status ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def running(files, home, workspace):
    """A chat and its agent, both with a worker, and the function that says what ``cass status`` does."""
    agent = chat.create(home, cwd=workspace, provider="demo", model="demo", system="s", agent_of=files.chat_id)
    for one in (files, agent):
        presence.start(one).wait()
    yield files, agent
    end_worker(agent)


def tails(files: Files, agent: Files) -> tuple[str, str]:
    return files.chat_id[-4:], agent.chat_id[-4:]


def test_running_agents_stand_below_their_chat_and_alone_they_say_whose_they_are(running):
    files, agent = running
    first, second = run("cass", "status").stdout.splitlines()
    assert first.startswith(f"{files.chat_id}  idle")
    assert second.startswith(f"  {agent.chat_id}  idle")
    assert {one["chat_id"]: one["agent_of"] for one in json.loads(run("cass", "status", "--json").stdout)} == {
        files.chat_id: None,
        agent.chat_id: files.chat_id,
    }
    assert run("cass", "status", "--tmux").stdout == f"{files.chat_id[-4:]} idle +1\n"
    end_worker(files)
    (alone,) = run("cass", "status").stdout.splitlines()
    assert alone.startswith(f"{agent.chat_id}  idle")
    assert f"agent of {files.chat_id[-4:]}:" in alone
    assert run("cass", "status", "--tmux").stdout == f"{agent.chat_id[-4:]} idle\n"


def test_an_agent_that_waits_for_the_person_stands_in_the_line_of_tmux(running, home, monkeypatch):
    files, agent = running
    end_worker(agent)
    monkeypatch.setenv("CASS_PROVIDER", "scripted")
    monkeypatch.setenv("CASS_MODE", "workspace-edit")
    home.config.write_text('{"sandbox": false}')
    script(home, {"tool_calls": [{"name": "shell", "arguments": {"command": "true"}}]})
    inbox.put(agent, {"type": "message", "content": "go", "ask": True}, "one")
    presence.start(agent).wait()
    wait_for(lambda: json.loads(run("cass", "status", agent.chat_id, "--json").stdout)[0]["pending"])
    first, second = tails(files, agent)
    waiting = f"{first} idle +1 · {second} #[reverse] awaiting approval #[default]\n"
    assert run("cass", "status", "--tmux").stdout == waiting


# ---- pruning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "left"),
    [
        ({CHILD, GRANDCHILD}, {PARENT, CHILD, GRANDCHILD}),
        ({PARENT, CHILD}, {PARENT, CHILD, GRANDCHILD}),
        ({PARENT, CHILD, GRANDCHILD}, set()),
    ],
)
def test_a_chat_and_its_agents_are_pruned_together_once_all_of_them_are_old(family, home, old, left):
    for chat_id in old:
        os.utime(home.files(chat_id).chat, (time.time() - 1e7,) * 2)
    assert run("cass", "prune", "--chats", "--yes").returncode == 0
    assert set(catalogue.ids(home)) == {BRANCH, OTHER} | left


def test_the_agents_of_a_chat_that_is_gone_are_pruned_by_their_own_age(family, home):
    home.files(PARENT).chat.unlink()
    for chat_id in (CHILD, GRANDCHILD):
        os.utime(home.files(chat_id).chat, (time.time() - 1e7,) * 2)
    assert run("cass", "prune", "--chats", "--yes").returncode == 0
    assert set(catalogue.ids(home)) == {BRANCH, OTHER}
