"""The roads to a server: proxies, and certificates of one's own authority; with real servers on loopback."""

import asyncio
import select
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cass import providers
from cass.connection import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.records import Assistant, User
from tests import scripted, spoken

pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
    pytest.mark.usefixtures("no_environment"),
]
REQUEST = Request("You are a test.", (User(id="u", content="hi", created_at="2026-06-20"),), (), "m", 100)


@pytest.fixture
def secure(authority: Path) -> Iterator[str]:
    """Base URL of a server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem")
    server = scripted.Server([spoken.answer("anthropic", "over TLS")] * 3, path="/v1/messages")
    server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
    with server:
        yield server.url.replace("http://127.0.0.1", "https://localhost")


@contextmanager
def proxy(head: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that answers a CONNECT with `head`, and then hands bytes on; its address, and what it was asked."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    asked.append(client.recv(1 << 16))
                    client.sendall(head)
                    if b" 200 " in head:
                        carry(client, asked[-1].split()[1].decode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def carry(client: socket.socket, place: str) -> None:
    host, _, port = place.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        other = {client: server, server: client}
        while True:
            for ready in select.select(list(other), [], [], 10)[0]:
                data = ready.recv(1 << 16)
                if not data:
                    return
                other[ready].sendall(data)


def ask(base_url: str) -> str:
    """The text of an answer. Raises ProviderError."""

    async def asked() -> str:
        provider = providers.connect(Connection("test", "anthropic", base_url, api_key="SECRET", read_timeout_s=20))
        try:
            async for record in provider.stream(REQUEST, "of"):
                if isinstance(record, Assistant):
                    return record.content
        finally:
            await provider.aclose()
        raise AssertionError("no message")

    return asyncio.run(asked())


def fails(base_url: str) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(base_url)
    return caught.value


def test_a_certificate_of_an_unknown_authority_is_refused_and_the_way_out_is_named(secure):
    error = fails(secure)
    assert "the certificate of localhost is not trusted" in error.message
    assert "SSL_CERT_FILE" in error.message
    assert not error.transient


def test_an_authority_of_ones_own_is_trusted_by_file_and_by_directory(secure, authority, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    assert ask(secure) == "over TLS"
    monkeypatch.delenv("SSL_CERT_FILE")
    shutil.copy(authority / "ca.pem", tmp_path)
    subprocess.run(["openssl", "rehash", str(tmp_path)], check=True)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert ask(secure) == "over TLS"


def test_a_file_of_authorities_that_is_none_is_said(secure, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    error = fails(secure)
    assert "no connection can be made" in error.message
    assert not error.transient


def test_a_proxy_is_asked_to_connect_and_no_proxy_leaves_it_out(secure, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    with proxy() as (address, asked):
        monkeypatch.setenv("HTTPS_PROXY", address)
        assert ask(secure) == "over TLS"
        assert asked[0].startswith(b"CONNECT localhost:")
        assert b"SECRET" not in asked[0]
        monkeypatch.setenv("NO_PROXY", "example.com,localhost")
        assert ask(secure) == "over TLS"
        assert len(asked) == 1


@pytest.mark.parametrize("status", [b"407 Proxy Authentication Required", b"403 Forbidden"])
def test_a_proxy_that_refuses_says_so(monkeypatch, status):
    with proxy(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n") as (address, _):
        monkeypatch.setenv("HTTPS_PROXY", address)
        error = fails("https://model.invalid")
    assert error.message == f"the proxy refused: {status.decode()}"
    assert not error.transient


def test_a_proxy_that_is_not_there_is_named_without_its_password(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("ALL_PROXY", f"http://me:hidden@{place}")
        error = fails("https://model.invalid")
    assert f"the proxy http://{place} refused the connection: is it running?" in error.message
    assert "hidden" not in str(error)
    assert error.transient
