"""The footer: status, help and queue around the input, in prompt_toolkit's fragments. Pure; outside text is made safe.

When room is short the least important part is shortened, then left out; the access mode and the state always stay.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cass.commands import HELP_LINE
from cass.composer.question import Fragments
from cass.composer.standing import IDLE, Standing
from cass.visible import safe_line

GAP = " · "


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the status line."""

    style: str
    text: str
    short: str | None = None
    """What may stand for it; None: it cannot be shortened; "": it may be left out."""
    weight: int = 9
    """The lowest gives way first; 9 never does."""


def status_line(
    standing: Standing, *, state: str, chat_id: str, queued: int, elapsed_s: float, home: str, width: int
) -> Fragments:
    """One line about the chat. `state` overrides the worker's own word (``starting``, ``no worker``); "" does not."""
    parts = [
        Part(f"class:{standing.mode or 'dim'}", standing.mode or "…"),
        Part("", _model(standing), _short_model(standing), 4),
        Part(*_state(standing, state, elapsed_s)),
    ]
    if standing.used is not None and standing.limit:
        parts.append(Part("", f"{standing.used / standing.limit:.0%} context", "", 5))
    if queued:
        parts.append(Part("class:waiting", f"{queued} waiting", "", 6))
    if standing.cwd:
        parts.append(Part("class:dim", safe_line(_tilde(standing.cwd, home)), "", 1))
    parts.append(Part("class:dim", f"cass {chat_id}", chat_id.rpartition("-")[2], 2))
    return _joined(fit(parts, width))


def fit(parts: Sequence[Part], width: int) -> list[Part]:
    """`parts` such that they and their gaps take at most `width` columns, if giving way can do it."""
    parts = list(parts)
    while _width(parts) > width:
        givers = [part for part in parts if part.weight < 9 and part.short is not None]
        if not givers:
            break
        giver = min(givers, key=lambda part: part.weight)
        place = parts.index(giver)
        if giver.short and giver.text != giver.short:
            # Its short form gives way only after most that is still long: a chat is called by the end of its id.
            parts[place] = replace(giver, text=giver.short, short="", weight=giver.weight + 4)
        else:
            del parts[place]
    return parts


def help_line(width: int, room: bool) -> Fragments:
    """The most useful keys, as many as fit; nothing where there is no `room`."""
    shown: list[str] = []
    for item in HELP_LINE if room else ():
        if len(GAP.join([*shown, item])) > width:
            break
        shown.append(item)
    return [("class:dim", GAP.join(shown))]


def queue_lines(waiting: Sequence[str], width: int, most: int = 3) -> Fragments:
    """The waiting messages, one line each, oldest first; beyond `most` their number."""
    lines = [cut(f"waiting: {safe_line(text)}", width) for text in waiting[:most]]
    if len(waiting) > most:
        lines.append(f"… and {len(waiting) - most} more")
    return [("class:waiting", "\n".join(lines))]


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns of plain text, two spaces before and between."""
    width = max(len(left) for left, _ in rows)
    return "".join(f"  {left:<{width}}  {right}".rstrip() + "\n" for left, right in rows)


def _state(standing: Standing, override: str, elapsed_s: float) -> tuple[str, str]:
    if override:
        return "class:warning", override
    if standing.state in ("", IDLE):
        return "class:dim", standing.state or IDLE
    seconds = f" {elapsed_s:.0f} s" if elapsed_s < 60 else f" {elapsed_s // 60:.0f} min {elapsed_s % 60:.0f} s"
    words = safe_line(standing.state.replace("-", " "))
    detail = f" ({safe_line(standing.detail)})" if standing.detail and standing.state == "retrying" else ""
    return "class:ask" if standing.state == "awaiting-approval" else "class:busy", words + seconds + detail


def _model(standing: Standing) -> str:
    if standing.provider == "demo":
        return "demo: offline, no language model"
    return safe_line(standing.model.rpartition("/")[2] or "…")


def _short_model(standing: Standing) -> str:
    name = "demo" if standing.provider == "demo" else _model(standing)
    return cut(name, 16)


def _tilde(path: str, home: str) -> str:
    if path == home or path.startswith(home + os.sep):
        return "~" + path[len(home) :]
    return path


def cut(text: str, width: int) -> str:
    """One line of at most `width` characters; ``…`` stands for what is left out."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _width(parts: Sequence[Part]) -> int:
    return sum(len(part.text) for part in parts) + len(GAP) * (len(parts) - 1)


def _joined(parts: Sequence[Part]) -> Fragments:
    text: Fragments = []
    for part in parts:
        text += [("class:dim", GAP)] if text else []
        text.append((part.style, part.text))
    return text
