"""A restore: the files that write, edit and other restores changed, as they were at some moment of a chat or a branch.

A plan is made first, and shown. What the disk holds by somebody else's hand is left alone, in the plan and when it is
carried out. Each file is replaced whole, as by the tool write, and what it held is kept: a restore can be undone.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cass import branch, chat, snapshots
from cass.branch import Point
from cass.errors import ToolError
from cass.home import Files, Home
from cass.names import quoted
from cass.records import Record
from cass.snapshots import Journal, State, Target
from cass.tools import write
from cass.tools.paths import Place, named, not_a_file, reach
from cass.walk import descend

_BITS = 0o1777
"""Of a mode; never those by which a program runs with somebody else's rights."""


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one file."""

    path: str
    """Absolute and resolved."""
    now: State | None
    """What it holds; None: there is no file, or none that could be looked at."""
    to: State | None
    conflict: str = ""
    """Why it is left alone, in a few words."""

    def as_json(self) -> dict[str, Any]:
        """``{"path", "from": {"sha256", "mode", "size"}, "to", "conflict"}``; null for no file, and no conflict."""
        states = (None if s is None else {n: getattr(s, n) for n in s.__slots__} for s in (self.now, self.to))
        return dict(zip(("path", "from", "to", "conflict"), (self.path, *states, self.conflict or None), strict=True))


def plan(files: Files, found: Sequence[Record], point: Point) -> list[Step]:
    """What is to be done so that all is as it was at a moment of a chat; `found` are its records."""
    history = snapshots.history(files.home, chat.family(found, files))
    place = snapshots.place(history, point.at, *branch.calls(found, point))
    steps = [_step(target, files.home) for target in snapshots.targets(history, place)]
    return [step for step in steps if step.now != step.to or step.conflict]


def _step(target: Target, home: Home) -> Step:
    path, to = target.path, target.to
    try:
        now, _ = _look(path, _place(home))
    except ToolError as e:
        return Step(path, None, to, str(e))
    if to is not None:
        # A mode that others gave it since stays.
        modes = {state.mode & _BITS for state in target.known if state}
        is_theirs = now is not None and now.mode & _BITS not in modes
        to = replace(to, mode=(now.mode if now is not None and is_theirs else to.mode) & _BITS)
    if now is not None:
        now = replace(now, mode=now.mode & _BITS)
    return Step(path, now, to, _conflict(now, to, target, home))


def _conflict(now: State | None, to: State | None, target: Target, home: Home) -> str:
    if now == to:
        return ""
    if _hash(now) not in {_hash(state) for state in target.known}:
        return "removed by others since" if now is None else "changed by others since"
    if now is not None and now.size > snapshots.LIMIT:
        return "too large to be kept"
    if to is not None and not snapshots.is_kept(home, to):
        return "too large to have been kept" if to.size > snapshots.LIMIT else "what it held is not kept any more"
    return ""


def _hash(state: State | None) -> str | None:
    return state.sha256 if state else None


def _look(path: str, place: Place) -> tuple[State | None, os.stat_result | None]:
    """What a file holds and is; raises ToolError, in a few words, where it is none of ours to change."""
    reached = reach(path, place, write=True)
    if reached.path != path:
        raise ToolError("a part of its path became a link")
    if reached.private:
        raise ToolError("cass keeps its own there")
    try:
        folder = descend(os.path.dirname(path))
        try:
            status = os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(not_a_file(status.st_mode))
            return snapshots.look(os.path.basename(path), folder), status
        finally:
            os.close(folder)
    except FileNotFoundError:
        return None, None
    except OSError as e:
        raise ToolError(f"it cannot be looked at: {os.strerror(e.errno or 0)}") from e


def _place(home: Home, root: str = "/") -> Place:
    root_home = Path(os.path.realpath(home.root))
    return Place(Path(root), root_home, root_home, "restore", "", {}, {})


# ---- carrying it out ------------------------------------------------------------------------------------------------


def carry_out(steps: Sequence[Step], journal: Journal, home: Home) -> list[Step]:
    """Do what was planned, and write it down; return what came of each step.

    A step that could not be done has a conflict then, and its file is as it was.
    """
    return [step if step.conflict else replace(step, conflict=_do(step, journal, home)) for step in steps]


def _do(step: Step, journal: Journal, home: Home) -> str:
    """Do one step; return why it could not be done, or nothing."""

    def keep(path: str, folder: int, after: State | None) -> str:
        try:
            now = snapshots.look(os.path.basename(path), folder)
            if _hash(now) != _hash(step.now):
                raise ToolError("changed meanwhile")
            journal.keep(path, folder, after)
        except OSError as e:
            raise ToolError(f"what it holds cannot be kept: {os.strerror(e.errno or 0)}") from e
        return ""

    place = replace(_place(home), keep=keep)
    try:
        now, status = _look(step.path, place)
        if _hash(now) != _hash(step.now):
            raise ToolError("changed meanwhile")
        if step.to is None:
            _remove(step.path, place)
        elif (content := snapshots.content(home, step.to)) is None:
            raise ToolError("what it held is not kept any more")
        else:
            write.replace(step.path, content, place, status, mode=step.to.mode)
    except ToolError as e:
        return str(e)
    return ""


def _remove(path: str, place: Place) -> None:
    try:
        folder = descend(os.path.dirname(path))
        try:
            place.keep(path, folder, None)
            os.unlink(os.path.basename(path), dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as e:
        raise ToolError(f"it cannot be removed: {os.strerror(e.errno or 0)}") from e


# ---- telling --------------------------------------------------------------------------------------------------------


def lines(steps: Sequence[Step], root: str) -> list[str]:
    """A plan, or what came of it, for people: a line a file, paths relative to the workspace `root`."""
    place = _place(Home(Path(root)), root)
    names = [quoted(named(step.path, place)) for step in steps]
    width = min(max(map(len, names), default=0), 50)
    return [f"  {name:{width}}  {_words(step)}{_remark(step, root)}" for name, step in zip(names, steps, strict=True)]


def _words(step: Step) -> str:
    if step.conflict:
        return f"left alone: {step.conflict}"
    if step.to is None:
        return "remove it"
    size = f"{step.to.size:,} bytes"
    return f"make it again, {size}" if step.now is None else f"take it back to {size}"


def _remark(step: Step, root: str) -> str:
    """What is unusual about a file that is to change: the journal says so, and whoever can write it may have lied."""
    if step.conflict:
        return ""
    reached = reach(step.path, _place(Home(Path(root)), root), write=True)
    said = ["outside the workspace"] * (not reached.inside) + ["other programs run or trust it"] * reached.guarded
    return f" ({', '.join(said)})" if said else ""
