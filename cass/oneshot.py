"""One shot: a prompt of the command line, the turn that answers it, and with a schema more until an answer fits."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cass import attachments, catalogue, chat, config, heir, joining, opening, presence
from cass.config import Options, Settings
from cass.errors import CassError, UsageError
from cass.exchange import Answer
from cass.home import Files, Home
from cass.program import err, here
from cass.records import TurnEnd
from cass.report import Report
from cass.values import Attachment

if TYPE_CHECKING:
    from cass.schema import Schema

TRIES = 3
"""Answers that are asked for until one fits a schema."""


class Shot(NamedTuple):
    """How it is asked."""

    home: Home
    options: Options
    report: Report
    cwd: Path | None
    asks: bool
    """Whether approvals are waited for."""
    attach: Sequence[str]
    """Files with images that go with the prompt."""
    once: Callable[..., tuple[TurnEnd, str]]
    """`worker.once`, handed in: where the chat has a worker nobody has to load it."""
    say: Callable[..., Answer]
    """`exchange.say`, for the other case; takes the report before the options of that."""


def run(shot: Shot, text: str, resume: str | None, schema: "Schema | None") -> int:
    """Ask, in a new chat or in the one that `resume` means, and print the answer; return the exit status."""
    files, answer = _first(shot, text if schema is None else schema.request(text), resume)
    if schema is None:
        return shot.report.finish(files, answer)
    for number in range(1, TRIES + 1):
        if answer.end.outcome != "done":
            return shot.report.finish(files, answer)
        try:
            return shot.report.finish(files, answer, schema.value(answer.text))
        except ValueError as e:
            err(f"the answer does not fit --schema: {e}")
            if number < TRIES:
                answer = _answer(shot, files, None, schema.again(str(e)), is_first=False)
    shot.report.finish(files, answer)
    raise CassError(f"no answer of {TRIES} fitted the schema")


def _first(shot: Shot, text: str, resume: str | None) -> tuple[Files, Answer]:
    attached = attachments.every(shot.home, shot.attach)
    files, settings = _begun(shot) if resume is None else (_resumed(shot, resume), None)
    return files, _answer(shot, files, settings, text, attached)


def _begun(shot: Shot) -> tuple[Files, Settings]:
    """A new chat, and what it begins with."""
    root = shot.cwd or here()
    settings = config.load(shot.home, shot.options, os.environ)
    config.require_key(settings)
    settings = config.with_instructions(settings, shot.home, opening.workspace(str(root)))
    return opening.new(shot.home, root, settings, shot.options), settings


def _resumed(shot: Shot, chat_id: str) -> Files:
    """The chat to go on with; what is wrong with it is said, and where it is at work if that is not here."""
    files = heir.of(catalogue.find(shot.home, chat_id), err)
    found = chat.read(files)
    err(*(notice.text for notice in chat.damage(found)))
    if not shot.cwd and (meta := chat.meta(found)) and meta.cwd != str(here()):
        err(f"workspace: {meta.cwd}")
    return files


def _answer(
    shot: Shot,
    files: Files,
    settings: Settings | None,
    text: str,
    attached: tuple[Attachment, ...] = (),
    *,
    is_first: bool = True,
) -> Answer:
    """One turn, in a worker of our own or in the one that the chat has. `settings`: of a chat that was just begun."""
    if settings is None:
        if kept := joining.join(files, shot.options):
            raise UsageError(kept)
        if presence.is_running(files):
            opening.check_cwd(files, shot.cwd)
            return shot.say(files, text, shot.report, ask=shot.asks, program="cass -p", attached=attached)
    end, said = shot.once(
        files,
        shot.options,
        settings,
        text,
        cwd=shot.cwd,
        ask=shot.asks,
        tell=shot.report.record,
        attached=attached,
        notices=is_first,
    )
    return Answer(end.turn, end, said)
