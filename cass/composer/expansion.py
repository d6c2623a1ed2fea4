"""Expansion: the message that a line such as ``/NAME ARGUMENTS`` stands for, where NAME is a template."""

from pathlib import Path

from cass import commands, templates
from cass.commands import Command, Runs
from cass.home import Home


def message(line: str, home: Home, cwd: Path) -> str | None:
    """What is sent for `line`; None where it stands for itself. Raises UsageError for arguments that do not fit."""
    word, _, arguments = line.strip().partition(" ")
    if not line.startswith("/") or commands.find(word) is not None:
        return None
    template = templates.every(home, cwd).get(word[1:])
    return template.filled(arguments.strip()) if template else None


def found(home: Home, cwd: Path) -> list[Command]:
    """What can be expanded in the directory `cwd`, as commands."""
    every = templates.every(home, cwd).values()
    return [Command(f"/{one.name}", one.description, Runs.COMPOSER, one.usage) for one in every]
