"""Pruning: what of the home nobody needs any more, said first and then removed.

A chat is never removed unless that is asked for; what goes otherwise is how far back files can be restored, and output
that was too long for its chat.
"""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cass import amounts, attachments, blobs, catalogue, inbox, jsonl, lineage, presence, snapshots
from cass.errors import Blocked, Interrupted
from cass.home import Files, Home
from cass.program import err, out
from cass.values import Attachment

_HEAD = 1 << 16
UNDER_WAY_S = 3600
"""A content may be kept for so long before anything names it: the message that an image goes with is on its way."""


@dataclass(frozen=True, slots=True)
class Waste:
    """One thing that can go."""

    kind: str
    path: Path
    size: int
    """Bytes."""


def prune(home: Home, older_than: str, *, chats: bool, is_sure: bool, only_says: bool) -> None:
    """Say what would be freed, and free it after a yes. `older_than` is as records write time.

    Raises Blocked where somebody would have to be asked, Interrupted after a no; then nothing was removed.
    """
    before = datetime.fromisoformat(older_than).timestamp()
    found = list(find(home, before, chats))
    if not found:
        out("nothing to remove")
        return
    for kind in dict.fromkeys(waste.kind for waste in found):
        sizes = [waste.size for waste in found if waste.kind == kind]
        out(f"{len(sizes):>7,}  {kind:45} {amounts.size(sum(sizes)):>9}")
    if only_says:
        return
    if not is_sure:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Blocked("nobody can be asked: add --yes, or --dry-run to look only")
        err(f"remove them, {amounts.size(sum(waste.size for waste in found))}? [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Interrupted("nothing was removed")
    with blobs.alone(home):  # nobody keeps a content now that is about to go
        for waste in find(home, before, chats):
            if waste.path.is_dir():
                shutil.rmtree(waste.path, ignore_errors=True)
            else:
                waste.path.unlink(missing_ok=True)


def find(home: Home, before: float, chats: bool) -> Iterator[Waste]:
    """What can go; `before` in seconds since 1970. A chat that a worker holds keeps everything."""
    known = set(catalogue.ids(home))
    held = {chat_id for chat_id in known if presence.is_running(home.files(chat_id))}
    gone: set[str] = set()
    if chats:
        gone = _old_chats(home, known, held, before)
        yield from (_waste("chats", home.files(chat_id).chat) for chat_id in sorted(gone))
    yield from _runs(home, known - gone, held, before)
    old = list(_journals(home, known - gone, held, before))
    yield from (_waste("journals of changes, for restoring", path) for path in old)
    needed = {
        state.sha256
        for journal in set(snapshots.journals(home)) - set(old)
        for edit in snapshots.edits(journal)
        for state in (edit.before, edit.after)
        if state
    }
    needed |= {sha256 for chat_id in known - gone for sha256 in _attached(home.files(chat_id))}
    drafted = {hash for chat_id in known - gone for hash in _drafted(home.files(chat_id))}
    for path in _blobs(home):
        is_needed = path.name in needed or path.name.startswith(tuple(drafted))
        if not is_needed and _is_old(path, time.time() - UNDER_WAY_S):
            yield _waste("contents of files, for restoring, and images", path)


def _old_chats(home: Home, known: Set[str], held: Set[str], before: float) -> set[str]:
    """A chat and its agents are as old as the newest of them, and go together."""
    parents = dict.fromkeys(known) | {s.chat_id: s.agent_of for s in catalogue.summaries(home, agents=True)}
    kept = held | {chat_id for chat_id in parents if not _is_old(home.files(chat_id).chat, before)}
    families = lineage.families(parents).values()
    return {chat_id for family in families if kept.isdisjoint(family) for chat_id in family}


def _runs(home: Home, known: Set[str], held: Set[str], before: float) -> Iterator[Waste]:
    for run in sorted((home.root / "run").glob("*")):
        if run.name not in known:
            if not presence.is_running(home.files(run.name)):
                yield _waste("what is left of chats that are gone", run)
        elif run.name not in held:
            old = (path for path in sorted((run / "out").glob("*")) if _is_old(path, before))
            yield from (_waste("long outputs of tools", path) for path in old)


def _journals(home: Home, known: Set[str], held: Set[str], before: float) -> Iterator[Path]:
    """Those that are old, and those of families without a chat."""
    families = {family for chat_id in known for family in (chat_id, _family(home.files(chat_id).chat))}
    for path in snapshots.journals(home):
        if path.stem not in held and (_is_old(path, before) or snapshots.family_of(path) not in families):
            yield path


def _family(chat: Path) -> str:
    try:
        with open(chat, "rb") as file:
            first = jsonl.load(file.read(_HEAD).split(b"\n")[0])
        return str(first.get("family", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _blobs(home: Home) -> Iterator[Path]:
    """Contents, and what a killed process had begun to write of one."""
    return (path for path in sorted(home.blobs.glob("*")) if len(path.name) == 64 or path.name.startswith("."))


def _attached(files: Files) -> Iterator[str]:
    """Hashes of the images that messages of a chat, and such as wait for it, need."""
    # What waits first: an item leaves the inbox once the chat has it.
    items = [inbox.read(files, path.name) or {} for path in sorted(files.inbox.glob("*"))]
    for item in [*items, *_illustrated(files.chat)]:
        said = item.get("attachments")
        for one in map(Attachment.of, said if isinstance(said, list) else ()):
            if one is not None:
                yield one.sha256


def _drafted(files: Files) -> Iterator[str]:
    """Beginnings of the hashes of the images that a draft names: no message has them yet."""
    with contextlib.suppress(OSError):
        yield from re.findall(attachments.WORD, files.draft.read_text("utf-8", "replace"))


def _illustrated(chat: Path) -> Iterator[dict[str, Any]]:
    """The lines of a chat that may have attachments."""
    try:
        with open(chat, "rb") as file:
            for line in file:
                if b'"attachments"' in line:
                    with contextlib.suppress(ValueError):
                        found = jsonl.load(line)
                        yield found if isinstance(found, dict) else {}
    except OSError:
        return  # removed meanwhile


def _is_old(path: Path, before: float) -> bool:
    try:
        return path.stat().st_mtime < before
    except OSError:
        return False


def _waste(kind: str, path: Path) -> Waste:
    parts = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    return Waste(kind, path, sum(part.lstat().st_size for part in parts if part.is_file()))
