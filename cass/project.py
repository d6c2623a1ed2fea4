"""Project: what the files of a trusted directory may say about how cass works there.

``.cass/config.json`` may ask and deny more than the person does, and nothing else: no address, key, command, mode or
permission comes from a project. ``AGENTS.md`` is text for the model (`cass.instructions`), nothing more.
"""

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from cass import trust
from cass.errors import CassError
from cass.home import Home
from cass.rules import Rules, is_rule, vain

CONFIG = ".cass/config.json"
KEYS = ("ask", "deny", "confirm_destructive_operations")


class Project(NamedTuple):
    """What a project adds."""

    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    confirm_destructive: bool = False
    notices: tuple[str, ...] = ()

    def narrowed(self, rules: Rules) -> Rules:
        """The person's rules, and those of the project besides."""
        return rules._replace(
            ask=(*rules.ask, *self.ask),
            deny=(*rules.deny, *self.deny),
            confirm_destructive=rules.confirm_destructive or self.confirm_destructive,
        )


def load(root: Path, home: Home) -> Project:
    """What the project of the workspace `root` adds; its notices say what is not used. Never raises for its files."""
    found = [_of_directory(directory, home) for directory in trust.every(root, home)]
    return Project(
        ask=tuple(rule for one in found for rule in one.ask),
        deny=tuple(rule for one in found for rule in one.deny),
        confirm_destructive=any(one.confirm_destructive for one in found),
        notices=tuple(notice for one in found for notice in one.notices),
    )


def _of_directory(directory: Path, home: Home) -> Project:
    try:
        standing = trust.standing(directory, home)
        content = trust.read(directory, CONFIG, home)
    except CassError as e:
        return Project(notices=(str(e),))
    remark = standing.remark()
    notices = (remark,) if remark else ()
    return parse(content, directory / CONFIG, notices) if content is not None else Project(notices=notices)


def parse(content: bytes, path: Path, notices: tuple[str, ...] = ()) -> Project:
    """What `content` of the file `path` adds. What it may not say, or says wrongly, is in the notices."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as e:
        return Project(notices=(*notices, f"{path}: line {e.lineno}: {e.msg}; it is not used"))
    if not isinstance(value, dict):
        return Project(notices=(*notices, f"{path}: expected a JSON object; it is not used"))
    others = ", ".join(key for key in value if key not in KEYS)
    refused = [f"{path}: not for a project to set, and not used: {others}"] if others else []
    wrong: list[str] = []
    ask, deny = (_rules(value, key, path, wrong) for key in ("ask", "deny"))
    useless = [f"{path}: {text}" for text in vain(Rules(ask=ask, deny=deny))]
    confirm = value.get("confirm_destructive_operations") is True
    return Project(ask, deny, confirm, (*notices, *refused, *wrong, *useless))


def _rules(value: dict[str, Any], key: str, path: Path, wrong: list[str]) -> tuple[str, ...]:
    found = value.get(key, [])
    if not isinstance(found, list):
        wrong.append(f'{path}: "{key}": expected a list of rules such as shell(git push*)')
        return ()
    good = tuple(rule for rule in found if isinstance(rule, str) and is_rule(rule))
    wrong += [f'{path}: "{key}": no rule: {rule!r}'[:200] for rule in found if rule not in good]
    return good
