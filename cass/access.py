"""Access modes, rules, and the one decision whether a call may run.

`decide` is pure: it sees what a call would touch (an `Action`, with paths already resolved), never the disk, and it is
asked once per call about all of it. A tool never judges itself.
"""

import fnmatch
import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class Reach:
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


@dataclass(frozen=True, slots=True)
class Action:
    """All that one call would do."""

    tool: str
    reaches: tuple[Reach, ...] = ()
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The person's rules, ``tool(pattern)`` each; they relax or narrow what is asked and never widen a mode."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    confirm_destructive: bool = False

    def allowing(self, rule: str) -> "Rules":
        return Rules((*self.allow, rule), self.ask, self.deny, self.confirm_destructive)


@dataclass(frozen=True, slots=True)
class Allow:
    rule: str | None = None
    """The rule that spared the question, if one did."""


@dataclass(frozen=True, slots=True)
class Ask:
    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Decision = Allow | Ask | Deny

READS = frozenset({"ls", "read", "grep"})
WRITES = frozenset({"write", "edit"})
RUNS = frozenset({"shell"})


def tools(mode: Mode) -> frozenset[str]:
    """Names of the built-in tools that a mode offers."""
    return READS if mode is Mode.READ_ONLY else READS | WRITES | RUNS


def decide(mode: Mode, rules: Rules, action: Action) -> Decision:
    """Whether `action` may run: bounds of the mode first, then deny, ask and allow rules, then what the mode asks."""
    if action.tool not in tools(mode):
        return Deny(f"{action.tool} is unavailable in {mode} mode; go on within it, with {_words(tools(mode))}")
    for reach in action.reaches:
        if reach.private:
            return Deny(f"{reach.path} belongs to cass itself and is closed to tools in every mode")
        if mode is Mode.READ_ONLY and not reach.inside:
            return Deny(f"{reach.path} is outside the workspace; {mode} mode reads only inside it")
    if rule := _first(rules.deny, action):
        return Deny(f"the rule {rule} denies it")
    if rule := _first(rules.ask, action):
        return Ask(f"the rule {rule} asks")
    question = _question(mode, rules, action)
    if question is None:
        return Allow()
    if not _guarded(action) and (rule := _all(rules.allow, action)):
        return Allow(rule)
    return Ask(question)


def _question(mode: Mode, rules: Rules, action: Action) -> str | None:
    """Why the mode asks about `action`; None where it does not."""
    if mode is Mode.WORKSPACE_EDIT:
        for reach in action.reaches:
            verb = "writes" if reach.write else "reads"
            if reach.write and reach.guarded:
                return f"it {verb} {reach.path}, which other programs run or trust"
            if not reach.inside:
                return f"it {verb} {reach.path}, outside the workspace"
        if action.tool in RUNS:
            return f"{mode} mode asks before every command"
    elif rules.confirm_destructive and action.command is not None and is_destructive(action.command):
        return "it looks destructive (confirm_destructive_operations)"
    return None


_DESTRUCTIVE = re.compile(
    r"(^|[\s;&|(`'\"/])(rm|rmdir|shred|truncate|dd|mkfs[.\w]*|fdisk|parted|kill|killall|pkill|shutdown|reboot|"
    r"git\s+(\S+\s+)*(reset|clean|push|checkout|restore|rebase|branch\s+-D|stash\s+(drop|clear))|"
    r"docker\s+(\S+\s+)*(rm|rmi|prune)|drop\s+(table|database)|chmod|chown)\b|(?<!>)>(?!>)\s*[^&\s]|-delete\b",
    re.IGNORECASE,
)


def is_destructive(command: str) -> bool:
    """Whether a shell command looks as if it deletes or overwrites. A courtesy, not a boundary."""
    return _DESTRUCTIVE.search(command) is not None


# ---- rules ----------------------------------------------------------------------------------------------------------

_RULE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_CHAINS = re.compile(r"[;&|<>`$()\n\r\\*?\[\]{}~#!\"']|[^\x20-\x7e]")
_BETWEEN = re.compile(r"[;&|\n()`]+|\$\(")
_WRAPPERS = frozenset(
    "env sudo doas nice nohup time timeout xargs sh bash zsh dash exec eval command builtin ssh find".split()
)
_RESERVED = frozenset("! { if then elif else while until do".split())


def is_rule(text: str) -> bool:
    """Whether `text` has the form ``tool`` or ``tool(pattern)`` with a tool that exists."""
    found = _RULE.fullmatch(text)
    return found is not None and found[1] in READS | WRITES | RUNS


def rule_for(action: Action) -> str | None:
    """The narrowest rule that would have allowed `action`, for the answer "always"; None where none can."""
    if _guarded(action):
        return None
    if action.command is not None:
        return f"{action.tool}({glob.escape(action.command)})"
    outside = [reach.path for reach in action.reaches if not reach.inside]
    return f"{action.tool}({glob.escape(outside[0])})" if len(outside) == 1 else None


def denied_paths(rules: Rules) -> tuple[str, ...]:
    """The patterns of paths that no search may look into."""
    found = (_RULE.fullmatch(rule) for rule in rules.deny)
    return tuple(match[2] for match in found if match and match[1] in ("read", "grep") and match[2])


def _guarded(action: Action) -> bool:
    return any(reach.write and reach.guarded for reach in action.reaches)


def _first(rules: tuple[str, ...], action: Action) -> str | None:
    """The first rule that speaks of any part of `action`."""
    subjects = _subjects(action)
    if action.command is not None:
        subjects += _parts(action.command)
    return next((rule for rule in rules if any(_matches(rule, action.tool, s, strict=False) for s in subjects)), None)


def _parts(command: str) -> Iterator[str]:
    """The simple commands in a chained one, each as it is and without what stands in front of its program."""
    for part in _BETWEEN.split(command):
        words = part.split()
        yield " ".join(words)
        while words and (words[0] in _WRAPPERS | _RESERVED or "=" in words[0]):
            del words[0]
        yield " ".join(words)


def _all(rules: tuple[str, ...], action: Action) -> str | None:
    """A rule that allows the whole of `action`, or the first of the several that together do."""
    subjects = _subjects(action, asked_only=True)
    found = [next((r for r in rules if _matches(r, action.tool, s, strict=True)), None) for s in subjects]
    return found[0] if found and None not in found else None


def _subjects(action: Action, asked_only: bool = False) -> list[str]:
    if action.command is not None:
        return [action.command]
    return [reach.path for reach in action.reaches if not (asked_only and reach.inside)]


def _matches(rule: str, tool: str, subject: str, *, strict: bool) -> bool:
    """Whether `rule` speaks of `subject`. A strict match is for allowing: a pattern then covers plain commands only."""
    found = _RULE.fullmatch(rule)
    if found is None or found[1] != tool:
        return False
    pattern = found[2]
    # A rule for one command has its brackets escaped: as plain text it must not allow a command that looks like it.
    if pattern is None or pattern == glob.escape(subject) or (pattern == subject and not (strict and "[" in subject)):
        return True
    if tool in RUNS and strict and not _is_plain(subject):
        return False
    return fnmatch.fnmatchcase(subject, pattern)


def _is_plain(command: str) -> bool:
    """One simple command: nothing chained, substituted, redirected, quoted, globbed or run by another program."""
    words = command.split()
    return bool(words) and _CHAINS.search(command) is None and "=" not in words[0] and words[0] not in _WRAPPERS


def _words(names: frozenset[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last}" if most else last
