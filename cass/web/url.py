"""Url: a web address in the one spelling that rules are compared with, that people are shown, and that is asked for.

It is ASCII throughout, so that no letter can look like another. Whatever two programs may read in two ways (a user in
front of the host, a backslash, an IPv4 address in octal) is an error, not a guess.
Sources: https://www.rfc-editor.org/rfc/rfc3986 (5.2.4 and 6.2.2), https://url.spec.whatwg.org/#host-parsing
"""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import quote, urljoin

from cass.errors import ToolError
from cass.pattern import pattern

LONGEST = 4_096
"""Characters. Servers take about 8,000; what is longer carries something out more likely than it asks for a page."""
PORTS = {"http": 80, "https": 443}

_URL = pattern(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.DOTALL)
_HOST = pattern(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(?::([0-9]*))?")
_NAME = pattern(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*")
_NUMERIC = pattern(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)")
"""Hosts that some programs read as an IPv4 address: the last part is a number."""
_TWO_MEANINGS = "ßς\u200c\u200d"
"""Letters that older software maps to others and newer does not: one name, two hosts."""
_ESCAPE = pattern(r"%([0-9a-fA-F]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT = "%!$&'()*+,;=:@/?[]~"


class NoUrl(ToolError):
    """A text that means no address, or several; says why."""


class Url(NamedTuple):
    scheme: str
    """``http`` or ``https``."""
    host: str
    """A name in lower case, an IPv4 address, or an IPv6 address without its brackets."""
    port: int
    target: str
    """Path and query; begins with ``/``."""

    @property
    def authority(self) -> str:
        """Host and port as a URL has them; a port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.target


def parse(text: str) -> Url:
    """The address that `text` means. Raises NoUrl, which says why it means none or several."""
    text = text.strip(" \t\r\n")
    if len(text) > LONGEST:
        raise NoUrl(f"a URL of {len(text):,} characters is too long; {LONGEST:,} at most")
    shown = text[:200]
    if re.search(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]", text):
        raise NoUrl(f"{shown!r} is no URL: it holds a backslash or a control character")
    found = _URL.fullmatch(text)
    if found is None or (scheme := found[1].lower()) not in PORTS:
        raise NoUrl(f"{shown!r} is no URL that can be fetched: it must begin with http:// or https://")
    if "@" in found[2]:
        raise NoUrl("a URL with a user or a password is not fetched; leave out what stands before the @")
    host = _HOST.fullmatch(found[2])
    if host is None:
        raise NoUrl(f"{shown!r} is no URL: {found[2][:100]!r} is no host")
    target = _without_dots(_escaped(found[3])) + _escaped(found[4] or "")
    return Url(scheme, _host(host[1]), _port(host[2], scheme), target)


def shown(text: str) -> str:
    """The one spelling of `text`; as it is where it has none."""
    try:
        return str(parse(text))
    except NoUrl:
        return text


def joined(base: Url, reference: str) -> Url:
    """Where `reference`, of a redirect, leads from `base`. Raises NoUrl."""
    if re.search(r"[\x00-\x1f\x7f-\x9f\\]", reference):
        raise NoUrl(f"{reference[:200]!r} is no URL: it holds a backslash or a control character")
    try:
        return parse(urljoin(str(base), reference.strip()))
    except ValueError as e:
        raise NoUrl(f"{reference[:200]!r} is no URL: {e}") from None


def _host(text: str) -> str:
    try:
        if text.startswith("["):
            return _ipv6(ipaddress.IPv6Address(text[1:-1]))
        if any(letter in text for letter in _TWO_MEANINGS):
            raise NoUrl(f"the host {text[:100]!r} means two names; write the one you want, as xn--…")
        name = (text if text.isascii() else text.encode("idna").decode()).lower().removesuffix(".")
        if _NUMERIC.fullmatch(name):
            return str(ipaddress.IPv4Address(name))
    except ValueError:
        raise NoUrl(f"{text[:100]!r} is no host: an address has four decimal numbers, or is IPv6 in []") from None
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise NoUrl(f"{text[:100]!r} is no host")
    return name


def _ipv6(address: ipaddress.IPv6Address) -> str:
    """The shortest form, in hexadecimal throughout: Python 3.13 writes a mapped IPv4 address in decimal."""
    if address.ipv4_mapped is None:
        return address.compressed
    high, low = divmod(int(address.ipv4_mapped), 1 << 16)
    return f"::ffff:{high:x}:{low:x}"


def _port(text: str | None, scheme: str) -> int:
    port = int(text[-10:]) if text else PORTS[scheme]
    if not 0 < port < 65_536 or len(text or "") > 5:
        raise NoUrl(f"{(text or '')[:20]} is no port")
    return port


def _escaped(text: str) -> str:
    """`text` with all escaped that must be and nothing that need not be, each in its one form."""

    def form(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in _UNRESERVED else found[0].upper()

    whole = re.sub("%(?![0-9a-fA-F]{2})", "%25", text)
    return _ESCAPE.sub(form, quote(whole, safe=_KEPT))


def _without_dots(path: str) -> str:
    """`path` with ``.`` and ``..`` resolved, from ``/`` on."""
    kept: list[str] = []
    parts = path.removeprefix("/").split("/")
    for part in parts:
        if part == "..":
            kept = kept[:-1]
        elif part != ".":
            kept.append(part)
    ends_open = parts[-1] in (".", "..") and kept
    return "/" + "/".join(kept) + ("/" if ends_open else "")
