"""Drawn: images made by hand, byte by byte, as their formats have them."""

import struct
import zlib
from collections.abc import Callable


def png(width: int = 4, height: int = 3) -> bytes:
    """A whole one, where it is small; a large one is a head without a body."""
    rows = b"".join(b"\0" + b"\x7f\x40\x20" * width for _ in range(height)) if width * height <= 1 << 20 else b""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif(width: int = 4, height: int = 3) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return head + b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x44\x01\0\x3b"


def jpeg(width: int = 4, height: int = 3, exif: int = 70) -> bytes:
    """With a segment of `exif` bytes, and a table, in front of the frame, as cameras put them."""
    jfif = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    other = b"\xff\xe1" + struct.pack(">H", exif + 2) + b"\xff\xc0" * (exif // 2)  # looks like a frame, and is none
    table = b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8" + jfif + other + table + frame + b"\xff\xd9"


def webp(width: int = 4, height: int = 3) -> bytes:
    """Lossy."""
    return _riff(b"VP8 ", b"\x10\x02\x00\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height))


def webp_lossless(width: int = 4, height: int = 3) -> bytes:
    return _riff(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\x07\x10\x11")


def webp_extended(width: int = 4, height: int = 3) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return _riff(b"VP8X", b"\x10\0\0\0" + sizes)


def _riff(kind: bytes, data: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


KINDS: dict[str, tuple[str, Callable[[int, int], bytes]]] = {
    "png": ("image/png", png),
    "gif": ("image/gif", gif),
    "jpeg": ("image/jpeg", jpeg),
    "webp": ("image/webp", webp),
    "webp_lossless": ("image/webp", webp_lossless),
    "webp_extended": ("image/webp", webp_extended),
}
"""Each format: its media type, and who draws one."""
