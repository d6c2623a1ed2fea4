"""Server-sent events, cut anywhere."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.errors import ProviderError
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


def test_a_json_value_outside_any_field_is_an_event_too():
    stream = b'data: one\n\n{\n  "error": {\n    "code": 499\n  }\n}\n\ndata: two\n\n[1]'
    expected = [Event(b"one"), Event(b'{\n  "error": {\n    "code": 499\n  }\n}'), Event(b"two"), Event(b"[1]")]
    assert decoded(stream) == expected
    assert decoded(*(stream[n : n + 1] for n in range(len(stream)))) == expected


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


@pytest.mark.parametrize(
    ("chunk", "times"), [(b"x" * 65536, 129), (b"data: " + b"x" * 1000 + b"\n", 8400), (b"data:\n" * 1000, 1_700)]
)
def test_an_event_that_is_too_long_to_be_held_is_refused(chunk, times):
    with pytest.raises(ProviderError, match="8 MiB without the end of an event"):
        decoded(*[chunk] * times)


def test_long_events_one_after_the_other_are_taken():
    decoder = Decoder()
    for _ in range(20):
        decoder.feed(b"data: ")
        for _ in range(16):
            decoder.feed(b"x" * 65536)
        assert len(decoder.feed(b"\n\n")[0].data) == 1 << 20
