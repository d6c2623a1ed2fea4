"""Completion in fish, with what every option, subcommand and chat is about."""

from collections.abc import Iterator, Mapping

from cass.completions.chats import SCRIPT
from cass.synopsis import Kind, Option, Program, Value

_HEAD = r"""# Completion of cass and its programs in fish.
# Made from the table of commands by completions/make.py; load it with: cass completion fish | source

# Chats, the last used first.
function __cass_chats
    sh -c '%s' | string replace ' ' \t
end

# Whether the command line has this subcommand of cass; without an argument: none yet.
function __cass_in
    set -l commands %s
    set -l found
    for word in (commandline -opc)[2..-1]
        if contains -- $word $commands
            set found $word
            break
        end
    end
    test "$found" = "$argv"
end

# Whether the word before the cursor is one of these.
function __cass_behind
    contains -- (commandline -opc)[-1] $argv
end
"""


def script(programs: Mapping[str, Program]) -> str:
    """The whole, for a shell to source."""
    commands = " ".join(command.name for command in programs["cass"].commands)
    head = _HEAD % (SCRIPT.rstrip("\n").replace("\\", "\\\\").replace("'", "\\'"), commands)
    return head + "\n".join(["", *_lines(programs)]) + "\n"


def _lines(programs: Mapping[str, Program]) -> Iterator[str]:
    for name, program in programs.items():
        if name == "cassady":
            yield "complete -c cassady -w cass"
            continue
        yield f"complete -c {name} -f"
        for command in program.commands:
            help = _quoted(command.help.rstrip("."))
            yield f"complete -c {name} -n __cass_in -a {command.name} -d {help}"
        yield from _of(name, "__cass_in" if program.commands else "", program)
        for command in program.commands:
            yield from _of(name, f"__cass_in {command.name}", command)


def _of(name: str, condition: str, program: Program) -> Iterator[str]:
    """Options and arguments of a program, or of a subcommand on that condition."""
    for option in program.options:
        yield from _option(name, condition, option)
    for value in program.arguments:
        if action := _action(value):
            yield _line(name, condition, action)


def _option(name: str, condition: str, option: Option) -> Iterator[str]:
    names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
    help = f"-d {_quoted(option.help.rstrip('.'))}"
    value = option.value
    if value is None or value.is_optional:
        yield _line(name, condition, f"{names} {help}")
        # A value that may be left out is for fish a word of its own.
        if value is not None and (action := _action(value)):
            behind = f"__cass_behind {' '.join(option.names)}"
            yield _line(name, f"{condition}; and {behind}" if condition else behind, action)
        return
    takes = "-r -F" if value.kind is Kind.FILE else f"-x {_action(value)}".rstrip()
    yield _line(name, condition, f"{names} {takes} {help}")


def _line(name: str, condition: str, rest: str) -> str:
    return f"complete -c {name} {f'-n {_quoted(condition)} ' if condition else ''}{rest}"


def _action(value: Value) -> str:
    """What is offered for a value; "" for nothing."""
    match value.kind:
        case Kind.CHAT:
            return "-k -a '(__cass_chats)'"
        case Kind.FILE:
            return "-F"
        case Kind.DIRECTORY:
            return "-a '(__fish_complete_directories)'"
        case Kind.WORD:
            return f"-a {_quoted(' '.join(value.words))}"
    return ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
