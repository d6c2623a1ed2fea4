"""Before: what a file held before a call changed it, so that an editor can show the change."""

from dataclasses import dataclass
from pathlib import Path

from cass import snapshots
from cass.home import Files
from cass.snapshots import Call

LIMIT = 1 << 20
"""Bytes of a file that an editor is told of."""


@dataclass(frozen=True, slots=True)
class Before:
    files: Files
    root: Path
    """The workspace."""

    def of(self, call: Call) -> str | None:
        """The text of the file that a call has changed, as it was; None where there was none, or it is not known."""
        edits = snapshots.edits(self.files.edits) if self.files.edits.exists() else []
        found = next((edit for edit in reversed(edits) if edit.call == call), None)
        if found is None or found.before is None or found.before.size > LIMIT:
            return None
        kept = snapshots.content(self.files.home, found.before)
        try:
            return None if kept is None else kept.decode("utf-8")
        except UnicodeDecodeError:
            return None
