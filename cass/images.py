"""Images: what the bytes of one say of its type and its size in pixels.

Pure, and of the head of a file alone: nothing is decoded. Whether the rest is whole is for whoever draws it.
"""

import struct
from typing import NamedTuple

_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of JPEG that the size follows; the three are tables."""
_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})
"""Those without a length behind them."""


class Image(NamedTuple):
    """An image as it describes itself."""

    media_type: str
    width: int
    """Pixels, as they are stored: a camera may mean them to be turned."""
    height: int


def measure(content: bytes) -> Image | None:
    """What `content` is; None for what is no PNG, JPEG, GIF or WebP."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return Image("image/png", *struct.unpack_from(">II", content, 16))
        if content.startswith((b"GIF87a", b"GIF89a")):
            return Image("image/gif", *struct.unpack_from("<HH", content, 6))
        if content.startswith(b"\xff\xd8\xff"):
            return _jpeg(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return _webp(content)
    except struct.error:  # it ends before its size
        pass
    return None


def _jpeg(content: bytes) -> Image | None:
    """From segment to segment up to the frame. Source: ITU-T T.81, annex B."""
    at = 2
    while content[at : at + 1] == b"\xff":
        marker = content[at + 1] if at + 1 < len(content) else 0
        if marker == 0xFF:  # may fill
            at += 1
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return Image("image/jpeg", width, height)
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + max(struct.unpack_from(">H", content, at + 2)[0], 2)
    return None


def _webp(content: bytes) -> Image | None:
    """By its first chunk. Source: https://developers.google.com/speed/webp/docs/riff_container"""
    match content[12:16]:
        case b"VP8 " if content[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", content, 26)
            return Image("image/webp", width & 0x3FFF, height & 0x3FFF)
        case b"VP8L" if content[20:21] == b"\x2f":
            (bits,) = struct.unpack_from("<I", content, 21)
            return Image("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            low, high, low_, high_ = struct.unpack_from("<HBHB", content, 24)
            return Image("image/webp", (high << 16 | low) + 1, (high_ << 16 | low_) + 1)
    return None
