"""A finding: one thing that was looked at, how it stands, and what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, but not as well as it could, or not for ever."""
    ERROR = "error"
    """Something will not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    """One word."""
    level: Level
    text: str
    """How it stands, in one line. Never holds a key."""
    advice: str = ""
    """What to do, where something is to be done."""


def ok(about: str, text: str) -> Finding:
    return Finding(about, Level.OK, text)


def warning(about: str, text: str, advice: str = "") -> Finding:
    return Finding(about, Level.WARNING, text, advice)


def error(about: str, text: str, advice: str = "") -> Finding:
    return Finding(about, Level.ERROR, text, advice)
