"""Dialogue: questions to whoever sits at the terminal, line by line, on standard error; works over any connection."""

from collections.abc import Sequence

import click

from cass.visible import safe_line

_SHOWN = 20
"""Choices that are listed at a time; a part of a name narrows them down."""


ESC = "\x1b"


class Dialogue:
    def choose(self, question: str, choices: Sequence[str], at: int = 0) -> int:
        """The index of the choice that is typed, as its number, its name or a part of it that no other has."""
        fitting = list(range(len(choices)))
        self._list(question, choices, fitting)
        while True:
            said = click.prompt("number or name, Ctrl-C leaves", default=str(at + 1), err=True).strip()
            if said == ESC:
                raise click.Abort
            if said.isdecimal() and 0 < int(said) <= len(choices):
                return int(said) - 1
            exact = [n for n, choice in enumerate(choices) if choice.split()[:1] == [said] or choice == said]
            found = exact or [n for n, choice in enumerate(choices) if said.casefold() in choice.casefold()]
            if len(found) == 1:
                return found[0]
            if found:
                fitting = found
                self._list(question, choices, fitting)
            else:  # what was typed may be a key, one question too early: it is not repeated
                click.echo("that is none of them", err=True)

    def _list(self, question: str, choices: Sequence[str], fitting: Sequence[int]) -> None:
        click.echo(question, err=True)
        for n in fitting[:_SHOWN]:
            click.echo(f"  {n + 1:3}  {safe_line(choices[n])}", err=True)
        if len(fitting) > _SHOWN:
            click.echo(f"  and {len(fitting) - _SHOWN} more: type a part of the name", err=True)

    def text(self, question: str) -> str:
        """One line, which may be empty."""
        said: str = click.prompt(question, default="", show_default=False, err=True)
        return said.strip()

    def secret(self, question: str) -> str:
        said: str = click.prompt(question, hide_input=True, prompt_suffix=" (it is not shown): ", err=True)
        return said
