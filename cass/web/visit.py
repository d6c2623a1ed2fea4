"""Visit: one request for one page, and its text. A process of its own: ``python -m cass.web.visit``.

It reads ``{"url", "private", "offset", "length"}`` as JSON and writes one line of JSON: an `Answer`, or ``{"error"}``.
A name is looked up once, and what is asked is the address that was judged: whoever answers something else to the next
question (*DNS rebinding*) is not asked again. Redirects are told, not followed. It has no cookies, no keys and no
.netrc, and may neither write a file nor start a program.
"""

import ipaddress
import json
import resource
import socket
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

# As in `cass.providers.http`: httpx would import its own command line.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

import httpx  # noqa: E402

from cass import __version__  # noqa: E402
from cass.errors import ToolError  # noqa: E402
from cass.known import is_local  # noqa: E402
from cass.web import charset, hosts, page, url  # noqa: E402
from cass.web.hosts import Address  # noqa: E402
from cass.web.url import Url  # noqa: E402

BODY_BYTES = 5_000_000
"""Of one page, uncompressed; what follows is not read."""
STEP_BYTES = 65_536
"""Uncompressed at a time: a thousand bytes may come of each that was sent."""
ERROR_CHARS = 2_000
"""Of what a server says besides a status that is none of success."""
CONNECT_S = 10.0
READ_S = 20.0
LIMITS = {
    resource.RLIMIT_AS: 1 << 30,
    resource.RLIMIT_CPU: 25,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NPROC: 0,
    resource.RLIMIT_CORE: 0,
}
"""Bytes, seconds and processes. It asks and reads, and does nothing else."""
ADDRESSES = 4
"""Of one name, that are tried one after the other."""
MARKED_UP = ("text/html", "application/xhtml+xml")
_XML = ("text/xml", "application/xml", "+xml")
TEXTS = (
    *("application/json", "application/javascript", "application/ecmascript", "application/x-javascript"),
    *("application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/x-sh"),
    *("application/graphql", "application/x-ndjson", "application/jsonl", "application/x-httpd-php"),
)


class Answer(NamedTuple):
    status: int
    reason: str
    type: str
    """Media type in lower case, without parameters; "" where the server says none."""
    to: str | None = None
    """Where a redirect leads, as the server says it."""
    title: str = ""
    text: str = ""
    """From `offset` on, as many characters as were asked for."""
    chars: int = 0
    """Of the whole text."""
    is_cut: bool = False
    """Whether the body was longer than what is read of one."""


def visit(target: Url, private: Collection[str], offset: int, length: int) -> Answer:
    """Raises ToolError."""
    proxy = _proxy(target)
    addresses = hosts.judged(target, _resolved(target, proxy is not None), private)
    try:
        with _client(target, proxy) as client:
            response = _asked(client, target, [None] if proxy else addresses[:ADDRESSES])
            with closing(response):
                return _answer(response, target, offset, length)
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        raise ToolError(_words(e, target, proxy)) from e


def _client(target: Url, proxy: str | None) -> httpx.Client:
    try:
        verify = httpx.create_ssl_context() if target.scheme == "https" or proxy else False
        return httpx.Client(proxy=proxy, trust_env=False, verify=verify, follow_redirects=False)
    except (ImportError, ValueError, OSError) as e:  # SOCKS without its package, a wrong proxy or SSL_CERT_FILE
        raise ToolError(f"no connection can be made: {e}") from e


# ---- whom it asks ---------------------------------------------------------------------------------------------------


def _resolved(target: Url, by_proxy: bool) -> list[Address]:
    """What the name means now. Raises ToolError. `by_proxy`: a name unknown here may be known there."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        if by_proxy:
            return []
        raise ToolError(f"the name {target.host} is not known: {getattr(e, 'strerror', None) or e}") from e
    return list(dict.fromkeys(ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found))


def _proxy(target: Url) -> str | None:
    """The proxy that the environment names, as `cass.providers.http` has it."""
    if (target.scheme == "http" and is_local(target.origin)) or proxy_bypass(target.host):
        return None
    proxies = getproxies()
    found = proxies.get(target.scheme) or proxies.get("all")
    return found if not found or "://" in found else f"http://{found}"


def _asked(client: httpx.Client, target: Url, addresses: list[Address] | list[None]) -> httpx.Response:
    """The answer of the first of `addresses` that can be reached; None: whoever a proxy takes for the host."""
    for left, address in zip(range(len(addresses))[::-1], addresses, strict=True):
        try:
            return client.send(_request(client, target, address), stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if not left:
                raise
    raise ToolError(f"the name {target.host} is not known")


def _request(client: httpx.Client, target: Url, address: Address | None) -> httpx.Request:
    at = target if address is None else target._replace(host=str(address))
    return client.build_request(
        "GET",
        str(at),
        headers={
            "Host": target.authority,
            "User-Agent": f"cassady/{__version__}",
            "Accept": "text/html, text/*;q=0.9, */*;q=0.5",
            "Accept-Encoding": "gzip",
            "Connection": "close",
        },
        timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
        # The certificate must be the host's, whatever address it has.
        extensions={"sni_hostname": target.host},
    )


def _words(error: Exception, target: Url, proxy: str | None) -> str:
    whom = "the proxy" if proxy else target.host
    match error:
        case httpx.ConnectTimeout():
            return f"no connection to {whom} within {CONNECT_S:g} s"
        case httpx.ReadTimeout():
            return f"no byte from {target.host} for {READ_S:g} s"
        case httpx.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return f"the certificate of {target.host} is not trusted: {error}"
        case httpx.ConnectError():
            return f"no connection to {whom}: {error}"
        case httpx.RemoteProtocolError():
            return f"{target.host} does not speak HTTP as it should: {error}"
    return f"{target} could not be fetched: {error or type(error).__name__}"


# ---- what it answers ------------------------------------------------------------------------------------------------


def _answer(response: httpx.Response, target: Url, offset: int, length: int) -> Answer:
    kind, label = _kind(response)
    found = Answer(response.status_code, response.reason_phrase, kind)
    if response.status_code in (301, 302, 303, 307, 308) and (to := response.headers.get("location")):
        return found._replace(to=to)
    if not response.is_success:
        length = min(length, ERROR_CHARS)
    if not _is_text(kind):
        if not response.is_success:
            return found
        size = response.headers.get("content-length", "")
        many = f", {int(size):,} bytes" if size.isdecimal() and len(size) < 16 else ""
        raise ToolError(f"{target} is no text but {kind}{many}: fetch reads pages and text only")
    body, is_cut = _body(response)
    is_page = kind in MARKED_UP or (not kind and body.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")))
    if not is_page and b"\0" in body[:1024] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{target} is no text: {kind or 'of no type'}, {len(body):,} bytes")
    text = charset.decoded(body, label, is_page or kind.endswith(_XML))
    made = page.read(text, str(target)) if is_page else page.Page("", text.replace("\r\n", "\n"))
    whole = made.markdown
    return found._replace(title=made.title, text=_part(whole, offset, length), chars=len(whole), is_cut=is_cut)


def _part(text: str, offset: int, length: int) -> str:
    """At most `length` characters from `offset` on; to the end of a line where one is not far."""
    part = text[offset : offset + length]
    end = part.rfind("\n") + 1
    return part[:end] if end > length * 3 // 4 and offset + length < len(text) else part


def _kind(response: httpx.Response) -> tuple[str, str]:
    """Media type and charset that the server says."""
    kind, *parameters = response.headers.get("content-type", "").split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    label = next((value for name, _, value in pairs if name.strip().lower() == "charset"), "")
    return kind.strip().lower()[:100], label.strip()[:40]


def _is_text(kind: str) -> bool:
    return not kind or kind.startswith("text/") or kind in (*MARKED_UP, *TEXTS) or kind.endswith(("+json", *_XML))


def _body(response: httpx.Response) -> tuple[bytes, bool]:
    """The body, uncompressed, and whether more of it was to come."""
    body = bytearray()
    for piece in _pieces(response):
        body += piece
        if len(body) > BODY_BYTES:
            return bytes(body[:BODY_BYTES]), True
    return bytes(body), False


def _pieces(response: httpx.Response) -> Iterator[bytes]:
    """Never much of it at once: httpx would make a gigabyte of a megabyte."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        yield from response.iter_raw(STEP_BYTES)
        return
    if coding not in ("gzip", "x-gzip"):
        raise ToolError(f"the server compresses its answer as {coding[:20]!r}, although only gzip was asked for")
    inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    taken = 0
    try:
        for piece in response.iter_raw(STEP_BYTES):
            taken += len(piece)
            if taken > BODY_BYTES:
                raise ToolError("the server sends more than 5 MB that come to nothing when uncompressed")
            while piece and not inflater.eof:
                yield inflater.decompress(piece, STEP_BYTES)
                piece = inflater.unconsumed_tail
        yield inflater.flush()
    except zlib.error as e:
        raise ToolError(f"the server compresses its answer, and wrongly: {e}") from e


# ---- the process ----------------------------------------------------------------------------------------------------


def main() -> None:
    _limit()
    asked = json.loads(sys.stdin.buffer.read())
    found: dict[str, Any]
    try:
        answer = visit(url.parse(asked["url"]), asked["private"], asked["offset"], asked["length"])
        found = answer._asdict()
    except ToolError as e:
        found = {"error": str(e)}
    except (MemoryError, RecursionError):
        found = {"error": "the page is made of too many parts to be read"}
    sys.stdout.write(json.dumps(found) + "\n")


def _limit() -> None:
    """Give up what is not needed to ask a server and to read a page."""
    for which, most in LIMITS.items():
        hard = resource.getrlimit(which)[1]
        with suppress(ValueError, OSError):  # macOS takes no limit that is used up already
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    main()
