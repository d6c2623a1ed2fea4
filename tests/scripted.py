"""A chat-completions server on loopback that answers by a script, keeps what it was asked, and judges it strictly.

In a test, as a thread (``from tests import scripted``):

    with scripted.Server([scripted.calls({"name": "ls", "arguments": {"path": "."}}), scripted.says("done")]) as server:
        ...                     # something asks server.base_url
    assert server.problems == []
    assert server.asked[1].body["messages"][-1]["role"] == "tool"

As a process of its own, where what is tested may be killed: ``python tests/scripted.py SCRIPT [--log LOG]`` prints its
base URL. SCRIPT is a JSON list of objects with the keys of `step`; LOG gets one JSON object a request:
``{"method", "path", "headers", "body", "problems"}``.
"""

import argparse
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = "hang"
"""A piece: nothing more is sent, and the connection stays open until the server stops."""
RESET = "reset"
"""A piece: the connection is reset."""
CLOSE = "close"
"""A piece: the connection is closed in the middle of the transfer."""

Piece = bytes | float | str
"""Bytes to send as one network chunk, seconds to wait, or `HANG`, `RESET`, `CLOSE`."""


@dataclass(frozen=True)
class Answer:
    """What the server sends back."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    chunked: bool = True
    """Whether each piece is an HTTP chunk; else the connection's end is the body's."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    raw: bytes
    at: float
    """Monotonic seconds."""
    problems: tuple[str, ...] = ()

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name.lower()), None)


# ---- answers --------------------------------------------------------------------------------------------------------


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a stream with one choice."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def sse(*payloads: Any) -> tuple[bytes, ...]:
    """An event for each payload: JSON of it, or a text as it is."""
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return tuple(f"data: {text}\n\n".encode() for text in texts)


def says(text: str, *, deltas: int = 3, delay_s: float = 0, reasoning: str = "", finish: str = "stop") -> Answer:
    """A text in so many deltas."""
    return step({"text": text, "deltas": deltas, "delay_ms": delay_s * 1000, "reasoning": reasoning, "stop": finish})


def calls(*wanted: dict[str, Any], text: str = "") -> Answer:
    """Tool calls, ``{"name", "arguments", "id"?}`` each, after a text."""
    return step({"text": text, "tool_calls": wanted})


def fails(status: int, body: Any = None, **headers: str) -> Answer:
    """An HTTP error with a JSON body, or one of text; a header's ``_`` is a ``-``."""
    payload = body if isinstance(body, str) else json.dumps(body or {"error": {"message": f"status {status}"}})
    kind = "text/html" if payload.startswith("<") else "application/json"
    named = (("Content-Type", kind), *((name.replace("_", "-"), value) for name, value in headers.items()))
    return Answer((payload.encode(),), status, named)


def raw(*pieces: Piece, content_type: str = "text/event-stream", chunked: bool = True) -> Answer:
    """Any bytes, waits and ends."""
    return Answer(pieces, headers=(("Content-Type", content_type),), chunked=chunked)


def step(script: dict[str, Any]) -> Answer:
    """The answer that a step of a script describes.

    ``{"text", "reasoning", "tool_calls": [{"name", "arguments", "id"?}], "deltas": N, "delay_ms", "stop",
    "usage": {...}, "hang": true, "reset": true, "cut": true, "status", "error", "headers": {...}, "body"}``
    """
    if "status" in script:
        return fails(script["status"], script.get("body", script.get("error")), **script.get("headers", {}))
    pieces: list[Piece] = list(sse(chunk({"role": "assistant", "content": ""})))
    delay_s = script.get("delay_ms", 0) / 1000
    for name, key in (("reasoning_content", "reasoning"), ("content", "text")):
        for part in _parts(script.get(key, ""), script.get("deltas", 3)):
            pieces += [delay_s] if delay_s else []
            pieces += sse(chunk({name: part}))
    for index, call in enumerate(script.get("tool_calls", ())):
        pieces += sse(*(chunk({"tool_calls": [part]}) for part in _call(index, call)))
    for end in (HANG, RESET, CLOSE):
        if script.get(end):
            return Answer((*pieces, end))
    if script.get("error"):
        return Answer((*pieces, *sse({"error": script["error"]})))
    if not script.get("cut"):
        finish = script.get("stop") or ("tool_calls" if script.get("tool_calls") else "stop")
        usage = script.get("usage", {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
        pieces += sse(chunk({}, finish), {"id": "c1", "choices": [], "usage": usage}, "[DONE]")
    return Answer(tuple(pieces))


def _parts(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _call(index: int, call: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The deltas of one call: its head, then its arguments in two parts."""
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    id = call.get("id") or f"call_{time.monotonic_ns():x}_{index}"
    yield {"index": index, "id": id, "type": "function", "function": {"name": call["name"], "arguments": ""}}
    for part in _parts(text, 2):
        yield {"index": index, "function": {"arguments": part}}


# ---- the judge ------------------------------------------------------------------------------------------------------

_KEYS = {"model", "messages", "tools", "stream", "stream_options", "reasoning_effort"}
_LIMITS = {"max_tokens", "max_completion_tokens"}
_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def problems(raw: bytes, headers: Iterable[tuple[str, str]] = (("content-type", "application/json"),)) -> list[str]:
    """All that a strict server finds wrong with a request; empty: it is valid."""
    found: list[str] = []
    named: dict[str, list[str]] = {}
    for name, value in headers:
        named.setdefault(name.lower(), []).append(value)
    if named.get("content-type", [""])[0].split(";")[0] != "application/json":
        found.append("the content type is not application/json")
    if "x-api-key" in named:
        found.append("x-api-key is sent")
    if any(not value.startswith("Bearer ") for value in named.get("authorization", [])):
        found.append("the authorization is not Bearer")
    try:
        body = json.loads(raw.decode("utf-8", "strict"), object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False).encode("utf-8", "strict")
    except ValueError as e:  # a lone surrogate is one too
        return [*found, f"the body is not strict JSON: {e}"]
    if not isinstance(body, dict):
        return [*found, "the body is no object"]
    found += [f"unknown key {key}" for key in body.keys() - _KEYS - _LIMITS]
    if not isinstance(body.get("model"), str) or not body["model"]:
        found.append("no model")
    if body.get("stream") is not True:
        found.append("no stream is asked for")
    limits = [body[key] for key in _LIMITS if key in body]
    if len(limits) != 1 or type(limits[0]) is not int or limits[0] < 1:
        found.append("not one limit of output tokens")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "no messages"]
    return found + _of_tools(body.get("tools", [])) + _of_messages(messages)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) != len({key for key, _ in pairs}):
        raise ValueError("a key stands twice in an object")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _of_tools(tools: Any) -> list[str]:
    found: list[str] = []
    names: list[str] = []
    for tool in tools:
        function = tool.get("function", {})
        names.append(function.get("name", ""))
        if tool.get("type") != "function" or tool.keys() != {"type", "function"}:
            found.append(f"tool {names[-1]}: not a function")
        if not _NAME.fullmatch(names[-1]):
            found.append(f"tool {names[-1]!r}: bad name")
        if function.get("parameters", {}).get("type") != "object":
            found.append(f"tool {names[-1]}: its parameters are no object schema")
        if "strict" in function:
            found.append(f"tool {names[-1]}: strict")
    return found + (["two tools have one name"] if len(names) != len(set(names)) else [])


def _of_messages(messages: list[Any]) -> list[str]:
    found = [] if messages[0].get("role") == "system" else ["the first message is not the system's"]
    if messages[-1].get("role") not in ("user", "tool"):
        found.append("the last message is neither the user's nor a tool's")
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        where = f"message {number}"
        role = message.get("role")
        if role not in _FIELDS:
            found.append(f"{where}: role {role!r}")
            continue
        found += [f"{where}: unknown field {field}" for field in message.keys() - _FIELDS[role]]
        if role == "system" and number:
            found.append(f"{where}: a second system message")
        if role == "tool":
            id = message.get("tool_call_id")
            if id in open_calls:
                open_calls.remove(id)
            else:
                found.append(f"{where}: answers no open call: {id!r}")
            if not isinstance(message.get("content"), str):
                found.append(f"{where}: its content is no text")
            continue
        if open_calls:
            found.append(f"{where}: {role} before the calls {open_calls} are answered")
            open_calls = []
        if role == "assistant":
            open_calls = [call.get("id") for call in message.get("tool_calls", ())]
            found += [f"{where}: {problem}" for problem in _of_assistant(message)]
        elif role == "user" and isinstance(message.get("content"), list):
            found += [f"{where}: {problem}" for problem in _of_parts(message["content"])]
        elif not isinstance(message.get("content"), str) or not message["content"].strip():
            found.append(f"{where}: {role} without content")
    return found + ([f"the calls {open_calls} are never answered"] if open_calls else [])


def _of_parts(parts: list[Any]) -> list[str]:
    """Texts and at least one image, as https://platform.openai.com/docs/guides/images-vision has them."""
    texts = [part for part in parts if part.keys() == {"type", "text"} and part["type"] == "text" and part["text"]]
    images = [part for part in parts if part.keys() == {"type", "image_url"} and part["type"] == "image_url"]
    urls = [image["image_url"].get("url", "") for image in images]
    is_image = all(re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$", url) for url in urls)
    return [] if images and is_image and len(texts) + len(images) == len(parts) else ["parts that are none"]


def _of_assistant(message: dict[str, Any]) -> list[str]:
    found: list[str] = []
    content, wanted = message.get("content"), message.get("tool_calls")
    if content is not None and not isinstance(content, str):
        found.append("its content is no text")
    if not content and not wanted:
        found.append("neither content nor calls")
    if wanted is not None and not wanted:
        found.append("an empty list of calls")
    ids = [call.get("id") for call in wanted or ()]
    if len(ids) != len(set(ids)) or not all(isinstance(id, str) and id for id in ids):
        found.append(f"ids of calls: {ids}")
    for call in wanted or ():
        function = call.get("function", {})
        if call.get("type") != "function" or not _NAME.fullmatch(str(function.get("name"))):
            found.append(f"call {call.get('id')}: bad name")
        try:
            if not isinstance(json.loads(function.get("arguments")), dict):
                found.append(f"call {call.get('id')}: its arguments are no object")
        except (TypeError, ValueError):
            found.append(f"call {call.get('id')}: its arguments are no text of JSON")
    return found


# ---- the server -----------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """The server; a context manager. Every POST to `path` takes the next answer."""

    answers: Sequence[Answer] | Callable[[Asked], Answer]
    by: str = "request"
    """``request``: the Nth request gets the Nth answer; ``assistant``: one with N assistant messages does, so that a
    request made again is answered again in the same way. Past the end: status 500."""
    path: str = "/v1/chat/completions"
    models: tuple[str, ...] = ("scripted",)
    """What ``GET /v1/models`` lists."""
    key: str | None = None
    """The only key that gets the list; None: nobody needs one."""
    log: str | None = None
    asked: list[Asked] = field(default_factory=list)
    """POSTs, in order; those to a wrong path too."""

    def __post_init__(self) -> None:
        self._news = threading.Condition()
        self._over = threading.Event()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self.base_url = f"{self.url}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def problems(self) -> list[str]:
        """What was wrong with any request."""
        return [f"request {number}: {problem}" for number, asked in enumerate(self.asked) for problem in asked.problems]

    def wait(self, count: int, timeout_s: float = 20) -> list[Asked]:
        """Wait until so many requests have come."""
        with self._news:
            if not self._news.wait_for(lambda: len(self.asked) >= count, timeout_s):
                raise TimeoutError(f"{len(self.asked)} of {count} requests came")
            return list(self.asked)

    def take(self, asked: Asked) -> Answer:
        """Keep a request; return its answer."""
        with self._news:
            self.asked.append(asked)
            number = len(self.asked) - 1
            if self.log:
                with open(self.log, "ab") as file:
                    file.write(_line(asked))
            self._news.notify_all()
        if asked.path.partition("?")[0] != self.path:
            return fails(404, {"error": {"message": f"no such path: {asked.path}"}})
        if callable(self.answers):
            return self.answers(asked)
        if self.by == "assistant":
            number = sum(message.get("role") == "assistant" for message in asked.body["messages"])
        return self.answers[number] if number < len(self.answers) else fails(500, "the script is over")

    def send(self, connection: socket.socket, answer: Answer) -> None:
        """Send an answer, piece by piece."""
        head = f"HTTP/1.1 {answer.status} x\r\n" + "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        head += "Transfer-Encoding: chunked\r\n" if answer.chunked else "Connection: close\r\n"
        connection.sendall(head.encode() + b"\r\n")
        for piece in answer.pieces:
            if isinstance(piece, bytes):
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.chunked and piece else piece)
            elif isinstance(piece, (int, float)):
                self._over.wait(piece)
            elif piece == HANG:
                self._over.wait()
                return
            elif piece == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            else:
                return
        if answer.chunked:
            connection.sendall(b"0\r\n\r\n")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no error here: it is what is tested."""
        if not isinstance(sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = tuple((name.lower(), value) for name, value in self.headers.items())
            asked = Asked("POST", self.path, headers, body, time.monotonic(), tuple(problems(body, headers)))
            self.close_connection = True
            answer = server.take(asked)
            server.send(self.connection, answer)
            self.close_connection = not answer.chunked or any(piece in (HANG, RESET, CLOSE) for piece in answer.pieces)

        def do_GET(self) -> None:
            said: dict[str, Any] = {"object": "list", "data": [{"id": id} for id in server.models]}
            status = 200 if self.path == "/v1/models" else 404
            if server.key is not None and self.headers.get("Authorization") != f"Bearer {server.key}":
                status, said = 401, {"error": {"message": "Incorrect API key provided"}}
            payload = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _line(asked: Asked) -> bytes:
    kept = {"method": asked.method, "path": asked.path, "headers": asked.headers, "problems": asked.problems}
    return json.dumps(kept | {"body": asked.body}).encode() + b"\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted chat-completions server on loopback.")
    parser.add_argument("script", help="a JSON list of steps")
    parser.add_argument("--log", help="a file that gets a JSON line for each request")
    parser.add_argument("--by", choices=["request", "assistant"], default="assistant")
    given = parser.parse_args()
    with open(given.script, "rb") as file:
        answers = [step(one) for one in json.load(file)]
    with Server(answers, by=given.by, log=given.log) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
