"""Recall: the history as Up and Ctrl-R go through it, kept on disk as it grows."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.history import History

from cass.composer import history
from cass.composer.pastes import Pastes


class Recall(History):
    """Its texts are drafts: long ones are held in `pastes`, and whole on disk."""

    def __init__(self, path: Path, cwd: Callable[[], str], pastes: Pastes) -> None:
        super().__init__()
        self._path = path
        self._cwd = cwd
        self._pastes = pastes

    def load_history_strings(self) -> list[str]:
        with contextlib.suppress(OSError):
            return [self._pastes.held(text) for text in history.load(self._path, self._cwd())]
        return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk costs the history a line, not the person the message
            history.append(self._path, self._pastes.whole(string), self._cwd())
