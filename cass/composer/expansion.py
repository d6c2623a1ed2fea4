"""Expansion: the message that a line such as ``/NAME ARGUMENTS`` stands for, where NAME is a template
or ``skill:`` and the name of a skill.
"""

from pathlib import Path

from cass import commands, skills, templates
from cass.commands import Command, Runs
from cass.home import Home

SKILL = "/skill:"
WIDTH = 100
"""Characters of a description that a menu shows."""


def message(line: str, home: Home, cwd: Path) -> str | None:
    """What is sent for `line`; None where it stands for itself. Raises UsageError for arguments that do not fit."""
    word, _, arguments = line.strip().partition(" ")
    if not line.startswith("/") or commands.find(word) is not None:
        return None
    if word.startswith(SKILL):
        return skills.find(word.removeprefix(SKILL), home, cwd).message(arguments.strip())
    template = templates.every(home, cwd).get(word[1:])
    return template.filled(arguments.strip()) if template else None


def found(home: Home, cwd: Path) -> list[Command]:
    """What can be expanded in the directory `cwd`, as commands."""
    rows = [(f"/{one.name}", one.description, one.usage) for one in templates.every(home, cwd).values()]
    rows += [(f"{SKILL}{one.name}", one.description[:WIDTH], "[TEXT]") for one in skills.every(home, cwd).values()]
    return [Command(name, help, Runs.COMPOSER, usage) for name, help, usage in rows]
