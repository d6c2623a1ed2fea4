import dataclasses
import resource
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import wait_for

from cass import branch, catalogue, chat, context, ends, jsonl, records, standing
from cass.branch import Kind
from cass.ends import open_calls, open_turn
from cass.errors import CassError, UsageError
from cass.records import (
    Approval,
    Assistant,
    Meta,
    System,
    ToolCall,
    ToolResult,
    TurnEnd,
    Usage,
    User,
)

AT = "2026-06-20T10:00:00.000Z"


def user(id: str, text: str = "") -> User:
    return User(id=id, content=text or f"message {id}", created_at=AT)


def answer(id: str, *calls: str, text: str = "", **more: object) -> Assistant:
    asked = tuple(ToolCall(call, "read", {"path": f"{call}.txt"}) for call in calls)
    return Assistant(id=id, content=text, tool_calls=asked, usage=Usage(10, 1), created_at=AT, **more)


def result(call: str) -> ToolResult:
    return ToolResult(tool_call_id=call, name="read", content=f"content of {call}", ok=True, created_at=AT)


def ended(*answers: str) -> TurnEnd:
    return TurnEnd(turn=answers[0], answers=answers, outcome="done", usage=Usage(20, 2), created_at=AT)


APPROVAL = Approval(request_id="r", tool_call_id="c1", decision="approved", by="a test", created_at=AT)
SAID = [
    user("u1"),
    answer("a1", "c1", "c2", text="I look"),
    APPROVAL,
    result("c1"),
    result("c2"),
    answer("half", text="half of", stop="error"),
    answer("a2", text="That is it."),
    ended("u1"),
    user("u2"),
    answer("a3", "c1", "c3"),
    result("c1"),
    user("u3", "rather not"),
    answer("a4", text="As you like."),
    ended("u2", "u3"),
]
POINTS = [
    (1, "user", "u1"),
    (2, "assistant", "a1"),
    (3, "call", "c1"),
    (4, "result", "c1"),
    (5, "call", "c2"),
    (6, "result", "c2"),
    (7, "assistant", "a2"),
    (8, "user", "u2"),
    (9, "assistant", "a3"),
    (10, "call", "c1"),
    (11, "result", "c1"),
    (12, "user", "u3"),
    (13, "assistant", "a4"),
]


def fill(files, said=SAID):
    with open(files.chat, "ab") as file:
        file.write(b"".join(map(records.encode, said)))
    return files


def briefly(found) -> list[tuple]:
    return [(point.number, point.kind, point.id) for point in branch.points(found)]


def at(files, number: int):
    return branch.points(chat.read(files))[number - 1]


def go(files, number: int):
    return branch.branch(files, branch.read(files), at(files, number))


def test_the_points_are_messages_calls_and_results_in_order(files):
    assert briefly(chat.read(fill(files))) == POINTS


def test_a_call_that_runs_is_a_point_and_one_that_waits_is_none(files):
    fill(files, [user("u1"), answer("a1", "c1", "c2")])
    assert briefly(chat.read(files)) == [(1, "user", "u1"), (2, "assistant", "a1"), (3, "call", "c1")]


@pytest.mark.parametrize("number", [point[0] for point in POINTS])
def test_a_branch_at_any_point_is_a_whole_chat_with_the_bytes_of_its_parent(files, number):
    before = fill(files).chat.read_bytes()
    point = at(files, number)
    made = go(files, number)
    assert files.chat.read_bytes() == before
    found = chat.read(made)
    assert (open_calls(found), open_turn(found)) == ([], ())
    lines, parent = made.chat.read_bytes().splitlines(), before.splitlines()
    assert lines[1 : point.end] == parent[1 : point.end]
    assert briefly(found) == [p for p in POINTS[:number] if p[1] != "user" or p[0] < number][: len(briefly(found))]
    first = chat.meta(found)
    assert (first.chat_id, first.parent_chat_id, first.branch_from) == (made.chat_id, files.chat_id, point.id)
    assert (first.family, first.cwd) == (files.chat_id, chat.meta(chat.read(files)).cwd)
    assert stat.S_IMODE(made.chat.stat().st_mode) == 0o600


def test_a_message_goes_into_the_draft_to_be_written_anew(files):
    made = go(fill(files, [user("u1", "with\ntwo lines"), answer("a1"), ended("u1")]), 1)
    assert made.draft.read_text() == "with\ntwo lines"
    assert [type(record) for record in chat.read(made)] == [Meta, System]
    assert not go(files, 2).draft.exists()


def test_calls_that_had_not_run_say_so_and_the_turn_ends_with_what_it_used(files):
    made = go(fill(files), 4)
    *_, not_run, end = chat.read(made)
    assert (not_run.tool_call_id, not_run.content, not_run.ok) == ("c2", branch.NOT_RUN, False)
    assert (end.turn, end.answers, end.outcome, end.usage) == ("u1", ("u1",), "cancelled", Usage(10, 1))


def test_a_branch_of_a_chat_that_an_agent_began_is_a_chat_like_any_other(home, files):
    begun = {"agent_of": files.chat_id, "depth": 2}
    child = chat.create(home, cwd=home.root, provider="demo", model="demo", system="You are a test.", **begun)
    fill(child)
    made = chat.meta(chat.read(go(child, 7)))
    assert (made.parent_chat_id, made.agent_of, made.depth) == (child.chat_id, None, 0)
    own = chat.meta(chat.read(child))
    assert (own.agent_of, own.depth) == (files.chat_id, 2)


def test_the_end_of_a_turn_comes_along_where_nothing_was_left_out(files):
    assert chat.read(go(fill(files), 7))[-1] == ended("u1")


def test_an_answer_in_the_middle_of_a_turn_ends_it(files):
    made = go(fill(files, [user("u1"), answer("a1", text="so"), user("u2"), answer("a2"), ended("u1", "u2")]), 2)
    end = chat.read(made)[-1]
    assert (end.answers, end.outcome, end.usage) == (("u1",), "done", Usage(10, 1))


def test_the_next_request_of_a_branch_is_a_prefix_of_what_the_parent_asked(files):
    fill(files)
    made = go(files, 8)
    own = context.kept(chat.read(made))
    assert own
    assert context.kept(chat.read(files))[: len(own)] == own


def test_what_is_not_known_comes_along_and_what_is_damaged_does_not(files):
    with open(files.chat, "ab") as file:
        file.write(b'{"type":"hologram","x":1}\n{"half\n')
    made = go(fill(files, [user("u1"), answer("a1"), ended("u1")]), 2)
    assert b'{"type":"hologram","x":1}\n' in made.chat.read_bytes()
    assert chat.damage(chat.read(made)) == []


def test_a_last_line_without_its_end_is_no_part_of_a_branch_at_the_end(files):
    fill(files, [user("u1"), answer("a1"), ended("u1")])
    with open(files.chat, "ab") as file:
        file.write(b'{"type":"message","role":"us')
    found = branch.read(files)
    made = branch.branch(files, found, branch.end([record for record, _ in found]))
    assert chat.read(made)[-1] == ended("u1")


def test_a_branch_is_where_its_parent_was_at_that_point(files, tmp_path):
    moved = records.Meta(chat_id=files.chat_id, created_at=AT, cwd=str(tmp_path), provider="p", model="m")
    fill(files, [user("u1"), answer("a1"), ended("u1"), moved, user("u2"), answer("a2"), ended("u2")])
    assert chat.meta(chat.read(go(files, 2))).cwd != str(tmp_path)
    later = chat.read(go(files, 4))
    assert chat.meta(later).cwd == str(tmp_path)
    assert len([record for record in later if isinstance(record, Meta)]) == 1


def test_a_branch_of_a_branch_knows_whose_family_it_is_of_and_needs_no_parent(files):
    child = go(fill(files), 7)
    files.chat.unlink()
    grandchild = go(child, 4)
    child.chat.unlink()
    first = chat.meta(chat.read(grandchild))
    assert (first.parent_chat_id, first.family) == (child.chat_id, files.chat_id)


def test_a_full_disk_leaves_nothing_behind(files):
    fill(files, [user("u1", "x" * 10_000), answer("a1"), ended("u1")])
    before = sorted(files.home.conversations.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(CassError, match="cannot make a branch"):
            go(files, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(files.home.conversations.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("13", 13), ("a2", 7), ("u3", 12), ("c2", 6), ("c3", None), ("a", None), ("99", None)],
)
def test_a_point_is_meant_by_its_number_or_by_a_part_of_an_id(files, text, number):
    found = chat.read(fill(files))
    if number is not None:
        assert branch.find(found, text).number == number
    else:
        with pytest.raises(UsageError):
            branch.find(found, text)


def test_the_calls_done_at_a_point_are_told_from_the_others(files):
    found = chat.read(fill(files))
    first, second, third, fourth = ("a1", 0), ("a1", 1), ("a3", 0), ("a3", 1)
    assert branch.calls(found, at(files, 3)) == (set(), {first, second, third, fourth})
    assert branch.calls(found, at(files, 4)) == ({first}, {second, third, fourth})
    assert branch.calls(found, branch.end(found)) == ({first, second, third}, set())
    branched = chat.read(go(files, 4))
    assert branch.calls(branched, branch.end(branched)) == ({first}, set())
    assert branch.calls(branched, at(files, 3)) == (set(), {first, second})


RECORDS = st.lists(st.sampled_from(["user", "answer", "calls", "same ids", "result", "end", "approval", "error"]))


@settings(max_examples=100, deadline=None)
@given(RECORDS, st.integers(0, 100))
def test_whatever_a_chat_holds_its_branches_are_closed_and_share_its_points(kinds, number):
    said: list = [Meta(chat_id="c", created_at=AT, cwd="/"), System(content="s")]
    for n, kind in enumerate(kinds):
        waiting = open_calls(said)
        match kind:
            case "user":
                said.append(user(f"u{n}"))
            case "answer":
                said.append(answer(f"a{n}", text="so"))
            case "calls":
                said.append(answer(f"a{n}", f"c{n}", f"d{n}"))
            case "same ids":
                said.append(answer(f"a{n}", "call", "call"))
            case "error":
                said.append(answer(f"a{n}", "call", stop="error"))
            case "approval":
                said.append(APPROVAL)
            case "result" if waiting:
                said.append(result(waiting[0].id))
            case "end" if answers := open_turn(said):
                said += [*ends.closing(said, "the worker ended", AT)][:-1]
                said.append(ended(*answers))
    points = [*branch.points(said), branch.end(said)]
    point = points[number % len(points)]
    lines = [(record, records.encode(record)[:-1]) for record in said]
    copied = [records.decode(line) for line in branch.copy(lines, point, "parent", "child", jsonl.now())]
    assert (open_calls(copied), open_turn(copied)) == ([], ())
    own = branch.points(copied)
    shared = points[: len(own)]
    assert [(p.number, p.kind, p.id, p.call) for p in own] == [(p.number, p.kind, p.id, p.call) for p in shared]
    assert len(own) in (point.number, point.number - 1) or point.kind is Kind.END
    done, undone = branch.calls(copied, branch.end(copied))
    assert done <= branch.calls(said, point)[0]
    assert not done & undone


def test_a_branch_has_cost_nothing_yet(home, workspace):
    files = chat.create(home, cwd=workspace, provider="demo", model="demo", system="x")
    at = chat.first(files).created_at
    spent = [
        dataclasses.replace(record, spent=0.5, created_at=at) if isinstance(record, TurnEnd) else record
        for record in SAID
    ]
    with open(files.chat, "ab") as file:
        file.writelines(map(records.encode, spent))
    found = branch.read(files)
    wait_for(lambda: jsonl.now() > at)  # a branch is younger than what it took over
    made = branch.branch(files, found, branch.end([record for record, _ in found]))
    costs = {summary.chat_id: summary.cost for summary in catalogue.summaries(home)}
    assert costs == {files.chat_id: 0.5, made.chat_id: None}
    assert standing.look(made).cost is None
