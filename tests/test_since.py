"""What people mean by a time."""

import time
from datetime import datetime

import pytest

from cass.errors import UsageError
from cass.viewer.since import since

NOW = datetime(2026, 6, 20, 14, 30, 12, 345000)


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0s", "2026-06-20T12:30:12.345Z"),
        ("90s", "2026-06-20T12:28:42.345Z"),
        ("10m", "2026-06-20T12:20:12.345Z"),
        ("2h30m", "2026-06-20T10:00:12.345Z"),
        ("3d", "2026-06-17T12:30:12.345Z"),
        ("1w", "2026-06-13T12:30:12.345Z"),
        ("14:00", "2026-06-20T12:00:00.000Z"),
        ("9:05", "2026-06-20T07:05:00.000Z"),
        ("9:05:07", "2026-06-20T07:05:07.000Z"),
        ("23:00", "2026-06-19T21:00:00.000Z"),
        ("2026-06-20", "2026-06-19T22:00:00.000Z"),
        ("2026-01-20", "2026-01-19T23:00:00.000Z"),
        ("2026-06-20 14:30", "2026-06-20T12:30:00.000Z"),
        ("2026-06-20T14:30:00Z", "2026-06-20T14:30:00.000Z"),
        ("2026-06-20T14:30:12.345Z", "2026-06-20T14:30:12.345Z"),
    ],
)
def test_durations_and_times_are_moments_as_records_have_them(text, moment):
    assert since(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "x", "10", "10 m", "25:00", "2026-13-01", "99999999w", "9" * 30 + "s"])
def test_what_means_no_time_is_said(text):
    with pytest.raises(UsageError, match="give a duration"):
        since(text, NOW)
