"""What is told beside the screen: only to terminals that know it, and never in the words of others."""

import pytest

from cass import announce
from cass.viewer.attention import Attention


def test_a_title_and_a_notice_are_one_sequence_whatever_they_say() -> None:
    nasty = "a\x07b\x1b]0;c\x1b\\d\n\x9c\u202e"
    for made in (announce.title(nasty), announce.notice(nasty, {}), announce.notice(nasty, {"VTE_VERSION": "7000"})):
        assert made.startswith("\x1b]")
        assert made.endswith("\x07")
        assert not any(char in made[1:-1] for char in "\x1b\x07\n\x9c\u202e")


@pytest.mark.parametrize(
    ("environ", "made"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]9;hi\x07"),
        ({"TERM": "rxvt-unicode"}, "\x1b]777;notify;cass;hi\x07"),
        ({"TERM": "xterm", "VTE_VERSION": "6800"}, "\x1b]777;notify;cass;hi\x07"),
        ({"TERM": "tmux", "TMUX": "/s,1,0"}, "\x1bPtmux;\x1b\x1b]9;hi\x07\x1b\\"),
    ],
)
def test_a_notice_is_in_the_words_of_the_terminal(environ: dict[str, str], made: str) -> None:
    assert announce.notice("hi", environ) == made


def test_it_calls_only_who_looks_elsewhere() -> None:
    told = Attention("c", "bell", {})
    assert told.call("done") == ""
    assert told.hear(b"x\x1b[Oy") == b"xy"
    assert told.call("done") == "\a"
    assert told.hear(b"\x1b[I") == b""
    assert told.call("done") == ""


def test_a_title_is_told_when_it_changes() -> None:
    told = Attention("c", "off", {})
    assert told.begin() == announce.KEEP_TITLE
    assert [told.show(state) for state in ("idle", "idle", "running")] == [
        announce.title("cass c idle"),
        "",
        announce.title("cass c running"),
    ]
    assert told.end() == announce.TITLE_OF_BEFORE
