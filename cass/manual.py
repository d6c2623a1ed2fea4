"""The manual: a man page for each program, made from the table of commands.

The macros are those of man(7): https://man7.org/linux/man-pages/man7/groff_man.7.html
"""

from collections.abc import Iterator, Mapping

from cass import __version__
from cass.synopsis import Option, Program, Value

STATUSES = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "wrong usage or configuration, or no API key"),
    ("4", "blocked: something was refused because nobody could be asked"),
    ("69", "no such chat, or its worker is gone"),
    ("124", "a timeout passed; the chat goes on"),
    ("130", "cancelled, or interrupted"),
)
"""Exit statuses, as docs/scripting.md has them at length."""
FILES = (
    ("~/.cass", "the home; CASS_HOME names another one"),
    ("~/.cass/conversations/CHAT.jsonl", "a chat"),
    ("~/.cass/config.json, providers.json, models.json", "what you prefer, connections, facts of models"),
)


def pages(programs: Mapping[str, Program]) -> dict[str, str]:
    """Text of each page, by its file's name."""
    made = {f"{name}.1": page(program, programs) for name, program in programs.items() if name != "cassady"}
    return made | {"cassady.1": ".so man1/cass.1\n"}


def page(program: Program, programs: Mapping[str, Program]) -> str:
    """The page of one program."""
    lines = [
        f'.TH {program.name.upper()} 1 "" "cassady {__version__}" "User Commands"',
        ".SH NAME",
        f"{_text(program.name)} \\- {_text(_small(program.help))}",
        ".SH SYNOPSIS",
        *_synopsis(program.name, program),
        ".SH DESCRIPTION",
        _line(program.help),
        *([".PP", _line(program.epilog)] if program.epilog else []),
        ".SH OPTIONS",
        *(line for option in program.options for line in _option(option)),
        *_commands(program),
        ".SH EXIT STATUS",
        *_table(STATUSES),
        ".SH FILES",
        *_table(FILES),
        ".SH SEE ALSO",
        *_see_also(sorted(programs.keys() - {program.name, "cassady"})),
    ]
    return "\n".join(lines) + "\n"


def _synopsis(name: str, program: Program) -> Iterator[str]:
    yield f".B {_text(name)}"
    if program.options:
        yield ".RI [ OPTION .\\|.\\|.]"
    for value in program.arguments:
        yield _argument(value)
    if program.commands:
        yield ".br"
        yield f".B {_text(name)}"
        yield ".I COMMAND"
        yield ".RI [ ARGUMENT .\\|.\\|.]"


def _argument(value: Value) -> str:
    return f".RI [ {_word(value.name)} ]" if value.is_optional else f".I {_word(value.name)}"


def _option(option: Option) -> Iterator[str]:
    """Its names in bold, its value slanted, and what it does."""
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in option.names)
    if option.value is not None:
        shown = f"\\fI{_text(option.value.name)}\\fR"
        names += f" [{shown}]" if option.value.is_optional else f" {shown}"
    yield ".TP"
    yield names
    yield _line(option.help)


def _commands(program: Program) -> Iterator[str]:
    if not program.commands:
        return
    yield ".SH COMMANDS"
    for command in program.commands:
        yield from _command(program.name, command)


def _command(above: str, command: Program) -> Iterator[str]:
    name = f"{above} {command.name}"
    yield f".SS {_text(name)}"
    yield from _synopsis(name, command)
    yield ".PP"
    yield _line(command.help)
    yield from (line for option in command.options for line in _option(option))
    for inner in command.commands:
        yield from _command(name, inner)


def _table(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for left, right in rows:
        yield ".TP"
        yield f".B {_text(left)}"
        yield _line(right)


def _see_also(names: list[str]) -> Iterator[str]:
    for name in names:
        yield f".BR {_text(name)} (1)" + ("," if name != names[-1] else "")


def _small(sentence: str) -> str:
    """As the line under NAME has it: a small letter first, no full stop."""
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")


def _line(text: str) -> str:
    """A line of text: one that begins with a dot or a quote would be a request."""
    return ("\\&" if text[:1] in (".", "'") else "") + _text(text)


def _word(text: str) -> str:
    """An argument of a macro."""
    return f'"{_text(text)}"' if " " in text else _text(text)


_ESCAPED = str.maketrans({"\\": "\\e", "-": "\\-", '"': "\\(dq", "~": "\\(ti", "^": "\\(ha"})


def _text(text: str) -> str:
    """As it is to be read, whatever it holds."""
    return text.translate(_ESCAPED)
