"""The tool fetch, against servers on this machine: pages, redirects, limits, and hosts that are not to be asked."""

import asyncio
import gzip
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cass import __version__, access, tools
from cass.access import Action, Allow, Ask, Decision, Deny, Mode
from cass.errors import ToolError
from cass.rules import Rules
from cass.tools import fetch
from cass.tools.paths import Place
from cass.web.url import parse

pytestmark = pytest.mark.usefixtures("no_environment")


@dataclass
class Site:
    """What a server answers, by path, and what it was asked."""

    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    host: str = ""

    def add(self, path: str, body: bytes | str = b"", status: int = 200, **headers: str) -> str:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = status, sent, body.encode() if isinstance(body, str) else body
        return self.url + path


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, dict(self.headers)))
            status, headers, body = found.answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.host = f"127.0.0.1:{server.server_port}"
        found.url = f"http://{found.host}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        server.shutdown()


@pytest.fixture
def place(workspace, site) -> Place:
    return replace(workspace.place, private_hosts=(site.host,), decide=lambda _: Allow())


async def _call(place: Place, **arguments: object) -> tools.Outcome:
    fetch.action(arguments, place)
    async with aclosing(fetch.run(arguments, place)) as pieces:
        async for piece in pieces:
            assert isinstance(piece, tools.Outcome)
            return piece
    raise AssertionError("no outcome")


def fetched(place: Place, url: str, **more: object) -> tools.Outcome:
    return asyncio.run(_call(place, url=url, **more))


def failed(place: Place, url: str, **more: object) -> str:
    with pytest.raises(ToolError) as raised:
        fetched(place, url, **more)
    return str(raised.value)


# ---- what comes back ------------------------------------------------------------------------------------------------


def test_a_page_comes_as_markdown_below_a_head_that_says_what_it_is(place, site):
    url = site.add("/a", "<title>T\x1b</title><h1>Hi</h1><a href=b>x</a>", Content_Type="text/html; charset=utf-8")
    assert fetched(place, url) == tools.Outcome(
        f"{url} · 200 OK · text/html\ntitle: T\x1b\n\n# Hi\n\n[x]({site.url}/b)"
    )


def test_the_server_hears_a_name_and_nothing_else_of_us(place, site, monkeypatch):
    monkeypatch.setenv("FIREWORKS_API_KEY", "fw-secret")
    (place.root / ".netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("HOME", str(place.root))
    monkeypatch.setenv("NETRC", str(place.root / ".netrc"))
    url = site.add("/a", "x", Content_Type="text/plain", Set_Cookie="a=b")
    fetched(place, url)
    fetched(place, url)
    assert [headers for _, headers in site.asked] == 2 * [
        {
            "Host": site.host,
            "User-Agent": f"cassady/{__version__}",
            "Accept": "text/html, text/*;q=0.9, */*;q=0.5",
            "Accept-Encoding": "gzip",
            "Connection": "close",
        }
    ]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain", b"a <b>\r\nc", "a <b>\nc"),
        ("application/json", b'{"a": "\xc3\xbc"}', '{"a": "ü"}'),
        ("application/ld+json", b"[1]", "[1]"),
        (
            "text/xml",
            b'<?xml version="1.0" encoding="latin-1"?><a>\xfc</a>',
            '<?xml version="1.0" encoding="latin-1"?><a>ü</a>',
        ),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        ("text/html; charset=windows-1251", "<p>Привет".encode("cp1251"), "Привет"),
        ("", b"<!DOCTYPE html><p>x", "x"),
        ("", b"plain", "plain"),
        ("text/html", b"", "[no text]"),
    ],
)
def test_text_of_every_kind_is_read(place, site, kind, body, text):
    url = site.add("/a", body, **({"Content_Type": kind} if kind else {}))
    assert fetched(place, url).content == f"{url} · 200 OK · {kind.partition(';')[0] or 'no type'}\n\n{text}"


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("image/png", b"\x89PNG", "is no text but image/png, 4 bytes"),
        ("application/octet-stream", b"abcd", "is no text but application/octet-stream, 4 bytes"),
        ("text/plain", b"\x7fELF\0\0\0", "is no text: text/plain, 7 bytes"),
    ],
)
def test_what_is_no_text_is_named_with_its_type_and_size(place, site, kind, body, why):
    url = site.add("/a", body, Content_Type=kind, Content_Length=str(len(body)))
    assert why in failed(place, url)


@pytest.mark.parametrize("status", [404, 500])
def test_an_answer_of_the_server_that_is_an_error_is_a_failed_result_with_its_words(place, site, status):
    url = site.add("/a", f"<h1>Oh</h1>{'x' * 9_000}", status, Content_Type="text/html")
    outcome = fetched(place, url)
    assert not outcome.ok
    assert outcome.content.startswith(f"Error: HTTP {status} ")
    assert f"{url}\n\n# Oh\n\nxxx" in outcome.content
    assert len(outcome.content) < 2_200


def test_a_long_page_comes_in_parts_that_say_how_to_go_on(place, site):
    words = "".join(f"{n:06}\n" for n in range(20_000))
    url = site.add("/a", words, Content_Type="text/plain")
    got, offset = "", 0
    while True:
        head, _, text = fetched(place, url, offset=offset).content.partition("\n\n")
        assert head == f"{url} · 200 OK · text/plain"
        text, _, note = text.partition("[")
        got += text
        if not note:
            break
        assert note.startswith(f"characters {offset:,} to ")
        offset = int(note.rpartition(" ")[2].removesuffix("]"))
    assert got == words
    assert "[nothing at offset 999,999 of 140,000 characters]" in fetched(place, url, offset=999_999).content


# ---- redirects ------------------------------------------------------------------------------------------------------


def test_redirects_of_a_host_are_followed(place, site):
    for n in range(5):
        site.add(f"/{n}", status=(301, 302, 303, 307, 308)[n], Location=f"/{n + 1}" if n % 2 else f"{site.url}/{n + 1}")
    site.add("/5", "there", Content_Type="text/plain")
    assert fetched(place, f"{site.url}/0").content == f"{site.url}/5 · 200 OK · text/plain\n\nthere"
    site.add("/5", status=302, Location="/0")
    assert "still redirects after 5 redirects" in failed(place, f"{site.url}/0")


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("https://evil.example/x", "https://evil.example/x"),
        ("//evil.example/x", "http://evil.example/x"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),
        ("http://localhost/", "http://localhost/"),
        ("https://127.0.0.1/", "https://127.0.0.1/"),
    ],
)
def test_a_redirect_to_another_host_is_told_and_not_followed(place, site, location, leads):
    url = site.add("/a", status=302, Location=location)
    assert fetched(place, url).content == f"{url} leads to another place (302): {leads}\nFetch that, if it is wanted."


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://u:p@127.0.0.1/", "\\\\evil.example", "http://2130706433/"]
)
def test_a_redirect_to_what_is_no_address_is_an_error(place, site, location):
    failed(place, site.add("/a", status=302, Location=location))


@pytest.mark.parametrize(
    ("rules", "mode", "follows"),
    [
        (Rules(allow=("fetch(*/a)",)), Mode.FULL_ACCESS, True),
        (Rules(allow=("fetch(http://*/a)",)), Mode.READ_ONLY, False),
        (Rules(allow=("fetch(http://*/*)",)), Mode.READ_ONLY, True),
        (Rules(), Mode.WORKSPACE_EDIT, True),
        (Rules(allow=("fetch(http://*/a)",)), Mode.WORKSPACE_EDIT, False),
        (Rules(ask=("fetch(*/b)",)), Mode.WORKSPACE_EDIT, False),
        (Rules(ask=("fetch(*/b)",)), Mode.FULL_ACCESS, False),
        (Rules(deny=("fetch(*/b)",)), Mode.FULL_ACCESS, False),
    ],
)
def test_a_redirect_is_decided_about_like_the_call_before_it_is_followed(place, site, rules, mode, follows):
    def decide(action: Action) -> Decision:
        return access.decide(mode, rules, action)

    url = site.add("/a", status=302, Location="/b")
    site.add("/b", "there", Content_Type="text/plain")
    content = fetched(replace(place, decide=decide), url).content
    assert ("there" in content, [path for path, _ in site.asked]) == (follows, ["/a", "/b"] if follows else ["/a"])


@pytest.mark.parametrize(
    ("url", "to", "is_same"),
    [
        ("http://a/", "https://a/b", True),
        ("https://a/", "http://a/", False),
        ("http://a:8080/", "https://a/", False),
        ("http://a/", "https://a:8443/", False),
        ("https://a/", "https://a:8443/", False),
        ("https://a/", "https://www.a/", False),
        ("https://www.a/", "https://a/", False),
        ("https://a/", "https://a.b/", False),
        ("https://a/x", "https://a/y", True),
    ],
)
def test_a_host_is_the_same_with_scheme_and_port_or_made_secure(url, to, is_same):
    assert fetch.is_same_host(parse(url), parse(to)) == is_same


# ---- hosts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "169.254.169.254"]
)
def test_a_host_that_is_not_on_the_internet_is_not_asked(place, site, host):
    said = failed(replace(place, private_hosts=()), site.url.replace("127.0.0.1", host))
    assert "is not on the public internet" in said
    assert '"fetch_private" in config.json takes' in said
    assert site.asked == []


@pytest.mark.parametrize("host", ["10.0.0.1", "[::1]", "localhost", "a.localhost"])
def test_nobody_is_asked_about_a_host_that_is_refused_anyway(workspace, host):
    with pytest.raises(ToolError, match="not on the public internet"):
        fetch.action({"url": f"http://{host}/"}, workspace.place)
    allowed = replace(workspace.place, private_hosts=("10.0.0.0/8", "[::1]", "*localhost"))
    assert fetch.action({"url": f"http://{host}/"}, allowed).url == f"http://{host}/"


def test_a_redirect_does_not_lead_to_a_host_that_is_not_to_be_asked(place, site):
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = site.add("/a", status=302, Location=f"http://127.0.0.1:{other.getsockname()[1]}/")
        assert "leads to another place" in fetched(place, url).content
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()


def test_the_address_that_was_judged_is_the_one_that_is_asked(site, monkeypatch, tmp_path):
    """The only look-up of a visit is that of `_resolved`: with any other answer to a later one nothing changes."""
    (tmp_path / "probe.py").write_text(
        "import ipaddress, socket, sys\n"
        "from cass.web import url, visit\n"
        "asked = []\n"
        "sys.addaudithook(lambda name, given: asked.append(given[0]) if name == 'socket.getaddrinfo' else None)\n"
        "target = url.parse(sys.argv[1])\n"
        "print(visit.visit(target, [target.host], 0, 99).text, *[name for name in asked if name == 'localhost'])\n"
    )
    url = site.add("/a", "hello", Content_Type="text/plain").replace("127.0.0.1", "localhost")
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "probe.py", url], capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "hello localhost\n", done.stderr
    assert site.asked[0][1]["Host"] == site.host.replace("127.0.0.1", "localhost")


def test_a_name_that_is_not_known_and_a_port_where_nobody_listens_are_said(place, site):
    assert "the name nobody.invalid is not known" in failed(place, "http://nobody.invalid/")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    allowed = replace(place, private_hosts=(f"127.0.0.1:{port}",))
    assert "no connection to 127.0.0.1: " in failed(allowed, f"http://127.0.0.1:{port}/")


def test_a_proxy_is_asked_for_names_and_what_is_not_public_is_refused_all_the_same(place, site, monkeypatch):
    monkeypatch.setenv("http_proxy", site.url)
    site.add("http://nobody.invalid/", "by proxy", Content_Type="text/plain")
    assert "by proxy" in fetched(place, "http://nobody.invalid/").content
    assert "is not on the public internet" in failed(place, "http://10.0.0.1/")
    assert len(site.asked) == 1
    fetched(place, site.add("/here", "x", Content_Type="text/plain"))
    assert site.asked[-1][0] == "/here"  # no proxy reaches the loopback of this machine
    monkeypatch.setenv("no_proxy", "nobody.invalid")
    assert "is not known" in failed(place, "http://nobody.invalid/")


def test_a_proxy_that_cannot_be_used_is_said_without_its_password(place, monkeypatch):
    for proxy in ("http://me:secret@127.0.0.1:9/", "gopher://me:secret@nowhere/", "http://me:secret@["):
        monkeypatch.setenv("http_proxy", proxy)
        said = failed(place, "http://nobody.invalid/")
        assert "no connection" in said
        assert "secret" not in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_certificate_must_be_of_the_host_and_of_a_known_authority(workspace, authority, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"secured")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        place = replace(workspace.place, private_hosts=("localhost", "127.0.0.1"), decide=lambda _: Allow())
        url = f"https://localhost:{server.server_port}/"
        assert "the certificate of localhost is not trusted" in failed(place, url)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
        assert "secured" in fetched(place, url).content
        assert "the certificate of 127.0.0.1 is not trusted" in failed(place, url.replace("localhost", "127.0.0.1"))
        server.shutdown()


# ---- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_no_more_than_five_megabytes_of_a_page_are_read(place, site, coding):
    body = b"x" * 79 + b"\n"
    whole = body * 100_000
    url = site.add(
        "/a", gzip.compress(whole) if coding == "gzip" else whole, Content_Type="text/plain", Content_Encoding=coding
    )
    assert "of 5,000,000; go on with offset 50000]" in fetched(place, url).content
    end = fetched(place, url, offset=4_990_000).content
    assert end.endswith("[the page is longer than 5 MB: what follows is not read]")


@pytest.mark.parametrize(
    ("coding", "body", "why"),
    [("br", b"x", "'br'"), ("gzip", b"nonsense", "and wrongly"), ("gzip, gzip", b"x", "'gzip, gzip'")],
)
def test_what_is_compressed_in_a_way_that_nobody_asked_for_is_said(place, site, coding, body, why):
    assert why in failed(place, site.add("/a", body, Content_Type="text/plain", Content_Encoding=coding))


@pytest.fixture
def raw(workspace) -> Iterator[Callable[..., tuple[Place, str]]]:
    """Makes a server that sends these bytes to whoever comes, and then nothing more; `ends`: says so."""
    opened: list[socket.socket] = []

    def serve(sent: bytes, ends: bool = False) -> tuple[Place, str]:
        server = socket.create_server(("127.0.0.1", 0))
        opened.append(server)

        def answer() -> None:
            connection = server.accept()[0]
            opened.append(connection)
            connection.recv(65_536)
            with suppress(OSError):
                connection.sendall(sent)
            if ends:
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        host = f"127.0.0.1:{server.getsockname()[1]}"
        return replace(workspace.place, private_hosts=(host,), decide=lambda _: Allow()), f"http://{host}/"

    yield serve
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x00" * 100_000_0,
    ],
    ids=lambda sent: repr(sent[:12]),
)
def test_a_server_that_does_not_speak_http_is_said(raw, sent):
    place, url = raw(sent, ends=True)
    assert "does not speak HTTP as it should" in failed(place, url)


@pytest.mark.parametrize("body", ["hello", "<" * 4_000_000])
def test_a_server_that_never_ends_and_a_page_that_is_never_read_are_left_in_time(raw, body):
    length = f"Content-Length: {len(body)}\r\n" if len(body) > 9 else ""
    place, url = raw(f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{length}\r\n{body}".encode())
    began = time.monotonic()
    with pytest.raises(ToolError, match="took too long"):
        asyncio.run(fetch.visited(parse(url), 0, place, 1.0))
    assert time.monotonic() - began < 4
    assert not _visits()


def test_a_cancelled_call_ends_at_once_and_leaves_nothing(raw):
    place, url = raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello")

    async def cancelled() -> float:
        call = asyncio.ensure_future(_call(place, url=url))
        while not (children := _visits()):
            await asyncio.sleep(0.01)
        call.cancel()
        began = time.monotonic()
        await asyncio.wait([call])
        assert call.cancelled()
        assert not _visits() & children
        return time.monotonic() - began

    assert asyncio.run(cancelled()) < 2


def _visits() -> set[str]:
    """Pids of visits that this process began."""
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if "cass.web.visit" in command and parent == str(os.getpid()):
            found.add(pid)
    return found


def test_the_process_is_given_nothing_of_the_environment_but_how_to_reach_the_network(raw, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "secret")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    place, url = raw(b"")

    async def environ() -> bytes:
        call = asyncio.ensure_future(_call(place, url=url))
        while not (children := _visits()):
            await asyncio.sleep(0.01)
        found = Path(f"/proc/{children.pop()}/environ").read_bytes()
        call.cancel()
        await asyncio.wait([call])
        return found

    names = {part.partition(b"=")[0].decode().lower() for part in asyncio.run(environ()).split(b"\0") if part}
    assert {"cass_chat", "ssl_cert_file"} <= names <= {"cass_chat", *fetch._GIVEN}


# ---- what it says of itself -----------------------------------------------------------------------------------------


def test_a_call_says_the_address_it_means(place):
    action = fetch.action({"url": "HTTPS://Docs.Python.org:443/3/../3/#x"}, place)
    assert action == Action("fetch", url="https://docs.python.org/3/")


def test_the_schema_is_small():
    assert len(json.dumps(tools.schema(fetch.TOOL), separators=(",", ":"))) <= 350


def test_where_nobody_decides_no_redirect_is_followed(workspace, site):
    url = site.add("/a", status=302, Location="/b")
    content = fetched(replace(workspace.place, private_hosts=(site.host,)), url).content
    assert "leads to another place" in content
    assert isinstance(workspace.place.decide(Action("fetch")), Deny)
    assert not isinstance(workspace.place.decide(Action("fetch")), Ask)
