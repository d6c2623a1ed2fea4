"""The tool fetch in a whole chat: who is asked, what the rules say, and which hosts only the person can open."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stage import facts, run

from cass import jsonl
from cass.home import Files, Home
from cass.records import ToolResult, User


@pytest.fixture
def page() -> Iterator[str]:
    """The URL of a page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>T</title><h1>Hello</h1>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/a"
        server.shutdown()


@pytest.fixture
def fetching(scripted: Callable[..., None], home: Home, page: str) -> Callable[..., None]:
    """The model fetches the page; `config` is what the person prefers."""

    def make(**config: object) -> None:
        call = {"name": "fetch", "arguments": {"url": page}}
        scripted({"tool_calls": [call]}, {"text": "done"})
        home.config.write_bytes(jsonl.dump({"fetch_private": [page.split("/")[2]]} | config))

    return make


def results(home: Home) -> list[ToolResult]:
    (path,) = home.conversations.glob("*.jsonl")
    return [found for found in facts(Files(home, path.stem)) if isinstance(found, ToolResult)]


@pytest.mark.parametrize(
    ("mode", "allow", "content"),
    [
        ("readonly", [], "Error: fetch is unavailable in read-only mode"),
        (
            "readonly",
            ["fetch(https://docs.python.org/*)"],
            "Error: read-only mode runs fetch only where a rule of the user",
        ),
        ("readonly", ["fetch(http://127.0.0.1:*/*)"], "# Hello"),
        ("workspace-edit", [], "Error: the user denied it: nobody could be asked"),
        ("full-access", [], "# Hello"),
    ],
)
def test_a_page_is_fetched_as_mode_and_rules_have_it(fetching, home, mode, allow, content):
    fetching(allow=allow)
    run("cass", "-p", "go", f"--{mode}")
    (found,) = results(home)
    assert content in found.content


def test_a_host_at_home_is_asked_only_where_the_person_says_so(fetching, home):
    fetching(fetch_private=[])
    run("cass", "-p", "go", "--full-access")
    (found,) = results(home)
    assert found.content.startswith("Error: 127.0.0.1 is not on the public internet")


def test_a_read_only_chat_is_offered_the_tool_where_a_rule_names_it(fetching, home):
    fetching(allow=["fetch(https://docs.python.org/*)"])
    run("cass", "-p", "go")
    (path,) = home.conversations.glob("*.jsonl")
    (message,) = facts(Files(home, path.stem), User)
    assert isinstance(message, User)
    assert "fetch, grep, ls, read" in (message.note or "")
