"""The briefing: what the model is told in front of a message, of all that has changed since it was told."""

import os
import time
from collections.abc import Sequence, Set
from dataclasses import replace

from cass import chat, context, prompt, skills
from cass.access import Mode
from cass.desk import Desk
from cass.home import Home
from cass.records import Record
from cass.rules import RUNS
from cass.tools import sandbox


def note(desk: Desk, home: Home, records: Sequence[Record]) -> str | None:
    """The note for the next user message; None: nothing has changed. What skills it names can be read from now on."""
    kept = context.kept(records)
    offered = desk.toolbox.names(desk.mode, desk.rules)
    facts = (
        _skills(desk, home, prompt.told(kept), offered)
        | _role(records)
        | prompt.facts(
            mode=desk.mode,
            tools=sorted(offered),
            workspace=str(desk.place.root),
            bounded=desk.mode is not Mode.FULL_ACCESS,
            model=desk.model,
            system=" ".join(os.uname()[i] for i in (0, 2, 4)),
            date=time.strftime("%Y-%m-%d"),
            shell=_shell(desk) if RUNS & offered else None,
        )
    )
    return prompt.note(facts, kept)


def _role(records: Sequence[Record]) -> dict[str, str]:
    meta = chat.meta(records)
    return {"role": prompt.AGENT} if meta is not None and meta.agent_of else {}


def _skills(desk: Desk, home: Home, told: dict[str, str], offered: Set[str]) -> dict[str, str]:
    """Those that the model can read."""
    found = skills.every(home, desk.place.root) if desk.supports_tools and "read" in offered else {}
    desk.place = replace(desk.place, shelves=skills.shelves(found.values()))
    return skills.facts(found, told)


def _shell(desk: Desk) -> str:
    """How commands are held in."""
    return sandbox.words(desk.place) if sandbox.holds(desk.mode, desk.sandbox) else "not sandboxed"
