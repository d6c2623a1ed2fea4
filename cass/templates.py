"""Templates: messages written once, in ``prompts/NAME.md``, and sent as ``/NAME ARGUMENTS``.

The person's stand in ``~/.cass/prompts``; those of a project in ``.cass/prompts``, as the person trusted them, and only
where the person has none of that name. ``$1`` to ``$9`` are words of the arguments, ``$@`` and ``$ARGUMENTS`` all of
them, ``{{name}}`` is what ``name=value`` among them gives; ``$$1`` is the text ``$1``.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cass import commands, frontmatter, trust
from cass.errors import UsageError
from cass.frontmatter import Unused
from cass.home import Home
from cass.pattern import pattern

DIRECTORY = "prompts"
BYTES = 64 << 10
"""A longer file is not used."""
DESCRIPTION = 100
"""Characters of a description that a menu shows."""

_NAME = pattern(r"[A-Za-z][\w-]{0,63}", re.ASCII)
_PLACE = pattern(
    r"\$\$(?=[1-9@A])|\$(?P<number>[1-9])(?!\d)|(?P<all>\$@|\$ARGUMENTS\b)"
    r"|(?<!\$)\{\{[ ]*(?P<name>[A-Za-z_]\w*)[ ]*\}\}",
    re.ASCII,
)
_NAMED = pattern(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    path: Path
    body: str
    description: str
    """One line: of its front matter, else the first of its text."""
    hint: str = ""
    """Which arguments it takes, for people."""

    def filled(self, arguments: str) -> str:
        """The message. Raises UsageError that names each placeholder without a value."""
        places = list(_PLACE.finditer(self.body))
        names = {place["name"] for place in places if place["name"]}
        words, named = _parted(arguments, names)
        everything = " ".join(words) if named else arguments
        missing: dict[str, None] = {}

        def fill(place: "re.Match[str]") -> str:
            if place["number"]:
                number = int(place["number"])
                value = words[number - 1] if number <= len(words) else None
            elif place["name"]:
                value = named.get(place["name"])
            else:
                value = everything if place["all"] else "$"
            if value is None:
                missing[place[0]] = None
            return value or ""

        text = _PLACE.sub(fill, self.body)
        if missing:
            raise UsageError(f"/{self.name}: no value for {', '.join(missing)}; usage: /{self.name} {self.usage}")
        takes_some = any(place[0] != "$$" for place in places)
        return text if takes_some or not arguments else f"{text}\n\n{arguments}"

    @property
    def usage(self) -> str:
        """The arguments, as help shows them."""
        if self.hint:
            return self.hint
        places = list(_PLACE.finditer(self.body))
        most = max((int(place["number"]) for place in places if place["number"]), default=0)
        words = [f"ARG{number}" for number in range(1, most + 1)]
        words += [f"{name}=VALUE" for name in dict.fromkeys(place["name"] for place in places if place["name"])]
        return " ".join([*words, *(["[TEXT]"] if any(place["all"] for place in places) else [])])


def every(home: Home, cwd: Path) -> dict[str, Template]:
    """All that can be used in the directory `cwd`, by name."""
    found: dict[str, Template] = {}
    for template in _seen(home, cwd):
        if isinstance(template, Template):
            found.setdefault(template.name, template)
    return dict(sorted(found.items()))


def unused(home: Home, cwd: Path) -> list[Unused]:
    """What else lies there; of a project only what the person trusted."""
    return [one for one in _seen(home, cwd) if isinstance(one, Unused)]


def _seen(home: Home, cwd: Path) -> Iterator[Template | Unused]:
    """The person's first, then those of the project, the nearest first."""
    for path in sorted((home.root / DIRECTORY).glob("*.md")):
        yield _parsed(path, trust.content(path.resolve()))
    for root in reversed(trust.every(cwd, home)):
        for name in trust.names(root, home):
            path = root / name
            if path.parent == root / ".cass" / DIRECTORY and path.suffix == ".md":
                content = trust.read(root, name, home)
                if content is not None:
                    yield _parsed(path, content)


def _parsed(path: Path, content: bytes | None) -> Template | Unused:
    if not _NAME.fullmatch(path.stem):
        return Unused(path, "its name is none: a letter, then letters, digits, _ and -, 64 at most")
    if commands.find(f"/{path.stem}") is not None:
        return Unused(path, f"/{path.stem} is a command of cass")
    if content is None:
        return Unused(path, "it cannot be read")
    if len(content) > BYTES:
        return Unused(path, f"it has more than {BYTES:,} bytes")
    keys, body = frontmatter.split(content)
    if not body:
        return Unused(path, "it has no text to send")
    description = (keys.get("description") or body.partition("\n")[0].lstrip("# "))[:DESCRIPTION]
    return Template(path.stem, path, body, description, keys.get("argument-hint", ""))


def _parted(arguments: str, names: set[str]) -> tuple[list[str], dict[str, str]]:
    """The words of the arguments, and those that give a value to one of `names`."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # an apostrophe
        words = arguments.split()
    given = {word: found for word in words if (found := _NAMED.fullmatch(word)) and found[1] in names}
    return [word for word in words if word not in given], {found[1]: found[2] for found in given.values()}
