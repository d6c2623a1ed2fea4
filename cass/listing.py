"""Lists of chats for people and for scripts: `cass ls` and `cass status`."""

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cass import catalogue, inbox, jsonl, lineage, presence
from cass.amounts import money
from cass.catalogue import Summary
from cass.home import Files, Home
from cass.visible import safe_line

if TYPE_CHECKING:
    from cass.standing import Standing


Look = Callable[[Files], "Standing"]
"""`standing.look`, handed in: where no worker runs nobody has to load it."""


def as_json(found: Sequence[Summary]) -> str:
    """Summaries as a JSON list of objects, each with the fields of `Summary`."""
    return jsonl.dump([summary._asdict() for summary in found]).decode()


Row = tuple[int, Summary]
"""A chat, and so many stand above it in the list."""


def persons(found: Sequence[Summary]) -> list[Row]:
    """The chats that people began."""
    return [(0, summary) for summary in found if not summary.agent_of]


def tree(found: Sequence[Summary]) -> list[Row]:
    """All chats, agents and branches below the chat they came from."""
    by_id = {summary.chat_id: summary for summary in found}
    return [(level, by_id[id]) for level, id in lineage.forest({s.chat_id: s.parent for s in found})]


def below(rows: Sequence[Row], chat_id: str) -> list[Row]:
    """Of a `tree` one chat, and those below it."""
    at = next((n for n, (_, summary) in enumerate(rows) if summary.chat_id == chat_id), len(rows))
    top = rows[at][0] if at < len(rows) else 0
    more = itertools.takewhile(lambda row: row[0] > top, rows[at + 1 :])
    return [(level - top, summary) for level, summary in [*rows[at : at + 1], *more]]


def agents(found: Sequence[Summary]) -> dict[str, int]:
    """How many agents stand below each chat that has some and is no agent."""
    families = lineage.families({s.chat_id: s.agent_of for s in found})
    return {root: len(family) - 1 for root, family in families.items() if len(family) > 1}


def table(home: Home, rows: Sequence[Row], look: Look, counts: Mapping[str, int], *, cwd_shown: bool) -> str:
    """`lines`, cut to the terminal's width."""
    width = max(columns(), 40)
    return "\n".join(line[:width].rstrip() for line in lines(home, rows, look, counts, cwd_shown=cwd_shown))


def lines(
    home: Home, rows: Sequence[Row], look: Look, counts: Mapping[str, int], *, cwd_shown: bool = False
) -> list[str]:
    """One chat a line: id, creation, what its worker does, age, model, cost, agents, directory, first message.

    Cost, the number of agents in `counts` and directory only where one is known, or it is asked for.
    """
    now = time.time()
    ids = _column([_STEP * min(level, _DEEPEST) + summary.chat_id for level, summary in rows])
    found = [summary for _, summary in rows]
    states = _column([_words(look(home.files(s.chat_id)).state) if s.is_running else "" for s in found])
    is_priced = any(summary.cost is not None for summary in found)
    costs = _column([money(summary.cost) if is_priced else "" for summary in found], ">")
    agents = _column([f"+{counts[s.chat_id]}" if s.chat_id in counts else "" for s in found], ">")
    return [
        safe_line(
            f"{id}  {_day(s.created_at)}  {state}  {_age(s.changed_at, now):>4}  {_model(s.model):20}  "
            + "".join(f"{cell}  " for cell in (cost, count) if cell)
            + (f"{s.cwd}  " if cwd_shown else "")
            + _begun(s, level)
            + (s.title or ("" if cwd_shown else "(no message yet)"))
        )
        for (level, s), id, state, cost, count in zip(rows, ids, states, costs, agents, strict=True)
    ]


_STEP = "  "
"""What a chat stands further right than the one above it."""
_DEEPEST = 8
"""Deeper ones stand no further right."""


def _column(cells: Sequence[str], side: str = "<") -> list[str]:
    """`cells`, all as wide as the widest."""
    width = max(map(len, cells), default=0)
    return [f"{cell:{side}{width}}" for cell in cells]


def _begun(summary: Summary, level: int) -> str:
    """What a chat is to the one above it; "" where it begins a tree itself. An agent says whose, where that is gone."""
    if summary.agent_of:
        return "agent: " if level else f"{lineage.agent_of(summary.agent_of)}: "
    return "branch: " if level else ""


def choices(home: Home, found: Sequence[Summary], look: Look) -> list[str]:
    """One chat a line for who picks one: age, what its worker does, first message; then model and id, to filter by."""
    now = time.time()
    states = [_words(look(home.files(summary.chat_id)).state) if summary.is_running else "" for summary in found]
    width = max(map(len, states), default=0)
    return [
        safe_line(
            f"{_age(summary.changed_at, now):>4}  {f'{state:{width}}  ' if width else ''}"
            f"{summary.title or '(no message yet)'} · {_model(summary.model)} · {summary.chat_id}"
        )
        for summary, state in zip(found, states, strict=True)
    ]


def _model(name: str) -> str:
    return safe_line(name.rpartition("/")[2])[:20]


def _day(at: str) -> str:
    """``Jun 20 14:30``, local time, of an UTC time stamp."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%b %d %H:%M")
    except ValueError:
        return "?".ljust(12)


def columns() -> int:
    """Columns of the terminal; many where there is none, so that nothing is cut for a script."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 1000


def _age(at: str, now: float) -> str:
    """``3m``, ``5h``, ``12d``: how long ago an UTC time stamp was."""
    try:
        seconds = max(0.0, now - datetime.fromisoformat(at).timestamp())
    except ValueError:
        return "?"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return "now"


def every(home: Home) -> list[Files]:
    """The files of every chat, newest id first."""
    return [home.files(chat_id) for chat_id in sorted(catalogue.ids(home), reverse=True)]


def statuses(found: Sequence[Files], look: Look, *, as_json: bool, named: bool) -> str:
    """What chats do. As JSON all of them; for people those with something going on, or the one that was `named`."""
    if as_json:
        return jsonl.dump([describe(files, look) for files in found]).decode()
    shown = [files for files in found if named or presence.is_running(files) or inbox.waiting(files)]
    if not shown:
        return f"nothing is going on in {len(found)} chats; cass ls lists them" if found else "no chats yet"
    said = {files.chat_id: describe(files, look) for files in shown}
    rows = lineage.forest({chat_id: one["agent_of"] for chat_id, one in said.items()})
    return "\n".join(_lines(said[chat_id], level) for level, chat_id in rows)


def tmux(found: Sequence[Files], look: Look) -> str:
    """What chats with a worker do, for a status line of tmux: ``a8f3 thinking +2 · 07c1 idle``; "" where none runs.

    Agents are counted at the chat that they work for; one that waits for the person stands there itself.
    """
    said = {files.chat_id: describe(files, look) for files in found if presence.is_running(files)}
    families = lineage.families({chat_id: one["agent_of"] for chat_id, one in said.items()})
    return " · ".join(
        word
        for root, (_, *agents) in families.items()
        for word in (
            _tmux_word(said[root]) + (f" +{len(agents)}" if agents else ""),
            *(_tmux_word(said[agent]) for agent in agents if said[agent]["state"] == "awaiting-approval"),
        )
    )


def _tmux_word(said: dict[str, Any]) -> str:
    state = _words(said["state"])
    shown = f"#[reverse] {state} #[default]" if said["state"] == "awaiting-approval" else state
    return f"{lineage.short(said['chat_id'])} {shown}"


def describe(files: Files, look: Look) -> dict[str, Any]:
    """One chat of ``cass status --json``; `state` is ``stopped`` where no worker runs."""
    summary = catalogue.summary(files)
    said: dict[str, Any] = {
        "chat_id": files.chat_id,
        "state": "stopped",
        "mode": None,
        "provider": None,
        "model": summary.model if summary else "",
        "cwd": summary.cwd if summary else "",
        "title": summary.title if summary else "",
        "agent_of": summary.agent_of if summary else None,
        "queue": [{"id": item.id, "name": item.name} for item in inbox.waiting(files)],
        "pending": [],
        "context": None,
        "cost": summary.cost if summary else None,
        "changed_at": summary.changed_at if summary else None,
    }
    return said | _now(look(files), summary.cost) if summary and summary.is_running else said


def _words(state: str) -> str:
    """The word for people; that of `standing.words`, which is not loaded for chats without a worker."""
    return state.replace("-", " ") or "starting"


def _now(standing: "Standing", cost: float | None) -> dict[str, Any]:
    """What only a chat with a worker has."""
    said: dict[str, Any] = {"state": "starting"}
    if standing.cwd:
        said["cwd"] = standing.cwd
    if standing.state:
        said |= {"state": standing.state, "mode": standing.mode}
        said |= {"provider": standing.provider, "model": standing.model}
        said["context"] = {"used": standing.used, "limit": standing.limit, "assumed": standing.assumed}
        said["cost"] = standing.cost if standing.cost is not None else cost
    fields = ("request_id", "name", "arguments", "diff", "reason", "sandboxed", "rule", "agent")
    said["pending"] = [{name: getattr(asked, name) for name in fields} for asked in standing.pending]
    return said


def _lines(said: dict[str, Any], level: int) -> str:
    """One chat of ``cass status``, `level` steps right; an agent says whose it is, where that does not stand above."""
    of = "" if level else lineage.agent_of(said["agent_of"])
    context = said["context"] or {}
    cost = f"  {money(said['cost'])}" if said["cost"] is not None else ""
    used = f"  {100 * context['used'] // context['limit']}% of context" if context.get("used") else ""
    queue = f"  {len(said['queue'])} waiting" if said["queue"] else ""
    mode = f"  {said['mode']}" if said["mode"] else ""
    title = safe_line(said["title"])[:60]
    first = f"{said['chat_id']}  {_words(said['state'])}{mode}  {safe_line(said['model'])}{used}{cost}{queue}  "
    first += f"{of}: {title}" if of else title
    asked = [
        line
        for r in said["pending"]
        for line in (
            f"    {r['name']}{lineage.of_agent(r['agent'])} waits for you: "
            + safe_line(jsonl.dump(r["arguments"]).decode())[:200],
            f"    because {r['reason']}",
            f"    cass approve {said['chat_id']} {r['request_id']}",
        )
    ]
    return "\n".join(_STEP * min(level, _DEEPEST) + safe_line(line) for line in [first.rstrip(), *asked])
