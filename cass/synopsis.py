"""The synopsis: what each program takes, read off its click command; completions and man pages are made of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import click

from cass.known import PROVIDERS


class Kind(StrEnum):
    """What a word stands for."""

    CHAT = "chat"
    FILE = "file"
    DIRECTORY = "directory"
    WORD = "word"
    """One of a list."""
    TEXT = "text"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Value:
    """What stands behind an option, or by itself."""

    name: str
    """As help shows it, without brackets."""
    kind: Kind
    words: tuple[str, ...] = ()
    is_optional: bool = False
    is_many: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    """With their dashes, the short ones first."""
    help: str
    """A sentence."""
    value: Value | None = None
    """None for a flag."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, or one of its subcommands."""

    name: str
    help: str
    """A sentence."""
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]
    commands: tuple["Program", ...] = ()
    epilog: str = ""


_KINDS = {
    "CHAT": Kind.CHAT,
    **dict.fromkeys(("FILE", "TASKS.jsonl", "MODEL.gguf"), Kind.FILE),
    "DIR": Kind.DIRECTORY,
}
_WORDS = {
    "--provider": tuple(PROVIDERS),
    "PROVIDER": tuple(PROVIDERS),
    "--effort": ("low", "medium", "high", "off"),
}
HELP = Option(("-h", "--help"), "Show this message and exit.")


def programs(commands: Mapping[str, click.Command]) -> dict[str, Program]:
    """What each of these takes, by name."""
    return {name: _program(name, command) for name, command in commands.items()}


def _program(name: str, command: click.Command) -> Program:
    context = click.Context(command, info_name=name)
    options = [_option(param) for param in command.params if isinstance(param, click.Option) and not param.hidden]
    return Program(
        name,
        " ".join((command.help or "").split()),
        (*options, HELP),
        tuple(_value(param, param.metavar or "") for param in command.params if isinstance(param, click.Argument)),
        tuple(_subcommands(command, context)),
        command.epilog or "",
    )


def _subcommands(command: click.Command, context: click.Context) -> Iterator[Program]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            if not found.hidden:
                program = _program(name, found)
                words = tuple(inner.name for inner in program.commands)
                yield replace(program, arguments=(Value("|".join(words), Kind.WORD, words),)) if words else program


def _option(param: click.Option) -> Option:
    names = sorted([*param.opts, *param.secondary_opts], key=lambda name: name.startswith("--"))
    return Option(tuple(names), param.help or "", None if param.is_flag else _value(param, param.metavar or ""))


def _value(param: click.Parameter, shown: str) -> Value:
    """What a parameter stands for; `shown` with brackets is one that may be left out."""
    if isinstance(param.type, click.Choice):
        words = tuple(map(str, param.type.choices))
        return Value("|".join(words), Kind.WORD, words)
    name = shown.strip("[]")
    words = next((_WORDS[key] for key in (*param.opts, name) if key in _WORDS), ())
    kind = Kind.WORD if words else _KINDS.get(name, Kind.TEXT)
    return Value(name, kind, words, shown.startswith("["), param.nargs == -1)
