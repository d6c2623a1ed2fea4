"""The meaning of ``--since``: ``90s``, ``2h30m``, ``3d`` ago, or a time such as ``14:30``, ``2026-06-20 14:30``."""

import re
from datetime import UTC, datetime, time, timedelta

from cass.errors import UsageError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str, now: datetime) -> str:
    """The moment `text` means, written as in the records. `now` has no zone and is local. Raises UsageError."""
    try:
        if re.fullmatch(r"(\d+[smhdw])+", text):
            found = now.astimezone(UTC) - _duration(text)
        else:
            found = _time(text, now).astimezone(UTC)
        return found.strftime("%Y-%m-%dT%H:%M:%S.") + f"{found.microsecond // 1000:03d}Z"
    except (ValueError, OverflowError) as e:
        raise UsageError(f"--since {text}: give a duration such as 90s, 10m, 2h or 3d, or a time") from e


def _duration(text: str) -> timedelta:
    parts = re.findall(r"(\d+)([smhdw])", text)
    return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


def _time(text: str, now: datetime) -> datetime:
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):  # the last time that a clock showed it
        found = datetime.combine(now, time.fromisoformat(text if text[1] != ":" else f"0{text}"))
        return found if found <= now else found - timedelta(days=1)
    return datetime.fromisoformat(text)
