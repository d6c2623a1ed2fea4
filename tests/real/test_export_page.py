"""The page of a chat in a real browser: it renders whole, asks nobody for anything, and prints its folded parts."""

import http.server
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from cass.export import html
from cass.records import Assistant, Meta, ToolCall, ToolResult, User

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("real")]

AT = "2026-06-20T14:30:12.345Z"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("chromium is not installed")
    return found


@pytest.fixture
def asked():
    """A server on loopback and the paths that it was asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()


def test_a_page_renders_prints_whole_and_asks_nobody(browser, asked, tmp_path):
    url, paths = asked
    hostile = f'![x]({url}/picture) <img src="{url}/html"> <script>document.title = "ran"</script>'
    records = [
        Meta(chat_id="c", created_at=AT, cwd=f'"><script src="{url}/script"></script>'),
        User(id="u", content=f'</article><link rel="stylesheet" href="{url}/style">', created_at=AT),
        Assistant(id="a", content=hostile, tool_calls=(ToolCall("1", "shell", {"command": "ls"}),), created_at=AT),
        ToolResult(tool_call_id="1", name="shell", content="FOLDED OUTPUT", ok=True, created_at=AT),
    ]
    page = tmp_path / "chat.html"
    page.write_text(html.page(records))
    dom = chromium(browser, tmp_path, "--dump-dom", page.as_uri())
    assert re.search("<title>(.*?)</title>", dom)[1].startswith("&lt;/article&gt;")
    assert dom.count("<details") == dom.count("</details>") == 2
    assert paths == []
    whole, folded = printed(browser, page), printed(browser, page, "details::details-content")
    assert whole > folded + 300, "what is folded on the screen is printed too"


def printed(browser: str, page: Path, without: str = "no rule") -> int:
    """Bytes of the page as PDF, without one rule of its style."""
    other = page.with_name("other.html")
    other.write_text(page.read_text().replace(without, "nothing"))
    pdf = page.with_suffix(".pdf")
    chromium(browser, page.parent, f"--print-to-pdf={pdf}", other.as_uri())
    return pdf.stat().st_size


def chromium(browser: str, root: Path, *arguments: str) -> str:
    command = [browser, *FLAGS, f"--user-data-dir={root / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
