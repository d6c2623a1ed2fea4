"""What the bytes of an image say of it; and that no bytes can make the reader stumble."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass import images
from cass.images import Image
from tests import drawn


@pytest.mark.parametrize("kind", drawn.KINDS)
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (3, 8000), (16383, 2)])
def test_an_image_says_its_type_and_its_size(kind, size):
    media_type, draw = drawn.KINDS[kind]
    assert images.measure(draw(*size)) == Image(media_type, *size)


@pytest.mark.parametrize("kind", drawn.KINDS)
def test_an_image_that_ends_before_its_size_is_none(kind):
    media_type, draw = drawn.KINDS[kind]
    whole = draw(640, 480)
    found = [images.measure(whole[:cut]) for cut in range(len(whole))]
    first = next((n for n, image in enumerate(found) if image), len(whole))
    assert found == [None] * first + [Image(media_type, 640, 480)] * (len(whole) - first)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"%PDF-1.7",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>",
        b"BM" + bytes(60),
        b"II*\0" + bytes(60),
        b"RIFF\0\0\0\0WAVE" + bytes(60),
        b"\xff\xd8\xff" + b"\xff" * 10_000,
        b"\xff\xd8" + b"\xff\xe1\0\0" * 10_000,
        b"\xff\xd8" + b"\xff\xd0" * 10_000,
        b"\xff\xd8\xff\xda\0\x02" + b"\xff\xc0" + bytes(9),
    ],
)
def test_what_is_no_image_of_these_is_none(content):
    image = images.measure(content)
    assert image is None or image == Image("image/jpeg", 0, 0)


HEADS = [draw(640, 480) for _, draw in drawn.KINDS.values()]


CUT = st.tuples(st.sampled_from(HEADS), st.integers(0, 200)).map(lambda cut: cut[0][: cut[1]])


@given(st.binary(max_size=200) | st.tuples(CUT, st.binary(max_size=100)).map(b"".join))
def test_no_bytes_make_it_stumble(content):
    image = images.measure(content)
    assert image is None or (image.width >= 0 and image.height >= 0)


@given(st.sampled_from(HEADS), st.binary(max_size=50))
def test_what_comes_behind_the_size_changes_nothing(head, tail):
    assert images.measure(head + tail) == images.measure(head)


def test_the_largest_sizes_that_can_be_said_are_said():
    assert images.measure(drawn.png(0xFFFFFFFF, 0x7FFFFFFF)) == Image("image/png", 0xFFFFFFFF, 0x7FFFFFFF)
    assert images.measure(b"GIF87a" + struct.pack("<HH", 65535, 0)) == Image("image/gif", 65535, 0)
    assert images.measure(drawn.webp_extended(1 << 24, 1)) == Image("image/webp", 1 << 24, 1)
