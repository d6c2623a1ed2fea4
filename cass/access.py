"""Access modes, rules, and the one decision whether a call may run.

`decide` is pure: it sees what a call would touch (an `Action`, with paths already resolved), never the disk, and it is
asked once per call about all of it. A tool never judges itself.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from cass import rules as given
from cass.compound import Uncertain
from cass.pattern import pattern
from cass.rules import FETCHES, READS, RUNS, WRITES, Rules


class Mode(StrEnum):
    """What the model may do, narrowest first."""

    READ_ONLY = "read-only"
    WORKSPACE_EDIT = "workspace-edit"
    FULL_ACCESS = "full-access"

    @property
    def width(self) -> int:
        return list(Mode).index(self)

    @property
    def next(self) -> "Mode":
        """The one that Shift-Tab goes to."""
        return list(Mode)[(self.width + 1) % len(Mode)]


class Effect(StrEnum):
    """What a tool of a host program does at most, by that program's word."""

    READS = "reads"
    """It changes nothing that anybody would miss."""
    WRITES = "writes"
    RUNS = "runs"
    """Anything else: it sends, deploys, runs a program."""


class Reach(NamedTuple):
    """One path that a call touches."""

    path: str
    """Absolute, with every symlink, ``..`` and ``~`` resolved."""
    write: bool = False
    inside: bool = True
    """In the workspace."""
    guarded: bool = False
    """A file that makes other programs run something: below ``.git`` or ``.cass``, ``.envrc``, editors' task files."""
    private: bool = False
    """Below the home of cass."""
    secret: bool = False
    """In the workspace, but where credentials are kept: never `inside`."""


class Action(NamedTuple):
    """All that one call would do."""

    tool: str
    reaches: tuple[Reach, ...] = ()
    command: str | None = None
    effect: Effect | None = None
    """Of a tool of the host program; None for a tool of cass, whose name says it."""
    url: str | None = None
    """What it fetches, in the one spelling of `cass.web.url`."""
    given: str = ""
    """Of a tool that is none of cass: the arguments as JSON, their names in order."""
    is_foreign: bool = False
    """A tool of an MCP server: what it does nobody here knows."""


@dataclass(frozen=True, slots=True)
class Allow:
    rule: str | None = None
    """The rule that spared the question, if one did; several, one for each part, are joined by a comma."""


@dataclass(frozen=True, slots=True)
class Ask:
    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Decision = Allow | Ask | Deny


def tools(mode: Mode) -> frozenset[str]:
    """Names of the built-in tools that a mode offers, whatever the rules are."""
    return READS if mode is Mode.READ_ONLY else READS | WRITES | RUNS | FETCHES


def decide(mode: Mode, rules: Rules, action: Action) -> Decision:
    """Whether `action` may run: bounds of the mode first, then deny, ask and allow rules, then what the mode asks."""
    if not _is_offered(mode, action):
        return Deny(f"{action.tool} is unavailable in {mode} mode; go on within it, with {_words(tools(mode))}")
    for reach in action.reaches:
        if reach.private:
            return Deny(f"{reach.path} belongs to cass itself and is closed to tools in every mode")
        if mode is Mode.READ_ONLY and not reach.inside:
            why = f"{mode} mode reads only inside it"
            if reach.secret:
                return Deny(f"{reach.path} is where credentials are kept, and so as if outside the workspace; {why}")
            return Deny(f"{reach.path} is outside the workspace; {why}")
    if rule := _first(rules.deny, action):
        return Deny(f"the rule {rule} denies it")
    if rule := _first(rules.ask, action):
        return Ask("; ".join([f"the rule {rule} asks", *_unusual(action)]))
    question = _question(mode, rules, action)
    if question is None and not _needs_rule(mode, action):
        return Allow()
    if not _guarded(action) and (rule := _all(rules.allow, action)):
        return Allow(rule)
    if question is None:
        return Deny(f"{mode} mode runs {action.tool} only where a rule of the user allows this call")
    return Ask(question)


def offers(mode: Mode, effect: Effect) -> bool:
    """Whether a mode offers tools of a host program that do so much."""
    return mode is not Mode.READ_ONLY or effect is Effect.READS


def _needs_rule(mode: Mode, action: Action) -> bool:
    """Whether nothing but a rule lets `action` through, and nobody is asked."""
    return mode is Mode.READ_ONLY and _is_outward(action)


def _is_outward(action: Action) -> bool:
    """Whether it asks another program or machine, of which nobody here knows what it does."""
    return action.is_foreign or action.url is not None


def _is_offered(mode: Mode, action: Action) -> bool:
    if _is_outward(action):
        return True
    return action.tool in tools(mode) if action.effect is None else offers(mode, action.effect)


def _question(mode: Mode, rules: Rules, action: Action) -> str | None:
    """Why the mode asks about `action`; None where it does not."""
    if mode is Mode.WORKSPACE_EDIT:
        if found := _unusual(action):
            return "; ".join(found)
        if action.tool in RUNS:
            return f"{mode} mode asks before every command"
        if action.tool in FETCHES:
            return f"{mode} mode asks before every fetch"
        # What a tool writes where it names no path can be anywhere.
        if action.effect is Effect.RUNS or (action.effect is Effect.WRITES and not action.reaches):
            return f"{mode} mode asks before every {action.tool}"
    elif rules.confirm_destructive and action.command is not None and is_destructive(action.command):
        return "it looks destructive (confirm_destructive_operations)"
    return None


def _unusual(action: Action) -> list[str]:
    """Every path that the person is to know of, where it leads in the end: arguments may name a link."""
    found: dict[str, dict[str, None]] = {}
    for reach in action.reaches:
        why = "where credentials are kept" if reach.secret else "outside the workspace"
        why = "which other programs run or trust" if reach.write and reach.guarded else why
        if not reach.inside or (reach.write and reach.guarded):
            found.setdefault(f"it {'writes' if reach.write else 'reads'} {{}}, {why}", {})[reach.path] = None
    return [words.format(", ".join(paths)) for words, paths in found.items()]


_FRONT = r"(?:^|[\s;&|(`'\"/])"
_DESTRUCTIVE = pattern(
    _FRONT + r"(?:rm|rmdir|shred|truncate|dd|mkfs[.\w]*|fdisk|parted|kill|killall|pkill|shutdown|reboot|"
    r"drop\s+(?:table|database)|chmod|chown)\b|(?<!>)>(?!>)\s*[^&\s]|-delete\b",
    re.IGNORECASE,
)
# The program, and what of it is destructive anywhere behind it: looked for one after the other, for in one expression
# every `git` of a long command would be followed to its end.
_DESTRUCTIVE_OF = (
    (
        pattern(_FRONT + r"git\s", re.IGNORECASE),
        pattern(r"\s(?:reset|clean|push|checkout|restore|rebase|branch\s+-D|stash\s+(?:drop|clear))\b", re.IGNORECASE),
    ),
    (pattern(_FRONT + r"docker\s", re.IGNORECASE), pattern(r"\s(?:rm|rmi|prune)\b", re.IGNORECASE)),
)


def is_destructive(command: str) -> bool:
    """Whether a shell command looks as if it deletes or overwrites. A courtesy, not a boundary."""
    if _DESTRUCTIVE.search(command):
        return True
    found = ((program.search(command), verbs) for program, verbs in _DESTRUCTIVE_OF)
    return any(at and verbs.search(command, at.end() - 1) for at, verbs in found)


# ---- rules ----------------------------------------------------------------------------------------------------------


def rule_for(action: Action) -> str | None:
    """The narrowest rule that would have allowed `action`, for the answer "always"; None where none can."""
    if _guarded(action):
        return None
    if action.command is not None:
        return given.exactly(action.tool, action.command)
    if action.url is not None:
        return given.of_origin(action.tool, action.url)
    outside = [reach.path for reach in action.reaches if not reach.inside]
    if action.effect is not None and not outside:
        return action.tool
    return given.exactly(action.tool, outside[0]) if len(outside) == 1 else None


def _guarded(action: Action) -> bool:
    return any(reach.write and reach.guarded for reach in action.reaches)


def _first(rules: tuple[str, ...], action: Action) -> str | None:
    """The first rule that speaks of any part of `action`."""
    if action.command is not None:
        return given.mentioning(rules, action.tool, action.command)
    if action.url is not None:
        return given.mentioning_url(rules, action.tool, action.url)
    found = given.of_paths(rules, action.tool, _subjects(action, [reach.path for reach in action.reaches]))
    return next((rule for rule in found if rule), None)


def _all(rules: tuple[str, ...], action: Action) -> str | None:
    """The rule, or rules, that allow the whole of `action`."""
    found: list[str | None]
    if action.command is not None:
        try:
            found = [rule for _, rule in given.allowing(rules, action.tool, action.command)]
        except Uncertain:
            return None
    elif action.url is not None:
        found = [given.covering_url(rules, action.tool, action.url)]
    else:
        outside = [reach.path for reach in action.reaches if not reach.inside]
        found = given.of_paths(rules, action.tool, _subjects(action, outside))
    names = [rule for rule in found if rule]
    return ", ".join(dict.fromkeys(names)) if names and len(names) == len(found) else None


def _subjects(action: Action, paths: list[str]) -> list[str]:
    """What rules are compared with: paths, and of a tool that is none of cass and touches none what it is given."""
    return paths or ([action.given] if action.effect is not None else [])


def _words(names: frozenset[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last}" if most else last
