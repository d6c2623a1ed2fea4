"""Completion in zsh, with what every option, subcommand and chat is about."""

from collections.abc import Iterator, Mapping

from cass.completions.chats import SCRIPT
from cass.synopsis import Kind, Option, Program, Value

_HEAD = r"""#compdef %s
# Completion of cass and its programs in zsh.
# Made from the table of commands by completions/make.py; load it behind compinit with: eval "$(cass completion zsh)"

# Chats, the last used first; any part of an id finds them.
_cass_chats() {
    local -a chats
    chats=("${(@f)$(sh -c '%s')}")
    chats=("${(@)chats/ /:}")
    _describe -V -t chats chat chats -M 'l:|=* r:|=*'
}
"""
_TAIL = r"""
_cass() {
    local curcontext=$curcontext state line
    local -A opt_args
    case ${service:t} in
%s
    esac
}

if [[ $funcstack[1] == _cass ]]; then
    _cass "$@"
else
    compdef _cass %s
fi
"""


def script(programs: Mapping[str, Program]) -> str:
    """The whole: a file of `$fpath`, or for a shell to evaluate."""
    names = " ".join(programs)
    head = _HEAD % (names, SCRIPT.rstrip("\n").replace("'", "'\\''"))
    whole = {name: program for name, program in programs.items() if name != "cassady"}
    parts = [line for name, program in whole.items() for line in _function(_name(name), program)]
    cases = "\n".join(f"        {name}{'|cassady' if name == 'cass' else ''}) {_name(name)} ;;" for name in whole)
    return head + "\n".join(["", *parts]) + _TAIL % (cases, names)


def _name(program: str) -> str:
    return f"_cass_of_{program.replace('-', '_')}"


def _function(name: str, program: Program) -> Iterator[str]:
    """What completes one program; where it has subcommands, what completes each of them as well."""
    for command in program.commands:
        yield from _function(f"{name}_{command.name}", command)
    if program.commands:
        yield from _listing(name, program)
    yield f"{name}() {{"
    words = [*(spec for option in program.options for spec in _specs(option)), *_arguments(name, program)]
    yield "    _arguments -C -s -S : \\" if program.commands else "    _arguments -s -S : \\"
    yield from (f"        {word} \\" for word in words[:-1])
    yield f"        {words[-1]}"
    if program.commands:
        yield "    if [[ $state == command ]]; then"
        yield "        curcontext=${curcontext%:*:*}:cass-$words[1]:"
        yield f"        (($+functions[{name}_$words[1]])) && {name}_$words[1]"
        yield "    fi"
    yield "}"
    yield ""


def _listing(name: str, program: Program) -> Iterator[str]:
    yield f"{name}_commands() {{"
    yield "    local -a commands=("
    yield from ("        " + _quoted(f"{c.name}:{c.help.rstrip('.')}") for c in program.commands)
    yield "    )"
    yield "    _describe -t commands command commands"
    yield "}"
    yield ""


def _specs(option: Option) -> Iterator[str]:
    """An option for `_arguments`, once for each of its names; one name excludes the others."""
    others = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    help = option.help.rstrip(".").replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    for name in option.names:
        yield _quoted(f"{others}{name}[{help}]{_value(option.value) if option.value else ''}")


def _arguments(name: str, program: Program) -> Iterator[str]:
    if program.commands:
        yield _quoted(f"1: :{name}_commands")
        yield "'*:: :->command'"
        return
    for number, value in enumerate(program.arguments, 1):
        place = "*" if value.is_many else str(number)
        yield _quoted(f"{place}{_value(value)}")


def _value(value: Value) -> str:
    colons = "::" if value.is_optional else ":"
    return f"{colons}{value.name.replace(':', chr(92) + ':')}:{_action(value)}"


def _action(value: Value) -> str:
    match value.kind:
        case Kind.CHAT:
            return "_cass_chats"
        case Kind.FILE:
            return "_files"
        case Kind.DIRECTORY:
            return "_directories"
        case Kind.WORD:
            return f"({' '.join(value.words)})"
    return " "


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
