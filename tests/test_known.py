"""The table of providers, and the servers of this machine."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from cass import known, models
from tests import scripted


@pytest.mark.parametrize("provider", known.PROVIDERS.values(), ids=lambda provider: provider.id)
def test_a_row_is_whole(provider):
    if provider.id in ("demo", "local"):
        return
    assert known.is_url(provider.base_url)
    assert not provider.base_url.endswith("/")
    assert known.is_local(provider.base_url) == (provider.key is None) == (provider.model == "")
    if provider.key:
        assert provider.key.endswith("_API_KEY")
        assert models.find(provider.id, provider.model).context
        assert known.is_url(known.MODEL_LISTS[provider.id])


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:1", True),
        ("https://127.example.com", False),
        ("https://localhost.example.com", False),
    ],
)
def test_an_address_is_of_this_machine_or_not(url, local):
    assert known.is_local(url) is local


def listed(base_url: str) -> dict[str, int | None]:
    return known.listed(base_url, time.monotonic() + 5)


def test_models_are_listed_in_their_order():
    with scripted.Server([], models=("b", "a")) as server:
        for base_url in (server.base_url, server.base_url + "/", server.url, server.base_url + "/chat/completions"):
            assert list(listed(base_url).items()) == [("b", None), ("a", None)]


@pytest.mark.parametrize(
    ("model", "length"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"meta": {"n_ctx": 2048, "n_ctx_train": 8192}}, 2048),
        ({"meta": {"n_ctx_train": 8192}}, 8192),
        ({"meta": {"n_ctx_train": 131_072}}, 32_768),
        ({"meta": None}, None),
        ({"max_model_len": "4096"}, None),
    ],
)
def test_a_server_may_say_how_long_its_context_is(model, length, answering):
    body = json.dumps({"data": [{"id": "m", **model}]}).encode()
    assert listed(answering(b"HTTP/1.0 200 OK\r\n\r\n" + body)) == {"m": length}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 401 x\r\n\r\n{}",
        b"HTTP/1.1 200 x\r\n\r\n<html>",
        b'HTTP/1.1 200 x\r\n\r\n{"data": [7]}',
        b'HTTP/1.1 200 x\r\n\r\n{"data": [{}]}',
        b"HTTP/1.1 200 x\r\n\r\n[]",
    ],
)
def test_whatever_else_listens_there_is_no_model_server(said, answering):
    assert listed(answering(said)) == {}


def test_a_server_that_is_too_slow_is_none(answering):
    base_url = answering(b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"id": "m"}]}', wait_s=5)
    began = time.monotonic()
    assert known.listed(base_url, began + 0.1) == {}
    assert time.monotonic() - began < 3


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Start a server that says the given bytes to whoever comes; return its base URL."""
    over = threading.Event()
    with contextlib.ExitStack() as stack:

        def start(said: bytes, wait_s: float = 0) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve() -> None:
                with contextlib.suppress(OSError), listener.accept()[0] as client:
                    client.recv(1 << 16)
                    over.wait(wait_s)
                    client.sendall(said)

            thread = threading.Thread(target=serve)
            thread.start()
            stack.callback(thread.join)
            stack.callback(over.set)
            return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        yield start


def test_every_local_row_has_its_own_port():
    ports = [urlsplit(p.base_url).port for p in known.PROVIDERS.values() if p.key is None and p.base_url]
    assert len(ports) == len(set(ports)) == 4
