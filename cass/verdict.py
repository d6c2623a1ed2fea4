"""A verdict given on the command line: `cass approve` and `cass deny`."""

import os
import sys
import termios
from collections.abc import Sequence

from cass import decisions, lineage, presence, standing, warning
from cass.composer.question import subject
from cass.composer.rows import wrap
from cass.errors import Blocked, CassError, NoWorker
from cass.home import Files
from cass.program import err, out
from cass.records import ApprovalRequest
from cass.visible import safe_line

GUTTER, WRAPPED = "│ ", "┆ "
"""Before each row of what would be done, so that no text in it can pass for ours; `WRAPPED` where a line goes on."""
FEWEST_ROWS = 6
"""Of what would be done, however small the screen is."""
REASON_ROWS = 4
"""Of the reason, which may hold a path of any length."""


def give(
    files: Files, request_id: str | None, *, approve: bool, always: bool = False, reason: str | None = None
) -> None:
    """Decide what waits in a chat. Without a request id it is shown and asked for, which needs a terminal.

    Raises NoWorker, Blocked where a terminal is missing, CassError with the worker's own words when it refuses.
    """
    if not presence.is_running(files):
        raise NoWorker(f"no worker is running for {files.chat_id}: nothing waits for a decision")
    pending = standing.look(files).pending
    verb = "approve" if approve else "deny"
    if request_id is None:
        asked = _asked(files, pending, verb, always)
    else:
        asked = next((request for request in pending if request.request_id == request_id), None)
    if asked is None and request_id is None:
        return
    request: dict[str, object] = {"do": verb, "request_id": asked.request_id if asked else request_id}
    request |= {"program": f"cass {verb}", "always": always, "reason": reason}
    # What is not known any more is still asked about: the worker says what became of it.
    answer = decisions.ask(files, request | ({"digest": decisions.digest(asked)} if asked else {}))
    if not answer.get("ok"):
        error = CassError(str(answer.get("error")))
        error.status = int(answer.get("status") or 1)
        raise error


def _asked(files: Files, pending: Sequence[ApprovalRequest], verb: str, always: bool) -> ApprovalRequest | None:
    """The request that waits, once the person has seen it and said yes; None for no."""
    if not pending:
        raise CassError(f"nothing waits for a decision in {files.chat_id}")
    request = pending[-1]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Blocked(f"without a terminal name the request: cass {verb} {files.chat_id} {request.request_id}")
    size = os.get_terminal_size(sys.stdout.fileno())
    out("\n".join(shown(request, size.columns or 80, size.lines or 24, rule=always)))
    termios.tcflush(0, termios.TCIFLUSH)  # what was typed before the question stood there is no answer to it
    try:
        said = input(f"{verb}? [y/N] ")
    except EOFError:
        said = ""
    if said.strip().lower() not in ("y", "yes"):
        err("nothing was decided")
        return None
    return request


def shown(request: ApprovalRequest, columns: int, lines: int, *, rule: bool = False) -> list[str]:
    """Rows of a screen that say what would happen, and then, of us, why it is asked; all fit on it with the question.

    Of what is too long for the screen its beginning and its end stand there, and how much is hidden between them.
    """
    what = [line for _, line in subject(request)]
    rows = [row for line in what for row in _rows(line, columns, GUTTER, WRAPPED)]
    after = _shortened(_rows(f"because {safe_line(request.reason)}", columns), REASON_ROWS, columns)
    if said := warning.of(request):
        after += _rows(said, columns)
    if rule and request.rule:
        after += _shortened(_rows(f"always allowed then: {safe_line(request.rule)}", columns), lines // 3, columns)
    who = f"{safe_line(request.name)}{lineage.of_agent(request.agent)}"
    counted = f"{who}, {len(what)} line{'s' if len(what) != 1 else ''}:"
    room = max(lines - len(after) - 2, FEWEST_ROWS)  # but for that heading and the question
    return [counted, *_shortened(rows, room, columns), *after]


def _rows(line: str, columns: int, first: str = "", more: str = "  ") -> list[str]:
    """`line` in rows; a row that goes on never begins at the left edge."""
    rows = wrap(line, max(columns - len(more), 1))
    return [f"{more if number else first}{row}" for number, row in enumerate(rows)]


def _shortened(rows: list[str], room: int, columns: int) -> list[str]:
    """The beginning and the end of `rows`, and how many are hidden, in `room`."""
    if len(rows) <= room:
        return rows
    marked = 1
    while True:  # what says how much is hidden takes rows too
        tail = max((room - marked) // 2, 1)
        head = max(room - marked - tail, 1)
        hidden = len(rows) - head - tail
        said = wrap(f"… {hidden} of {len(rows)} rows hidden; the whole: cass status --json", columns)
        if len(said) <= marked:
            return [*rows[:head], *said, *rows[-tail:]]
        marked = len(said)
