"""Charsets: what the bytes of a page stand for, by mark, header or the page itself."""

import pytest

from cass.web import charset

UMLAUT = "<p>Grüße, Привет"


@pytest.mark.parametrize(
    ("body", "label", "text"),
    [
        (UMLAUT.encode(), "", UMLAUT),
        (UMLAUT.encode(), "utf-8", UMLAUT),
        (UMLAUT.encode(), '"UTF-8"', UMLAUT),
        (b"\xef\xbb\xbf" + UMLAUT.encode(), "windows-1251", UMLAUT),
        (UMLAUT.encode("utf-16"), "", UMLAUT),
        (b"\xfe\xff" + UMLAUT.encode("utf-16-be"), "utf-8", UMLAUT),
        ("Grüße “x”".encode("cp1252"), "", "Grüße “x”"),
        ("Grüße “x”".encode("cp1252"), "iso-8859-1", "Grüße “x”"),
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        ("日本語".encode("shift_jis"), "Shift_JIS", "日本語"),
        ("中文".encode("gb18030"), "gb2312", "中文"),
        ("한국어".encode("cp949"), "euc-kr", "한국어"),
        (b"<meta charset=windows-1251><p>" + "Привет".encode("cp1251"), "", "<meta charset=windows-1251><p>Привет"),
        (
            b"<META content='text/html; charset=koi8-r'>" + "П".encode("koi8-r"),
            "",
            "<META content='text/html; charset=koi8-r'>П",
        ),
        (
            b'<?xml version="1.0" encoding="koi8-r"?>' + "П".encode("koi8-r"),
            "",
            '<?xml version="1.0" encoding="koi8-r"?>П',
        ),
        (b"<meta charset=utf-16>\xc3\xbc", "", "<meta charset=utf-16>ü"),
        (b"<meta charset=koi8-r>\xc3\xbc", "utf-8", "<meta charset=koi8-r>ü"),
        ("ü".encode()[:1].rjust(9, b"a"), "", "aaaaaaaa\ufffd"),
        (b"a\xff\xfe", "utf-8", "a\ufffd\ufffd"),
    ],
)
def test_bytes_stand_for_the_text_that_a_browser_would_show(body, label, text):
    assert charset.decoded(body, label, True) == text


@pytest.mark.parametrize(
    "label", ["idna", "punycode", "utf-7", "unicode_escape", "hex", "zlib", "rot13", "none", "\0", "é"]
)
def test_a_label_that_is_no_charset_is_passed_over(label):
    assert charset.decoded(b"+AGE- \\u0061 ab", label, True) == "+AGE- \\u0061 ab"


def test_only_a_page_may_say_its_charset_itself():
    assert charset.decoded(b"<meta charset=koi8-r>\xc3\xbc", "", False) == "<meta charset=koi8-r>ü"
