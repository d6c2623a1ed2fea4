"""Edition: what the person's configuration said when a worker read it, and which file says something else now."""

from pathlib import Path
from typing import Any

from cass import written
from cass.home import Home

_CHOSEN = frozenset("default_provider default_model provider model base_url api_key_env".split())
"""What ``/model`` and ``/login`` take up at once."""


class Edition:
    def __init__(self, home: Home, config: Path | None) -> None:
        """`config`: in place of ``config.json``."""
        self._read = {path: _said(path) for path in (config or home.config, home.mcp)}
        self._told = dict(self._read)

    def news(self) -> list[Path]:
        """The files that say something else than they did; each change is news once."""
        found = []
        for path, read in self._read.items():
            now = _said(path)
            if now not in (read, self._told[path]):
                found.append(path)
            self._told[path] = now
        return found


def _said(path: Path) -> dict[str, Any]:
    return {key: value for key, value in written.readable(path).items() if key not in _CHOSEN}
