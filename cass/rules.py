"""Rules: what the person always allows, asks or denies, as ``tool(pattern)``.

In a pattern ``*`` is any text, ``?`` one character, ``[ab]`` one of them. A path is compared in full, resolved. A
command is taken apart first (`cass.compound`): each part must be allowed, and a deny rule hits if it speaks of any. A
URL is compared in its one spelling (`cass.web.url`), its host apart from its path. For another tool the pattern is
compared with the paths that it says it touches, else with its arguments as JSON; the name of one of an MCP server may
hold ``*`` as well.
"""

import fnmatch
import glob
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from cass import compound
from cass.compound import Part, Uncertain
from cass.pattern import pattern

READS = frozenset({"ls", "read", "grep"})
WRITES = frozenset({"write", "edit"})
RUNS = frozenset({"shell"})
FETCHES = frozenset({"fetch"})
AGENT = "agent"
"""The tool that begins another chat: what is done there is decided there."""

MCP = "mcp__"
"""What the names of tools of MCP servers begin with."""

_KEYS = ("allow", "ask", "deny")
_RULE = pattern(r"([\w*-]+)(?:\((.*)\))?", re.DOTALL)
_NAME = pattern(r"[A-Za-z]\w{0,63}", re.ASCII)
_WILDCARD = pattern(r"[*?\[]")
_URL = pattern(r"([^/]*://[^/]*)(/.*)", re.DOTALL)
"""Scheme, host and port; path and query."""


class Rules(NamedTuple):
    """The person's rules, ``tool(pattern)`` each; they relax or narrow what is asked and never widen a mode."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    confirm_destructive: bool = False

    def allowing(self, rule: str) -> "Rules":
        return Rules((*self.allow, rule), self.ask, self.deny, self.confirm_destructive)


def is_rule(text: str) -> bool:
    """Whether `text` has the form ``tool`` or ``tool(pattern)``; which tools there are is known later: `strangers`."""
    found = _RULE.fullmatch(text)
    return found is not None and (found[1].startswith(MCP) or _NAME.fullmatch(found[1]) is not None)


def strangers(rules: Rules, known: Iterable[str]) -> list[str]:
    """What is wrong with each rule for a tool that is none of the `known`, nor of an MCP server, in words."""
    known = tuple(known)
    found = [(key, rule, _RULE.fullmatch(rule)) for key in _KEYS for rule in getattr(rules, key)]
    return [
        f'"{key}": {rule} speaks of no tool: there are {", ".join((*known, f"{MCP}SERVER__TOOL"))}'
        for key, rule, match in found
        if match and not match[1].startswith(MCP) and match[1] not in known
    ]


def exactly(tool: str, subject: str) -> str:
    """The rule that speaks of this command or path and of no other."""
    return f"{tool}({glob.escape(subject)})"


def naming(rules: tuple[str, ...], tool: str) -> bool:
    """Whether a rule speaks of any call of `tool`."""
    return _first(rules, tool, lambda _: True) is not None


def denied_paths(rules: Rules) -> tuple[str, ...]:
    """The patterns of paths that no search may look into."""
    found = (_RULE.fullmatch(rule) for rule in rules.deny)
    return tuple(match[2] for match in found if match and match[1] in ("read", "grep") and match[2])


# ---- paths ----------------------------------------------------------------------------------------------------------


def of_paths(rules: tuple[str, ...], tool: str, paths: list[str]) -> list[str | None]:
    """For each path the first rule that speaks of it, if one does."""
    return [_first(rules, tool, partial(_is, subject=path)) for path in paths]


def _first(rules: tuple[str, ...], tool: str, speaks: Callable[[str], bool]) -> str | None:
    for rule in rules:
        found = _RULE.fullmatch(rule)
        if found is not None and _is_called(tool, found[1]) and (found[2] is None or speaks(found[2])):
            return rule
    return None


def _is_called(tool: str, name: str) -> bool:
    return name == tool or (name.startswith(MCP) and fnmatch.fnmatchcase(tool, name))


def _is(pattern: str, subject: str) -> bool:
    return _is_exactly(pattern, subject) or fnmatch.fnmatchcase(subject, pattern)


def _is_exactly(pattern: str, subject: str) -> bool:
    return pattern == glob.escape(subject)


# ---- URLs -----------------------------------------------------------------------------------------------------------


def of_origin(tool: str, url: str) -> str:
    """The rule that speaks of every page that scheme, host and port of `url` have, and of no other."""
    return f"{tool}({glob.escape(url[: url.index('/', url.index('://') + 3)])}/*)"


def mentioning_url(rules: tuple[str, ...], tool: str, url: str) -> str | None:
    """The first rule that speaks of `url`, or of any part of it."""
    return _first(rules, tool, lambda pattern: _is(pattern, url) or _covers_url(pattern, url))


def covering_url(rules: tuple[str, ...], tool: str, url: str) -> str | None:
    """The first rule that allows `url`: one that says which hosts, before it says which paths."""
    return _first(rules, tool, partial(_covers_url, url=url))


def _covers_url(pattern: str, url: str) -> bool:
    """Part by part: the ``*`` in ``https://*.org/*`` must not reach into the path, as of ``https://evil/x.org/``."""
    wanted, given = _URL.fullmatch(pattern), _URL.fullmatch(url)
    if wanted is None or given is None:
        return pattern == "*"
    return _is(wanted[1], given[1]) and _is(wanted[2], given[2])


# ---- commands -------------------------------------------------------------------------------------------------------


def mentioning(rules: tuple[str, ...], tool: str, command: str) -> str | None:
    """The first rule that speaks of any part of `command`, in any spelling that is easily seen through."""
    if not rules:
        return None
    found = compound.mentions(command)
    return _first(rules, tool, lambda pattern: any(pattern == one or _is(pattern, one) for one in found))


def allowing(rules: tuple[str, ...], tool: str, command: str) -> list[tuple[str, str | None]]:
    """Each part of `command` as it is written, with the first rule that allows it or None.

    A rule without a pattern, or for exactly this command, allows the whole of it. Raises Uncertain where it is not
    certain what the parts are.
    """
    if rule := _first(rules, tool, partial(_is_exactly, subject=command)):
        return [(command, rule)]
    return [(part.text, _first(rules, tool, partial(_covers, part=part))) for part in compound.split(command)]


def _covers(pattern: str, part: Part) -> bool:
    """Whether `pattern` allows `part`, and all that it may turn into."""
    if _is_exactly(pattern, part.text):
        return True
    if part.redirects or part.assigns:
        return False
    return any(_covers_form(pattern, form) for form in part.forms())


def _covers_form(pattern: str, form: Part) -> bool:
    if not (fnmatch.fnmatchcase(form.plain, pattern) or fnmatch.fnmatchcase(form.text, pattern)):
        return False
    if any(word.wild for word in form.words) and re.search(r"[?\[]", pattern):
        return False  # what stands for any text in the command is covered only by what stands for any in the pattern
    at = compound.program(form.values)
    if at is None or not _names(pattern, form, at):
        return False
    named = _counted(pattern.split()[at:])
    return all(named.get(trap, 0) >= count for trap, count in _counted(form.values[at:]).items())


def _names(pattern: str, form: Part, at: int) -> bool:
    """Whether `pattern` says, before its first wildcard, which program the wrappers in front of it run."""
    if at == 0:
        return True
    said = " ".join(word.plain for word in form.words[: at + 1])
    head = _WILDCARD.split(pattern, maxsplit=1)[0]
    return head == said or head.startswith(said + " ")


def _counted(values: list[str]) -> dict[str, int]:
    found = compound.traps(values) if values else []
    return {trap: found.count(trap) for trap in found}


# ---- rules in vain --------------------------------------------------------------------------------------------------


def vain(rules: Rules) -> list[str]:
    """What is wrong with each rule that can never do anything, in words."""
    found = [(key, rule) for key in _KEYS for rule in getattr(rules, key)]
    texts = [(key, rule, _why_vain(key, rule, rules)) for key, rule in found]
    return [f'"{key}": {rule} can never match: {why}' for key, rule, why in texts if why]


def _why_vain(key: str, rule: str, rules: Rules) -> str | None:
    match = _RULE.fullmatch(rule)
    if match is None:
        return "it is no rule"
    tool, pattern = match[1], match[2]
    stronger = {"allow": (*rules.deny, *rules.ask), "ask": rules.deny}.get(key, ())
    if over := next((other for other in stronger if other in (rule, tool)), None):
        return f"{over} is stronger"
    if pattern is None or tool not in READS | WRITES | RUNS | FETCHES:
        return None
    if tool in FETCHES:
        return _vain_url(key, pattern)
    return _vain_command(key, pattern) if tool in RUNS else _vain_path(pattern)


def _vain_url(key: str, pattern: str) -> str | None:
    found = _URL.fullmatch(pattern)
    if found is None:
        if key == "allow":
            return None if pattern == "*" else "it must say which hosts and which paths, as https://host/*"
        return None if pattern[:1] in ("*", "?", "[", "h") else f"URLs are compared in full: *{pattern}*"
    scheme, _, authority = found[1].partition("://")
    if found[1] != found[1].lower():
        return "scheme and host are compared in lower case"
    if not any(fnmatch.fnmatchcase(name, scheme) for name in ("http", "https")):
        return "only http:// and https:// are fetched"
    if "@" in authority or "#" in pattern:
        return "URLs are compared without user, password and fragment"
    if (scheme, authority[-3:]) == ("http", ":80") or (scheme, authority[-4:]) == ("https", ":443"):
        return "URLs are compared without the usual port"
    if not pattern.isascii():
        return "URLs are compared in ASCII: a host as xn--…, other letters as %XX"
    return None


def _vain_path(pattern: str) -> str | None:
    if pattern[:1] not in ("/", "*", "?", "["):
        name = pattern.removeprefix("./").removeprefix("~/")
        return f"paths are compared in full: /…/{name}, or */{name} for any directory"
    if re.search(r"/\.{0,2}(/|$)", pattern) and pattern != "/":
        return "paths are compared without //, /./, /../ and a slash at the end"
    return None


def _vain_command(key: str, pattern: str) -> str | None:
    if pattern != pattern.strip():
        return "blanks around a command are not compared"
    if key != "allow" or not _WILDCARD.search(pattern):
        return None
    sample = re.sub(r"\[[^\]]*\]", "x", pattern).replace("?", "x")
    try:
        parts = compound.split(sample.replace("*", "x"))
    except Uncertain as e:
        return f"a command with {e} is allowed only by a rule without wildcards"
    if len(parts) > 1:
        return "a command of several parts is allowed part by part, or by a rule without wildcards"
    values = parts[0].values
    if parts[0].redirects or parts[0].assigns:
        return "a command that redirects or sets variables is allowed only by a rule without wildcards"
    at = compound.program(values)
    # The wildcard may stand for what a wrapper runs, or for its options.
    if at is None or not _names(pattern, parts[0], at):
        return f"{values[0]} runs or changes other commands: name what it runs, before the first wildcard"
    return None
