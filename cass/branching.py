"""Branching from the command line: `cass branch`, which the composer runs as well."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cass import branch, chat, jsonl, presence, restore, snapshots, standing
from cass.branch import Kind, Line, Point
from cass.errors import Blocked, CassError, Interrupted
from cass.home import Files
from cass.program import err, out
from cass.records import BadRecord, Meta, Record, decode
from cass.restore import Step
from cass.snapshots import Journal
from cass.visible import safe_line

TEXT_SHOWN = 400
"""Characters of a point's text in a list."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for."""

    restores: bool = False
    """Whether files go back as well."""
    branches: bool = True
    """Whether a chat is made."""
    is_sure: bool = False
    """Whether nothing is asked."""
    only_plans: bool = False
    as_json: bool = False


def show(files: Files, *, as_json: bool) -> None:
    """Print the points of a chat, and which branches begin there."""
    found = _records(branch.read(files))
    points = branch.points(found)
    if as_json:
        out(jsonl.dump([_as_json(point) for point in points]).decode())
        return
    if not points:
        err(f"nothing was said in {files.chat_id} yet")
        return
    meta = chat.meta(found)
    if meta is not None and meta.parent_chat_id:
        err(f"branched from {meta.parent_chat_id}")
    begun = _branches(files)
    out("\n".join(line for point in points for line in (_line(point), *_begun(point, begun))))


def _line(point: Point) -> str:
    text = safe_line(" ".join(point.text[:TEXT_SHOWN].split()))
    # What the person said is what they look for: it stands out as in the transcript.
    said = f"❯ {text}" if point.kind is Kind.USER else f"  {point.kind:9}  {text}"
    return f"{point.number:>4}  {_clock(point.at)}  {said}".rstrip()


def _clock(at: str) -> str:
    """``14:30``, local time; with the day where it was another one."""
    try:
        moment = datetime.fromisoformat(at).astimezone()
    except ValueError:
        return "?"
    return moment.strftime("%H:%M" if time.time() - moment.timestamp() < 43_200 else "%b %d %H:%M")


def _begun(point: Point, begun: dict[str, list[str]]) -> list[str]:
    if point.kind is Kind.CALL:
        return []
    return [f"      └─ {chat_id}" for chat_id in begun.get(point.id, ())]


def _branches(files: Files) -> dict[str, list[str]]:
    """The chats that were branched off this one, by the id of where."""
    found: dict[str, list[str]] = {}
    for path in sorted(files.home.conversations.glob("*.jsonl")):
        try:
            with open(path, "rb") as file:
                head = file.read(1 << 16).split(b"\n")[0]
        except OSError:
            continue
        if files.chat_id.encode() in head:
            first = _decoded(head)
            if first is not None and first.parent_chat_id == files.chat_id:
                found.setdefault(first.branch_from or "", []).append(first.chat_id)
    return found


def _decoded(line: bytes) -> Meta | None:
    try:
        record = decode(line)
    except BadRecord:
        return None
    return record if isinstance(record, Meta) else None


def _as_json(point: Point) -> dict[str, Any]:
    said = {"number": point.number, "kind": point.kind, "id": point.id, "text": point.text, "at": point.at}
    return said | ({"line": _line(point)} if point.kind is not Kind.END else {})


# ---- going there ----------------------------------------------------------------------------------------------------


def go(files: Files, where: str | None, wanted: Wanted) -> None:
    """Branch a chat, restore files, or both, at a point as `branch.find` takes it, or at the end.

    Prints the plan on standard error before anything is done, and the new chat's id on standard output. Raises
    CassError; Blocked where somebody would have to be asked; Interrupted after a no. Then nothing was done.
    """
    found = branch.read(files)
    records = _records(found)
    point = branch.end(records) if where is None else branch.find(records, where, files.chat_id)
    steps = restore.plan(files, records, point) if wanted.restores else []
    if wanted.only_plans:
        _tell(wanted, steps, _root(records), point, None)
        return
    if wanted.restores:
        _check_idle(files, records)
        _ask(steps, _root(records), wanted)
    made = branch.branch(files, found, point) if wanted.branches else None
    done = restore.carry_out(steps, Journal(made or files, chat.family(records, files)), files.home)
    _tell(wanted, done, _root(records), point, made)
    if any(step.conflict and not planned.conflict for step, planned in zip(done, steps, strict=True)):
        raise CassError("not every file could be restored; the rest is done")


def _records(found: Sequence[Line]) -> list[Record]:
    return [record for record, _ in found]


def _root(found: Sequence[Record]) -> str:
    meta = chat.meta(found)
    return meta.cwd if meta else os.getcwd()


def _check_idle(files: Files, found: Sequence[Record]) -> None:
    """Raise CassError while a turn that may change the same files runs, in this chat or a branch of it."""
    family = chat.family(found, files)
    home = files.home
    related = {path.stem for path in snapshots.journals(home) if snapshots.family_of(path) == family}
    for chat_id in sorted(related | {files.chat_id}):
        other = home.files(chat_id)
        if presence.is_running(other) and standing.look(other).is_busy:
            raise CassError(f"a turn runs in {chat_id} and may change files; end it first: cass cancel {chat_id}")


def _ask(steps: Sequence[Step], root: str, wanted: Wanted) -> None:
    """Show the plan; without a yes nothing is done."""
    todo = sum(not step.conflict for step in steps)
    if not wanted.as_json:
        err("files to restore:" if steps else "no file is to be restored", *restore.lines(steps, root))
    if wanted.is_sure or not todo:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Blocked("files would be changed, and nobody can be asked: add --yes, or --dry-run to look only")
    err(f"restore {todo} file{'s' if todo != 1 else ''}? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Interrupted("nothing was done")


def _tell(wanted: Wanted, steps: Sequence[Step], root: str, point: Point, made: Files | None) -> None:
    if wanted.as_json:
        said: dict[str, Any] = {"chat_id": made.chat_id if made else None, "point": _as_json(point)}
        lines = restore.lines(steps, root)
        files = [step.as_json() | {"line": line.strip()} for step, line in zip(steps, lines, strict=True)]
        out(jsonl.dump(said | {"files": files}).decode())
        return
    if wanted.only_plans or any(step.conflict for step in steps):
        err(*restore.lines(steps, root))
    if made:
        out(made.chat_id)
        err(f"Resume this chat with: cass --resume {made.chat_id}")
