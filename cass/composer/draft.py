"""The draft: what stands in a composer and is not sent yet, kept on disk so that a crash loses none of it."""

import contextlib
import fcntl
import os

from cass.home import Files, create_private


class Draft:
    """The draft file of a chat. Of several composers at one chat the first has it; the others keep theirs in memory."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._saved = ""
        self._lock = os.open(files.run / "draft.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_kept = True
        except BlockingIOError:
            self.is_kept = False

    def load(self) -> str:
        """What the last composer left; "" where there is nothing, or another composer has it."""
        if not self.is_kept:
            return ""
        with contextlib.suppress(FileNotFoundError):
            self._saved = self._files.draft.read_text("utf-8", "replace")
        return self._saved

    def save(self, text: str) -> None:
        """Write `text` whole or not at all; costs nothing when it is what was saved. Raises OSError."""
        if not self.is_kept or text == self._saved:
            return
        if text:
            new = self._files.run / ".draft"
            fd = create_private(new, os.O_TRUNC)
            with open(fd, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            new.rename(self._files.draft)
        else:
            self._files.draft.unlink(missing_ok=True)
        self._saved = text

    def close(self) -> None:
        os.close(self._lock)
