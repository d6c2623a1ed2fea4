"""The catalogue: which chats there are, what each is about, and which one a person means.

Lists read the head and the end of each file as plain JSON: ten thousand chats take a moment, and no record is made.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cass import jsonl, lineage, presence
from cass.errors import NoChat, UsageError
from cass.home import Files, Home
from cass.pattern import pattern

_HEAD = 4096
_TITLE_WITHIN = 1 << 18
"""The first user message stands behind the system prompt, with at most 32 KiB of project instructions in it."""
_SAID = pattern(
    rb'\{"type":"(?:message","role":"user","id":"[^"]*|user)","content":"((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u]){0,400})'
)
"""The beginning of what a user says, as `records.encode` writes it, and as Cassady 0.4 did.

The line may be longer than what is read of it.
"""


class Summary(NamedTuple):
    """A chat in a list."""

    chat_id: str
    created_at: str
    changed_at: str
    """When its last record was written; lists are ordered by it."""
    model: str
    cwd: str
    title: str
    """The beginning of its first user message, one line; "" where there is none yet."""
    is_running: bool
    """Whether a worker holds it."""
    cost: float | None = None
    """USD that it has cost so far, as far as that is known; None: of nothing."""
    agent_of: str | None = None
    parent_chat_id: str | None = None
    branch_from: str | None = None
    """These three as `Meta` has them."""

    @property
    def parent(self) -> str | None:
        """The chat that it came from, as an agent or as a branch."""
        return self.agent_of or self.parent_chat_id


def ids(home: Home) -> list[str]:
    """All chat ids, in no order."""
    with contextlib.suppress(FileNotFoundError):
        return [name.removesuffix(".jsonl") for name in os.listdir(home.conversations) if name.endswith(".jsonl")]
    return []


def summaries(home: Home, cwd: Path | None = None, *, agents: bool = False) -> list[Summary]:
    """All chats, newest last record first; those of the workspace `cwd` only, where it is given.

    Agents only where they are asked for; they belong to the directory of the chat they work for, too.
    """
    wanted = os.path.realpath(cwd) if cwd else None
    folder = str(home.conversations)
    found = (_summary(chat_id, f"{folder}/{chat_id}.jsonl", wanted, agents) for chat_id in ids(home))
    ordered = sorted((s for s in found if s), key=lambda s: (s.changed_at, s.chat_id), reverse=True)
    return _of_place(ordered, wanted) if agents and wanted else ordered


def _of_place(found: list[Summary], cwd: str) -> list[Summary]:
    """`found` without agents of chats elsewhere, unless they are in `cwd` themselves."""
    here = {s.chat_id for s in found if not s.agent_of or s.cwd == cwd or os.path.realpath(s.cwd) == cwd}
    for root, family in lineage.families({s.chat_id: s.agent_of for s in found}).items():
        if root in here:
            here.update(family)
    return [s for s in found if s.chat_id in here]


def summary(files: Files) -> Summary | None:
    """The summary of one chat; None where its file holds no meta record."""
    return _summary(files.chat_id, str(files.chat), None, agents=True)


def _summary(chat_id: str, path: str, cwd: str | None, agents: bool) -> Summary | None:
    """From the head and the end of a file; None also where its workspace is not `cwd`, and for an agent unasked."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)  # whatever it is, it hangs nobody
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        head = os.pread(fd, _HEAD, 0)
        if b"\n" not in head:  # a workspace with a long path, many project instructions
            head = os.pread(fd, _TITLE_WITHIN, 0)
        first = _decode(head.split(b"\n", 1)[0])
        place = str(first.get("cwd", ""))
        agent_of = _id(first, "agent_of")
        if first.get("type") != "meta" or (agent_of and not agents):
            return None
        if cwd is not None and not agent_of and place != cwd and os.path.realpath(place) != cwd:
            return None
        created = str(first.get("created_at", ""))
        model = str(first.get("model", ""))
        last = _decode(next(_newest(fd, head, found), b""))
        return Summary(
            chat_id=chat_id,
            created_at=created,
            changed_at=_changed_at(last, found),
            model=model,
            cwd=place,
            title=_title(fd, head, found),
            is_running=presence.is_held(fd),
            cost=_cost(fd, head, found, created),
            agent_of=agent_of,
            parent_chat_id=_id(first, "parent_chat_id"),
            branch_from=_id(first, "branch_from"),
        )
    finally:
        os.close(fd)


def _id(first: dict[str, Any], name: str) -> str | None:
    value = first.get(name)
    return value if isinstance(value, str) and value else None


def _newest(fd: int, head: bytes, found: os.stat_result, size: int = _HEAD) -> Iterator[bytes]:
    """The last lines, newest first, as far as they are in the last `size` bytes; the oldest of them may be cut."""
    end = head if found.st_size <= len(head) else os.pread(fd, size, max(0, found.st_size - size))
    return reversed(end.rstrip(b"\n").split(b"\n"))


def _cost(fd: int, head: bytes, found: os.stat_result, begun: str) -> float | None:
    """What the end of the last turn says, and what was used since; what is older than `begun` was the parent's."""
    for size in (_HEAD, _TITLE_WITHIN):
        known: list[float] = []
        for record in map(_decode, _newest(fd, head, found, size)):
            if "ts" in record:  # of Cassady 0.4, which knew no prices
                return None
            is_end = record.get("type") == "turn_end"
            usd = record.get("spent") if is_end else _spent(record)
            if isinstance(usd, (int, float)) and str(record.get("created_at", "")) >= begun:
                known.append(usd)
            if is_end or record.get("type") == "meta":
                return round(sum(known), 9) if known else None
    return None


def _spent(record: dict[str, Any]) -> Any:
    """What one record tells that it has cost."""
    usage = record.get("usage")
    return usage.get("cost") if isinstance(usage, dict) else record.get("spent")


def _changed_at(last: dict[str, Any], found: os.stat_result) -> str:
    at = last.get("created_at", last.get("ts"))
    # Where the last line cannot be read, the file system knows as well, if only on this machine.
    return at if isinstance(at, str) else time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(found.st_mtime)) + ".000Z"


def _title(fd: int, head: bytes, found: os.stat_result) -> str:
    return _said(head) or (_said(os.pread(fd, _TITLE_WITHIN, 0)) if found.st_size > len(head) else "")


def _said(lines: bytes) -> str:
    """The beginning of the first user message among `lines`."""
    found = next(filter(None, map(_SAID.match, lines.split(b"\n"))), None)
    return " ".join(jsonl.load(b'"%b"' % found[1]).split())[:200] if found else ""


def _decode(line: bytes) -> dict[str, Any]:
    try:
        value = jsonl.load(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def find(home: Home, text: str, cwd: Path | None = None) -> Files:
    """The chat that `text` means: an id, a unique part of one, or ``.`` for ``$CASS_CHAT``, else the latest of `cwd`.

    Raises NoChat, or UsageError where several fit.
    """
    if text == ".":
        text = os.environ.get("CASS_CHAT") or _latest(home, cwd or Path.cwd())
    known = ids(home)
    fitting = [text] if text in known else sorted(chat_id for chat_id in known if text and text in chat_id)
    if not fitting:
        raise NoChat(f"no chat {text!r} in {home.conversations}; cass ls --all lists them")
    if len(fitting) > 1:
        shown = ", ".join(fitting[-5:]) + (" …" if len(fitting) > 5 else "")
        raise UsageError(f"{text!r} fits {len(fitting)} chats: {shown}")
    files = home.files(fitting[0])
    if not files.chat.is_file():
        raise NoChat(f"{files.chat} is not a file")
    return files


def _latest(home: Home, cwd: Path) -> str:
    found = summaries(home, cwd)
    if not found:
        raise NoChat(f"no chat in {cwd}; cass ls --all lists those of other directories")
    return found[0].chat_id
