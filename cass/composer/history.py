"""The history: what was typed into composers, in all chats, one JSON object a line.

{"text": str, "cwd": str, "at": "2026-06-20T14:30:12.345Z"}
"""

import os
from pathlib import Path

from cass import jsonl
from cass.home import create_private, make_private
from cass.tail import Tail

KEPT = 1 << 20
"""Bytes read from the end of the file: thousands of messages; older ones stay in the file and are not offered."""


def load(path: Path, cwd: str) -> list[str]:
    """What Up and Ctrl-R go through, nearest first: this directory's texts, newest first, then those of others."""
    tail = Tail.last(path, KEPT)
    entries = [entry for line in reversed(tail.lines()) if (entry := _parse(line))]
    tail.close()
    here = [text for text, place in entries if place == cwd]
    elsewhere = [text for text, place in entries if place != cwd]
    return list(dict.fromkeys(here + elsewhere))


def append(path: Path, text: str, cwd: str) -> None:
    """Add one text. Raises OSError when the disk refuses."""
    make_private(path.parent)
    fd = create_private(path, os.O_APPEND)
    try:
        os.write(fd, jsonl.dump({"text": text, "cwd": cwd, "at": jsonl.now()}) + b"\n")
    finally:
        os.close(fd)


def _parse(line: bytes) -> tuple[str, str] | None:
    try:
        entry = jsonl.load(line)
        return str(entry["text"]), str(entry.get("cwd", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # a line that another program or a full disk broke
