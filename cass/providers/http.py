"""HTTP: one connection to a server that streams its answers. The only module that knows httpx.

What is asked and what the answer means is the business of a kind (`Kind`); here bytes go out and come in, and whatever
happens to them on the way becomes a ProviderError.
"""

import asyncio
import os
import socket
import ssl
import sys
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

# httpx imports its own command line with it, when click and rich are there to be imported: 30 ms of each start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

import httpx  # noqa: E402

from cass import __version__, models  # noqa: E402
from cass.config import Connection  # noqa: E402
from cass.context import Request  # noqa: E402
from cass.errors import ProviderError  # noqa: E402
from cass.known import is_local  # noqa: E402
from cass.providers import failures, plain, veil  # noqa: E402
from cass.providers.answer import Answer  # noqa: E402
from cass.providers.sse import EVENT_BYTES, Decoder, Event  # noqa: E402
from cass.records import Assistant, Delta  # noqa: E402

CONNECT_TIMEOUT_S = 10.0
GET_TIMEOUT_S = 20.0
REASONING_READ_TIMEOUT_S = 600.0
"""A model may think for minutes before its first word, and some APIs say nothing meanwhile."""
QUIET_TIMES = 5
"""Read timeouts that may pass with keep-alives only, before they no longer count as life."""
ERROR_BYTES = 1 << 16
ANSWER_BYTES = 64 << 20
"""Of one answer, uncompressed: a hundred thousand deltas, with all that servers wrap them in, are half of it."""
_INFLATED = 1 << 16
"""Bytes that are uncompressed at a time: a thousand may come of each that was sent."""


class Kind(Protocol):
    """A module that knows an API."""

    def build(self, connection: Connection, request: Request) -> tuple[str, dict[str, str], bytes]: ...
    def Parser(self, of: str, model: str) -> Answer: ...


class Http:
    """A provider reached over HTTP."""

    def __init__(self, connection: Connection, kind: Kind) -> None:
        self._connection = connection
        self._kind = kind
        self._client: httpx.AsyncClient | None = None

    async def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        """Deltas as they come, then the message. Raises ProviderError."""
        url, headers, body = self._kind.build(self._connection, plain.told(request))
        parser = self._kind.Parser(of, request.model)
        shown = veil.Answer(self._connection.api_key)
        patience = _patience(self._connection, request)
        timeout = httpx.Timeout(patience, connect=CONNECT_TIMEOUT_S, pool=None)
        answered = begun = False
        try:
            async with self._open().stream("POST", url, headers=headers, content=body, timeout=timeout) as response:
                answered = True
                if response.status_code != 200:
                    raise await self._refused(response, url)
                async with aclosing(_events(response, patience)) as events:
                    async for some in events:
                        begun = True
                        for delta in parser.feed(some) if isinstance(some, list) else parser.whole(some):
                            for piece in shown.deltas(delta):
                                yield piece
                        if parser.failure is not None:
                            break
                if not begun and "html" in response.headers.get("content-type", ""):
                    raise ProviderError("the server sent a page, not an answer: is this the address of an API?")
            message = parser.finish()
            for piece in shown.end(of):
                yield piece
            yield shown.message(message)
        except ProviderError as e:
            self._finish(e, url, failures.images(e, len(request.images)))
            raise
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            words, transient = _words(e, url, patience, answered)
            raise ProviderError(self._without_key(words), url=self._shown(url), transient=transient) from None

    async def get(self, url: str, headers: dict[str, str]) -> bytes:
        """A whole answer. Raises ProviderError."""
        answered = False
        try:
            async with self._open().stream("GET", url, headers=headers, timeout=GET_TIMEOUT_S) as response:
                answered = True
                if response.status_code != 200:
                    raise await self._refused(response, url)
                body = bytearray()
                async with aclosing(_pieces(response)) as pieces:
                    async for piece in pieces:
                        body += piece
                        if len(body) > EVENT_BYTES:
                            raise ProviderError(f"the server's answer goes on after {EVENT_BYTES >> 20} MiB")
            return bytes(body)
        except ProviderError as e:
            self._finish(e, url)
            raise
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            words, transient = _words(e, url, GET_TIMEOUT_S, answered)
            raise ProviderError(self._without_key(words), url=self._shown(url), transient=transient) from None

    def _finish(self, error: ProviderError, url: str, besides: str = "") -> None:
        """Say the rest of an error. It is cut only now: half a key would not be known for one."""
        error.message = self._without_key(error.message)[: failures.WORDS] + besides
        if error.key_refused:
            error.message += failures.advice(self._key_name(), self._connection.provider)
        error.url = self._shown(url)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _open(self) -> httpx.AsyncClient:
        """The client, made when it is first needed. Raises ProviderError."""
        if self._client is None:
            unsecured = self._connection.base_url.startswith("http://")
            here = unsecured and is_local(self._connection.base_url)
            try:
                self._client = httpx.AsyncClient(
                    # To read all the certificates costs 30 ms, and a plain connection needs none.
                    verify=not unsecured or (_has_proxy() and not here),
                    trust_env=not here,  # no proxy can reach the loopback of this machine
                    headers={"User-Agent": f"cass/{__version__}", "Accept-Encoding": "identity"},
                )
            except (ImportError, ValueError, OSError) as e:  # SOCKS without its package, a wrong proxy or SSL_CERT_FILE
                raise ProviderError(f"no connection can be made: {e}") from e
        return self._client

    async def _refused(self, response: httpx.Response, url: str) -> ProviderError:
        body = bytearray()
        async with aclosing(_pieces(response)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) >= ERROR_BYTES:
                    break
        text = body[:ERROR_BYTES].decode("utf-8", "replace")
        if key := self._connection.api_key:
            hidden = veil.Veil(key)
            text = hidden.feed(text) + (
                hidden.end() if len(body) < ERROR_BYTES else ""
            )  # no half a key where it is cut
        return failures.refused(response.status_code, response.headers, text, url)

    def _key_name(self) -> str | None:
        if self._connection.api_key_env:
            return self._connection.api_key_env
        return "providers.json" if self._connection.api_key else None

    def _without_key(self, text: str) -> str:
        key = self._connection.api_key
        return text.replace(key, veil.HIDDEN) if key else text

    def _shown(self, url: str) -> str:
        return self._without_key(failures.address(url))


def _patience(connection: Connection, request: Request) -> float:
    """Seconds without a byte that are waited."""
    if connection.read_timeout_said or request.effort == "none":
        return connection.read_timeout_s
    if request.effort is None and not models.find(connection.provider, request.model, connection.base_url).reasoning:
        return connection.read_timeout_s
    return max(connection.read_timeout_s, REASONING_READ_TIMEOUT_S)


def _has_proxy() -> bool:
    return any(name.lower().endswith("_proxy") and value for name, value in os.environ.items())


async def _events(response: httpx.Response, read_timeout_s: float) -> AsyncGenerator[list[Event] | bytes]:
    """Events, a list for each network chunk that completes any; or the whole body, where it is one JSON value."""
    decoder = Decoder()
    body: bytearray | None = None
    begun = False
    size = 0
    heard = time.monotonic()
    async with aclosing(_pieces(response)) as pieces:
        async for piece in pieces:
            size += len(piece)
            if size > (limit := ANSWER_BYTES if body is None else EVENT_BYTES):
                raise ProviderError(f"the server's answer goes on after {limit >> 20} MiB")
            if not begun and piece.strip():
                begun = True
                body = bytearray() if piece.lstrip()[:1] in (b"{", b"[") else None
            if body is not None:
                body += piece
                continue
            events = decoder.feed(piece)
            if events:
                heard = time.monotonic()
                yield events
            elif time.monotonic() - heard > QUIET_TIMES * read_timeout_s:
                raise ProviderError("the server only keeps the connection alive, and says nothing", transient=True)
    if body is not None:
        yield bytes(body)
    elif last := decoder.end():
        yield last


def _pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    """The body as it comes. A server was asked not to compress; one that does all the same is heard too."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    raw = _together(response.aiter_raw())
    return raw if coding in ("", "identity") else _inflated(raw, coding)


async def _together(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Chunks that are here already as one piece: a server that is fast sends hundreds of deltas at a time, each in an
    HTTP chunk of its own, and all that comes after this would be done for each of them."""
    ready: list[bytes] = []
    news = asyncio.Event()

    async def take() -> None:
        try:
            async for chunk in chunks:
                ready.append(chunk)
                news.set()
        finally:
            news.set()

    taking = asyncio.create_task(take())
    try:
        while ready or not taking.done():
            await news.wait()
            news.clear()
            piece = b"".join(ready)
            ready.clear()
            if piece:
                yield piece
        taking.result()  # raises what ended it
    finally:
        taking.cancel()
        await asyncio.wait([taking])


async def _inflated(raw: AsyncGenerator[bytes], coding: str) -> AsyncGenerator[bytes]:
    """What was compressed, never much of it at once: httpx would make a gigabyte of a megabyte."""
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ProviderError(f"the server compresses its answer as {coding[:20]!r}, although it was asked not to")
    inflater = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)  # with either header
    try:
        async with aclosing(raw) as pieces:
            async for piece in pieces:
                while piece and not inflater.eof:
                    yield inflater.decompress(piece, _INFLATED)
                    piece = inflater.unconsumed_tail
                    await asyncio.sleep(0)  # all of it may come of what is here already, and must not hold all else up
        yield inflater.flush()
    except zlib.error as e:
        raise ProviderError(f"the server compresses its answer, and wrongly: {e}", transient=True) from None


def _words(error: Exception, url: str, read_timeout_s: float, answered: bool) -> tuple[str, bool]:
    """What happened to a connection, for a person; and whether it may go better the next time."""
    host = urlsplit(url).hostname
    match error:
        case httpx.ConnectTimeout():
            return f"no connection to {_proxy(url) or host} within {CONNECT_TIMEOUT_S:g} s", True
        case httpx.ReadTimeout():
            return f"no byte from {host} for {read_timeout_s:g} s", True
        case httpx.ConnectError():
            return _why_not_connected(error, url)
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError() | httpx.WriteTimeout():
            if answered:
                return "the answer was cut off: the connection broke in its middle", True
            return f"{host} closed the connection without an answer", True
        case httpx.ProxyError():
            return f"the proxy refused: {error}", False
        case _:
            return f"the request cannot be sent: {error}", False


def _why_not_connected(error: BaseException, url: str) -> tuple[str, bool]:
    host = urlsplit(url).hostname or ""
    proxy = _proxy(url)
    whom = f"the proxy {proxy}" if proxy else host
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):  # what it led to only says that there was one
            own = "SSL_CERT_FILE or SSL_CERT_DIR names authorities of your own"
            return f"the certificate of {host} is not trusted: {cause.verify_message} ({own})", False
    for cause in causes:
        text = str(cause)
        if isinstance(cause, ssl.SSLError) or "SSL" in text:
            return f"no secure connection to {host}: {text}", False
        if isinstance(cause, socket.gaierror):
            return f"the name {whom} is not known: {cause.strerror}", True
        if isinstance(cause, ConnectionRefusedError):
            return f"{whom} refused the connection: is {'it' if proxy else 'the server'} running?", True
    return f"no connection to {whom}: {error}", True


def _proxy(url: str) -> str:
    """The proxy that the environment names for `url`, without its password; "": it is asked directly."""
    parts = urlsplit(url)
    if (parts.scheme == "http" and is_local(url)) or proxy_bypass(parts.hostname or ""):
        return ""
    proxies = getproxies()
    return failures.address(proxies.get(parts.scheme) or proxies.get("all") or "")


def _causes(error: BaseException) -> list[BaseException]:
    """`error`, and everything that led to it."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or cause in found:
            continue
        found.append(cause)
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    return found
