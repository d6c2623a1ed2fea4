"""What chats have used and cost."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from cass import records, stats
from cass.home import Files, Home
from cass.records import Assistant, Compaction, Meta, System, ToolResult, TurnEnd, Usage, User
from cass.stats import GROUPS

DAY = "2026-06-{:02d}T12:00:00.000Z"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("TZ", "UTC")
    made = Home(tmp_path / "home")
    made.make()
    return made


def chat(
    home: Home, id: str, usages: Iterable[Usage], *, model: str = "gpt-5.1", cwd: str = "/work", day: int = 1
) -> Files:
    at = DAY.format(day)
    found: list[records.Record] = [
        Meta(chat_id=id, created_at=at, provider="openai", model=model, cwd=cwd),
        System(content="You are a test."),
        User(id="u", content="hi", created_at=at, provider="openai", model=model),
    ]
    for number, usage in enumerate(usages):
        found.append(Assistant(id=str(number), content="x", created_at=at, model=model, usage=usage))
        found.append(ToolResult(tool_call_id="c", name="ls", content='{"usage":{"input":9}}', ok=True, created_at=at))
    found.append(TurnEnd(turn="u", answers=("u",), outcome="done", created_at=at, usage=Usage(999_999)))
    home.files(id).chat.write_bytes(b"".join(map(records.encode, found)))
    return home.files(id)


def names(found: stats.Stats, group: str) -> list[tuple[str, int]]:
    return [(name, tally.input) for name, tally in found.sorted(group)]


def test_every_request_counts_once_in_each_group(home):
    one = chat(home, "a-1", [Usage(100, 10, 50, 5, 4), Usage(200, 20)], day=2)
    two = chat(home, "b-2", [Usage(1_000, 1)], model="gpt-5", cwd="/else", day=1)
    found = stats.gather(home, [one, two])
    total = found.total
    assert (total.requests, total.input, total.output, total.cache_read, total.cache_write, total.reasoning) == (
        *(3, 1_300, 31, 50, 5, 4),
    )
    assert names(found, "day") == [("2026-06-01", 1_000), ("2026-06-02", 300)]
    assert sorted(names(found, "model")) == [("gpt-5", 1_000), ("gpt-5.1", 300)]
    assert sorted(names(found, "directory")) == [("/else", 1_000), ("/work", 300)]
    assert sorted(names(found, "chat")) == [("a-1", 300), ("b-2", 1_000)]
    for group in GROUPS:
        assert sum(tally.cost for _, tally in found.sorted(group)) == pytest.approx(total.cost)


def test_a_cost_that_was_recorded_stands_and_another_is_worked_out(home):
    """gpt-5.1 costs USD 1.25 and 10 for a million tokens."""
    found = stats.gather(home, [chat(home, "a-1", [Usage(1_000_000, 0, cost=7.0), Usage(0, 1_000_000)])])
    assert found.total.cost == pytest.approx(17)
    assert found.total.unpriced == 0


def test_what_is_not_known_is_said_to_be_so_and_the_persons_prices_count(home):
    files = chat(home, "a-1", [Usage(1_000_000)], model="mystery")
    assert stats.gather(home, [files]).total.unpriced == 1
    assert "the price of 1 is not known" in stats.chart(stats.gather(home, [files]), GROUPS)
    home.models.write_text('{"models": [{"id": "mystery", "prices": {"input": 3, "output": 1}}]}')
    assert stats.gather(home, [files]).total.cost == 3


def test_what_a_branch_took_over_is_its_parents(home):
    parent = chat(home, "a-1", [Usage(100)], day=1)
    branch = chat(home, "b-2", [Usage(7)], day=3)
    meta, *rest = branch.chat.read_bytes().splitlines(keepends=True)
    copied = [line for line in parent.chat.read_bytes().splitlines(keepends=True) if b'"meta"' not in line]
    branch.chat.write_bytes(b"".join([meta, *copied, *rest]))
    assert names(stats.gather(home, [parent, branch]), "chat") == [("a-1", 100), ("b-2", 7)]


def test_summaries_count_and_a_model_counts_from_where_it_was_chosen(home):
    files = chat(home, "a-1", [Usage(100)])
    at = DAY.format(1)
    with files.chat.open("ab") as opened:
        for record in (
            Compaction(summary="s", first_kept_id=None, tokens_before=1, created_at=at, usage=Usage(40)),
            User(id="v", content="on", created_at=at, provider="openai", model="gpt-5"),
            Assistant(id="9", content="y", created_at=at, model="gpt-5-2025-08-07", usage=Usage(3)),
        ):
            opened.write(records.encode(record))
    assert names(stats.gather(home, [files]), "model") == [("gpt-5.1", 140), ("gpt-5", 3)]


def test_since_leaves_out_what_is_older(home):
    files = [chat(home, "a-1", [Usage(100)], day=1), chat(home, "b-2", [Usage(7)], day=3)]
    assert names(stats.gather(home, files, DAY.format(2)), "chat") == [("b-2", 7)]


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b'"x"', b"\xff", b'{"type":"message","usage":7}', b'{"type":"message","usage":{"input":"x"}}'],
)
def test_a_damaged_line_counts_for_nothing(home, line):
    files = chat(home, "a-1", [Usage(100)])
    files.chat.write_bytes(files.chat.read_bytes() + line + b"\n")
    assert stats.gather(home, [files]).total.input == 100


def test_what_is_no_chat_is_passed_over(home):
    home.files("a-1").chat.mkdir()
    assert stats.gather(home, stats.every(home)).total.requests == 0


# ---- for people -----------------------------------------------------------------------------------------------------


def test_the_bars_show_what_costs_most(home):
    files = [
        chat(home, "a-1", [Usage(1_000, 0, 500, cost=1.0)], day=1),
        chat(home, "b-2", [Usage(1_000, 0, 0, cost=2.0)], day=2),
    ]
    assert stats.chart(stats.gather(home, files), ["day"]).split("\n") == [
        "2 chats, 2 requests: 2k tokens in (25% from the cache), 0 out, $3.00 at list prices",
        "",
        "day         requests       in  cached      out   cost",
        "2026-06-01         1       1k     50%        0  $1.00  ████████████",
        "2026-06-02         1       1k      0%        0  $2.00  ████████████████████████",
    ]


@pytest.mark.parametrize("columns", [1, 40, 60, 80, 200])
def test_the_bars_fit_the_terminal_as_far_as_the_numbers_do(home, columns):
    found = stats.gather(home, [chat(home, "a-1", [Usage(1_000)], cwd="/long" * 30)])
    assert all(len(line) <= max(columns, 100) for line in stats.chart(found, GROUPS, columns).split("\n"))


def test_many_rows_are_shortened_to_the_latest_days_and_the_dearest_others(home):
    found = stats.gather(home, [chat(home, f"c-{day}", [Usage(day, cost=day)], day=day) for day in range(1, 15)])
    shown = stats.chart(found, GROUPS)
    assert "2026-06-14" in shown
    assert "2026-06-04 " not in shown
    assert "c-14" in shown
    assert "c-4 " not in shown
    assert "and 4 more: cass stats --by day" in shown
    assert "2026-06-01" in stats.chart(found, ["day"])


def test_names_cannot_control_the_terminal(home):
    found = stats.gather(home, [chat(home, "a-1", [Usage(1)], model="red\x1b[31m", cwd="/a\nb\x07")])
    assert "\x1b" not in stats.chart(found, GROUPS)
    assert "\x07" not in stats.chart(found, GROUPS)


def test_as_json_every_group_is_whole(home):
    said = json.loads(stats.gather(home, [chat(home, "a-1", [Usage(5, 1, cost=0.5)])]).as_json())
    tally = {
        "requests": 1, "input": 5, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0, "cost": 0.5,
        "unpriced": 0,
    }  # fmt: skip
    assert said == {
        "total": tally,
        "day": [{"name": "2026-06-01", **tally}],
        "model": [{"name": "gpt-5.1", **tally}],
        "directory": [{"name": "/work", **tally}],
        "chat": [{"name": "a-1", **tally}],
    }
