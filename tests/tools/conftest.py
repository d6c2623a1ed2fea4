"""A workspace, and calls of tools in it as the worker makes them."""

import asyncio
import os
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cass import tools
from cass.access import Reach
from cass.tools.paths import Place


@dataclass
class Workspace:
    """A directory `root`, one beside it, a home, and what a chat remembers of the files it saw."""

    root: Path
    beside: Path
    home: Path
    seen: dict[str, str] = field(default_factory=dict)
    live: str = ""
    """The live output of the last call."""
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    denied: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        out = self.home / "run" / "chat" / "out"
        seen = dict(self.seen)
        return Place(self.root, self.home, out, "call-1", "a-chat", seen, self.environ, denied=self.denied)

    def reaches(self, tool: str, **arguments: object) -> tuple[Reach, ...]:
        return tools.find(tool).action(arguments, self.place).reaches

    def outcome(self, tool: str, **arguments: object) -> tools.Outcome:
        return asyncio.run(self.call(tool, **arguments))

    def __call__(self, tool: str, **arguments: object) -> str:
        """The content of a call that must go well."""
        outcome = self.outcome(tool, **arguments)
        assert outcome.ok, outcome.content
        return outcome.content

    async def call(self, tool: str, **arguments: object) -> tools.Outcome:
        place, found, self.live = self.place, tools.find(tool), ""
        found.action(arguments, place)
        async with aclosing(found.run(arguments, place)) as pieces:
            async for piece in pieces:
                if isinstance(piece, tools.Outcome):
                    self.seen |= piece.seen
                    return piece
                self.live += piece
        raise AssertionError("no outcome")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    top = tmp_path.resolve()
    made = [top / name for name in ("W", "OUT", "home")]
    for directory in made:
        directory.mkdir()
    return Workspace(*made)
