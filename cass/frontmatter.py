"""Front matter: the few lines of ``key: value`` between ``---`` at the top of a Markdown file, and the text below.

The part of YAML that such files use: one line a key, quotes, a value that goes on in indented lines (``|`` and ``>``
too). Anything else is passed over, never an error.
"""

import re
from pathlib import Path
from typing import NamedTuple

from cass.pattern import pattern

_HEAD = pattern(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = pattern(r"([A-Za-z][\w-]*):(?:[ \t]+(.*)|[ \t]*)$")


class Unused(NamedTuple):
    """A file with front matter, or none, that lies where one is used, and why it is not."""

    path: Path
    why: str


def split(content: bytes) -> tuple[dict[str, str], str]:
    """The keys, each with its value on one line, and the rest, stripped. No UTF-8 is no reason to fail."""
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    head = _HEAD.match(text)
    return (_keys(head[1]), text[head.end() :].strip()) if head else ({}, text.strip())


def _keys(lines: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for line in lines.split("\n"):
        if key := _KEY.match(line):
            last = found[key[1]] = [key[2] or ""]
        elif line[:1] in (" ", "\t"):
            last.append(line)
    return {key: _value(*parts) for key, parts in found.items()}


def _value(first: str, *more: str) -> str:
    first = "" if first.strip() in ("|", ">", "|-", ">-") else first.strip()
    value = " ".join(" ".join([first, *more]).split())
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()
