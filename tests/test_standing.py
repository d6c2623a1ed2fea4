from functools import reduce

import pytest
from stage import wait_for

from cass import inbox, presence, standing
from cass.records import Approval, ApprovalRequest, Assistant, Meta, Status, ToolResult, TurnEnd, Usage
from cass.standing import Standing, step


def at(second):
    return f"2026-06-20T14:30:{second:02d}.000Z"


def status(state, second=0, **more):
    return Status(state=state, mode="read-only", provider="demo", model="demo", created_at=at(second), **more)


def request(id, second=0):
    fields = {"tool_call_id": "c", "name": "shell", "arguments": {}, "reason": "", "sandboxed": False}
    return ApprovalRequest(request_id=id, created_at=at(second), **fields)


def result(call="c", second=1):
    return ToolResult(tool_call_id=call, name="shell", content="x", ok=True, created_at=at(second))


def answer(id):
    return Approval(request_id=id, tool_call_id="c", decision="approved", by="ann", created_at=at(1))


def stand(*records):
    return reduce(step, records, Standing())


def test_time_counts_from_when_the_worker_stopped_being_idle():
    standing = stand(status("idle", 1), status("thinking", 5), status("running", 9), status("thinking", 20))
    assert (standing.state, standing.since, standing.is_busy) == ("thinking", at(5), True)
    assert stand(status("thinking", 5), status("idle", 9)).is_busy is False


@pytest.mark.parametrize(
    ("found", "pending"),
    [
        ([request("r")], ["r"]),
        ([request("r"), answer("r")], []),
        ([answer("r"), request("r")], []),
        ([request("r"), answer("other")], ["r"]),
        ([request("r"), result()], []),
        ([request("r"), result("other")], ["r"]),
        ([request("r", second=2), result(second=1)], ["r"]),
        ([request("r"), answer("r"), request("s")], ["s"]),
    ],
)
def test_a_request_waits_until_it_is_decided_or_its_call_has_ended(found, pending):
    assert [r.request_id for r in stand(status("awaiting-approval"), *found).pending] == pending


def test_a_worker_that_goes_on_asks_nothing_any_more():
    assert stand(status("awaiting-approval"), request("r"), status("thinking")).pending == ()


def test_a_turn_that_follows_another_counts_from_the_end_of_that_one_whichever_file_was_read_first():
    end = TurnEnd(turn="u", answers=("u",), outcome="done", created_at=at(20))
    assert stand(status("thinking", 5), end, status("thinking", 21)).since == at(20)
    assert stand(status("thinking", 5), status("thinking", 21), end).since == at(20)


def test_nothing_of_a_worker_that_is_gone_counts_for_the_next():
    left = stand(status("thinking", 5), request("r"), answer("s")).left()
    assert (left.state, left.since, left.pending, left.mode) == ("", "", (), "read-only")
    assert step(left, status("thinking", 50)).since == at(50)


def test_the_model_is_the_workers_word_and_not_that_of_the_file():
    meta = Meta(chat_id="x", created_at=at(0), provider="openai", model="gpt", cwd="/old")
    moved = Meta(chat_id="x", created_at=at(1), provider="openai", model="gpt", cwd="/new")
    assert (stand(meta).model, stand(meta).cwd) == ("", "/old")
    standing = stand(meta, status("idle"), moved)
    assert (standing.cwd, standing.model) == ("/new", "demo")


def test_the_last_answer_and_usage_are_kept():
    said = Assistant(id="a", content="yes", created_at=at(0))
    failed = Assistant(id="b", content="par", created_at=at(1), stop="error")
    end = TurnEnd(turn="u", answers=("u",), outcome="done", created_at=at(2), usage=Usage(input=7))
    standing = stand(said, failed, end)
    assert (standing.answer, standing.usage) == ("yes", Usage(input=7))


def test_what_the_chat_settled_supersedes_what_was_live(files):
    presence.start(files).wait()
    try:
        assert standing.look(files).state == "idle"
    finally:
        inbox.put(files, {"type": "stop"})
        wait_for(lambda: not presence.is_running(files))
    assert standing.look(files).state == "", "without a worker nothing is live"


def test_what_the_chat_has_cost_is_the_most_that_either_file_says():
    def ended(spent):
        return TurnEnd(turn="u", answers=("u",), outcome="done", created_at=at(2), spent=spent)

    now = status("idle", 3, cost=0.02, assumed=True)
    assert stand(ended(0.01)).cost == 0.01
    for records in ([ended(0.01), now], [now, ended(0.01)], [now, ended(None)]):
        assert (stand(*records).cost, stand(*records).assumed) == (0.02, True)
