"""The meaning of ``--since``: ``90s``, ``2h30m``, ``3d`` ago, or a time such as ``14:30``, ``2026-06-20 14:30``."""

import re
from datetime import UTC, datetime, timedelta

from cass.errors import UsageError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str, now: datetime) -> str:
    """The moment `text` means, written as in the records; times without a zone are of `now`'s. Raises UsageError."""
    try:
        found = now - _duration(text) if re.fullmatch(r"(\d+[smhdw])+", text) else _time(text, now)
        return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{found.microsecond // 1000:03d}Z"
    except (ValueError, OverflowError) as e:
        raise UsageError(f"--since {text}: give a duration such as 90s, 10m, 2h or 3d, or a time") from e


def _duration(text: str) -> timedelta:
    parts = re.findall(r"(\d+)([smhdw])", text)
    return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


def _time(text: str, now: datetime) -> datetime:
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):  # the last time that a clock showed it
        found = datetime.fromisoformat(f"{now:%Y-%m-%d}T{text:0>{5 if len(text) < 7 else 8}}").replace(
            tzinfo=now.tzinfo
        )
        return found if found <= now else found - timedelta(days=1)
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=now.tzinfo)
