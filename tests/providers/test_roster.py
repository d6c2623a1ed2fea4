"""Lists of models, of every API: what is asked, with which key, and what a refusal says."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from cass import providers
from cass.config import Connection
from cass.errors import ProviderError

KEY = "k-good-0123456789"


class Served(NamedTuple):
    path: str
    header: str
    value: str
    body: Any
    ids: list[str]
    status: int = 401
    """Of a refusal."""
    words: str = "invalid x-api-key"


BY_NAME = {"object": "list", "data": [{"id": "b"}, {"id": "a"}]}
CLAUDES = {"data": [{"type": "model", "id": "claude-opus-4-7", "display_name": "Claude"}], "has_more": False}
GEMINIS = {
    "models": [
        {"name": "models/gemini-2.5-flash", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"]},
    ]
}
INVALID = "API key not valid. Please pass a valid API key."
SERVED = {
    "openai-compatible": Served("/v1/models", "Authorization", f"Bearer {KEY}", BY_NAME, ["b", "a"]),
    "openai-responses": Served("/v1/models", "Authorization", f"Bearer {KEY}", BY_NAME, ["b", "a"]),
    "anthropic": Served("/v1/models?limit=1000", "x-api-key", KEY, CLAUDES, ["claude-opus-4-7"]),
    "gemini": Served(
        "/v1beta/models?pageSize=1000", "x-goog-api-key", KEY, GEMINIS, ["gemini-2.5-flash"], 400, INVALID
    ),
}


@contextmanager
def serving(served: Served, asked: list[str]) -> Iterator[str]:
    """The URL of a server that lists its models to the owner of the key; what it is `asked` for is kept."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            is_owner = self.headers.get(served.header) == served.value
            said = served.body if is_owner else {"error": {"message": served.words}}
            payload = json.dumps(said).encode()
            self.send_response(200 if is_owner else served.status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def listed(kind: str, url: str, key: str, provider: str = "mine") -> list[str]:
    connection = Connection(provider, kind, url, api_key=key, api_key_env="MINE")
    return asyncio.run(providers.listed(connection))


@pytest.mark.parametrize("kind", SERVED)
def test_each_api_is_asked_for_its_list_in_its_own_way(kind):
    asked: list[str] = []
    with serving(SERVED[kind], asked) as url:
        assert listed(kind, url, KEY) == SERVED[kind].ids
    assert asked == [SERVED[kind].path]


@pytest.mark.parametrize("kind", SERVED)
def test_a_key_that_is_refused_is_said_with_its_variable_whatever_the_status(kind):
    with serving(SERVED[kind], []) as url, pytest.raises(ProviderError) as caught:
        listed(kind, url, "k-bad-0123456789")
    advice = "check the key in MINE (cass login mine keeps one that works)"
    assert caught.value.message == f"{SERVED[kind].words}; {advice}"
    assert caught.value.key_refused


def test_where_anybody_may_see_the_list_the_key_is_tried_besides():
    asked: list[str] = []
    with serving(SERVED["openai-compatible"], asked) as url:
        listed("openai-compatible", url, KEY, "openrouter")
    assert asked == ["/v1/key", "/v1/models"]
