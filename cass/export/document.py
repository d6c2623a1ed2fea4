"""The document: a chat's blocks in the words that every format uses."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cass import hunks
from cass.blocks import Block, Call, Fold
from cass.lineage import short
from cass.records import Approval, Fact, Meta, TurnEnd, User
from cass.visible import safe, safe_line

TITLE_CHARS = 80


class DiffLine(NamedTuple):
    """A line of a change to a file."""

    mark: str
    """``+``, ``-``, a space, or ``…`` where lines are left out."""
    number: str
    """That the line has, or had."""
    text: str


def blocks(records: Iterable[Fact]) -> list[Block]:
    """What a person sees of a chat; of a turn that runs, the calls that are their turn too."""
    fold = Fold()
    return [*fold.steps(records), *fold.now().calls]


def title(records: Iterable[Fact]) -> str:
    """The beginning of the first message."""
    said = next((record.content for record in records if isinstance(record, User)), "")
    line = safe_line(next((line.strip() for line in said.split("\n") if line.strip()), "an empty chat"))
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def facts(meta: Meta) -> list[tuple[str, str]]:
    """What stands above a chat: names and values."""
    rows = [("chat", meta.chat_id), ("began", meta.created_at), ("provider", meta.provider), ("model", meta.model)]
    rows += [("workspace", meta.cwd), ("branch of", meta.parent_chat_id or ""), ("agent of", meta.agent_of or "")]
    return [(name, safe_line(value)) for name, value in rows if value]


def state(call: Call) -> str:
    """How a call ended, in a word or two."""
    if call.approval is not None and call.approval.decision == "denied":
        return "denied"
    return "no result" if call.result is None else "ok" if call.result.ok else "failed"


def decision(approval: Approval) -> str:
    """Who decided about a call, and why."""
    by = f" by {safe_line(approval.by)}" if approval.by else ""
    reason = f": {safe_line(approval.reason)}" if approval.reason else ""
    of = f"agent {short(approval.agent)}: " if approval.agent else ""
    return f"{of}{approval.decision}{by}{reason}"


def ending(end: TurnEnd) -> str:
    """How a turn ended, where it did not simply get done; else ""."""
    error = f": {safe(end.error)}" if end.error else ""
    return "" if end.outcome == "done" else f"{safe_line(end.outcome)}{error}"


def diff_lines(diff: str) -> list[DiffLine]:
    """The lines of a unified diff without names of files."""
    return [
        DiffLine("…", "", text.strip()) if mark in (hunks.GAP, hunks.REMARK) else DiffLine(mark or " ", number, text)
        for mark, number, text in hunks.lines(safe(diff))
    ]


def longest_run(text: str, character: str = "`") -> int:
    """Length of the longest run of `character` in `text`."""
    return max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)


def meta_of(records: Sequence[Fact]) -> Meta:
    """The first record of a chat; an empty one where the chat has none."""
    return next((record for record in records if isinstance(record, Meta)), Meta(chat_id="", created_at=""))
