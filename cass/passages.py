"""Passages: what was said in any chat, found by its words.

Chats are read one after the other, line by line, the newest first. Where the words stand in a file as they were typed,
lines without them are passed over as bytes, before anything is decoded.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cass import catalogue, elder, jsonl, lineage
from cass.errors import UsageError
from cass.home import Home
from cass.pattern import pattern
from cass.visible import safe_line

AROUND = 40
"""Characters of a passage on each side of the words that were looked for."""
_LONGEST_LINE = 64 << 20
"""Bytes; a longer one is no record of ours."""
_AS_TYPED = pattern(r"[^\x00-\x1f\"\\\x7f-\U0010ffff]+")
"""Text that stands in JSON as it is, and that has no other case but those of ASCII."""


class Passage(NamedTuple):
    """Words that were found, and what stands around them."""

    chat_id: str
    created_at: str
    by: str
    """``you``, ``assistant``, ``summary``, or the name of a tool."""
    before: str
    words: str
    after: str
    agent_of: str | None = None
    """The chat that `chat_id` works for."""


class Wanted:
    """What is looked for: plain words, or a regular expression of Python's."""

    def __init__(self, text: str, *, is_regex: bool, case_sensitive: bool) -> None:
        """Raises UsageError for an expression that is none, or that finds the empty text."""
        flags = re.NOFLAG if case_sensitive else re.IGNORECASE
        try:
            self._pattern = re.compile(text if is_regex else re.escape(text), flags | re.MULTILINE)
        except re.error as e:
            raise UsageError(f"{text!r} is no regular expression: {e}; without --regex it is searched as it is") from e
        if self._pattern.match(""):
            raise UsageError("the pattern finds the empty text, and that is everywhere")
        as_typed = not is_regex and _AS_TYPED.fullmatch(text) is not None
        self._bytes = re.compile(re.escape(text.encode()), flags) if as_typed else None

    def may_stand_in(self, line: bytes) -> bool:
        """Whether a line of a chat is worth decoding."""
        return self._bytes is None or self._bytes.search(line) is not None

    def first(self, text: str) -> tuple[str, str, str] | None:
        """The first place in `text`: a little of what stands before, the words, a little of what stands behind."""
        found = self._pattern.search(text)
        if found is None:
            return None
        before = text[max(0, found.start() - AROUND) : found.start()]
        after = text[found.end() : found.end() + AROUND]
        shown = [safe_line(part) for part in (before, found[0][: 5 * AROUND], after)]
        cut = "…" if found.start() > AROUND else "", "…" if found.end() + AROUND < len(text) else ""
        return cut[0] + shown[0].lstrip(), shown[1], shown[2].rstrip() + cut[1]


def search(home: Home, chats: Iterable[catalogue.Summary], wanted: Wanted) -> Iterator[Passage]:
    """One passage of each record that holds what is wanted, chat by chat."""
    for summary in chats:
        for line in _lines(str(home.files(summary.chat_id).chat)):
            if wanted.may_stand_in(line):
                for found in _of_line(summary.chat_id, line, wanted):
                    yield found._replace(agent_of=summary.agent_of)


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line
    except OSError:
        return  # removed since it was listed


def _of_line(chat_id: str, line: bytes, wanted: Wanted) -> Iterator[Passage]:
    try:
        record = jsonl.load(line)
    except ValueError:
        return
    if not isinstance(record, dict):
        return
    if record.get("type") in elder.KINDS:
        record = elder.translate(record, line)
    for by, text in _said(record):
        if found := wanted.first(text):
            yield Passage(chat_id, str(record.get("created_at", "")), safe_line(by), *found)
            return


def _said(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a record says to people, and who says it."""
    match record:
        case {"type": "message", "role": "user", "content": str(text)}:
            yield "you", text
            yield from (("you", name) for name in _names(record.get("attachments")))
        case {"type": "message", "role": "assistant", "content": str(text)}:
            yield "assistant", text
            for call in record.get("tool_calls") or ():
                if isinstance(call, dict):
                    yield str(call.get("name")), "\n".join(_texts(call.get("arguments")))
        case {"type": "tool_result", "name": str(name), "content": str(text)}:
            yield name, text
        case {"type": "compaction", "summary": str(text)}:
            yield "summary", text


def _names(attachments: Any) -> Iterator[str]:
    for one in attachments if isinstance(attachments, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"]


def _texts(value: Any) -> Iterator[str]:
    """Every text in the arguments of a call."""
    match value:
        case str(text):
            yield text
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def line(found: Passage, width: int) -> str:
    """A passage for people, on one line of `width` columns."""
    of = f" ({lineage.agent_of(found.agent_of)})" if found.agent_of else ""
    head = f"{safe_line(found.chat_id)}{of}  {safe_line(found.created_at[:10])}  {found.by}: "
    room = max(width - len(head), 20)
    words = found.words[:room]
    left = (room - len(words)) // 2
    before = found.before[-left:] if left else ""
    after = found.after[: room - len(words) - len(before)]
    return f"{head}{before}{words}{after}"
