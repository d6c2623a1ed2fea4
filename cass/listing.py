"""Lists of chats for people and for scripts: `cass ls` and `cass status`."""

import shutil
import time
from calendar import timegm
from collections.abc import Sequence

from cass import chat, inbox, presence, records, status
from cass.blocks import safe_line
from cass.chat import Summary
from cass.home import Files, Home


def as_json(found: Sequence[Summary]) -> str:
    """Summaries as a JSON list of ``{"chat_id", "created_at", "changed_at", "model", "cwd", "title"}``."""
    fields = ("chat_id", "created_at", "changed_at", "model", "cwd", "title")
    return records.dump([{name: getattr(summary, name) for name in fields} for summary in found]).decode()


def table(found: Sequence[Summary], home: Home, *, cwd_shown: bool) -> str:
    """One chat a line: id, whether a worker runs, age, creation, model, first message; its directory where asked."""
    width = shutil.get_terminal_size((100, 24)).columns
    now = time.time()
    lines = []
    for summary in found:
        running = "running" if presence.is_running(home.files(summary.chat_id)) else ""
        model = summary.model.rpartition("/")[2]
        left = f"{summary.chat_id}  {running:7}  {_age(summary.changed_at, now):>4}  {model[:20]:20}  "
        text = f"{summary.cwd}  {summary.title}" if cwd_shown else summary.title or "(no message yet)"
        lines.append((left + safe_line(text))[: max(width, 40)].rstrip())
    return "\n".join(lines)


def _age(at: str, now: float) -> str:
    """``3m``, ``5h``, ``12d``: how long ago an UTC time stamp was."""
    try:
        seconds = max(0.0, now - timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return "?"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return "now"


def every(home: Home) -> list[Files]:
    """The files of every chat, newest id first."""
    return [home.files(chat_id) for chat_id in sorted(chat.ids(home), reverse=True)]


def statuses(found: Sequence[Files], *, as_json: bool, named: bool) -> str:
    """What chats do. As JSON all of them; for people those with something going on, or the one that was `named`."""
    if as_json:
        return records.dump([status.describe(files) for files in found]).decode()
    shown = [files for files in found if named or presence.is_running(files) or inbox.waiting(files)]
    if not shown:
        return f"nothing is going on in {len(found)} chats; cass ls lists them" if found else "no chats yet"
    return "\n".join(_lines(files) for files in shown)


def _lines(files: Files) -> str:
    said = status.describe(files)
    context = said["context"] or {}
    used = f"  {100 * context['used'] // context['limit']}% of context" if context.get("used") else ""
    queue = f"  {len(said['queue'])} waiting" if said["queue"] else ""
    mode = f"  {said['mode']}" if said["mode"] else ""
    first = f"{said['chat_id']}  {said['state']}{mode}  {said['model']}{used}{queue}  {safe_line(said['title'])[:60]}"
    asked = [
        f"    {r['name']} waits for you: {safe_line(records.dump(r['arguments']).decode())[:200]}\n"
        f"    because {safe_line(r['reason'])}\n"
        f"    cass approve {said['chat_id']} {r['request_id']}"
        for r in said["pending"]
    ]
    return "\n".join([first.rstrip(), *asked])
