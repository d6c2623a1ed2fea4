"""Strides give what one step over the whole would."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cass.tools import strides

data = st.lists(st.sampled_from([b"a", b"b", b"\r", b"\n", b"ab"]), max_size=40).map(b"".join)
parts = st.lists(st.sampled_from([b"a", b"b", b"\r\n"]), min_size=1, max_size=4).map(b"".join)


@pytest.fixture(scope="module", params=[1, 2, 3, 8])
def stride(request):
    before, strides.STRIDE = strides.STRIDE, request.param
    yield request.param
    strides.STRIDE = before


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data, parts, st.binary(max_size=3), st.integers(0, 8))
def test_bytes_are_found_counted_and_replaced_as_in_one_step(stride, data, part, new, start):
    assert strides.find(data, part, start) == data.find(part, start)
    assert strides.count(data, part) == data.count(part)
    assert strides.replaced(data, part, new) == data.replace(part, new)
    out = bytearray(b"x")
    strides.extend(out, data, start, max(start, len(data) - 2))
    assert out == b"x" + data[start : max(start, len(data) - 2)]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data, parts)
def test_a_pattern_matches_as_in_one_step(stride, data, part):
    pattern = re.compile(rb"\r?\n".join(map(re.escape, part.split(b"\r\n"))))
    found = strides.matches(pattern, len(part), data)
    assert [match.span() for match in found] == [match.span() for match in pattern.finditer(data)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("aé漢😀\n", max_size=12), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_text_is_recoded_as_in_one_step(stride, text, codec):
    assert strides.recoded(text.encode(codec), codec, "utf-8") == text.encode()
    assert strides.recoded(text.encode(), "utf-8", codec) == text.encode(codec)


@pytest.mark.parametrize("data", [b"\xff\xfea\0b", b"\xff\xfe\0\xd8", b"a"])
def test_half_a_character_at_the_end_is_an_error(stride, data):
    with pytest.raises(UnicodeDecodeError):
        strides.recoded(data, "utf-16-le", "utf-8")
