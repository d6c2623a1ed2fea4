"""Urls: the one spelling of an address, and what is no address at all."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.errors import ToolError
from cass.web import url


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("https://docs.python.org/3/", "https://docs.python.org/3/"),
        ("  https://a/\n", "https://a/"),
        ("HTTP://Docs.Python.ORG:80", "http://docs.python.org/"),
        ("https://a:443/", "https://a/"),
        ("https://a:/", "https://a/"),
        ("http://a:443/", "http://a:443/"),
        ("https://a:08443/", "https://a:8443/"),
        ("https://a.", "https://a/"),
        ("https://a/#there", "https://a/"),
        ("https://a?x=1#y?z", "https://a/?x=1"),
        ("https://a#@b", "https://a/"),
        ("https://a/b/../c/./d/..", "https://a/c/"),
        ("https://a/../../b", "https://a/b"),
        ("https://a/%2e%2E/x", "https://a/x"),
        ("https://a/.%2e/x", "https://a/x"),
        ("https://a/b%2f..%2fc", "https://a/b%2F..%2Fc"),
        ("https://a/%41%5c", "https://a/A%5C"),
        ("https://a/50%", "https://a/50%25"),
        ("https://a/ü b?q=ü b", "https://a/%C3%BC%20b?q=%C3%BC%20b"),
        ("https://a/?x=/../y", "https://a/?x=/../y"),
        ("https://a/\u202egpj", "https://a/%E2%80%AEgpj"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://\u0430pple.com/", "https://xn--pple-43d.com/"),  # a Cyrillic letter
        ("https://ex\u3002com/", "https://ex.com/"),  # an ideographic full stop
        ("https://\uff45x.com/", "https://ex.com/"),  # a full-width letter
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
    ],
)
def test_an_address_has_one_spelling(text, means):
    assert str(url.parse(text)) == means
    assert str(url.parse(means)) == means


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docs.python.org",
        "//docs.python.org/",
        "https:docs.python.org",
        "https:/docs.python.org",
        "https:///docs.python.org",
        "ftp://a/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "gopher://a/",
        "https://user@a/",
        "https://user:password@a/",
        "https://@a/",
        "https://docs.python.org@evil.example/",
        "https://docs.python.org:x@evil.example/",
        "https://docs.python.org\\@evil.example/",
        "https://docs.python.org\\.evil.example/",
        "https:\\\\docs.python.org\\",
        "https://docs.python.org%2eevil.example/",
        "https://docs.python.org%2f.evil.example/",
        "https://docs.python.org%40evil.example/",
        "https://docs.python.org .evil.example/",
        "https://docs.python.org\t.evil.example/",
        "https://docs.python.org\n.evil.example/",
        "https://docs.python.org\0.evil.example/",
        "https://docs.python.org\u2100evil.example/",  # one character for a/c
        "https://docs.python.org\uff0fevil.example/",  # a full-width slash
        "https://docs.python.org\uff20evil.example/",  # a full-width @
        "https://docs\u200d.python.org/",
        "https://faß.example/",
        "https://a..b/",
        "https://-a/",
        "https://*.a/",
        "https://" + "a" * 64 + "/",
        "https://" + "a." * 130 + "a/",
        "https://a:0/",
        "https://a:65536/",
        "https://a:8o/",
        "https://a:\u0663/",  # an Arabic digit
        "https://a:1:2/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.01/",
        "http://127.0.0.256/",
        "http://1.2.3.4.5/",
        "http://a.0x1/",
        "http://[::1/",
        "http://::1/",
        "http://[::1%25lo]/",
        "http://[127.0.0.1]/",
        "http://[v1.a]/",
        "https://a/" + "x" * 4_096,
        "https://a/\ud800",
    ],
)
def test_what_two_programs_may_read_in_two_ways_is_no_address(text):
    with pytest.raises(ToolError):
        url.parse(text)


@settings(deadline=None)
@given(st.text() | st.text(alphabet="htps:/.@\\[]%?#0x1aA\u3002", max_size=30).map("http://".__add__))
def test_whatever_is_an_address_is_so_for_every_reader(text):
    try:
        means = url.parse(text)
    except ToolError:
        return
    parts = urlsplit(str(means))
    assert str(means).isascii()
    assert str(means).isprintable()
    assert (parts.scheme, parts.hostname, parts.port or url.PORTS[parts.scheme]) == means[:3]
    assert (parts.username, parts.password, parts.fragment) == (None, None, "")
    assert url.parse(str(means)) == means


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("d", "https://a/b/d"),
        ("../d", "https://a/d"),
        ("/d#e", "https://a/d"),
        ("?d", "https://a/b/c?d"),
        ("//evil.example/", "https://evil.example/"),
        ("https://evil.example", "https://evil.example/"),
        (" /d ", "https://a/d"),
        ("/ü", "https://a/%C3%BC"),
    ],
)
def test_a_redirect_leads_from_where_it_stands(reference, leads):
    assert str(url.joined(url.parse("https://a/b/c?x"), reference)) == leads


@pytest.mark.parametrize("reference", ["\\\\evil.example", "/\tx", "http://u@b/", "file:///x", "http://[", "/\r\nX: y"])
def test_a_redirect_that_is_none_is_an_error(reference):
    with pytest.raises(ToolError):
        url.joined(url.parse("https://a/b/c?x"), reference)
