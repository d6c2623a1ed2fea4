"""Server-sent events, cut anywhere."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.providers.sse import Decoder, Event

STREAM = (
    b": OPENROUTER PROCESSING\r\n\r\ndata:one\r\n\r\n: ping\r\n\r\ndata:\r\n\r\ndata: two \xe4\xb8\xad\r\n\r\n"
    b"event: error\r\ndata: {\r\ndata: }\r\n\r\nid: 7\r\nretry: 10\r\nnonsense\r\ndata:  three"
)
EXPECTED = [Event(b"one"), Event(b"two \xe4\xb8\xad"), Event(b"{\n}", b"error"), Event(b" three")]


def decoded(*chunks: bytes) -> list[Event]:
    decoder = Decoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cut):
    assert decoded(STREAM[:cut], STREAM[cut:]) == EXPECTED


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=repr)
def test_every_line_end_counts_once_even_byte_by_byte(end):
    stream = STREAM.replace(b"\r\n", end)
    assert decoded(stream) == EXPECTED
    assert decoded(*(stream[n : n + 1] for n in range(len(stream)))) == EXPECTED


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_in_any_pieces_are_the_same_events(chunks):
    assert decoded(*chunks) == decoded(b"".join(chunks))


def test_a_byte_order_mark_at_the_beginning_is_passed_over():
    assert decoded(b"\xef", b"\xbb", b"\xbfdata: x\n\n") == [Event(b"x")]
    assert decoded(b"\xef\xbb\xbf") == []


def test_the_last_event_may_lack_its_empty_line_and_its_line_end():
    assert decoded(b"data: a\n") == decoded(b"data: a") == [Event(b"a")]


def test_a_long_event_in_many_pieces_takes_linear_time():
    def seconds(pieces: int) -> float:
        decoder, began = Decoder(), time.process_time()
        decoder.feed(b"data: ")
        for _ in range(pieces):
            decoder.feed(b"x" * 50)
        assert len(decoder.feed(b"\n\n")[0].data) == 50 * pieces
        return time.process_time() - began

    assert min(seconds(80_000) for _ in range(3)) < 100 * max(min(seconds(8_000) for _ in range(3)), 0.001)
