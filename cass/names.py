"""Names of files as text: any name on one line, in a form that can be given back."""

import os
import re

from cass.pattern import pattern

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPED = pattern(rb'\\([0-7]{3}|[abtnvfr"\\])')


def quoted(name: str) -> str:
    """`name` as a model and a terminal can hold it: itself, or as git writes it, ``"caf\\351"``; see `unquoted`."""
    if name.isprintable() and not name.startswith('"'):
        return name
    letters = {value: f"\\{letter}" for letter, value in _ESCAPES.items()}
    return '"' + "".join(letters.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in os.fsencode(name)) + '"'


def unquoted(text: str) -> str:
    """The name that `quoted` made `text` of."""
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        return text
    raw = text[1:-1].encode("utf-8", "surrogateescape")

    def byte(found: re.Match[bytes]) -> bytes:
        code = found[1].decode()
        return bytes([_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 255])

    return os.fsdecode(_ESCAPED.sub(byte, raw))
