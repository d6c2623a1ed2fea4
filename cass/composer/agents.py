"""Agents, at the composer: one of those that work for this chat is picked, and shown in a pane beside it or gone to."""

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from cass import catalogue, itself, listing, standing
from cass.composer import panes
from cass.composer.seat import Seat
from cass.composer.transcript import Transcript


class Composing(Protocol):
    """What it may use of the composer."""

    seat: Seat
    transcript: Transcript

    def say(self, command: str, text: str) -> None: ...
    def hint(self, text: str) -> None: ...
    def leave(self, *switch_to: str) -> None: ...
    def pick(self, title: str, choices: Sequence[str], then: Callable[[int], None], at: int = 0) -> None: ...


def pick(composer: Composing, line: str) -> None:
    """Have an agent of the chat picked, as the command `line` asks."""
    files = composer.seat.files
    found = [s for s in catalogue.summaries(files.home, agents=True) if s.agent_of == files.chat_id]
    if not found:
        composer.hint("no agent works, or worked, for this chat")
        return
    lines = listing.choices(files.home, found, standing.look)
    composer.pick("look at an agent", lines, lambda n: _show(composer, line, found[n].chat_id))


def _show(composer: Composing, line: str, chat_id: str) -> None:
    """In tmux beside this chat, as ``cass --resume`` there; elsewhere in its place. Raises CassError."""
    if panes.is_possible(os.environ):
        cass = itself.argv("cass")
        panes.beside([*cass, "--layout", "inline", "--resume", chat_id], os.environ, composer.transcript.pane())
        return
    composer.say(line, f"  back from there: /resume {composer.seat.files.chat_id}\n")
    composer.leave("--resume", chat_id)
