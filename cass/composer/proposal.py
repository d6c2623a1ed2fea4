"""The proposal: what a write or an edit that is asked about would change, as a diff of the file as it is now.

It is made by a process of its own, ``python -m cass.composer.proposal``: the tools that know it are a tenth of what the
prompt costs, and a large file would hold the keys up. It reads ``{"name", "arguments", "cwd"}`` and prints the diff,
in the unified format; nothing where there is none, and the arguments are then shown as they are.
"""

import os
import stat
import sys
from collections.abc import Mapping
from typing import Any

from cass import jsonl
from cass.errors import ToolError
from cass.tools import diff, edit

SIZE_LIMIT = diff.SIZE_LIMIT


def proposed(name: str, arguments: Mapping[str, Any], cwd: str) -> str | None:
    """The diff; None where nothing would change, or nobody can tell what. The worker has checked the arguments."""
    path = os.path.join(cwd, os.path.expanduser(str(arguments.get("path", ""))))
    try:
        old = _content(path)
        if name == "write":
            new = str(arguments["content"]).encode()
        else:
            new = bytes(edit.apply(old, edit.find(old, _edits(arguments), path)))
        return diff.unified(old, new)
    except (OSError, ToolError, KeyError, TypeError, UnicodeError):
        return None


def _content(path: str) -> bytes:
    """Of a regular file that can be compared; nothing where there is none yet."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(found.st_mode) or found.st_size > SIZE_LIMIT:
        raise OSError(f"{path} cannot be compared")
    with open(path, "rb") as file:
        return file.read()


def _edits(arguments: Mapping[str, Any]) -> list[edit.Edit]:
    return [
        edit.Edit(
            str(item.get("old_text", item.get("old_string"))).encode(),
            str(item.get("new_text", item.get("new_string"))).encode(),
            bool(item.get("replace_all")),
        )
        for item in arguments.get("edits", [arguments])
    ]


if __name__ == "__main__":
    asked = jsonl.load(sys.stdin.buffer.read())
    found = proposed(asked["name"], asked["arguments"], asked["cwd"])
    sys.stdout.buffer.write((found or "").encode("utf-8", "replace"))
