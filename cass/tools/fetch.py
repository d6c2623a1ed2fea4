"""The tool fetch: a page of the web, read by `cass.web.visit` as a process of its own.

Each redirect is decided about like the call itself, before it is followed: a page is not led to what a rule closes.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cass.access import Action, Allow, Ask, Decision
from cass.errors import ToolError
from cass.tools.arguments import Given
from cass.tools.child import Child
from cass.tools.paths import Place
from cass.tools.tool import Arguments, Outcome, Tool
from cass.visible import safe_line
from cass.web import hosts, url
from cass.web.url import Url

TIME_LIMIT_S = 30.0
"""For a call with all its redirects, and what is made of the page."""
REDIRECTS = 5
LENGTH = 50_000
"""Characters of a page that one call gives."""
OFFSET_LIMIT = 10_000_000
_GIVEN = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"})
"""All that the process gets of the environment: how to reach the network, and whom to trust there."""


class _Asked(NamedTuple):
    url: Url
    offset: int


def action(arguments: Arguments, place: Place) -> Action:
    target = _parse(arguments).url
    hosts.judged(target, hosts.known(target.host), place.private_hosts)  # nobody is asked about what is refused anyway
    return _action(target)


def _action(target: Url) -> Action:
    return Action("fetch", url=str(target))


def _parse(arguments: Arguments) -> _Asked:
    given = Given("fetch", arguments, ("url", "offset"))
    try:
        target = url.parse(given.text("url"))
    except url.NoUrl as e:
        raise given.error(str(e)) from None
    return _Asked(target, given.integer("offset", 0, 0, OFFSET_LIMIT))


async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    target, offset = _parse(arguments)
    first = place.decide(_action(target))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TIME_LIMIT_S
    for _ in range(REDIRECTS + 1):
        answer = await visited(target, offset, place, deadline - loop.time())
        if answer["to"] is None:
            yield _outcome(target, offset, answer)
            return
        to = url.joined(target, answer["to"])
        now = place.decide(_action(to))
        if not is_same_host(target, to) or not _is_as_before(first, now):
            yield Outcome(f"{target} leads to another place ({answer['status']}): {to}\nFetch that, if it is wanted.")
            return
        target = to
    raise ToolError(f"{target} still redirects after {REDIRECTS} redirects")


def is_same_host(target: Url, to: Url) -> bool:
    """The same scheme, host and port; or the same host, secured."""
    is_secured = (target.scheme, target.port, to.scheme, to.port) == ("http", 80, "https", 443)
    return target.host == to.host and (target.origin == to.origin or is_secured)


def _is_as_before(first: Decision, now: Decision) -> bool:
    """Whether what was decided about a call covers where it leads: what asks there, asked here."""
    return isinstance(now, Allow) or (isinstance(now, Ask) and now == first)


async def visited(target: Url, offset: int, place: Place, limit_s: float) -> dict[str, Any]:
    """What `cass.web.visit` finds within so many seconds. Raises ToolError."""
    asked = {"url": str(target), "private": place.private_hosts, "offset": offset, "length": LENGTH}
    command = (sys.executable, "-I", "-X", "utf8", "-W", "ignore", "-m", "cass.web.visit")
    environ = {name: value for name, value in os.environ.items() if name.lower() in _GIVEN}
    stdin = _pipe(json.dumps(asked).encode())
    said = bytearray()
    try:
        child = await Child.start(command, replace(place, root=Path("/"), ground=None, environ=environ), stdin=stdin)
    finally:
        os.close(stdin)
    try:
        async with aclosing(child.output(limit_s)) as pieces:
            async for piece in pieces:
                said += piece
    finally:
        await child.close()
    if child.timed_out:
        raise ToolError(f"{target} took too long: {TIME_LIMIT_S:g} s for a call")
    if child.status == -signal.SIGKILL:
        raise ToolError(f"{target} could not be read with the time and memory that a page may take")
    return _found(target, bytes(said), child.status)


def _pipe(content: bytes) -> int:
    """A descriptor to read `content` from, which fits into a pipe."""
    theirs, ours = os.pipe()
    os.set_blocking(ours, False)
    try:
        os.write(ours, content)
    finally:
        os.close(ours)
    return theirs


def _found(target: Url, said: bytes, status: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        words = said[-500:].decode("utf-8", "replace").strip()
        raise ToolError(f"{target} could not be read: the reader ended with status {status}: {words}") from None
    if "error" in found:
        raise ToolError(found["error"])
    return found


def _outcome(target: Url, offset: int, answer: dict[str, Any]) -> Outcome:
    """The page, below a head that says what it is."""
    state = f"{answer['status']} {safe_line(answer['reason'])}".strip()
    text, end = answer["text"], offset + len(answer["text"])
    if not 200 <= answer["status"] < 300:
        return Outcome(f"Error: HTTP {state}: {target}\n\n{text}".rstrip(), ok=False)
    head = [f"{target} · {state} · {answer['type'] or 'no type'}"]
    head += [f"title: {answer['title'][:200]}"] if answer["title"] else []
    notes = []
    if not text:
        notes.append(f"[nothing at offset {offset:,} of {answer['chars']:,} characters]" if offset else "[no text]")
    elif end < answer["chars"]:
        notes.append(f"[characters {offset:,} to {end:,} of {answer['chars']:,}; go on with offset {end}]")
    if answer["is_cut"] and end >= answer["chars"]:
        notes.append("[the page is longer than 5 MB: what follows is not read]")
    text += "\n" if notes and text and not text.endswith("\n") else ""
    return Outcome("\n".join([*head, "", text + "".join(notes)]))


TOOL = Tool(
    "fetch",
    "Read a web page as Markdown, or text as it is. Long ones in parts.",
    {
        "type": "object",
        "properties": {
            "url": {"type": "string"},
            "offset": {"type": "integer", "description": "in characters"},
        },
        "required": ["url"],
    },
    action,
    run,
)
