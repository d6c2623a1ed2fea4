"""The HTTP provider against a real server on loopback."""

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cass import providers
from cass.config import Connection
from cass.context import Request
from cass.errors import ProviderError
from cass.providers import failures
from cass.records import Assistant, Delta, User
from tests import scripted

AT = "2026-06-20T14:30:12.345Z"
REQUEST = Request("You are a test.", (User(id="u", content="hi", created_at=AT),), (), "m", 100)
C = scripted.chunk
KEY = "sk-live-0123456789abcdef"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy of whoever runs the tests is none of theirs."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def connection(base_url: str, **more: Any) -> Connection:
    return Connection("test", "openai-compatible", base_url, **{"api_key": "SECRET", "api_key_env": "THE_KEY"} | more)


def ask(base_url: str, **more: Any) -> tuple[list[Delta], Assistant | ProviderError]:
    """The deltas of one request, and what it came to."""

    async def asked() -> tuple[list[Delta], Assistant | ProviderError]:
        provider = providers.connect(connection(base_url, **more))
        deltas: list[Delta] = []
        try:
            async for record in provider.stream(REQUEST, "of"):
                if isinstance(record, Assistant):
                    return deltas, record
                deltas.append(record)
        except ProviderError as e:
            return deltas, e
        finally:
            await provider.aclose()
        raise AssertionError("neither message nor error")

    return asyncio.run(asked())


def fails(base_url: str, **more: Any) -> ProviderError:
    error = ask(base_url, **more)[1]
    assert isinstance(error, ProviderError), error
    return error


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text or "" for delta in deltas)


def test_deltas_that_come_at_once_are_taken_together():
    with scripted.Server([scripted.says("word " * 2000, deltas=2000)]) as server:
        deltas, message = ask(server.base_url)
    assert isinstance(message, Assistant)
    assert text(deltas) == message.content == "word " * 2000
    assert len(deltas) < 1000


def test_an_answer_comes_as_deltas_and_then_whole():
    with scripted.Server([scripted.says("hello world", deltas=4, delay_s=0.1)]) as server:
        deltas, message = ask(server.base_url)
        assert isinstance(message, Assistant)
        assert (text(deltas), message.content, message.id, message.model) == ("hello world", "hello world", "of", "m")
        assert len(deltas) == 4
        [asked] = server.asked
        assert (asked.path, asked.header("authorization")) == ("/v1/chat/completions", "Bearer SECRET")
        assert (asked.header("x-api-key"), server.problems) == (None, [])


def test_a_delta_is_there_as_soon_as_its_bytes_are():
    """The server sends the second half only after the client has shown the first."""
    shown = threading.Event()

    def wait(_: scripted.Asked) -> scripted.Answer:
        return scripted.Answer(pieces=scripted.sse(C({"content": "a"})) + (scripted.HANG,))

    async def first(base_url: str) -> Delta | Assistant:
        provider = providers.connect(connection(base_url))
        stream = provider.stream(REQUEST, "of")
        try:
            return await asyncio.wait_for(anext(stream), 10)
        finally:
            shown.set()
            await stream.aclose()  # type: ignore[attr-defined]
            await provider.aclose()

    with scripted.Server(wait) as server:
        assert asyncio.run(first(server.base_url)) == Delta(of="of", text="a")
    assert shown.is_set()


def test_cancelling_ends_a_stream_at_once():
    async def cancelled(base_url: str) -> float:
        provider = providers.connect(connection(base_url))
        got = asyncio.Event()

        async def read() -> None:
            async for _ in provider.stream(REQUEST, "of"):
                got.set()

        task = asyncio.create_task(read())
        await asyncio.wait_for(got.wait(), 10)
        began = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = asyncio.get_running_loop().time() - began
        await provider.aclose()
        return took

    with scripted.Server([scripted.raw(*scripted.sse(C({"content": "a"})), scripted.HANG)]) as server:
        assert asyncio.run(cancelled(server.base_url)) < 2


def test_one_client_serves_many_requests():
    async def asked(base_url: str) -> None:
        provider = providers.connect(connection(base_url))
        for _ in range(3):
            assert [record async for record in provider.stream(REQUEST, "of")]
        await provider.aclose()

    with scripted.Server([scripted.says("x")] * 3) as server:
        asyncio.run(asked(server.base_url))
        assert len(server.asked) == 3


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_in_any_tcp_pieces_is_the_same_answer(size):
    stream = b"".join(scripted.sse(C({"content": "中文 "}), C({"content": "😀"}), C({}, "stop"), "[DONE]"))
    pieces = [stream[n : n + size] for n in range(0, len(stream), size)]
    with scripted.Server([scripted.raw(*pieces), scripted.raw(*pieces, chunked=False)]) as server:
        for _ in range(2):
            deltas, message = ask(server.base_url)
            assert isinstance(message, Assistant)
            assert text(deltas) == message.content == "中文 😀"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
def test_an_answer_in_one_json_body_is_taken(content_type):
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    with scripted.Server([scripted.raw(json.dumps(body, indent=1).encode(), content_type=content_type)]) as server:
        deltas, message = ask(server.base_url)
        assert isinstance(message, Assistant)
        assert (text(deltas), message.content, message.stop) == ("hi", "hi", "stop")


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1//", "/v1/chat/completions", ""])
def test_a08_base_urls_of_every_form_reach_the_same_path(path):
    with scripted.Server([scripted.says("x")]) as server:
        assert isinstance(ask(server.url + path)[1], Assistant)


def test_a08_a_404_shows_the_address_that_was_asked():
    with scripted.Server([], path="/api/coding/v3/chat/completions") as server:
        error = fails(server.base_url)
        assert f"{server.base_url}/chat/completions" in str(error)
        assert (error.http_status, error.transient) == (404, False)


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_a_refused_connection_says_so_with_the_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        error = fails(url)
    assert "refused the connection" in error.message
    assert url in str(error)
    assert error.transient


def test_a_connection_that_is_closed_without_an_answer_is_named():
    with proxy(lambda _: b"") as (address, _):
        error = fails(address)
    assert "closed the connection without an answer" in error.message
    assert error.transient


def test_an_unknown_host_says_so():
    error = fails("http://nowhere.invalid/v1", api_key=None, api_key_env=None)
    assert "the name nowhere.invalid is not known" in error.message
    assert error.transient


def test_a_plain_server_asked_by_tls_says_so():
    with scripted.Server([]) as server:
        error = fails(server.base_url.replace("http:", "https:"))
    assert "no secure connection" in error.message
    assert not error.transient


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"error": {"message": "what is this"}}, "what is this"),
        (
            401,
            {"error": {"message": "Incorrect API key provided: SECRET"}},
            "check the key in THE_KEY (cass login test",
        ),
        (403, "no", "THE_KEY"),
        (404, {"error": {"message": "no such model"}}, "no such model"),
        (500, "<html>oops</html>", "oops"),
    ],
)
def test_a_refusal_shows_the_servers_words_and_the_address_but_never_the_key(status, body, words):
    with scripted.Server([scripted.fails(status, body)]) as server:
        error = fails(server.base_url)
        assert words in error.message
        assert str(error).startswith(f"HTTP {status}: ")
        assert str(error).endswith(f"({server.base_url}/chat/completions)")
        assert "SECRET" not in str(error) + repr(error)


def test_what_is_secret_in_an_address_is_not_shown():
    with scripted.Server([scripted.fails(404)]) as server:
        host = server.url.removeprefix("http://")
        error = fails(f"http://me:hidden@{host}/v1?key=SECRET&api-version=2")
        assert "hidden" not in str(error)
        assert "SECRET" not in str(error)
        assert str(error).endswith("/v1/chat/completions?…)")
        assert server.asked[0].path == "/v1/chat/completions?key=SECRET&api-version=2"


def test_h01_retry_after_is_handed_on():
    with scripted.Server([scripted.fails(429, Retry_After="3"), scripted.fails(503), scripted.fails(529)]) as server:
        error = fails(server.base_url)
        assert (error.transient, error.retry_after) == (True, 3.0)
        for _ in range(2):
            error = fails(server.base_url)
            assert (error.transient, error.retry_after) == (True, None)


def test_h02_too_long_is_recognised():
    message = "request (9 tokens) exceeds the available context size (8 tokens), try increasing it"
    with scripted.Server([scripted.fails(400, {"error": {"message": message}})]) as server:
        assert fails(server.base_url).too_long


@pytest.mark.parametrize(
    ("end", "words"),
    [((), "ended the stream"), ((scripted.RESET,), "broke"), ((scripted.CLOSE,), "broke"), ((b"",), "broke")],
    ids=["ended", "reset", "closed in a chunk", "torn"],
)
def test_h03_half_an_answer_is_none(end, words):
    pieces = scripted.sse(C({"content": "Hello wor"}), C({"tool_calls": [{"id": "a", "function": {"name": "ls"}}]}))
    answer = scripted.raw(*pieces, *end)
    if end == (b"",):  # a chunk that is longer than what comes of it
        answer = scripted.raw(*pieces, b"1f4\r\ndata: {", chunked=False)
        answer = scripted.Answer(answer.pieces, 200, (*answer.headers, ("Content-Length", "5000")), chunked=False)
    with scripted.Server([answer]) as server:
        deltas, error = ask(server.base_url)
        assert text(deltas) == "Hello wor"
        assert isinstance(error, ProviderError)
        assert "cut off" in error.message
        assert words in error.message
        assert error.transient


def test_h03_a_silent_stream_ends_after_the_read_timeout():
    with scripted.Server([scripted.raw(*scripted.sse(C({"content": "a"})), scripted.HANG)]) as server:
        deltas, error = ask(server.base_url, read_timeout_s=1)
        assert text(deltas) == "a"
        assert isinstance(error, ProviderError)
        assert "no byte from 127.0.0.1 for 1 s" in error.message
        assert error.transient


def test_h03_keep_alives_count_as_life_but_not_for_ever():
    alive: list[scripted.Piece] = [b": ping\n\n", 0.05] * 15
    answer = scripted.raw(*alive, *scripted.sse(C({"content": "late"}), C({}, "stop")))
    with scripted.Server([answer, scripted.raw(*alive * 20)]) as server:
        deltas, message = ask(server.base_url, read_timeout_s=0.6)
        assert isinstance(message, Assistant)
        assert text(deltas) == "late"
        error = fails(server.base_url, read_timeout_s=0.6)
        assert "keeps the connection alive" in error.message


def test_a05_an_error_in_the_stream_comes_after_the_text_before_it():
    stream = b"".join(scripted.sse(C({"content": "par"}), {"error": {"message": "worker limit reached"}}))
    with scripted.Server([scripted.raw(stream, scripted.HANG)]) as server:
        deltas, error = ask(server.base_url)
        assert text(deltas) == "par"
        assert "worker limit reached" in str(error)
        assert server.base_url in str(error)


def test_a_page_instead_of_an_answer_is_named():
    with scripted.Server([scripted.raw(b"<html>Log in</html>", content_type="text/html"), scripted.raw()]) as server:
        error = fails(server.base_url)
        assert "a page, not an answer" in error.message
        assert not error.transient
        assert fails(server.base_url).transient


def test_an_endless_error_body_is_not_read_to_its_end():
    with scripted.Server([scripted.Answer((b"x" * 100_000, scripted.HANG), 500)]) as server:
        assert fails(server.base_url).http_status == 500


@pytest.mark.parametrize("before", ["x" * 1000, " " * 64_536], ids=["what is shown", "what is read"])
@pytest.mark.parametrize("part", [5, len(KEY) // 2, len(KEY) - 1])
@pytest.mark.parametrize("wrap", ["{}", '{{"error": {{"message": "{}"}}}}'], ids=["text", "json"])
def test_no_part_of_the_key_is_shown_where_an_error_is_cut(before, part, wrap):
    start = wrap.partition("{}")[0].replace("{{", "{")
    body = start + before + "x" * (1000 - part - (len(start) if before[0] == " " else 0)) + KEY + "y" * 3000
    with scripted.Server([scripted.fails(400, json.loads(body + '"}}') if start else body)]) as server:
        assert KEY[:4] not in str(fails(server.base_url, api_key=KEY))


def test_the_message_of_an_error_in_a_stream_is_cut_too():
    body = scripted.sse({"error": {"message": "x" * 1_999_000 + KEY}})
    with scripted.Server([scripted.raw(*body)]) as server:
        assert len(fails(server.base_url, api_key=KEY).message) == failures.WORDS


def test_the_key_is_hidden_in_text_and_reasoning_but_not_in_what_a_tool_is_told():
    said = f"the key is {KEY}. s"
    pieces = [said[n : n + 7] for n in range(0, len(said), 7)]
    call = {"id": "a", "function": {"name": "write", "arguments": json.dumps({"content": KEY})}}
    payloads = [*(C({"reasoning": piece}) for piece in pieces), *(C({"content": piece}) for piece in pieces)]
    stream = scripted.sse(*payloads, C({"tool_calls": [call]}), C({}, "tool_calls"))
    with scripted.Server([scripted.raw(*stream)]) as server:
        deltas, message = ask(server.base_url, api_key=KEY)
    assert isinstance(message, Assistant)
    assert text(deltas) == message.content == "the key is …. s"
    assert "".join(delta.reasoning or "" for delta in deltas) == message.reasoning == "the key is …. s"
    assert message.tool_calls[0].arguments == {"content": KEY}


def test_a_word_that_stands_for_a_key_is_an_ordinary_word():
    with scripted.Server([scripted.says("EMPTY as my hands")]) as server:
        deltas, message = ask(server.base_url, api_key="EMPTY")
        assert text(deltas) == message.content == "EMPTY as my hands"  # type: ignore[union-attr]


def endless(piece: bytes) -> scripted.Answer:
    return scripted.raw(*[piece] * 2000)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (endless(b"data: " + b"x" * 65536), "more than 8 MiB without the end of an event"),
        (endless(b"data: " + b"x" * 65536 + b"\n"), "more than 8 MiB without the end of an event"),
        (endless(b'{"x":"' + b"x" * 65536), "goes on after 8 MiB"),
        (endless(b": " + b"x" * 65536 + b"\n\n"), "goes on after 64 MiB"),
        (endless(scripted.sse(C({"content": "x" * 65536}))[0]), "goes on after 64 MiB"),
    ],
    ids=["a line", "an event", "a body", "comments", "text"],
)
def test_an_answer_without_end_is_ended(answer, words):
    with scripted.Server([answer]) as server:
        error = fails(server.base_url)
        assert words in error.message
        assert not error.transient


@pytest.mark.parametrize(
    ("begin", "fill"),
    [(b"data: ", b"x" * 64), (b"", b":" * 62 + b"\n\n"), (b"{", b" " * 64)],
    ids=["a line", "comments", "a body"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process stands in /proc")
def test_a_bomb_does_not_fill_the_memory(begin, fill):
    """A fifth of a mebibyte that is 192: what it takes is measured in a process of its own."""
    deflating = zlib.compressobj(9, wbits=31)
    bomb = deflating.compress(begin) + b"".join(deflating.compress(fill * (1 << 18)) for _ in range(12))
    bomb += deflating.flush()
    answer = scripted.Answer((bomb,), 200, (("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")))
    with scripted.Server([answer]) as server:
        code = f"""
import re
from tests.providers.test_http import fails
print(fails({server.base_url!r}).message)
# Not ru_maxrss: that begins with what the process that started this one had.
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    words, mebibytes = done.stdout.splitlines()
    assert "MiB" in words
    assert int(mebibytes) < 150


@pytest.mark.parametrize(
    ("coding", "data", "words"),
    [("br", b"x", "compresses its answer as 'br'"), ("gzip", b"no gzip", "and wrongly"), ("zstd", b"", "as 'zstd'")],
)
def test_what_cannot_be_uncompressed_is_said(coding, data, words):
    for status in (200, 500):
        answer = scripted.Answer((data,), status, (("Content-Encoding", coding),))
        with scripted.Server([answer]) as server:
            assert words in fails(server.base_url).message


def test_a_compressed_stream_is_read_all_the_same():
    stream = b"".join(scripted.sse(C({"content": "x"}), C({}, "stop")))
    answer = scripted.raw(gzip.compress(stream))
    answer = scripted.Answer(answer.pieces, 200, (*answer.headers, ("Content-Encoding", "gzip")))
    with scripted.Server([answer]) as server:
        assert text(ask(server.base_url)[0]) == "x"


# ---- proxies --------------------------------------------------------------------------------------------------------


@contextmanager
def proxy(answer: Callable[[bytes], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that answers each request itself; its address, and the heads of what it was asked."""
    heads: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                heads.append(client.recv(1 << 16))
                client.sendall(answer(heads[-1]))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    stream = b"".join(scripted.sse(C({"content": "by proxy"}), C({}, "stop")))
    with proxy(lambda _: b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + stream) as (address, heads):
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.setenv("http_proxy", address)
        assert text(ask("http://model.invalid/v1")[0]) == "by proxy"
        assert heads[0].startswith(b"POST http://model.invalid/v1/chat/completions ")


def test_this_machine_is_asked_without_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with scripted.Server([scripted.says("x")]) as server:
        assert text(ask(server.base_url)[0]) == "x"


def test_a_socks_proxy_without_its_package_is_said(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    error = fails("http://model.invalid/v1")
    assert "pip install httpx[socks]" in error.message
    assert not error.transient


def test_httpx_comes_without_its_command_line():
    code = "import sys, cass.providers.http; print(*(name for name in ('rich', 'click') if name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
