from functools import reduce

from cass.composer.standing import Standing, step
from cass.records import Approval, ApprovalRequest, Assistant, Meta, Status, TurnEnd, Usage


def at(second):
    return f"2026-06-20T14:30:{second:02d}.000Z"


def status(state, second=0, **more):
    return Status(state=state, mode="read-only", provider="demo", model="demo", created_at=at(second), **more)


def request(id):
    fields = {"tool_call_id": "c", "name": "shell", "arguments": {}, "reason": "", "sandboxed": False}
    return ApprovalRequest(request_id=id, created_at=at(0), **fields)


def answer(id):
    return Approval(request_id=id, tool_call_id="c", decision="approved", by="ann", created_at=at(1))


def stand(*records):
    return reduce(step, records, Standing())


def test_time_counts_from_when_the_worker_stopped_being_idle():
    standing = stand(status("idle", 1), status("thinking", 5), status("running", 9), status("thinking", 20))
    assert (standing.state, standing.since, standing.is_busy) == ("thinking", at(5), True)
    assert stand(status("thinking", 5), status("idle", 9)).is_busy is False


def test_a_request_is_pending_until_it_is_answered():
    assert stand(status("awaiting-approval"), request("r")).pending == (request("r"),)
    assert stand(status("awaiting-approval"), request("r"), answer("r")).pending == ()


def test_an_answer_that_was_read_before_its_request_still_answers_it():
    assert stand(status("awaiting-approval"), answer("r"), request("r")).pending == ()


def test_a_worker_that_goes_on_asks_nothing_any_more():
    assert stand(status("awaiting-approval"), request("r"), status("thinking")).pending == ()


def test_a_new_workspace_holds_and_the_workers_word_for_the_model_stands():
    meta = Meta(chat_id="x", created_at=at(0), provider="openai", model="gpt", cwd="/old")
    moved = Meta(chat_id="x", created_at=at(1), provider="openai", model="gpt", cwd="/new")
    assert stand(meta).model == "gpt"
    standing = stand(meta, status("idle"), moved)
    assert (standing.cwd, standing.model) == ("/new", "demo")


def test_the_last_answer_and_usage_are_kept():
    said = Assistant(id="a", content="yes", created_at=at(0))
    failed = Assistant(id="b", content="par", created_at=at(1), stop="error")
    end = TurnEnd(turn="u", answers=("u",), outcome="done", created_at=at(2), usage=Usage(input=7))
    standing = stand(said, failed, end)
    assert (standing.answer, standing.usage) == ("yes", Usage(input=7))
