"""Skills: instructions for kinds of task, of which a model is told one line each and reads the rest when it needs it.

A skill is a directory with a ``SKILL.md``, whose front matter has a name and a description, and whatever its text names
beside it. The person's stand in ``~/.cass/skills`` and ``~/.agents/skills``; those of a project in ``.cass/skills`` and
``.agents/skills`` of the workspace and above it in its git repository, as the person trusted them, and only where the
person has none of that name. Format: https://agentskills.io/specification
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cass import frontmatter, trust
from cass.errors import UsageError
from cass.frontmatter import Unused
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


class Skill(NamedTuple):
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
    for skill in _seen(home, cwd):
        if isinstance(skill, Skill):
            found.setdefault(skill.name, skill)
    return found


def unused(home: Home, cwd: Path) -> list[Unused]:
    """What else lies there; of a project only what the person trusted."""
    found: dict[str, Skill] = {}
    left: list[Unused] = []
    for one in _seen(home, cwd):
        if isinstance(one, Unused):
            left.append(one)
        elif (first := found.setdefault(one.name, one)) is not one:
            left.append(Unused(one.path, f"there is a skill {one.name} already: {first.path}"))
    return left


def find(name: str, home: Home, cwd: Path) -> Skill:
    """The skill of that name. Raises UsageError."""
    found = every(home, cwd)
    if name not in found:
        there = ", ".join(found) or f"none; {home.root / 'skills'} is a place for them"
        why = [f"; {one.path}: {one.why}" for one in unused(home, cwd) if one.path.parent.name == name]
        raise UsageError(f"no skill {name!r}; there are: {there}{''.join(why)}")
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


def _seen(home: Home, cwd: Path) -> Iterator[Skill | Unused]:
    yield from _own(home)
    yield from _of_project(home, cwd)


def _own(home: Home) -> Iterator[Skill | Unused]:
    for top in (home.root / "skills", Path("~/.agents/skills").expanduser()):
        for place in sorted(top.glob("*/")):
            path, directory = place / FILE, os.path.realpath(place)
            content = trust.content(path)
            if content is None and place.name.startswith("."):
                continue  # a .git, for one
            if content is None:
                yield Unused(path, "there is no such file, or none that can be read")
            elif not _is_shelf(directory, home):
                yield Unused(path, f"{directory} holds more than a skill, and is not opened")
            else:
                yield _parsed(path, content, (directory,))


def _is_shelf(directory: str, home: Home) -> bool:
    """Whether a directory of the person's is one of a skill, and not one that opens what cass or the person keeps."""
    roots = {os.path.realpath(root) for root in (home.root, Home.find({}).root)}
    kept = {*roots, os.path.realpath(os.path.expanduser("~"))}
    if any(_is_below(one, directory) for one in kept):
        return False
    return all(_is_below(directory, f"{root}/skills") for root in roots if _is_below(directory, root))


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _of_project(home: Home, cwd: Path) -> Iterator[Skill | Unused]:
    for root in reversed(trust.every(cwd, home)):
        for name in trust.names(root, home):
            top = _PROJECT.match(name)
            if top and name == f"{top[0]}{FILE}" and (content := trust.read(root, name, home)) is not None:
                beside = [str(root / one) for one in trust.sound(root, home, top[0])]
                yield _parsed(root / name, content, tuple(beside))


def _parsed(path: Path, content: bytes, shelves: tuple[str, ...]) -> Skill | Unused:
    if len(content) > BYTES:
        return Unused(path, f"it has more than {BYTES:,} bytes")
    keys, body = frontmatter.split(content)
    name = next((one for one in (keys.get("name", ""), path.parent.name) if _NAME.fullmatch(one)), None)
    description = " ".join((keys.get("description") or body.partition("\n")[0].lstrip("# ")).split())
    if not name:
        return Unused(path, '"name": expected letters, digits, _ and -, 64 at most')
    return Skill(name, description, path, body, shelves) if description else Unused(path, "it has no description")
