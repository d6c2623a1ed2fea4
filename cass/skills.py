"""Skills: instructions for kinds of task, of which a model is told one line each and reads the rest when it needs it.

A skill is a directory with a ``SKILL.md``, whose front matter has a name and a description, and whatever its text names
beside it. The person's stand in ``~/.cass/skills`` and ``~/.agents/skills``; those of a project in ``.cass/skills`` and
``.agents/skills`` of the workspace and above it in its git repository, as the person trusted them, and only where the
person has none of that name. Format: https://agentskills.io/specification
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cass import frontmatter, trust
from cass.errors import UsageError
from cass.home import Home
from cass.pattern import pattern

FILE = "SKILL.md"
BYTES = 128 << 10
"""A longer ``SKILL.md`` is not used."""
DESCRIPTION = 400
"""Characters of a description that the model is told."""
LISTED = 8_000
"""Characters of all that it is told about skills; the rest is named without a description, as far as `NAMED` goes."""
NAMED = 1_000

_NAME = pattern(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)
_PROJECT = pattern(r"(\.cass|\.agents)/skills/[^/]+/")
_FACT = "skill "
_WORDS = "instructions for kinds of task; before a task that one of them is for, read its file"


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    """One line, never empty."""
    path: Path
    """Its ``SKILL.md``, absolute."""
    body: str
    shelves: tuple[str, ...]
    """What may be read for it wherever it lies: directories with all below them, and files; resolved."""

    def message(self, arguments: str) -> str:
        """What the person sends to have it used."""
        head = f"Use the skill {self.name}. Paths in it begin at {self.path.parent}."
        return "\n\n".join(part for part in (head, self.body, arguments) if part)


def every(home: Home, cwd: Path) -> dict[str, Skill]:
    """All that can be used in the workspace `cwd`, by name: the person's, then those of the project, nearest first."""
    found: dict[str, Skill] = {}
    for skill in (*_own(home), *_of_project(home, cwd)):
        found.setdefault(skill.name, skill)
    return found


def find(name: str, home: Home, cwd: Path) -> Skill:
    """The skill of that name. Raises UsageError."""
    found = every(home, cwd)
    if name not in found:
        there = ", ".join(found) or f"none; {home.root / 'skills'} is a place for them"
        raise UsageError(f"no skill {name!r}; there are: {there}")
    return found[name]


def shelves(found: Iterable[Skill]) -> tuple[str, ...]:
    """What may be read for them."""
    return tuple(shelf for skill in found for shelf in skill.shelves)


def facts(found: Mapping[str, Skill], told: Mapping[str, str]) -> dict[str, str]:
    """What a note tells about them, a line each; `told`: what earlier notes did. Empty where there never were any."""
    lines: dict[str, str] = {}
    rest: list[str] = []
    room = LISTED
    for skill in found.values():
        line = f"{skill.description[:DESCRIPTION]} ({skill.path})"
        room -= len(line) + len(skill.name)
        if room < 0:
            rest.append(f"{skill.name} ({skill.path})")
        else:
            lines[_FACT + skill.name] = line
    if rest:
        text = ", ".join(rest)
        lines["more skills"] = text if len(text) <= NAMED else f"{text[:NAMED]}…, {len(rest)} in all"
    gone = {name: "gone" for name in told if name.startswith(_FACT) and name not in lines}
    return ({"skills": _WORDS} if lines else {}) | lines | gone


# ---- finding them ---------------------------------------------------------------------------------------------------


def _own(home: Home) -> Iterator[Skill]:
    for top in (home.root / "skills", Path("~/.agents/skills").expanduser()):
        for path in sorted(top.glob(f"*/{FILE}")):
            directory = os.path.realpath(path.parent)
            content = trust.content(path)
            if content is not None and _is_shelf(directory, home):
                yield from _parsed(path, content, (directory,))


def _is_shelf(directory: str, home: Home) -> bool:
    """Whether a directory of the person's is one of a skill, and not one that opens what cass or the person keeps."""
    roots = {os.path.realpath(root) for root in (home.root, Home.find({}).root)}
    kept = {*roots, os.path.realpath(os.path.expanduser("~"))}
    if any(_is_below(one, directory) for one in kept):
        return False
    return all(_is_below(directory, f"{root}/skills") for root in roots if _is_below(directory, root))


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _of_project(home: Home, cwd: Path) -> Iterator[Skill]:
    for root in reversed(trust.every(cwd, home)):
        for name in trust.names(root, home):
            top = _PROJECT.match(name)
            if top and name == f"{top[0]}{FILE}" and (content := trust.read(root, name, home)) is not None:
                beside = [str(root / one) for one in trust.sound(root, home, top[0])]
                yield from _parsed(root / name, content, tuple(beside))


def _parsed(path: Path, content: bytes, shelves: tuple[str, ...]) -> Iterator[Skill]:
    if len(content) > BYTES:
        return
    keys, body = frontmatter.split(content)
    name = next((one for one in (keys.get("name", ""), path.parent.name) if _NAME.fullmatch(one)), None)
    description = " ".join((keys.get("description") or body.partition("\n")[0].lstrip("# ")).split())
    if name and description:
        yield Skill(name, description, path, body, shelves)
