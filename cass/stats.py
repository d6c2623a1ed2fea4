"""Stats: what chats have used and cost, by day, model, directory and chat.

A fold of the lines of chats that holds sums alone: chats are read one after the other, whatever their size.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from cass import bill, catalogue, jsonl, lineage, models, written
from cass.amounts import money, tokens
from cass.home import Files, Home
from cass.records import Usage
from cass.visible import safe_line

GROUPS = ("day", "model", "directory", "chat")
_BULK = tuple(f'{{"type":"{kind}",'.encode() for kind in ("tool_result", "approval", "turn_end", "system"))
"""How lines begin that say nothing here; most of a chat."""
_LONGEST_LINE = 8 << 20
"""Bytes; an answer is shorter."""


@dataclass(slots=True)
class Tally:
    """What some requests came to."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float = 0.0
    """USD, of those whose price is known."""
    unpriced: int = 0
    """Requests whose price is not known."""

    @property
    def known(self) -> float | None:
        """USD, as far as it is known; None: of no request."""
        return None if self.unpriced and self.unpriced == self.requests else round(self.cost, 9)

    def add(self, usage: Usage, cost: float | None) -> None:
        self.requests += 1
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        self.cost += cost or 0
        self.unpriced += cost is None


@dataclass
class Stats:
    total: Tally = field(default_factory=Tally)
    groups: dict[str, dict[str, Tally]] = field(default_factory=lambda: {name: {} for name in GROUPS})
    """By the names of `GROUPS`, then by what each tally is of; days are local, ``2026-06-20``."""
    agents: dict[str, str] = field(default_factory=dict)
    """Of chats that are another one's agents: whose."""

    def add(self, of: Sequence[str], usage: Usage, cost: float | None) -> None:
        """Count one request; `of` says what it belongs to in each group."""
        self.total.add(usage, cost)
        for name, key in zip(GROUPS, of, strict=True):
            self.groups[name].setdefault(key, Tally()).add(usage, cost)

    def as_json(self) -> str:
        """``{"total", "day", "model", "directory", "chat"}``; the last four are lists of tallies with a ``"name"``.

        A chat that is another one's agent has its ``"agent_of"``.
        """
        said: dict[str, Any] = {"total": _said(self.total)}
        for name in GROUPS:
            said[name] = [{"name": key, **_said(tally)} for key, tally in self.sorted(name)]
        for chat in said["chat"]:
            if of := self.agents.get(chat["name"]):
                chat["agent_of"] = of
        return jsonl.dump(said).decode()

    def sorted(self, name: str) -> list[tuple[str, Tally]]:
        """One group: days in order, of the others the dearest first."""
        found = self.groups[name].items()
        if name == "day":
            return sorted(found)
        return sorted(found, key=lambda item: (-item[1].cost, -item[1].input - item[1].output, item[0]))


def gather(home: Home, chats: Iterable[Files], since: str = "") -> Stats:
    """The stats of `chats`; `since`: as records write time, nothing older counts. Raises ConfigError."""
    found = Stats()
    mine = written.models(home, [])
    known = cache(lambda provider, model, url: models.find(provider, model, url, mine))
    for files in chats:
        for provider, model, url, place, at, usage in requests(_lines(files, since)):
            if at >= since:
                cost = bill.cost(usage, known(provider, model, url))
                found.add((_day(at[:15]), model, place, files.chat_id), usage, cost)
        if files.chat_id in found.groups["chat"] and (summary := catalogue.summary(files)) and summary.agent_of:
            found.agents[files.chat_id] = summary.agent_of
    return found


def every(home: Home) -> list[Files]:
    return [home.files(chat_id) for chat_id in catalogue.ids(home)]


Request = tuple[str, str, str, str, str, Usage]
"""Provider, model, base URL, workspace, time, usage."""


def requests(lines: Iterable[bytes]) -> Iterator[Request]:
    """The requests of one chat. What a branch took over from its parent is older than the branch, and its parent's."""
    provider = model = url = place = begun = ""
    for line in lines:
        if line.startswith(_BULK):
            continue
        try:
            record = jsonl.load(line)
        except ValueError:
            continue
        match record:
            case {"type": "meta"}:
                begun = begun or _text(record, "created_at")
                url = _text(record, "base_url")
                place = _text(record, "cwd")
                provider, model = provider or _text(record, "provider"), model or _text(record, "model")
            case {"type": "message", "role": "user"}:
                provider, model = _text(record, "provider") or provider, _text(record, "model") or model
            case {"type": "message" | "compaction", "usage": dict(said)} if _text(record, "created_at") >= begun:
                yield provider, model, url, place, _text(record, "created_at"), Usage.of(said)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _lines(files: Files, since: str) -> Iterator[bytes]:
    """The lines of a chat; none where it is older than `since`, or no file."""
    try:
        fd = os.open(files.chat, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or (since and found.st_mtime < datetime.fromisoformat(since).timestamp()):
        os.close(fd)
        return
    with os.fdopen(fd, "rb") as opened:
        while line := opened.readline(_LONGEST_LINE):
            yield line


@cache
def _day(at: str) -> str:
    """The local day of an UTC time, given to ten minutes: no zone is off by less."""
    try:
        return datetime.fromisoformat(f"{at}0:00Z").astimezone().strftime("%Y-%m-%d")
    except ValueError:
        return "?"


def _said(tally: Tally) -> dict[str, Any]:
    said = {name: getattr(tally, name) for name in Tally.__slots__}
    return said | {"cost": tally.known}


# ---- for people -----------------------------------------------------------------------------------------------------

_SHOWN = 10
"""Rows of a group, where more than one is shown."""
_BAR = 24
_NAME = 40


def chart(found: Stats, groups: Sequence[str], columns: int = 100) -> str:
    """The totals, and a table with bars for each of `groups`: of cost, or of tokens where nothing costs anything."""
    total = found.total
    if not total.requests:
        return "no request has told its usage yet"
    chats = len(found.groups["chat"])
    sums = f"{chats} chat{'s' * (chats != 1)}, {total.requests:,} request{'s' * (total.requests != 1)}: {_sums(total)}"
    most = None if len(groups) == 1 else _SHOWN
    return "\n\n".join([sums, *(_table(found, name, most, columns) for name in groups)])


def _sums(tally: Tally) -> str:
    words = f"{tokens(tally.input)} tokens in ({_share(tally)} from the cache), {tokens(tally.output)} out"
    if tally.cost or not tally.unpriced:
        words += f", {money(tally.cost)} at list prices"
    return words + (f"; the price of {tally.unpriced:,} is not known" if tally.unpriced else "")


def _table(found: Stats, name: str, most: int | None, columns: int) -> str:
    rows = found.sorted(name)
    shown = rows if most is None else rows[-most:] if name == "day" else rows[:most]
    weights = [tally.cost if found.total.cost else tally.input + tally.output for _, tally in shown]
    marks = {chat_id: f", {lineage.agent_of(of)}" for chat_id, of in found.agents.items()} if name == "chat" else {}
    names = [_short(safe_line(key + marks.get(key, "")) or "?") for key, _ in shown]
    width = max(map(len, [name, *names]))
    costs = [_cost(tally) for _, tally in shown]
    cost_width = max(map(len, ["cost", *costs]))
    bar = max(0, min(_BAR, columns - width - cost_width - 40))
    head = f"{name:<{width}}  {'requests':>8}  {'in':>7}  {'cached':>6}  {'out':>7}  {'cost':>{cost_width}}"
    lines = [
        f"{label:<{width}}  {tally.requests:>8,}  {tokens(tally.input):>7}  {_share(tally):>6}  "
        f"{tokens(tally.output):>7}  {cost:>{cost_width}}  {_bar(weight / (max(weights) or 1), bar)}".rstrip()
        for label, (_, tally), cost, weight in zip(names, shown, costs, weights, strict=True)
    ]
    left = len(rows) - len(shown)
    return "\n".join([head, *lines, *([f"and {left} more: cass stats --by {name}"] if left else [])])


def _share(tally: Tally) -> str:
    return f"{tally.cache_read / tally.input:.0%}" if tally.input else "0%"


def _cost(tally: Tally) -> str:
    is_part = tally.unpriced and tally.known is not None
    return ("over " if is_part else "") + money(tally.known).replace("under ", "<")


def _short(name: str) -> str:
    return name if len(name) <= _NAME else "…" + name[1 - _NAME :]


def _bar(share: float, width: int) -> str:
    """``share`` of `width` columns, in eighths."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
