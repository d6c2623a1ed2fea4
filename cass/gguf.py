"""GGUF: what the head of a model's file says about the model.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import os
import struct
from typing import BinaryIO

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its type."""
_NUMBERS = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_STRING, _ARRAY = 8, 9
_MOST = 1 << 16
"""Keys, levels and names beyond which it is no such file."""


def context(path: str) -> int | None:
    """Tokens that the model in a file was trained to take; None where the file is none of a model, or says nothing."""
    try:
        with open(path, "rb") as opened:
            return _context(opened)
    except (OSError, ValueError, struct.error):
        return None


def _context(opened: BinaryIO) -> int | None:
    magic, _, _, keys = struct.unpack("<4sIQQ", opened.read(24))
    if magic != b"GGUF" or keys > _MOST:
        return None
    for _ in range(keys):
        name = opened.read(min(_number(opened, "<Q"), _MOST))
        kind = _number(opened, "<I")
        if name.endswith(b".context_length") and kind in _NUMBERS:
            found = _number(opened, _NUMBERS[kind])
            return found if found > 0 else None
        _pass(opened, kind)
    return None


def _pass(opened: BinaryIO, kind: int, count: int = 1) -> None:
    """Go behind `count` values of one type."""
    if kind in _SIZES:
        opened.seek(_SIZES[kind] * count, os.SEEK_CUR)
        return
    for _ in range(count):
        if kind == _STRING:
            opened.seek(_number(opened, "<Q"), os.SEEK_CUR)
        elif kind == _ARRAY:
            of = _number(opened, "<I")
            if of == _ARRAY:
                raise ValueError("arrays of arrays are not in use")
            _pass(opened, of, _number(opened, "<Q"))
        else:
            raise ValueError(f"type {kind} is not known")


def _number(opened: BinaryIO, form: str) -> int:
    found: int = struct.unpack(form, opened.read(struct.calcsize(form)))[0]
    return found
