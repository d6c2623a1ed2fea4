"""Completion in bash. A list of chats shows what each is about; bash itself has no place for other descriptions."""

from collections.abc import Iterator, Mapping, Sequence

from cass.completions.chats import SCRIPT
from cass.synopsis import Kind, Option, Program, Value

_HEAD = r"""# Completion of cass and its programs in bash, 3.2 or newer.
# Made from the table of commands by completions/make.py; load it with: eval "$(cass completion bash)"

_cass_chats() {
    sh -c '@CHATS@'
}
"""
_TAIL = r"""
# Puts what may stand at the cursor for a value of this kind into COMPREPLY.
_cass_offer() {
    local IFS=$'\n'
    case ${1#\?} in
        chat) _cass_offer_chats ;;
        file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur")) ;;
        directory) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$cur")) ;;
        word\ *) IFS=' '; COMPREPLY+=($(compgen -W "${1#*word }" -- "$cur")) ;;
    esac
}

# Chats whose id begins with the word, or the one that has it in its id.
_cass_offer_chats() {
    local line
    local -a begin=() inside=()
    while IFS= read -r line; do
        case ${line%% *} in
            "$cur"*) begin+=("$line") ;;
            *"$cur"*) inside+=("${line%% *}") ;;
        esac
    done < <(_cass_chats)
    if ((${#begin[@]} == 0)); then
        ((${#inside[@]} == 1)) && COMPREPLY+=("${inside[0]}")
    elif ((${#begin[@]} > 1)) && [[ ${COMP_TYPE-} == 33 || ${COMP_TYPE-} == 63 || ${COMP_TYPE-} == 64 ]]; then
        COMPREPLY+=("${begin[@]}")  # they are shown, and none of them is inserted
    else
        COMPREPLY+=("${begin[@]%% *}")
    fi
}

_cass() {
    local program=${COMP_WORDS[0]##*/} cur=${COMP_WORDS[COMP_CWORD]} word pending= options commands arguments kind
    local -i n count=0
    [[ $program == cassady ]] && program=cass
    COMPREPLY=()
    _cass_takes "$program"
    for ((n = 1; n < COMP_CWORD; n++)); do
        word=${COMP_WORDS[n]}
        [[ $word == = ]] && continue  # --option=value comes as three words
        if [[ -n $pending ]]; then
            kind=$pending pending=
            [[ $kind == \?* && $word == -* ]] || continue
        fi
        if [[ $word == -* ]]; then
            _cass_value "$program" "$word"
            pending=$kind
        elif ((count == 0)) && [[ " $commands " == *" $word "* ]]; then
            program+=" $word"
            _cass_takes "$program"
        else
            count+=1
        fi
    done
    [[ $cur == = ]] && cur=
    if [[ -n $pending && ! ($pending == \?* && $cur == -*) ]]; then
        _cass_offer "$pending"
        [[ $pending == \?* && -z $cur ]] || return 0
    fi
    if [[ $cur == -* ]]; then
        COMPREPLY+=($(compgen -W "$options" -- "$cur"))
        return 0
    fi
    ((count == 0)) && COMPREPLY+=($(compgen -W "$commands" -- "$cur"))
    for ((n = 0; n < count; n++)); do
        [[ $arguments == *\;* ]] && arguments=${arguments#*;} || arguments=
    done
    [[ -n $arguments ]] && _cass_offer "${arguments%%;*}"
    return 0
}

complete -o nosort -F _cass @NAMES@ 2>/dev/null || complete -F _cass @NAMES@
"""


def script(programs: Mapping[str, Program]) -> str:
    """The whole, for a shell to source."""
    names = " ".join(programs)
    whole = {name: program for name, program in programs.items() if name != "cassady"}
    for name, program in list(whole.items()):
        whole |= {f"{name} {command.name}": command for command in program.commands}
    head = _HEAD.replace("@CHATS@", SCRIPT.rstrip("\n").replace("'", "'\\''"))
    return head + "\n".join(["", *_takes(whole), "", *_values(whole)]) + "\n" + _TAIL.replace("@NAMES@", names)


def _takes(programs: Mapping[str, Program]) -> Iterator[str]:
    yield "# Options, subcommands and arguments of a program, into variables of the caller."
    yield "_cass_takes() {"
    yield "    options= commands= arguments="
    yield "    case $1 in"
    for name, program in programs.items():
        options = " ".join(option_name for option in program.options for option_name in option.names)
        commands = " ".join(command.name for command in program.commands)
        arguments = ";".join(map(_kind, program.arguments))
        yield f"        {_quoted(name)})"
        yield f"            options={_quoted(options)}"
        yield from [f"            commands={_quoted(commands)}"] if commands else []
        yield from [f"            arguments={_quoted(arguments)}"] if arguments else []
        yield "            ;;"
    yield "    esac"
    yield "}"


def _values(programs: Mapping[str, Program]) -> Iterator[str]:
    """What stands behind each option; one that means the same in every program is named once."""
    yield "# What the option $2 of the program $1 takes, into a variable of the caller."
    yield "_cass_value() {"
    yield "    kind="
    yield "    case $1,$2 in"
    kinds: dict[str, set[str]] = {}
    for program in programs.values():
        for option, name in _named(program.options):
            kinds.setdefault(name, set()).add(_kind(option.value))
    lines: dict[str, list[str]] = {}
    for program_name, program in programs.items():
        for option, name in _named(program.options):
            where = "*" if len(kinds[name]) == 1 else _quoted(program_name)
            lines.setdefault(_kind(option.value), []).append(f"{where},{name}")
    for kind, patterns in lines.items():
        if kind:
            yield f"        {' | '.join(dict.fromkeys(patterns))}) kind={_quoted(kind)} ;;"
    yield "    esac"
    yield "}"


def _named(options: Sequence[Option]) -> list[tuple[Option, str]]:
    return [(option, name) for option in options for name in option.names]


def _kind(value: Value | None) -> str:
    """As `_cass_offer` reads it; "" for a flag."""
    if value is None:
        return ""
    words = f"word {' '.join(value.words)}" if value.kind is Kind.WORD else str(value.kind)
    return f"?{words}" if value.is_optional else words


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
