"""Charset: the text that the bytes of a page stand for. Pure.

Source: https://encoding.spec.whatwg.org/ (labels), https://html.spec.whatwg.org/multipage/parsing.html (sniffing)
"""

import codecs
import re

from cass.pattern import pattern

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = pattern(
    rb"""(?:<meta[^>]*?\bcharset|<\?xml[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
DECLARED_WITHIN = 2_048
"""Bytes from the beginning in which a page may say its charset itself; the standard has 1,024."""
_WIDER = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "shift-jis": "cp932",
    "euc-kr": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""What a label means to every browser, where that is more than its name says."""
_REFUSED = frozenset({"idna", "punycode", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"})
"""Codecs of Python that are no charset of a page; the first two take a time that grows with the square."""


def decoded(body: bytes, label: str, marked_up: bool) -> str:
    """`body` as text. `label`: the charset that the server says, or ""; `marked_up`: whether the page may say one.

    What is unknown is taken as UTF-8, and as Windows-1252 where it is none.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = _DECLARED.search(body[:DECLARED_WITHIN]) if marked_up else None
    own = _codec(declared[1].decode("ascii", "replace")) if declared else None
    if own and own.startswith("utf-16"):
        own = "utf-8"  # who can say so in ASCII is not in UTF-16
    if said := _codec(label) or own:
        return body.decode(said, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as e:
        is_cut = e.start >= len(body) - 3  # in the middle of a character
        return body.decode(*(("utf-8", "replace") if is_cut else ("cp1252", "replace")))


def _codec(label: str) -> str | None:
    try:
        found = codecs.lookup(label.strip().strip("\"'")).name
        b"a".decode(found, "replace")  # not every codec makes text of bytes
    except (LookupError, ValueError, UnicodeError):
        return None
    found = found.replace("_", "-")
    return None if found in _REFUSED else _WIDER.get(found, found)
