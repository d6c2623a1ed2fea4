"""Callers: the one that an approval names, and how a message came, in words for people."""

import os
import pwd
from collections.abc import Mapping
from typing import Any

from cass.pattern import pattern
from cass.visible import safe_line

_CALLER = pattern(r"(?P<user>.+?) by (?P<program>.+), pid (?P<pid>\d+)")
_THROUGH = {"cass-compose": "in the composer", "cass approve": "with cass approve", "cass deny": "with cass deny"}


_WAYS = {"fifo": "through the pipe", "api": "from Python", "agent": "by the chat above"}


def sent(origin: Mapping[str, Any]) -> str:
    """How a message came, by its origin; "" for what was written in a composer. Safe, one line."""
    by = origin.get("by", "composer")
    if by == "composer":
        return ""
    if by == "send":
        return safe_line(f"with {origin.get('program') or 'cass-send'}")
    return safe_line(_WAYS.get(str(by)) or f"by {by}")


def me() -> str:
    """The name of whoever runs this, as an approval writes it down."""
    return name(os.getuid())


def name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def who(by: str, user: str, with_pid: bool = False) -> str:
    """The one that an approval names. `user` is the name of whoever reads. Safe, one line."""
    found = _CALLER.fullmatch(by)
    if found is None:  # a rule, nobody, or the host program
        return safe_line(by)
    name = "you" if found["user"] == user else found["user"]
    through = _THROUGH.get(found["program"], f"through {found['program']}")
    return safe_line(f"{name} {through}" + (f", pid {found['pid']}" if with_pid else ""))
