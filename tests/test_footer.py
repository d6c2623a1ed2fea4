import pytest

from cass.amounts import columns, tokens
from cass.composer.footer import Surroundings, help_line, queue_lines, status_line
from cass.standing import IDLE, Standing

CHAT = "2026-06-20-143012-a8f3"
STANDING = Standing(
    provider="fireworks",
    model="accounts/fireworks/models/qwen3p7-plus",
    mode="workspace-edit",
    cwd="/home/ann/project",
    state="thinking",
    used=25_600,
    limit=128_000,
)


def line(standing=STANDING, *, width=200, state="", queued=2, elapsed_s=12.3, branch="main"):
    around = Surroundings(CHAT, state or standing.state or IDLE, elapsed_s, queued, branch, "/home/ann")
    return "".join(text for _, text in status_line(standing, around, width))


def test_the_status_line_says_it_all_where_there_is_room():
    assert line() == (
        "workspace-edit · qwen3p7-plus · thinking 12 s · 20% context (25.6k of 128k) · 2 waiting · ~/project (main)"
        " · cass 2026-06-20-143012-a8f3"
    )


@pytest.mark.parametrize("width", range(200))
def test_the_status_line_keeps_mode_and_state_and_fits_where_these_do(width):
    shown = line(width=width)
    assert shown.startswith("workspace-edit · " if width >= len("workspace-edit · thinking 12 s") else "edit · ")
    assert "thinking 12 s" in shown
    assert len(shown) <= max(width, len("edit · thinking 12 s"))


def test_a_narrow_status_line_names_the_chat_by_its_end():
    assert line(width=60, queued=0).endswith(" · a8f3")


@pytest.mark.parametrize(
    ("state", "elapsed_s", "words"),
    [
        ("idle", 0, "idle"),
        ("thinking", 3, "thinking 3 s"),
        ("running", 75, "running 1 min 15 s"),
        ("awaiting-approval", 9, "awaiting approval 9 s"),
    ],
)
def test_states_are_words_with_their_time(state, elapsed_s, words):
    assert f" · {words} · " in line(Standing(mode="read-only", state=state), elapsed_s=elapsed_s)


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (200, "retrying 1 s · again in 3 s, 1 of 4: Rate limit reached for requests · "),
        (80, "retrying 1 s · again in 3 s, 1 of 4: Rate limit reached for re…"),
        (55, "workspace-edit · retrying 1 s · again in 3 s, 1 of 4"),
        (30, "edit · retrying 1 s"),
    ],
)
def test_when_it_is_tried_again_stands_before_why(width, words):
    why = "again in 3 s, 1 of 4: Rate limit reached for requests"
    shown = line(STANDING._replace(state="retrying", detail=why), elapsed_s=1, width=width)
    assert words in shown
    assert len(shown) <= width


def test_a_limit_that_is_a_guess_is_marked():
    shown = line(STANDING._replace(model="mystery", used=2_600, limit=32_768, assumed=True))
    assert "8% context (2.6k of assumed 32.8k)" in shown
    assert "(2.6k of 32.8k)" in line(STANDING._replace(model="small", used=2_600, limit=32_768))


@pytest.mark.parametrize(
    ("cost", "words"),
    [(None, None), (0.0, None), (0.00001, "under $0.0001"), (0.01234, "$0.0123"), (12.3, "$12.30")],
)
def test_the_cost_stands_there_where_it_is_known_and_not_nothing(cost, words):
    shown = line(STANDING._replace(cost=cost))
    assert f"({tokens(25_600)} of 128k) · {words} · 2 waiting" in shown if words else "$" not in shown


def test_the_effort_stands_beside_the_model():
    assert "qwen3p7-plus (high) ·" in line(STANDING._replace(effort="high"))


@pytest.mark.parametrize(("count", "words"), [(0, "0"), (999, "999"), (1000, "1k"), (25_640, "25.6k"), (1 << 20, "1M")])
def test_tokens_are_counted_in_thousands_and_millions(count, words):
    assert tokens(count) == words


def test_demo_says_that_it_is_no_language_model():
    assert "demo: offline, no language model" in line(Standing(mode="read-only", provider="demo", model="demo"))


def test_nothing_from_outside_can_control_the_terminal():
    evil = Standing(mode="read-only", model="\x1b[2J", cwd="/\x1b]0;x\x07", state="retrying", detail="\x9b31m")
    assert not set(line(evil)) & {"\x1b", "\x07", "\x9b"}
    assert "\x1b" not in queue_lines(["\x1b[2J\nsecond"], 80)[0][1]


@pytest.mark.parametrize("width", range(100))
def test_the_help_line_gives_way_key_by_key(width):
    text = help_line(width, room=True)[0][1]
    assert len(text) <= width
    assert help_line(width, room=False)[0][1] == ""


def test_the_queue_is_shown_up_to_three_messages():
    assert queue_lines(["a\nb", "c"], 80)[0][1] == "waiting 1: a␊b\nwaiting 2: c"
    assert queue_lines(list("abc"), 80)[0][1].endswith("\nwaiting 3: c")
    assert queue_lines(list("abcde"), 80)[0][1].endswith("\nwaiting 2: b\n… and 3 more")
    assert "Up takes the newest back" in queue_lines(list("abc"), 80)[1][1]


def test_columns_stand_under_each_other():
    assert columns([("a", "one"), ("", ""), ("long", "two")]) == "  a     one\n\n  long  two\n"
