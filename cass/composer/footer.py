"""The footer: status, help and queue around the input, in prompt_toolkit's fragments. Pure; outside text is made safe.

When room is short the least important part is shortened, then left out; the access mode, in the end by its last word,
and the state always stay.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from cass.amounts import money, tokens
from cass.commands import HELP_LINE
from cass.composer.question import Fragments
from cass.standing import AWAITING, IDLE, RETRYING, STARTING, STOPPED, Standing, words
from cass.visible import safe_line

GAP = " · "
NEARLY_FULL = 0.9
QUEUE_CHARACTERS = 1_000
"""Of a waiting message, which may be a paste of megabytes, no line shows more."""


class Part(NamedTuple):
    """A piece of the status line."""

    style: str
    text: str
    short: str | None = None
    """What may stand for it; None: it cannot be shortened; "": it may be left out."""
    weight: int = 10
    """The lowest gives way first; 10 never does."""


class Surroundings(NamedTuple):
    """What the status line says besides the standing of the chat."""

    chat_id: str
    state: str = ""
    """What the worker does, or that it is starting, or stopped."""
    elapsed_s: float = 0
    queued: int = 0
    branch: str = ""
    home: str = ""
    """The person's home directory, which is written ``~``."""


def status_line(standing: Standing, around: Surroundings, width: int) -> Fragments:
    """One line about the chat."""
    parts = [
        Part(f"class:{standing.mode or 'dim'}", standing.mode or "…", standing.mode.rpartition("-")[2] or None, 9),
        Part("", _model(standing), _short_model(standing), 4),
        Part(*_state(standing, around.state, around.elapsed_s)),
    ]
    if standing.detail and around.state == RETRYING:
        parts.append(_detail(safe_line(standing.detail), width - _width(parts[::2]) - len(GAP)))
    if standing.used is not None and standing.limit:
        parts.append(_context(standing, standing.used, standing.limit))
    if standing.cost:  # of what costs nothing, nothing is said
        parts.append(Part("class:dim", money(standing.cost), "", 3))
    if around.queued:
        parts.append(Part("class:waiting", f"{around.queued} waiting", "", 6))
    if standing.cwd:
        place = safe_line(_tilde(standing.cwd, around.home))
        where = f"{place} ({safe_line(around.branch)})" if around.branch else place
        parts.append(Part("class:dim", where, os.path.basename(place), 1))
    parts.append(Part("class:dim", f"cass {around.chat_id}", around.chat_id.rpartition("-")[2], 2))
    return _joined(fit(parts, width))


def fit(parts: Sequence[Part], width: int) -> list[Part]:
    """`parts` such that they and their gaps take at most `width` columns, if giving way can do it."""
    parts = list(parts)
    while _width(parts) > width:
        givers = [part for part in parts if part.weight < 10 and part.short is not None]
        if not givers:
            break
        giver = min(givers, key=lambda part: part.weight)
        place = parts.index(giver)
        if giver.short and giver.text != giver.short:
            # Its short form gives way only after most that is still long: a chat is called by the end of its id.
            parts[place] = giver._replace(
                text=giver.short,
                short="" if giver.weight < 9 else None,
                weight=max(min(giver.weight + 4, 7), giver.weight),
            )
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
    """The waiting messages, one line each, oldest first, `most` lines at most; then how to take one back."""
    shown = waiting if len(waiting) <= most else waiting[: most - 1]
    lines = [cut(f"waiting {n}: {safe_line(text[:QUEUE_CHARACTERS])}", width) for n, text in enumerate(shown, 1)]
    if len(shown) < len(waiting):
        lines.append(f"… and {len(waiting) - len(shown)} more")
    return [("class:waiting", "\n".join(lines)), ("class:dim", cut("\nUp takes the newest back, /queue any", width))]


def _state(standing: Standing, state: str, elapsed_s: float) -> tuple[str, str]:
    if state in (STARTING, STOPPED):
        return "class:warning", state
    if state == IDLE:
        return "class:dim", state
    seconds = f" {elapsed_s:.0f} s" if elapsed_s < 60 else f" {elapsed_s // 60:.0f} min {elapsed_s % 60:.0f} s"
    said = safe_line(words(state))
    return "class:ask" if state == AWAITING else "class:busy", said + seconds


def _detail(text: str, room: int) -> Part:
    """When it is tried again, and why, in the room that mode and state leave."""
    when = text.partition(": ")[0]
    return Part("class:busy", cut(text, max(room, len(when))), when, 8)


def _context(standing: Standing, used: int, limit: int) -> Part:
    """How full the context is; a limit that is a guess, because nothing is known of the model, is said to be one."""
    share = f"{used / limit:.0%} context"
    of = f"of {'assumed ' if standing.assumed else ''}{tokens(limit)}"
    return Part("class:warning" if used > limit * NEARLY_FULL else "", f"{share} ({tokens(used)} {of})", share, 5)


def _model(standing: Standing) -> str:
    if standing.provider == "demo":
        return "demo: offline, no language model"
    name = safe_line(standing.model.rpartition("/")[2] or "…")  # nobody knows before the worker has spoken
    return f"{name} ({safe_line(standing.effort)})" if standing.effort else name


def _short_model(standing: Standing) -> str:
    name = "demo" if standing.provider == "demo" else safe_line(standing.model.rpartition("/")[2] or "…")
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
