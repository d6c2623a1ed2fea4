"""Lists of chats for people and for scripts: `cass ls` and `cass status`."""

import os
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cass import catalogue, inbox, jsonl, presence
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


def table(home: Home, found: Sequence[Summary], look: Look, *, cwd_shown: bool) -> str:
    """`lines`, cut to the terminal's width."""
    width = max(columns(), 40)
    return "\n".join(line[:width].rstrip() for line in lines(home, found, look, cwd_shown=cwd_shown))


def lines(home: Home, found: Sequence[Summary], look: Look, *, cwd_shown: bool = False) -> list[str]:
    """One chat a line: id, creation, what its worker does, age, model, first message; its directory where asked."""
    now = time.time()
    made = []
    states = [_words(look(home.files(summary.chat_id)).state) if summary.is_running else "" for summary in found]
    width = max(map(len, states), default=0)
    costs = [_money(summary.cost) for summary in found]
    cost_width = max(map(len, costs), default=0)
    for summary, state, cost in zip(found, states, costs, strict=True):
        age = _age(summary.changed_at, now)
        left = f"{summary.chat_id}  {_day(summary.created_at)}  {state:{width}}  {age:>4}  {_model(summary.model):20}  "
        left += f"{cost:>{cost_width}}  " if cost_width else ""
        text = f"{summary.cwd}  {summary.title}" if cwd_shown else summary.title or "(no message yet)"
        made.append(safe_line(left + text))
    return made


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


def _money(cost: float | None) -> str:
    """What a chat has cost; "" where that is not known, or nothing."""
    return money(cost) if cost else ""


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
    return "\n".join(_lines(files, look) for files in shown)


def tmux(found: Sequence[Files], look: Look) -> str:
    """What chats with a worker do, for a status line of tmux: ``a8f3 thinking · 07c1 idle``; "" where none runs."""
    words = []
    for files in found:
        if presence.is_running(files):
            state = describe(files, look)["state"]
            waits = state == "awaiting-approval"
            shown = f"#[reverse] {_words(state)} #[default]" if waits else _words(state)
            words.append(f"{files.chat_id.rpartition('-')[2]} {shown}")
    return " · ".join(words)


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
    fields = ("request_id", "name", "arguments", "reason", "sandboxed", "rule")
    said["pending"] = [{name: getattr(asked, name) for name in fields} for asked in standing.pending]
    return said


def _lines(files: Files, look: Look) -> str:
    said = describe(files, look)
    context = said["context"] or {}
    cost = f"  {_money(said['cost'])}" if said["cost"] else ""
    used = f"  {100 * context['used'] // context['limit']}% of context" if context.get("used") else ""
    queue = f"  {len(said['queue'])} waiting" if said["queue"] else ""
    mode = f"  {said['mode']}" if said["mode"] else ""
    title = safe_line(said["title"])[:60]
    first = f"{said['chat_id']}  {_words(said['state'])}{mode}  {safe_line(said['model'])}{used}{cost}{queue}  {title}"
    asked = [
        line
        for r in said["pending"]
        for line in (
            f"    {r['name']} waits for you: {safe_line(jsonl.dump(r['arguments']).decode())[:200]}",
            f"    because {r['reason']}",
            f"    cass approve {said['chat_id']} {r['request_id']}",
        )
    ]
    return "\n".join(map(safe_line, [first.rstrip(), *asked]))
