"""Compound commands: what a text for bash would run, taken apart into simple commands as far as that is certain.

`split` is strict, for allowing: it understands words, quotes and what stands between commands, and raises `Uncertain`
for everything else. `mentions` is loose, for denying: it sees through the easy spellings and errs on the side of too
many. Source: https://www.gnu.org/software/bash/manual/html_node/Shell-Operation.html
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from cass.pattern import pattern

LONGEST = 1 << 16
"""Characters of a command that is taken apart; more is no command that a person had in mind when they wrote a rule."""


MOST = 200
"""Parts of a command."""


class Uncertain(Exception):
    """What a command would run cannot be told for certain; the text says what stands in the way."""


class Word(NamedTuple):
    text: str
    """As it is written."""
    value: str
    """What bash makes of it; of a word with wildcards, which become names of files, the word as it is written."""
    wild: bool = False

    @property
    def plain(self) -> str:
        """One spelling for all that mean the same: without quotes where none are needed, else in single ones."""
        if self.text == self.value or _SAFE.fullmatch(self.value):
            return self.value
        return "'" + self.value.replace("'", "'\"'\"'") + "'"


class Part(NamedTuple):
    """One simple command."""

    text: str
    """As it is written, all of it."""
    words: tuple[Word, ...]
    """Without redirections."""
    redirects: bool = False
    """Whether it reads or writes a file by redirection; ``/dev/null`` and ``2>&1`` do not count."""
    assigns: bool = False
    """Whether variables are set in front of it."""

    @property
    def plain(self) -> str:
        return " ".join(word.plain for word in self.words)

    @property
    def values(self) -> list[str]:
        return [word.value for word in self.words]

    def forms(self) -> "Iterator[Part]":
        """The part, and what is left of it behind each word in front that changes nothing about what runs."""
        part = self
        yield part
        while len(part.words) > 1 and part.words[0].text in _TRANSPARENT and part.words[1].text[:1] != "-":
            part = Part(part.text.partition(part.words[0].text)[2].strip(), part.words[1:], part.redirects)
            yield part


_TRANSPARENT = frozenset({"!", "time", "nohup", "command"})
_RESERVED = frozenset("if then elif else fi for while until do done case esac in select function coproc".split())
_SAFE = pattern(r"[A-Za-z0-9_@%+=:,./^-]+")
# Not elsewhere: a line continued inside a word or an operator joins what must not be read apart.
_BLANKS = pattern(r"[ \t](?:[ \t]|\\\n)*")
_COMMENT = pattern(r"#[^\n]*")
_BETWEEN = pattern(r"&&|\|\||\|&|[|;&\n]")
_HARMLESS = pattern(r"(?:(?:[12]?>>?|&>>?|0?<)[ \t]*/dev/null|[12]?>&[12])(?=[ \t\n;&|<>]|$)")
_REDIRECTION = pattern(r"\d*(?:<<<|<>|<|>>|>\||>)|&>>?")
_LITERAL = pattern(r"[A-Za-z0-9_@%+=:,./^~!#-]+")
_WILDCARDS = pattern(r"[*?]+")
# Names of files that a word becomes may be options, unless its beginning says already what they are.
_BEGINS_SAFELY = pattern(r"[A-Za-z0-9_./]|--?[A-Za-z0-9-]+=")
_SINGLE = pattern(r"'([^']*)'")
_DOUBLE = pattern(r'"((?:[^"\\$`]|\\[^\n]|\\\n)*)"')
_ESCAPE = pattern(r"\\([\x20-\x7e])")
_IN_DOUBLE = pattern(r'\\([$`"\\])|\\\n')
_OBSTACLES = {
    "$": "an expansion, which $ begins",
    "`": "a command in backquotes",
    "(": "parentheses",
    ")": "parentheses",
    "{": "braces",
    "}": "braces",
    "[": "brackets, which stand for names of files",
    "]": "brackets, which stand for names of files",
    "'": "a quote that is not closed",
    '"': "a quote that is not closed, or an expansion in it",
    "\\": "a backslash before something unusual",
    "\r": "a carriage return",
}


def split(command: str) -> tuple[Part, ...]:
    """The simple commands of `command`, in order. Raises Uncertain where it is not certain that they are all."""
    if len(command) > LONGEST:
        raise Uncertain("it is too long")
    reader = _Reader(command)
    while reader.at < len(command):
        reader.step()
    reader.finish("\n")
    if not reader.parts:
        raise Uncertain("there is no command in it")
    return tuple(reader.parts)


class _Reader:
    """Reads a command from left to right, one token a step."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.at = 0
        self.parts: list[Part] = []
        self._expects_more = False
        self._begin()

    def _begin(self) -> None:
        self._words: list[Word] = []
        self._start: int | None = None
        self._end = 0
        self._redirects = False
        self._is_target = False

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.command, self.at)
        if found:
            self.at = found.end()
        return found

    def step(self) -> None:
        before = self.at
        if self._take(_BLANKS):
            return
        if comment := self._take(_COMMENT):
            _check(comment[0])
            return
        if not self._is_target and self._take(_HARMLESS):
            self._mark(before)
        elif self._take(_REDIRECTION):
            self._check_redirection()
            self._mark(before)
            self._redirects = self._is_target = True
        elif between := self._take(_BETWEEN):
            self.finish(between[0])
        else:
            word = self._word()
            self._mark(before)
            if not self._is_target:
                self._words.append(word)
            self._is_target = False

    def _check_redirection(self) -> None:
        """Raise Uncertain unless the name of a file follows; not that of a descriptor, nor a command or a text."""
        after = self.command[self.at : self.at + 1]
        if self._is_target or after in ("(", "&", "<", ">"):
            raise Uncertain("a here-document, or a redirection from or to something else than a file")

    def _mark(self, before: int) -> None:
        """What was just read belongs to the current part."""
        self._start = before if self._start is None else self._start
        self._end = self.at
        self._expects_more = False

    def _word(self) -> Word:
        start, values, is_quoted, is_wild = self.at, [], False, False
        while self.at < len(self.command) and self.command[self.at] not in " \t\n;&|<>":
            if literal := self._take(_LITERAL):
                values.append(literal[0])
            elif wild := self._take(_WILDCARDS):
                values.append(wild[0])
                is_wild = True
            elif found := self._take(_SINGLE):
                values.append(_check(found[1]))
                is_quoted = True
            elif found := self._take(_DOUBLE):
                values.append(_check(_IN_DOUBLE.sub(lambda match: match[1] or "", found[1])))
                is_quoted = True
            elif found := self._take(_ESCAPE):
                values.append(found[1])
                is_quoted = True
            else:
                raise Uncertain(_OBSTACLES.get(self.command[self.at], "an invisible or unusual character"))
        word = Word(self.command[start : self.at], "".join(values), is_wild)
        if is_wild and (is_quoted or not self._words or not _BEGINS_SAFELY.match(word.value)):
            raise Uncertain("a wildcard where names of files may be taken for something else")
        if word.text[:1] == "~":
            raise Uncertain("~, which stands for somebody's home directory")
        return word

    def finish(self, between: str) -> None:
        """The current part ends, at `between`."""
        if self._is_target:
            raise Uncertain("a redirection without a file")
        if self._start is None:
            if between != "\n":
                raise Uncertain(f"nothing stands before {between}")
            if self._expects_more and self.at >= len(self.command):
                raise Uncertain("it is not finished")
            return
        self.parts.append(self._part())
        if len(self.parts) > MOST:
            raise Uncertain("too many parts")
        self._begin()
        self._expects_more = between in ("&&", "||", "|", "|&")

    def _part(self) -> Part:
        text = self.command[self._start : self._end]
        words = self._words
        first = next((word for word in words if word.text not in ("!", "time")), None)
        if first is not None and first.text in _RESERVED:
            raise Uncertain(f"the word {first.text}, which is no program")
        assigns = bool(words) and "=" in words[0].value
        return Part(text, tuple(words), self._redirects or not words, assigns)


def _check(text: str) -> str:
    if not all(char.isprintable() or char in "\n\t" for char in text):
        raise Uncertain("an invisible character")
    return text


# ---- what runs something else ---------------------------------------------------------------------------------------

WRAPPERS = frozenset(
    "sh bash dash zsh ksh fish env sudo doas su nice ionice nohup time timeout stdbuf setsid chroot command builtin "
    "exec eval xargs parallel ssh watch strace ltrace script flock unshare nsenter systemd-run busybox . source "
    # what gives the words that follow another meaning, or another place
    "alias unalias shopt set unset export declare typeset readonly local hash enable trap cd pushd popd "
    # what sets variables, or looks one up by a name in which a command may stand
    "read mapfile readarray getopts let compgen complete bind fc".split()
)
"""Programs that run what their arguments, their input or a file say, and words that change what follows them."""
_NAMEABLE = frozenset("sh bash dash zsh ksh fish sudo doas nice nohup time env setsid command".split())
_TRAPS = (
    *("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
    *(
        "--output",
        "--output-directory",
        "--exec",
        "--exec-batch",
        "--exec-path",
        "--config-env",
        "--upload-pack",
        "--receive-pack",
        "--ext-diff",
    ),
    *("--open-files-in-pager", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh", "--pre"),
    *("--compress-program", "--pager", "--browser", "--hostname-bin", "--template", "--info-script"),
    *("--new-volume-script", "--rmt-command", "--rsh-command"),
)
"""Options that run a command or write a file, of programs that mostly only look."""
_TRAPS_OF = {
    "printf": "v",
    "test": "vR",
    "wait": "p",
    "sort": "oT",
    "tree": "o",
    "man": "PH",
    "fd": "xX",
    "fdfind": "xX",
    "tar": "IF",
    "file": "C",
    "date": "s",
    "curl": "oOKcD",
    "zip": "T",
    "git clone": "cu",
    "git ls-remote": "u",
    "git archive": "o",
    "git format-patch": "o",
    "git rebase": "x",
    "git grep": "O",
}
"""The same, of one letter, for programs and commands of git."""
_GIT_RUNS = frozenset(
    "config bisect submodule filter-branch difftool mergetool daemon hook send-email instaweb web--browse".split()
)
"""Of git: what runs other commands, or decides which ones run later."""
_GIT_TRAPS = ("-c", "-C", "--git-dir", "--work-tree")
_GIT_VALUES = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env"})


def program(values: list[str]) -> int | None:
    """Where in a simple command the program stands that does the work: 0, or behind wrappers; None if unclear."""
    at = 0
    while os.path.basename(values[at]) in WRAPPERS:
        name = os.path.basename(values[at])
        at += 2 if name == "timeout" else 1
        if name not in _NAMEABLE | {"timeout"} or at >= len(values) or values[at][:1] == "-" or "=" in values[at]:
            return None
    return at


def traps(values: list[str]) -> list[str]:
    """The words of a simple command that would make its program run or write something else."""
    name = os.path.basename(values[0])
    front = _subcommand(values) if name == "git" else 0
    letters = _TRAPS_OF.get(" ".join([name, *values[front : front + 1]]) if front else name, "")
    found = []
    for at, value in enumerate(values[1:], 1):
        known = (*_GIT_TRAPS, *_TRAPS) if at < front else _TRAPS
        found += ([trap for trap in known if _is_option(value, trap)] or _letters(value, letters))[:1]
    return found + [word for word in values[front : front + 1] if front and word in _GIT_RUNS]


def _is_option(value: str, option: str) -> bool:
    """Whether `value` is `option`, also shortened as many programs let it be."""
    name = value.partition("=")[0]
    if option[:2] == "--":
        return len(name) > 2 and option.startswith(name)
    return name == option or (len(option) == 2 and value.startswith(option))


def _letters(value: str, traps: str) -> list[str]:
    """Those of the one-letter options `traps` that stand in `value`, perhaps after others that share their dash."""
    return [f"-{letter}" for letter in traps if letter in value] if re.match(r"-[^-]", value) else []


def _subcommand(values: list[str]) -> int:
    """Where the options of git itself end."""
    at = 1
    while at < len(values) and values[at][:1] == "-":
        at += 2 if values[at] in _GIT_VALUES else 1
    return at


# ---- mentions -------------------------------------------------------------------------------------------------------

_SEPARATORS = pattern(r"[;&|\n()`]+|\$\(")
_ANSI_C = pattern(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = pattern(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|(.))", re.DOTALL)
_IFS = pattern(r"\$IFS\b|\$\{IFS[^}]*\}")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_LEADING = _RESERVED | {"!", "{", "}", "[", "[["}
_RUN_BY_FIND = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PEELED = 16
"""Words in front of a program that are seen through; each costs the length of the command."""


def mentions(command: str) -> list[str]:
    """Every simple command that `command` may be meant to run, in the spellings a rule would have."""
    found = dict.fromkeys([command, command.strip()])
    try:
        parts = [form for part in split(command) for form in part.forms()]
        is_clear = all(form.words and not form.assigns and program(form.values) == 0 for form in parts)
    except Uncertain:
        parts, is_clear = [], False
    for form in parts:
        found |= dict.fromkeys([form.text, form.plain, *_spellings(form.values)])
    if not is_clear:
        found |= dict.fromkeys(_loosely(command))
    return list(found)


def _loosely(command: str) -> Iterator[str]:
    """As `mentions`, without any knowledge of quotes: they may hide a program's name, or another command."""
    text = _ANSI_C.sub(lambda match: _ESCAPED.sub(_character, match[1]), command[:LONGEST].replace("\\\n", ""))
    text = _IFS.sub(" ", text).replace("\0", "")
    bare = re.sub(r"[\"'\\]", "", text)
    for variant in dict.fromkeys([text, bare, re.sub(r"[{},]", " ", bare)]):
        for piece in _SEPARATORS.split(variant):
            yield from _spellings(piece.split())  # of no arguments: at blanks of every kind


def _spellings(words: list[str]) -> Iterator[str]:
    """A simple command as it is, and each that is left behind what stands in front of a program."""
    begins = [0, *[at + 1 for at, word in enumerate(words) if word in _RUN_BY_FIND][:_PEELED]]
    for begin in begins:
        is_wrapped = False
        for at in range(begin, min(begin + _PEELED, len(words))):
            name, rest = os.path.basename(words[at]), words[at + 1 :]
            yield " ".join([words[at], *rest])
            yield " ".join([name, *rest])
            if name == "git":
                yield " ".join([name, *words[at + _subcommand(words[at:]) :]])
            # Which of the words behind a wrapper are its options, and values of those, only it knows.
            is_wrapped = is_wrapped or name in WRAPPERS
            if not (is_wrapped or name in _LEADING or "=" in words[at]):
                break


def _character(escape: "re.Match[str]") -> str:
    """What an escape in ``$'...'`` stands for."""
    for group, base in ((1, 16), (2, 8), (3, 16), (4, 16)):
        if escape[group]:
            number = int(escape[group], base)
            return chr(number) if number < 0x110000 else ""
    return _LETTERS.get(escape[5], escape[5])
